// Package lease decides which peer may send requests to an IP address now. So an address
// that serves hosts of many peers has one pace in the swarm. The package is pure: time is an
// argument, and it sends and stores nothing. Package node carries its messages.
//
// A host lease is the right of one peer to send requests to one address for a while. The owner
// of the Key ip:ADDR gives it (Giver). The peer that crawls a host there takes it (Taker), and
// sends requests at the address's gap. A host lease is much longer than a gap, so a request
// needs no extra message. While no other peer wants the address, the Taker extends the lease
// whenever half of it is over. When others wait, the lease is short, and the Taker gives it
// back as soon as it has no use for it.
//
// The package guarantees:
//
//   - T1 one at a time: two host leases of an address never overlap.
//   - T2 the gap: a host lease begins at least one gap after the last request that an earlier
//     lease can have allowed. If that lease was given back, this is when the response to its
//     last request began. Otherwise it is the end of the lease plus Hold, for a request still
//     on its way.
//   - T3 own clocks: a peer starts requests only while its host lease lasts by both of its own
//     clocks, the monotonic and the wall clock. Messages carry only durations. The giver counts
//     from when the request for a lease arrived. The taker counts the beginning from when the
//     response arrived, and the end from when it sent the request. So the lease that the taker
//     believes in lies within the one given.
//   - T4 bounded: a host lease ends at the latest Longest after it was given. A peer that
//     becomes owner of the Key, or restarts, gives no lease before Longest and Hold have
//     passed: see floor at Giver.Ask.
//   - T5 fair: waiting peers are served in the order in which they came, as long as they ask
//     again when they were told to.
//
// These guarantees come before progress. While the owner cannot be reached, the sites of the
// address wait, and Taker.Blocked gives the reason.
//
// Every address that has a pace is treated like this, also one with a single host: only the
// giver can know that it has one. Loopback addresses have no pace unless the operator sets one.
// Then all peers that use them run on the same machine, for a test or a demo, with the same
// gap. Host leases are then as short as that gap allows.
//
// An address's gap is at least what its visitors ask for, and their experience raises it. A
// response that takes longer raises the gap to that time. Status 429 and 503 double it, at
// least to Retry-After, up to MaxGap. A good response halves the increase. The peer that had
// the host lease reports the gap with its next request.
//
// After a crash this state is lost, which costs only time.
package lease

import (
	"net/netip"
	"time"
)

// The limits of host leases.
const (
	Longest = 10 * time.Second // a host lease ends at the latest this long after it was given
	Hold    = time.Second      // after the end of a lease a request may still be on its way
	MaxGap  = 30 * time.Second // the largest gap to which an address's trouble raises it
)

// Default limits of a Giver and a Taker.
const (
	MaxAddrs     = 100_000 // addresses that a Giver or a Taker remembers
	MaxPeerAddrs = 20_000  // addresses at which one peer has a host lease or waits for one
	MaxWaiting   = 256     // peers that wait for one address
)

// times are the durations that limit the host leases of an address.
type times struct{ short, longest, hold time.Duration }

// timesOf returns the durations for a gap. When others wait, a lease lasts a few requests.
// longest and hold must outlast a giver, so they do not depend on the gap. The exception is
// loopback, where all peers have the gap that the operator set.
func timesOf(a netip.Addr, base, gap time.Duration) times {
	t := times{longest: Longest, hold: Hold}
	if a.IsLoopback() {
		t.longest = min(max(4*base, 400*time.Millisecond), Longest)
		t.hold = min(base, Hold)
	}
	t.short = min(max(4*gap, t.longest/4), t.longest)
	return t
}

// Grace returns how long a host lease of another giver may still be in use. It counts from the
// last moment when that giver may have given it. So a floor is that moment plus Grace.
func Grace(a netip.Addr, base time.Duration) time.Duration {
	t := timesOf(a, base, base)
	return t.longest + t.hold
}

// Ask is a peer's request to the giver of an address, with what the peer met there.
type Ask struct {
	Addr netip.Addr
	Gap  time.Duration // the smallest gap that the peer keeps
	Pace time.Duration // the gap that the address needs, as far as the peer knows
	Want bool          // the peer wants a host lease, or wants to extend the one it has
	// the lease's number, drawn by the taker; repeating a request gives the same lease
	Turn uint64
	// Back is a host lease that the peer uses no more, 0 = none. The response to its last
	// request there began Quiet ago. Unused says that it made no request.
	Back   uint64
	Unused bool
	Quiet  time.Duration
}

// Answer is a giver's response to an Ask that wants a host lease.
type Answer struct {
	Given bool
	// from the request to the beginning of the lease; if not given: ask again then
	Wait   time.Duration
	Term   time.Duration // from the request to its end
	Gap    time.Duration // the gap of the address
	Shared bool          // others wait: the taker gives the lease back when it has no use for it
	Over   string        // the limit that prevented the lease, "" = none
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
