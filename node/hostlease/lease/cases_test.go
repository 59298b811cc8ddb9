package lease

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
)

// asks is a giver whose clock shows s seconds.
type asks struct {
	t *testing.T
	g *Giver
	s float64
}

func (a *asks) now() time.Time { return at.Add(time.Duration(a.s * float64(time.Second))) }

func (a *asks) ask(peer string, q Ask) Answer {
	if q.Addr == (netip.Addr{}) {
		q.Addr = addr
	}
	return a.g.Ask(peer, q, time.Second, at, a.now())
}

// want checks an answer, with times in seconds.
func (a *asks) want(what string, got Answer, given bool, wait, term float64, shared bool) {
	a.t.Helper()
	if got.Given != given || got.Wait.Seconds() != wait || given && got.Term.Seconds() != term || given &&
		got.Shared != shared {
		a.t.Errorf("%s: %+v", what, got)
	}
}

// TestGiver has one address and three peers. The first peer gets the lease: a long one when
// alone, a short one when others wait. A lease given back goes to the peer that waits longest.
func TestGiver(t *testing.T) {
	a := &asks{t: t, g: NewGiver(GiverOptions{}), s: 10}
	a.want("the first", a.ask("x", Ask{Want: true, Turn: 1}), true, 0, 4, false)
	a.want("again, its answer was lost", a.ask("x", Ask{Want: true, Turn: 1}), true, 0, 10, false)
	a.s = 12
	a.want("another", a.ask("y", Ask{Want: true, Turn: 2}), false, 0.5, 0, false)
	a.want("a third", a.ask("z", Ask{Want: true, Turn: 3}), false, 1, 0, false)
	a.want("no longer, others wait", a.ask("x", Ask{Want: true, Turn: 1}), true, 0, 8, true)
	a.ask("x", Ask{Back: 1, Quiet: 300 * time.Millisecond})
	a.want("not before the second", a.ask("z", Ask{Want: true, Turn: 3}), false, 1, 0, false)
	a.want("the second, a gap after the last request", a.ask("y", Ask{Want: true, Turn: 2}), true, 0.7, 4.7, true)
	a.s = 16.5
	a.want("the third comes again", a.ask("z", Ask{Want: true, Turn: 3}), false, 0.2, 0, false)
	a.s = 17
	a.want("that turn has run out, a request may still be on its way", a.ask("y", Ask{Want: true, Turn: 4}), false, 1,
		0, false)
	a.want("but not when who had it says so", a.ask("y", Ask{Want: true, Turn: 4, Back: 2, Quiet: 2 * time.Second}),
		false, 1, 0, false)
	a.want("and the third has waited", a.ask("z", Ask{Want: true, Turn: 3}), true, 0, 4, true)
	a.ask("z", Ask{Back: 3, Unused: true})
	a.want("a turn that was not used costs nobody a gap", a.ask("y", Ask{Want: true, Turn: 4}), true, 0, 4, false)
}

// A waiting peer that does not ask again loses its place and delays no other peer.
func TestGiverForgetsWhoDoesNotCome(t *testing.T) {
	a := &asks{t: t, g: NewGiver(GiverOptions{}), s: 10}
	a.ask("x", Ask{Want: true, Turn: 1})
	a.ask("silent", Ask{Want: true, Turn: 2})
	a.ask("x", Ask{Back: 1, Unused: true})
	a.s = 11
	a.want("kept", a.ask("y", Ask{Want: true, Turn: 3}), false, 1, 0, false)
	a.s = 11.6
	a.want("lost", a.ask("y", Ask{Want: true, Turn: 3}), true, 0, 4, false)
	if s := a.g.Stats(); s.Waiting != 0 || a.g.peers["silent"] != 0 || a.g.peers["y"] != 1 || a.g.peers["x"] != 0 {
		t.Errorf("%+v, %v", s, a.g.peers)
	}
}

// Before the floor no lease is given, whatever was given before it moved.
func TestGiverFloor(t *testing.T) {
	g := NewGiver(GiverOptions{})
	q := Ask{Addr: addr, Want: true, Turn: 1}
	if a := g.Ask("x", q, time.Second, at, at.Add(time.Second)); !a.Given || a.Wait != 0 {
		t.Fatalf("%+v", a)
	}
	floor := at.Add(2 * time.Second).Add(Grace(addr, time.Second))
	for now := at.Add(2 * time.Second); now.Before(floor); now = now.Add(100 * time.Millisecond) {
		if a := g.Ask("x", q, time.Second, floor, now); a.Given && now.Add(a.Wait).Before(floor.Add(time.Second)) {
			t.Fatalf("given at %s: %+v", now.Sub(at), a)
		}
	}
}

// TestGiverCaps checks the limits for one peer and for all. Other peers are still served.
func TestGiverCaps(t *testing.T) {
	g := NewGiver(GiverOptions{MaxAddrs: 20, MaxPeerAddrs: 5, MaxWaiting: 3})
	now := at.Add(time.Minute)
	nth := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}) }
	ask := func(peer string, i int) Answer {
		return g.Ask(peer, Ask{Addr: nth(i), Want: true, Turn: uint64(i + 1)}, time.Second, at, now)
	}
	given := 0
	for i := range 15 {
		if a := ask("greedy", i); a.Given {
			given++
		} else if a.Over != OverPeer || a.Wait < time.Second {
			t.Errorf("%+v", a)
		}
	}
	if given != 5 {
		t.Errorf("%d turns for one peer", given)
	}
	for i := range 6 {
		if a := ask(fmt.Sprint("p", i), 0); a.Given || i < 3 != (a.Over == "") || i >= 3 && a.Over != OverWaiting {
			t.Errorf("peer %d: %+v", i, a)
		}
	}
	for i := 15; i < 30; i++ {
		if a := ask(fmt.Sprint("q", i), i); a.Given != (i < 20) || !a.Given && a.Over != OverAddrs {
			t.Errorf("address %d: %+v", i, a)
		}
	}
	now = now.Add(2 * time.Minute) // all leases are over, and forgotten when the room is needed
	if a := ask("late", 40); !a.Given {
		t.Errorf("%+v", a)
	}
	if s := g.Stats(); s.Addrs != 1 || s.Waiting != 0 || len(g.peers) != 1 || s.Over[OverPeer] != 10 ||
		s.Over[OverWaiting] != 3 || s.Over[OverAddrs] != 10 {
		t.Errorf("%+v, %v", s, g.peers)
	}
}

// Trouble at an address raises its gap for all. The peer reports it with its next request, and
// good responses lower it.
func TestPaceAdapts(t *testing.T) {
	g := NewGiver(GiverOptions{})
	x, y := NewTaker(TakerOptions{Number: numbers(0)}), NewTaker(TakerOptions{Number: numbers(100)})
	now := at.Add(time.Minute)
	turn := func(who *Taker, name string) fetch.Leave {
		for range 500 {
			l := who.Ask(addr, time.Second, now)
			if l.From.IsZero() {
				return l
			}
			if q := who.DueAt(addr, now); q != nil {
				who.Answered(*q, g.Ask(name, *q, time.Second, at, now), now, now)
			}
			now = now.Add(100 * time.Millisecond)
		}
		t.Fatal("no turn")
		return fetch.Leave{}
	}
	turn(x, "x")
	x.Done(addr, fetch.Visit{Slowed: true, After: 7 * time.Second}, now)
	slowed := now
	turn(x, "x")
	if got := now.Sub(slowed); got < 7*time.Second || got > 8*time.Second {
		t.Errorf("x after %s", got)
	}
	x.Done(addr, fetch.Visit{Slowed: true, After: time.Hour}, now)
	slowed = now
	now = now.Add(20 * time.Second) // x has no host lease any more, and tells y's giver why
	if q := x.DueAt(addr, now); q != nil {
		t.Errorf("%+v without need", q)
	}
	x.Ask(addr, time.Second, now)
	if q := x.DueAt(addr, now); q == nil || q.Pace != MaxGap {
		t.Fatalf("%+v", q)
	} else {
		x.Answered(*q, g.Ask("x", *q, time.Second, at, now), now, now)
	}
	now = now.Add(3 * time.Second) // x does not ask again
	if l := turn(y, "y"); now.Sub(slowed) < MaxGap || l.Gap != MaxGap {
		t.Errorf("y after %s, %+v", now.Sub(slowed), l)
	}
	for want := MaxGap / 2; want > time.Second; want /= 2 {
		if y.Done(addr, fetch.Visit{}, now); y.addrs[addr].gap != want {
			t.Errorf("gap %s, want %s", y.addrs[addr].gap, want)
		}
		turn(y, "y")
	}
	if y.Done(addr, fetch.Visit{Slow: 4 * time.Second}, now); y.addrs[addr].gap != 4*time.Second {
		t.Errorf("gap %s after a slow answer", y.addrs[addr].gap)
	}
}

// A peer that cannot have a host lease reports the reason, and asks less and less often. It
// stops when no site wants the lease.
func TestBlocked(t *testing.T) {
	k := NewTaker(TakerOptions{Number: numbers(0), MaxAddrs: 1})
	now, asked := at, 0
	for range 600 {
		k.Ask(addr, time.Second, now)
		if q := k.DueAt(addr, now); q != nil {
			asked++
			k.Failed(*q, "nobody there", 0, now)
		}
		now = now.Add(100 * time.Millisecond)
	}
	if asked < 10 || asked > 20 {
		t.Errorf("asked %d times in a minute", asked)
	}
	b, s := k.Blocked(8, now), k.Stats(now)
	if len(b) != 1 || b[0].Why != "nobody there" || now.Sub(b[0].Since) < 59*time.Second || s.Waiting != 1 ||
		s.Blocked != 1 {
		t.Errorf("%+v, %+v", b, s)
	}
	if l := k.Ask(netip.MustParseAddr("192.0.2.9"), time.Second, now); !l.From.After(now) || k.Stats(now).Full != 1 {
		t.Errorf("over the cap: %+v", l)
	}
	now = now.Add(time.Minute)
	if q, again := k.Due(now, func(netip.Addr) bool { return true }); len(q) != 0 || !again.IsZero() ||
		len(k.Blocked(8, now)) != 0 {
		t.Errorf("%v, %s", q, again)
	}
	now = now.Add(time.Minute)
	if k.Ask(netip.MustParseAddr("192.0.2.9"), time.Second, now); len(k.addrs) != 1 || k.Stats(now).Full != 1 {
		t.Errorf("%d addresses", len(k.addrs))
	}
}

// A taker uses no host lease for longer than it may last, by either clock.
func TestTakerClocks(t *testing.T) {
	k := NewTaker(TakerOptions{Number: numbers(0)})
	now := time.Now() // both clocks
	k.Ask(addr, time.Second, now)
	q := k.DueAt(addr, now)
	k.Answered(*q, Answer{Given: true, Term: 24 * time.Hour, Gap: time.Hour}, now, now.Add(time.Second))
	if w := k.addrs[addr]; w.until.After(now.Add(Longest)) || w.gap > MaxGap {
		t.Errorf("until %s, gap %s", w.until.Sub(now), w.gap)
	}
	if l := k.Ask(addr, time.Second, now.Add(2*time.Second)); !l.From.IsZero() || !l.Until.Equal(now.Add(Longest)) {
		t.Errorf("%+v", l)
	}
	k.Done(addr, fetch.Visit{}, now.Add(2*time.Second))
	slept := now.Round(0).Add(time.Minute) // only the wall clock continued
	if l := k.Ask(addr, time.Second, slept); l.From.IsZero() {
		t.Errorf("after a sleep: %+v", l)
	}
	k.Ask(addr, time.Second, now)
	q = k.DueAt(addr, now)
	k.Answered(*q, Answer{Given: true, Wait: time.Second, Term: 3 * time.Second}, now, now.Add(2500*time.Millisecond))
	if l := k.Ask(addr, time.Second, now.Add(2600*time.Millisecond)); l.From.IsZero() {
		t.Errorf("its time is over when it comes: %+v", l)
	}
}
