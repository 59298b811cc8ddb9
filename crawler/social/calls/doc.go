// Package calls makes the API calls of a peer: each within the rate budget of its credential, which is kept in the
// store, and which takes a call before it is sent. So a crash never overspends (I7).
//
// A credential belongs to this peer: it is in no record, log line, or message to another peer.
package calls
