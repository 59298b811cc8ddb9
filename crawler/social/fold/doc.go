// Package fold makes of what servers say of a Key what is committed of it: records, tombstones, gaps and links in one
// batch, with the state of the Key. It is pure: it has no clock, and asks neither a store nor a server.
//
// Every post is judged by the profile that came with it, in one place for all services (Batch.Take): it does not
// matter whether its author is followed, which timeline or stream brought it, and what the profile said a day ago. Of
// who does not want to be collected no post is kept, and those that were kept before become tombstones.
package fold
