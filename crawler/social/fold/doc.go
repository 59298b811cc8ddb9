// Package fold turns the answers about a Key into what is committed: records, tombstones, gaps and
// links in one batch, with the state of the Key. It is pure: it has no clock, and asks neither a
// store nor a server.
//
// Batch.Take judges every post by the profile that came with it, in one place for all services. It
// does not matter whether its author is followed, which timeline or stream brought it, or what the
// profile said a day ago. If an author opts out of collection, no post of theirs is stored, and
// stored ones become tombstones.
package fold
