// Package poll decides what the next call within a rate budget is for: which account's follower
// lists, profile or last post.
//
// It is pure: no clock, disk or network, no goroutine; time is an argument. It uses the classes
// of package schedule and differs from it. schedule says when an item is due. Here more items
// are always due than there are calls, and only the order matters.
//
// # Lists
//
// [Lists] is the two-tier scheme of a thesis on a long-running Twitter collector (Libros del
// cielo ceaseless, section 3.4). Users seen at least twice go first: those never polled before
// all others, then the least recently polled. Then come users seen once, newest first, so that
// in a storm some of them are polled soon after their post. In the thesis the oldest of the
// second tier can wait for ever, and so can the whole tier while the first is busy. Here:
//
//   - a user seen once, less than Options.Fresh ago, is fresh: newest first, as in the thesis;
//   - calls that neither the first tier nor a fresh user takes alternate between the newest and
//     the oldest, once the oldest has waited for Options.Bound;
//   - at least Options.Share of all calls go to the oldest while it has waited that long; the
//     alternating calls that it got count.
//
// So take k users seen once before a user, and one call a second. The user waits at most Bound
// + k ÷ Share seconds, whatever comes later. Options.Paper is the unchanged scheme of the
// thesis.
//
// [Turn] makes that choice from the heads of two orders, so that the queue can be kept in a
// store and read from there:
//
//	queue 0x01 polled(8) account   users seen twice or more; polled 0 = never
//	queue 0x02 seen(8) account     users seen once, when
//
// Both numbers are Unix nanoseconds, big endian ([Entry.Key]). The next user of the first tier
// is its first row; the newest and the oldest of the second tier are its last and first rows.
// The value is the time since when the user waits, 8 bytes. A user is in at most one row, and
// in none once polled. Its record has the times when it was seen and last polled. With a name
// of 20 bytes a row is 37 bytes; [Lists] in memory takes about 120.
//
// # Profiles
//
// [Profiles] are fetched oldest stored first, unseen ones before all others, ties by id, in
// batches as large as the API accepts. Row: queue stored(8) id ([ProfileKey]).
//
// # Posts
//
// [Posts] spends one rate budget on two kinds of calls. A look-up returns the counter of posts
// and the last post of up to Batch accounts. A timeline call returns the newest Page of one
// account. A look-up costs each account a hundredth of a call, and misses what was overwritten.
// The counter says how much that is: the account's debt. Everything has a value in one unit,
// days of a missing post, and the call with the higher value is made:
//
//   - to read the timeline of an account with a debt of k, which grows by μ a day: k (k+1) ÷
//     2μ. With a call at price p, waiting for the k-th post costs k (k−1) ÷ 2μ + p in k ÷ μ
//     days. The cost is lowest at the least k at which the value reaches p. So an account that
//     posts little is read at once, and one that posts much when it is worth it. It is also
//     read before the debt fills the page, beyond which posts are lost.
//   - to look an account up, τ days after the last look: P(N>1) · (τ ÷ x + c), of N posts
//     expected to be x. That is −d/d(1/τ) of the loss (as in schedule.Value). A first post
//     waits, and each other one becomes a debt of cost c = √(p ÷ 2μ), at most p.
//
// The price p follows the value of recent calls, so the budget need not be known. x comes from
// a belief about the account's rate, the hours of the day, and the sitting of the last post
// (schedule's Gamma, Rhythm, Recency). An account takes about 300 bytes. The beliefs are not in
// its record and are learned again after a crash. There is one Posts for each credential, or
// for each peer's share of accounts.
//
// # TwitterEcho
//
// [Echo] is the policy of TwitterEcho for look-ups (six classes) and links (three), as a
// reference. It has priorities 1 to 100, and sub-lists drawn from all classes, more from the
// higher ones. Within a class the account unchecked for the longest time comes first. Frozen
// accounts are looked up only at night. Row: queue class(1) checked(8) account.
package poll
