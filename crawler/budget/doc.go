// Package budget keeps this peer within the request limits of a service, and
// uses them as fully as that allows.
//
// It is pure: no clock, disk or network, no goroutine; time is an argument. It
// stands beside frontier and schedule, which it is used with: they say what is
// asked next, a [Book] says when a call may be made and with which credential.
//
// # Model
//
// A Book holds the buckets of one site at one peer: those of each credential,
// and those of the peer's address, which its credentials share. An endpoint
// class ([Class]) names the set of buckets that a call of it counts in, some of
// which other classes count in as well; a call is made when all of them have
// room, and the wait is the longest. A bucket is one of ([Kind]):
//
//	aligned   so much in each window of the server's clock: cut at multiples of
//	          the window since 1970, or at the first of a month
//	sliding   so much in any interval as long as the window. Whoever keeps this is
//	          also within fixed windows wherever they begin, so it is the kind
//	          for servers whose windows begin with the first call
//	tokens    a token bucket: a capacity, refilled at limit ÷ window (the generic
//	          cell rate algorithm, ITU-T I.371, which needs one number of state)
//	told      nothing is known but what headers say: that many more until the
//	          reset, then one call to find out
//	adaptive  nothing is known at all: a pace that grows by a constant step and is
//	          multiplied by 0.8 when the server refuses, nearing the pace at which
//	          it last did ever more slowly
//
// Amounts are calls, items of answers, or millionths of a US dollar; so what a
// service charges is a bucket too, of a UTC day. [Paid] remembers what was paid
// for that day.
//
// Buckets come from tables ([ParseTable], [Default]); headers beat tables: see
// [Book.Settle].
//
// # Never over
//
// A server counts a call somewhere between its sending and its answer, by a clock
// that is not ours. So a call counts wherever it may fall: in an aligned bucket in
// every window that its time, widened by what is not known of the server's
// clock, touches; in a sliding one until the window has passed since its answer;
// in a token bucket the tokens come back only from its answer on. What is known
// of the server's clock is an interval that each Date header narrows; before the
// first it is ± Options.Skew. This costs time at the edges of windows, not calls:
// a window of 300 calls is used whole, a second or two late.
//
// As long as nothing was heard of a credential only one call is on its way,
// so that its answer can tell what an earlier life has used.
//
// # What survives a crash
//
// Reserve comes before the request. Before the request is sent the caller makes
// the intent durable: either [Book.Snapshot] or, smaller, [Ticket.Append]. After a
// crash [Book.Restore] takes the snapshot and the intents written since (older ones
// do no harm); whatever was reserved and not settled counts as made, and as on
// its way for Options.Flight after its reservation. A snapshot written with the
// record that a call brought (I3) keeps what Settle learnt; a lost one costs
// allowance and never goes over it.
//
// A snapshot belongs to one credential at one site, or to the peer's address at
// one site ([AddressOf]); it holds no secret. Peers share no credentials, so it is handed over only
// where a credential is. The suggested key of its row, in order: site, 0x00,
// credential's name; of an intent: that, 0x00, the ticket's number, eight bytes
// big endian, so that intents are read in order and cut by one range.
//
// # Trust
//
// Headers and snapshots are input: numbers are capped (MaxLimit, MaxReset,
// MaxPolicies, MaxHeader), a reset beyond the bucket's window is not believed, a server whose
// Date jumps is no longer used to align windows. A server that refuses
// while its headers say there is room has its limit lowered to what it took. That lasts until the headers
// of a call that it takes say that more is left; only where it refuses after the same number of calls once
// more are the headers not believed, and the limit is tried again ever more rarely. A refusal with a Retry-After is
// explained by that, and lowers no limit before the server refuses so at the same number of calls twice,
// or again after the wait that it asked for.
//
// A clock of ours that is set back is followed, as if no time had passed; one
// that leaps ahead is believed, until the next Date header says otherwise.
package budget
