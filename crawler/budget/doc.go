// Package budget keeps this peer within the request limits of a service, and uses them as fully as
// possible.
//
// It is pure: no clock, disk, network or goroutine; time is an argument. Packages frontier and
// schedule decide what to request next. A [Book] decides when a call may be made and with which
// credential.
//
// # Model
//
// A Book holds the buckets of one site at one peer: those of each credential, and those of the
// peer's address, which its credentials share. An endpoint class ([Class]) names the buckets that a
// call counts in. Several classes may count in the same bucket. A call is made when all its buckets
// have room, so the longest wait decides. The kinds of buckets ([Kind]) are:
//
//	aligned   a limit for each window of the server's clock; windows begin at
//	          multiples of their length since 1970, or at the first of a month
//	sliding   a limit for any interval as long as the window. It also respects
//	          fixed windows wherever they begin, so it is the kind for servers
//	          whose windows begin with the first call
//	tokens    a token bucket: a capacity, refilled at limit ÷ window (the generic
//	          cell rate algorithm, ITU-T I.371, which needs one number of state)
//	reported      only headers give information: that many more calls until the reset,
//	          then one call to find out
//	adaptive  nothing is known: the pace grows by a constant step and is multiplied
//	          by 0.8 when the server refuses. Near the pace of the last refusal
//	          it grows more slowly
//
// Amounts are calls, items of responses, or millionths of a US dollar. So the price of a service is
// a bucket too, for one UTC day. [Paid] remembers what was paid for on that day.
//
// Buckets are defined by tables ([ParseTable], [Default]); headers override tables: see
// [Book.Settle].
//
// # Never over
//
// A server counts a call at some time between its sending and its response, by a clock that is not
// ours. So a call counts wherever the server may count it: in an aligned bucket, in every window
// that its time touches, widened by the uncertainty of the server's clock; in a sliding bucket,
// until one window after its response; in a token bucket, the tokens come back only from its
// response on. The offset of the server's clock is an interval that each Date header narrows.
// Before the first header it is ± Options.Skew. This costs time at the edges of windows, but no
// calls: a window of 300 calls is used completely, a second or two late.
//
// Before the first response for a credential only one call is in flight. Its response can show what
// an earlier process has used.
//
// # What survives a crash
//
// Reserve is called before the request. Before the request is sent, the caller makes the intent
// durable: either [Book.Snapshot] or, smaller, [Ticket.Append]. After a crash [Book.Restore] takes
// the snapshot and the intents written since (older ones do no harm). A call that was reserved and
// not settled counts as made, and as in flight for Options.Flight after its reservation. A snapshot
// written together with the fetched record (I3) keeps what Settle learned. A lost snapshot costs
// allowance, but no limit is exceeded.
//
// A snapshot belongs to one credential at one site, or to the peer's address at one site
// ([AddressOf]). It contains no secret. Peers do not share credentials, so a snapshot is handed
// over only together with its credential. The suggested key of its row is: site, 0x00, credential's
// name. The key of an intent appends 0x00 and the ticket's number, eight bytes big endian. So
// intents are read in order, and one range deletes them.
//
// # Trust
//
// Headers and snapshots are untrusted input. Numbers are capped (MaxLimit, MaxReset, MaxPolicies,
// MaxHeader). A reset beyond the bucket's window is ignored. A server whose Date jumps repeatedly
// is no longer used to align windows.
//
// If a server refuses while its headers report room, its limit is lowered to what it accepted. The
// lower limit ends when the headers of an accepted call report more calls left. If the server then
// refuses again after the same number of calls, these headers are ignored. The Book then tries the
// higher limit more and more rarely.
//
// A refusal with a Retry-After is explained by it. It lowers a limit only if the server refuses
// twice at the same number of calls, or again after the wait that it requested.
//
// If our clock is set back, all times follow, as if no time had passed. If it leaps ahead, the new
// time is used until the next Date header contradicts it.
package budget
