// Package crawler is the loop from a due Key to a committed record and new
// links. It knows nothing of peers: what this peer may fetch it is told
// (SetSlices, Options.Owns), and links into other slices it leaves in the
// store's outbox.
//
// One goroutine, the dispatcher of Run, owns the order: it asks the frontier
// for the next step, reads windows of rows from the store, and starts a
// goroutine for each fetch, at most Options.Workers at once. A fetch ends in one
// store.Commit (I3). Until that is durable the Key is due in the store, so a
// crash at any moment loses no Key and repeats at most the fetches under way.
//
// Politeness across restarts (I7). The time a site may next be asked is kept in
// memory and written when more than the plain delay is owed (Retry-After,
// back-off). That suffices: a peer that starts, or gains a slice, waits out the
// delay of each site from that moment, and that is never earlier than the last
// request of whoever asked before.
//
// Of the links of a page those that lead into a trap are left out (trap), and
// what was stopped is counted with the site. The hosts of a registrable domain
// share a pace (domains).
//
// The volunteer's own limits (Limits) hold the dispatcher, never drop a Key, and
// are named in Stats while they hold.
package crawler
