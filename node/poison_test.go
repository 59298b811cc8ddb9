package node_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler"
	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/nodetest"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
)

// poison makes some Keys crash the peer that judges them, like a parser that uses all memory. at is
// the moment: before the attempt is recorded, while the page is judged, or after that.
type poison struct {
	mu     sync.Mutex
	keys   map[partition.Key]bool
	at     string
	deaths map[partition.Key][]string // names of the peers
	most   int                        // deaths of a Key; after that it is harmless
	tries  map[partition.Key]int
	judges map[*nodetest.SimPeer]int // pages being judged
	crowd  map[partition.Key]int     // most pages judged beside the Key after its first death
}

func newPoison(at string, keys ...partition.Key) *poison {
	p := &poison{keys: map[partition.Key]bool{}, at: at, most: 1 << 30, deaths: map[partition.Key][]string{},
		tries:  map[partition.Key]int{},
		judges: map[*nodetest.SimPeer]int{}, crowd: map[partition.Key]int{}}
	for _, k := range keys {
		p.keys[k] = true
	}
	return p
}

func (p *poison) around(s *nodetest.Sim, peer *nodetest.SimPeer, src crawler.Source) crawler.Source {
	return &poisoned{src, p, s, peer}
}

// killed returns the number of deaths of all Keys.
func (p *poison) killed() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.deaths {
		n += len(d)
	}
	return n
}

type poisoned struct {
	crawler.Source
	p    *poison
	s    *nodetest.Sim
	peer *nodetest.SimPeer
}

// Fetch judges as the Source does, and crashes on a poison Key.
func (d *poisoned) Fetch(ctx context.Context, t crawler.Task) (crawler.Result, error) {
	judge, key := t.Judge, t.Due.Key
	t.Judge = func(ctx context.Context, need int64) (func(), error) {
		if d.p.at == "before" {
			d.die(key)
		}
		done, err := judge(ctx, need)
		if err != nil {
			return nil, err
		}
		d.p.mu.Lock()
		d.p.judges[d.peer]++
		if len(d.p.deaths[key]) > 0 {
			d.p.crowd[key] = max(d.p.crowd[key], d.p.judges[d.peer]-1)
		}
		d.p.mu.Unlock()
		if d.p.at == "judging" {
			time.Sleep(20 * time.Millisecond) // judging takes a while, and others are under way
			d.die(key)
		}
		return func() {
			d.p.mu.Lock()
			d.p.judges[d.peer]--
			d.p.mu.Unlock()
			done()
		}, nil
	}
	res, err := d.Source.Fetch(ctx, t)
	if d.p.at == "after" && err == nil && !res.Again {
		d.die(key)
	}
	return res, err
}

// die crashes the peer if key kills; then it does not return.
func (d *poisoned) die(key partition.Key) {
	d.p.mu.Lock()
	d.p.tries[key]++
	kills := d.p.keys[key] && len(d.p.deaths[key]) < d.p.most
	if kills {
		d.p.deaths[key] = append(d.p.deaths[key], d.peer.Name)
		d.p.judges[d.peer] = 0
	}
	d.p.mu.Unlock()
	if kills {
		d.s.Crash(d.peer)
		runtime.Goexit()
	}
}

func poisonWorld() crawltest.Options {
	o := crawltest.Options{Seed: 17, Sites: 16, Pages: 8, Words: 30, Think: 30 * time.Millisecond, Gap: time.Second}
	if racetest.Enabled {
		o.Sites, o.Pages = 10, 4
	}
	return o
}

// somePages returns Keys of articles in the world, of n sites.
func somePages(t *testing.T, o crawltest.Options, n int) (keys []partition.Key) {
	t.Helper()
	w := crawltest.NewWorld(o)
	sites := map[partition.Site]bool{}
	urls := w.Expected(w.Seeds())
	for i := len(urls) / 3; i < len(urls) && len(keys) < n; i++ {
		k, err := partition.ParseKey(urls[i])
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := w.Page(urls[i]); ok && p.Text != "" && strings.Count(k.URL(), "/") > 3 && !sites[k.Site()] {
			sites[k.Site()] = true
			keys = append(keys, k)
		}
	}
	if len(keys) < n {
		t.Fatalf("%d pages, want %d", len(keys), n)
	}
	return keys
}

// quarantine returns the Keys that living peers have in quarantine, with the reason.
func quarantine(t *testing.T, s *nodetest.Sim) map[partition.Key]string {
	t.Helper()
	out := map[partition.Key]string{}
	for _, p := range s.Peers {
		n := p.Node()
		if n == nil {
			continue
		}
		q, err := n.API().Quarantine(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range q.Keys {
			out[k.Key] = k.Reason
		}
		if got := n.Status().Quarantined; got != int64(len(q.Keys)) {
			t.Errorf("%s: status counts %d keys in quarantine, the list has %d", p.Name, got, len(q.Keys))
		}
	}
	return out
}

// checkQuarantine compares the quarantine with the poison, and the crawled pages with the world.
func checkQuarantine(t *testing.T, s *nodetest.Sim, p *poison) {
	t.Helper()
	got := quarantine(t, s)
	for k := range p.keys {
		if d := p.deaths[k]; len(d) == 0 || len(d) > 2 {
			t.Errorf("%s killed %d processes %v, want 1 or 2", k, len(d), d)
		}
		reason := got[k]
		if delete(got, k); !strings.Contains(reason, "2 deaths of a process") {
			t.Errorf("%s is left alone because of %q", k, reason)
		}
		if n := p.crowd[k]; n > 0 {
			t.Errorf("%s was judged again beside %d others", k, n)
		}
		for _, peer := range s.Peers {
			if n := peer.Node(); n != nil {
				shown, err := n.API().Show(context.Background(), k)
				if err != nil || shown.State != "quarantined" || shown.Why != reason {
					t.Errorf("%s shows %s as %q, %q, %v", peer.Name, k, shown.State, shown.Why, err)
				}
			}
		}
	}
	if len(got) > 0 {
		t.Errorf("harmless keys are left alone: %v", got)
	}
	d := s.World.Compare(s.World.Expected(s.World.Seeds()))
	if len(d.Missing)+len(d.Extra) > 0 {
		t.Errorf("missing %d %v, extra %d %v", len(d.Missing), head(d.Missing), len(d.Extra), head(d.Extra))
	}
}

// living returns a peer that is up.
func living(t *testing.T, s *nodetest.Sim) *nodetest.SimPeer {
	t.Helper()
	for _, p := range s.Peers {
		if p.Node() != nil {
			return p
		}
	}
	t.Fatal("no peer is up")
	return nil
}

// TestAttackPoisonKey: in a swarm of five, a page ends the process that judges it. Dead peers stay
// dead, or come back. At most two die, and the rest of the world is crawled. After a person
// releases the Key, it is crawled.
func TestAttackPoisonKey(t *testing.T) {
	racetest.OneProcessor(t)
	for name, back := range map[string]bool{"dead peers stay dead": false, "dead peers come back": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPoison("judging", somePages(t, poisonWorld(), 1)...)
			o := nodetest.SimOptions{World: poisonWorld(), Node: node.Options{Delay: time.Second}, SliceBits: 6,
				Source: p.around}
			nodetest.RunSim(t, o, func(s *nodetest.Sim) {
				for range 5 {
					s.Add()
				}
				s.Settle(time.Minute)
				s.Seed()
				if back {
					s.Nurse(time.Minute, 3*time.Second)
					s.Mend()
				}
				s.Until("the Key is left alone", 10*time.Minute, func() string {
					if n := len(quarantine(t, s)); n != 1 {
						return fmt.Sprintf("%d keys in quarantine, %d deaths", n, p.killed())
					}
					return ""
				})
				s.Settle(3 * time.Minute)
				s.WaitIdle(living(t, s), 10*time.Minute)
				checkQuarantine(t, s, p)
				t.Logf("killed: %v", p.deaths)
				for k := range p.keys {
					p.most = len(p.deaths[k]) // its fault was found
					s.ReleaseKey(k)
				}
				s.Until("the Key is crawled", time.Minute, func() string {
					for k := range p.keys {
						shown, err := living(t, s).Node().API().Show(context.Background(), k)
						if err != nil || shown.State != "done" {
							return fmt.Sprintf("%s is %s, %v", k, shown.State, err)
						}
					}
					return ""
				})
				if left := quarantine(t, s); len(left) > 0 {
					t.Errorf("still left alone: %v", left)
				}
			})
		})
	}
}

// TestAttackPoisonKeysTogether: each of several poison Keys kills at most two processes. No other
// Key is blamed for it.
func TestAttackPoisonKeysTogether(t *testing.T) {
	racetest.OneProcessor(t)
	p := newPoison("judging", somePages(t, poisonWorld(), 3)...)
	o := nodetest.SimOptions{World: poisonWorld(), Node: node.Options{Delay: time.Second}, SliceBits: 6,
		Source: p.around}
	nodetest.RunSim(t, o, func(s *nodetest.Sim) {
		for range 5 {
			s.Add()
		}
		s.Settle(time.Minute)
		s.Seed()
		s.Nurse(2*time.Minute, 3*time.Second)
		s.Mend()
		s.Settle(3 * time.Minute)
		s.WaitIdle(s.Peers[0], 10*time.Minute)
		checkQuarantine(t, s, p)
		t.Logf("killed: %v", p.deaths)
	})
}

// TestAttackPoisonKeyAlone: a peer without others restarts after each death, and loses unsynced
// writes.
func TestAttackPoisonKeyAlone(t *testing.T) {
	racetest.OneProcessor(t)
	p := newPoison("judging", somePages(t, poisonWorld(), 1)...)
	o := nodetest.SimOptions{World: poisonWorld(), Node: node.Options{Delay: time.Second}, SliceBits: 6,
		Source: p.around}
	nodetest.RunSim(t, o, func(s *nodetest.Sim) {
		s.Add().SetKeeps(0)
		s.Settle(time.Minute)
		s.Seed()
		s.Nurse(2*time.Minute, time.Second)
		s.WaitIdle(s.Peers[0], 10*time.Minute)
		checkQuarantine(t, s, p)
		if n := p.killed(); n != 2 {
			t.Errorf("%d deaths, want 2", n)
		}
	})
}

// TestPoisonFaultTable: the process dies at each point from the attempt to the commit. A death
// before an attempt is recorded blames no Key. A death after it blames the Key. Harmless Keys are
// crawled in the end.
func TestPoisonFaultTable(t *testing.T) {
	racetest.OneProcessor(t)
	for _, c := range []struct {
		at          string
		deaths      int
		quarantined bool
	}{
		{"before", 1, false}, {"judging", 1, false}, {"judging", 2, true}, {"after", 1, false}, {"after", 2, true},
	} {
		t.Run(fmt.Sprintf("%s/%d deaths", c.at, c.deaths), func(t *testing.T) {
			t.Parallel()
			p := newPoison(c.at, somePages(t, poisonWorld(), 1)...)
			p.most = c.deaths
			o := nodetest.SimOptions{World: poisonWorld(), Node: node.Options{Delay: time.Second}, SliceBits: 6,
				Source: p.around}
			nodetest.RunSim(t, o, func(s *nodetest.Sim) {
				for range 3 {
					s.Add()
				}
				s.Settle(time.Minute)
				s.Seed()
				s.Nurse(2*time.Minute, 2*time.Second)
				s.Mend()
				s.Settle(3 * time.Minute)
				s.WaitIdle(s.Peers[0], 10*time.Minute)
				if p.killed() != c.deaths {
					t.Errorf("%d deaths, want %d", p.killed(), c.deaths)
				}
				if got := quarantine(t, s); (len(got) > 0) != c.quarantined || len(got) > 1 {
					t.Errorf("left alone: %v", got)
				}
				d := s.World.Compare(s.World.Expected(s.World.Seeds()))
				if len(d.Missing)+len(d.Extra) > 0 {
					t.Errorf("missing %d %v, extra %d %v", len(d.Missing), head(d.Missing), len(d.Extra), head(d.Extra))
				}
			})
		})
	}
}

// TestKillsAccuseNobody: peers are killed all the time, as an operator may do. No Key stays in
// quarantine.
func TestKillsAccuseNobody(t *testing.T) {
	racetest.OneProcessor(t)
	o := nodetest.SimOptions{World: poisonWorld(), Node: node.Options{Delay: time.Second}, SliceBits: 6}
	nodetest.RunSim(t, o, func(s *nodetest.Sim) {
		for range 5 {
			s.Add()
		}
		s.Settle(time.Minute)
		s.Seed()
		s.Rage(nodetest.Chaos{For: 2 * time.Minute, Crashes: true, Away: 5 * time.Second})
		s.Settle(3 * time.Minute)
		s.WaitIdle(s.Peers[0], 10*time.Minute)
		if got := quarantine(t, s); len(got) > 0 {
			t.Errorf("left alone: %v", got)
		}
		checkSim(t, s)
	})
}
