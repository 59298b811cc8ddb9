// Package hostlease decides which peer may ask an IP address now, so that an
// address that hosts of many peers live on has one pace in the swarm. It is
// pure: time is an argument, nothing is sent or stored here. Package node
// carries its messages.
//
// A host lease is the right of one peer to ask one address for a while. The owner of
// the Key ip:ADDR gives it (Giver); who crawls a host there takes it (Taker),
// and asks in it at the address's gap. A host lease is much longer than a gap, so
// that it costs no message a request: while nobody else wants the address it
// is made longer whenever half of it is over; when others wait it is short, and
// given back as soon as it is of no use.
//
// What it promises:
//
//   - T1 one at a time: two host leases of an address never overlap.
//   - T2 the gap: a host lease begins no sooner than the gap after the last request
//     that can have been made in another one. Of a host lease that was given back that
//     is when the answer to its last request began; of any other the end of the
//     host lease and Hold, for a request still on its way.
//   - T3 own clocks: a peer starts requests only while its host lease lasts by both of
//     its own clocks, the monotonic and the wall's. Only durations are sent: the
//     giver counts from when a question came, the taker a beginning from when the
//     answer came and an end from when it asked. So the host lease that the taker
//     believes in lies within the one that the giver gave.
//   - T4 bounded: a host lease ends Longest after it was given at the latest. Who comes
//     to own the Key, or starts again, gives none before that and Hold have
//     passed: the floor of Giver.Ask.
//   - T5 fair: those who wait are served in the order in which they came, as
//     long as they come again when they were told to.
//
// Progress gives way to these: while the owner is not reached, the sites of the
// address wait, and Taker.Blocked says why.
//
// Every address that has a pace at all is treated so, also one with a single
// host: only the giver can know that it is one. Loopback addresses have no pace
// unless the operator asks for one; then all peers that ask them run on the same
// machine, for a test or a demo, with the same gap, and host leases are as short as
// that gap allows.
//
// An address's gap is what its visitors want at least, raised by what they meet
// there: an answer that takes longer raises it to that time, 429 and 503 double
// it, at least to Retry-After, up to MaxGap; a good answer halves the rise. The
// peer that had the host lease tells it when it asks next.
//
// After a crash nothing of this is there any more, which costs time only.
package hostlease

import (
	"net/netip"
	"time"
)

// The bounds of host leases.
const (
	Longest = 10 * time.Second // a host lease ends that long after it was given, at the latest
	Hold    = time.Second      // after its end a request may still be on its way
	MaxGap  = 30 * time.Second // the gap to which an address's trouble raises it at most
)

// Default caps of a Giver and a Taker.
const (
	MaxAddrs     = 100_000 // addresses that one remembers
	MaxPeerAddrs = 20_000  // addresses at which one peer has a host lease or waits for one
	MaxWaiting   = 256     // peers that wait for one address
)

// times are how long host leases of an address are.
type times struct{ short, longest, hold time.Duration }

// timesOf depends on the gap: a host lease of a few requests when others wait. What
// must outlast a giver, longest and hold, does not but on loopback, where all
// peers have the gap that the operator asked for.
func timesOf(a netip.Addr, base, gap time.Duration) times {
	t := times{longest: Longest, hold: Hold}
	if a.IsLoopback() {
		t.longest = min(max(4*base, 400*time.Millisecond), Longest)
		t.hold = min(base, Hold)
	}
	t.short = min(max(4*gap, t.longest/4), t.longest)
	return t
}

// Grace is how long after the host leases of another giver may have been given one of
// them may still be in use, so that a floor is that time and Grace.
func Grace(a netip.Addr, base time.Duration) time.Duration {
	t := timesOf(a, base, base)
	return t.longest + t.hold
}

// Ask is what a peer wants of the giver of an address, and what it met there.
type Ask struct {
	Addr netip.Addr
	Gap  time.Duration // the least gap that it keeps
	Pace time.Duration // the gap that the address needs, as far as it knows
	Want bool          // a host lease, or that the one that it has goes on
	Turn uint64        // its number, drawn by the asker: asking twice for one host lease gives one
	// Back is a host lease that it uses no more, 0 = none. The answer to its last request
	// there began Quiet ago; Unused: it made none.
	Back   uint64
	Unused bool
	Quiet  time.Duration
}

// Answer is what a giver says to an Ask that wants a host lease.
type Answer struct {
	Given  bool
	Wait   time.Duration // from the question to the beginning of the host lease; not given: ask again then
	Term   time.Duration // from the question to its end
	Gap    time.Duration // the address's
	Shared bool          // others wait: it is to be given back when it is of no use
	Over   string        // the cap that kept it from being given, "" = none
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
