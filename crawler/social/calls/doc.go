// Package calls makes the API calls of a peer, each within the rate budget of its credential. The
// budget is kept in the store and counts a call before it is sent. So a crash cannot overspend the
// budget (I7).
//
// A credential belongs to this peer. It never appears in a record, a log line, or a message to
// another peer.
package calls
