// Package poll decides whose turn it is: which account's follower lists, profile
// or last post is asked for with the next call that a budget allows.
//
// It is pure: no clock, disk or network, no goroutine; time is an argument. It
// stands beside schedule, whose classes it uses, and differs from it: schedule
// says when an item is due, here there is always more due than calls, and only
// the order matters.
//
// # Lists
//
// [Lists] is the two-tier scheme of a thesis on a long-running Twitter collector
// (Libros del cielo ceaseless, section 3.4): users seen at least twice go first,
// the least recently polled of them before the others and who never was before all; then users
// seen once, newest first, so that in a storm some of them are polled
// close to their post. There the oldest of the second tier can wait for ever, as can all of it while
// the first is busy. Here:
//
//   - who was seen once, less than Options.Fresh ago, is fresh: newest first, as there;
//   - calls that neither the first tier nor a fresh user takes go in turns to the
//     newest and, once it has waited for Options.Bound, to the oldest;
//   - of all calls at least Options.Share go to the oldest while it has waited
//     that long; what it got in turns counts.
//
// So with k users seen once before it, and one call a second, a user waits at most
// Bound + k ÷ Share seconds, whatever comes later. Options.Paper is the scheme of
// the thesis as it is.
//
// [Turn] makes that choice from the heads of two orders, so that the queue can lie in
// a store and is read from there:
//
//	queue 0x01 polled(8) account   users seen twice or more; polled 0 = never
//	queue 0x02 seen(8) account     users seen once, when
//
// both numbers Unix nanoseconds, big endian ([Entry.Key]): the next of the first tier is
// its first row, the newest and the oldest of the second its last and first. The
// value is the time since when it waits, 8 bytes. A user is in at most one row, and in
// none once polled; that it was seen, and when it was last polled, belongs to its
// record. At 20 bytes of name a row is 37 bytes; [Lists] in memory takes some 120.
//
// # Profiles
//
// [Profiles] are asked for oldest stored first, unseen ones first of all, ties by id, in
// batches as large as the API takes. Row: queue stored(8) id ([ProfileKey]).
//
// # Posts
//
// [Posts] spends one budget on two kinds of calls. A look-up tells of up to Batch accounts the
// counter of posts and the last one; a timeline call brings the newest Page of one account. A look-up
// costs each account a hundredth of a call, and misses what was overwritten; how much that is the counter
// tells: the account's debt. All is valued in one unit, days of a missing post, and the call
// worth more is made:
//
//   - to read the timeline of an account with a debt of k, which grows by μ a day: k (k+1) ÷ 2μ. With a call
//     at price p, waiting for the k-th post costs k (k−1) ÷ 2μ + p in k ÷ μ days; the least k at which
//     the worth reaches p is where that is least. So who posts little is read at once, who posts much when
//     it is worth it; and before the debt fills the page, beyond which posts are lost.
//   - to look an account up, τ days after the last look: P(N>1) · (τ ÷ x + c), of N posts expected to be
//     x. That is −d/d(1/τ) of the loss (as in schedule.Value): a first post waits, each other one
//     becomes a debt of cost c = √(p ÷ 2μ), at most p.
//
// The price p follows what the calls of late were worth, so it needs not be told the budget. x
// comes from a belief about the account's rate, the hours of the day, and the sitting in which the last post was
// (schedule's Gamma, Rhythm, Recency). An account takes some 300 bytes; after a crash what is not in its
// record, the beliefs, is learned anew. One of these is kept for each credential, or for each peer's share of
// accounts.
//
// # TwitterEcho
//
// [Echo] is its policy for look-ups (six classes) and links (three), as a
// reference: priorities 1 to 100, sub-lists drawn from all classes, more from the
// higher, inside a class the longest unchecked first; who is frozen only at night.
// Row: queue class(1) checked(8) account.
package poll
