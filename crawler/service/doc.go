// Package service is what the clients of services share (crawler/mastodon,
// crawler/bluesky, crawler/twitter): one request and what its answer means,
// credentials without a printed form, JSON read for what can be made of it, and walks through pages that
// survive whatever a server does with its cursors. It knows no service of its own.
//
//   - Client asks one server, through a Do given by its maker, and gives JSON or a Fault.
//   - Trail follows a chain of cursors and finds out when it comes back to itself.
//   - Edges reads a list (followers, following) and holds it against its count.
//   - Timeline reads a feed from a Mark, upward where the service can, else downward.
//
// Nothing here connects, waits or keeps, and no header of limits is read but Retry-After: Options.Do asks, within a
// budget that it settles with the answer (crawler/budget); a Checkpoint and a Mark are bytes
// to be kept with the page that they came with (I3).
package service
