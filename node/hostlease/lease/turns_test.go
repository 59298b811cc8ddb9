package lease

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/crawler/fetch"
)

var (
	at   = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	addr = netip.MustParseAddr("192.0.2.1")
)

func numbers(from uint64) func() uint64 {
	return func() uint64 { from++; return from }
}

// swarm has some peers that want one address, and its owners, one after the other. Peers have
// their own clocks, messages take time and can be lost, and requests reach the server late.
type swarm struct {
	t      *rapid.T
	now    time.Time
	gap    time.Duration
	owners []*Giver // the last one is the present owner
	floor  time.Time
	peers  map[string]*visitor
	events []event
	seen   []time.Time // requests as the server sees them
	served map[string]int
	calm   bool // nothing is lost, and every server responds
}

type event struct {
	at time.Time
	do func()
}

// visitor is one peer with sites at the address.
type visitor struct {
	name  string
	skew  time.Duration // of its clock
	taker *Taker
	open  bool
}

func (s *swarm) after(d time.Duration, do func()) {
	s.events = append(s.events, event{s.now.Add(d), do})
}

func (s *swarm) ms(name string, least, most int) time.Duration {
	return time.Duration(rapid.IntRange(least, most).Draw(s.t, name)) * time.Millisecond
}

// visit lets one site of v come now.
func (s *swarm) visit(v *visitor, others bool) {
	if v.open {
		return
	}
	l := v.taker.Ask(addr, s.gap, s.now.Add(v.skew))
	if l.From.IsZero() {
		v.open = true
		way := s.ms("way", 0, 1000)
		s.after(way, func() {
			s.seen = append(s.seen, s.now)
			s.served[v.name]++
			think := s.ms("think", 0, 100)
			if !s.calm && rapid.IntRange(0, 4).Draw(s.t, "slow") == 0 {
				think *= 60
			}
			s.after(think, func() {
				v.open = false
				v.taker.Done(addr, fetch.Visit{Waiting: others}, s.now.Add(v.skew))
			})
		})
	}
	s.talk(v)
}

// talk sends the requests of v to the giver.
func (s *swarm) talk(v *visitor) {
	asks, _ := v.taker.Due(s.now.Add(v.skew), func(netip.Addr) bool { return true })
	for _, ask := range asks {
		sent := s.now
		if !s.calm && rapid.IntRange(0, 9).Draw(s.t, "lost") == 0 {
			if rapid.Bool().Draw(s.t, "after all") {
				s.after(s.ms("late", 0, 9000), func() { s.give(v.name, ask) })
			}
			s.after(2*time.Second, func() { v.taker.Failed(ask, "lost", 0, s.now.Add(v.skew)) })
			continue
		}
		s.after(s.ms("there", 0, 200), func() {
			a := s.give(v.name, ask)
			s.after(s.ms("back", 0, 800), func() {
				v.taker.Answered(ask, a, sent.Add(v.skew), s.now.Add(v.skew))
			})
		})
	}
}

func (s *swarm) give(peer string, ask Ask) Answer {
	return s.owners[len(s.owners)-1].Ask(peer, ask, s.gap, s.floor, s.now)
}

// advance moves the time and runs the events that are due.
func (s *swarm) advance(d time.Duration) {
	until := s.now.Add(d)
	for {
		next := -1
		for i, e := range s.events {
			if !e.at.After(until) && (next < 0 || e.at.Before(s.events[next].at)) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		e := s.events[next]
		s.events = slices.Delete(s.events, next, next+1)
		s.now = later(s.now, e.at)
		e.do()
	}
	s.now = until
}

// TestGapHolds checks T1 to T4 for any order of requests, responses, losses, deaths and changes
// of the owner. Two requests never reach the server with less than the gap between them. For T5
// it checks that every peer makes progress.
func TestGapHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &swarm{t: t, now: at, gap: time.Second, owners: []*Giver{NewGiver(GiverOptions{})}, floor: at,
			peers: map[string]*visitor{}, served: map[string]int{}}
		var all []*visitor
		for i := range rapid.IntRange(1, 5).Draw(t, "peers") {
			v := &visitor{name: fmt.Sprint("p", i),
				skew:  time.Duration(rapid.IntRange(-1000, 1000).Draw(t, "skew")) * time.Hour,
				taker: NewTaker(TakerOptions{Number: numbers(uint64(i) * 1e6)})}
			s.peers[v.name] = v
			all = append(all, v)
		}
		for range 400 {
			s.advance(s.ms("step", 0, 400))
			v := rapid.SampledFrom(all).Draw(t, "who")
			switch what := rapid.IntRange(0, 299).Draw(t, "what"); {
			case what == 0: // another owner, which knows nothing
				s.owners = append(s.owners, NewGiver(GiverOptions{}))
				s.floor = s.now.Add(Grace(addr, s.gap))
			case what == 1: // the owner loses the Key and gets it back
				s.floor = s.now.Add(Grace(addr, s.gap))
			case what == 2 && !v.open: // a peer restarts
				v.taker = NewTaker(TakerOptions{Number: numbers(uint64(s.now.UnixNano()))})
			case what < 40: // time passes
				s.talk(v)
			default:
				s.visit(v, rapid.Bool().Draw(t, "others"))
			}
		}
		s.advance(MaxGap + Longest) // and messages on their way
		calm := map[string]int{}
		maps.Copy(calm, s.served)
		s.calm = true
		for range 800 { // every peer comes
			s.advance(100 * time.Millisecond)
			for _, v := range all {
				s.visit(v, true)
			}
		}
		for i := range len(s.seen) - 1 {
			if gap := s.seen[i+1].Sub(s.seen[i]); gap < s.gap {
				t.Fatalf("a gap of %s at %s", gap, s.seen[i+1].Sub(at))
			}
		}
		for _, v := range all {
			if s.served[v.name] == calm[v.name] {
				t.Fatalf("%s starves: %v, before %v", v.name, s.served, calm)
			}
		}
	})
}
