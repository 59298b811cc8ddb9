// Package crawler is the loop that turns a due Key into a committed record and new links. It knows
// nothing of peers. Its caller says what this peer may fetch (SetSlices, Swarm.Owns). Links into
// other slices stay in the store's outbox.
//
// One goroutine, the dispatcher of Run, decides the order. It asks the frontier for the next step
// and reads windows of rows from the store. It starts a goroutine for each fetch, at most
// Options.Workers at once. A fetch ends in one store.Commit (I3). Until that commit is durable, the
// Key is due in the store. So a crash at any moment loses no Key, and repeats at most the fetches
// under way.
//
// Politeness across restarts (I7). The next allowed time of a site is in memory. It is written if
// it is later than the plain delay requires (Retry-After, back-off). That is enough: a peer that
// starts, or gains a slice, first waits one delay for each site. That is at least one delay after
// the last request of the peer that fetched there before.
//
// Links of a page that lead into a trap are left out (trap), and are counted with the site. The
// hosts of a registrable domain share a pace (domains).
//
// The volunteer's own limits (Limits) pause the dispatcher and never drop a Key. Stats names them
// while they apply.
package crawler
