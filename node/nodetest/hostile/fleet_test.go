package hostile_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/host"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/nodetest"
	"github.com/echo-node/echo-node/node/nodetest/hostile"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
)

var (
	fleetHours   = flag.Float64("hours", 0.5, "virtual hours of the fleet test")
	fleetHostile = flag.Int("hostile", 2, "hostile peers beside the five honest ones of the fleet test")
	fleetSlices  = flag.Int("slicebits", 5, "slice bits of the fleet test")
	fleetWeak    = flag.Bool("weak", false,
		"hostile replicas of the fleet test also lie about the replica sets of their slices, which is believed: see Weaknesses")
	fleetSeed  = flag.Uint64("seed", 1, "what the hostile peers of the fleet test do")
	fleetEvery = flag.Duration("every", 15*time.Second,
		"a hostile peer of the fleet test attacks so often, on average")
)

const fleetHonest = 5

// fleet is five honest peers and some hostile ones. Each hostile peer is a real peer that keeps
// slices by its rank. It lies in some of its responses, and it also attacks.
type fleet struct {
	t       *testing.T
	s       *nodetest.Sim
	targets []*nodetest.SimPeer // the honest peers; s.Peers grows while hostile ones attack
	j       *judge
	judging atomic.Pointer[judge]
	honest  map[string]bool // by name

	mu    sync.Mutex
	rogue map[string]*rogue // by name
	sent  map[string]int    // attacks, by kind
	large map[hostile.Kind][][]byte
	done  chan struct{}
	wg    sync.WaitGroup
}

// rogue is one hostile peer, through all its lives.
type rogue struct {
	mu   sync.Mutex
	r    *rand.Rand
	mood int // percentage of requests that it does not serve honestly
	sc   *hostile.Scene
	last []*wire.Request // requests of others, to be sent again
}

func (f *fleet) wrap(p *nodetest.SimPeer, h host.Host) host.Host {
	w := hostile.NewHost(h)
	if f.isHonest(p) {
		w.Seen = func(_ string, req *wire.Request, resp *wire.Response) {
			if j := f.judging.Load(); j != nil {
				j.answered(p.ID, req, resp)
			}
		}
		return w
	}
	f.mu.Lock()
	g := f.rogue[p.Name]
	if g == nil {
		g = &rogue{r: rand.New(rand.NewPCG(*fleetSeed, uint64(len(f.rogue))))}
		f.rogue[p.Name] = g
	}
	f.mu.Unlock()
	w.Decide = func(from string, req *wire.Request) hostile.Deed {
		for _, p := range f.targets {
			if p.ID == from {
				return g.decide(req)
			}
		}
		return hostile.Serve // hostile peers do not deceive each other
	}
	w.Answer = func(req *wire.Request, babble bool) *wire.Response { return g.answer(req, babble, f.spare(p.ID)) }
	return w
}

func (f *fleet) isHonest(p *nodetest.SimPeer) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.honest[p.Name]
}

func (g *rogue) decide(req *wire.Request) hostile.Deed {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.last) < 64 {
		g.last = append(g.last, hostile.Clone(req))
	} else {
		g.last[g.r.IntN(len(g.last))] = hostile.Clone(req)
	}
	if g.sc == nil || g.r.IntN(100) >= g.mood {
		return hostile.Serve
	}
	return []hostile.Deed{hostile.Lie, hostile.Lie, hostile.Lie, hostile.Babble, hostile.Refuse, hostile.Silence,
		hostile.Delay, hostile.Stop, hostile.Flood}[g.r.IntN(9)]
}

// answer lies about slices that the peer does not keep. It may have become a replica of one
// since it last looked.
func (g *rogue) answer(req *wire.Request, babble bool, spare map[partition.Slice]bool) *wire.Response {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sc.Spare = spare
	if babble {
		return g.sc.RandomAnswer(g.r, hostile.KindOf(req), req.GetId())
	}
	return g.sc.AnswerTo(g.r, req)
}

// rage makes p attack until the test ends.
func (f *fleet) rage(p *nodetest.SimPeer, g *rogue) {
	targets := f.targets
	for {
		g.mu.Lock()
		pause := time.Duration(g.r.ExpFloat64() * float64(*fleetEvery))
		target := targets[g.r.IntN(len(targets))]
		if g.r.IntN(20) == 0 {
			g.mood = []int{0, 0, 5, 30, 100}[g.r.IntN(5)]
		}
		g.mu.Unlock()
		select {
		case <-f.done:
			return
		case <-time.After(min(pause, 10**fleetEvery)):
		}
		h := p.Host()
		if h == nil {
			continue // between two lives
		}
		f.look(p.ID, target, g)
		f.attack(hostile.Sender{Host: h, To: target.PeerID(), Proto: hostile.RPC(f.s.Charter())}, g)
	}
}

// spare returns the slices that me keeps, according to any honest peer by now.
func (f *fleet) spare(me string) map[partition.Slice]bool {
	out := map[partition.Slice]bool{}
	for _, p := range f.targets {
		n := p.Node()
		if n == nil {
			continue // the test is over
		}
		for _, s := range n.Slices() {
			if !*fleetWeak && n.Agreed(s).Has(me) {
				out[s] = true
			}
		}
	}
	return out
}

// look updates what a hostile peer knows of the swarm's agreements.
func (f *fleet) look(me string, target *nodetest.SimPeer, g *rogue) {
	n := target.Node()
	all := n.Slices()
	sc := &hostile.Scene{Charter: f.s.Charter(), All: all, Me: me, Target: target.ID,
		ReplicaSets: map[partition.Slice]*wire.Config{}}
	for _, p := range f.targets {
		sc.Peers = append(sc.Peers, p.ID)
	}
	for _, sl := range all {
		c := n.Agreed(sl)
		w := &wire.Config{Slice: uint64(sl), Epoch: c.Epoch, Fork: c.Fork, Gen: c.Gen, Owner: c.Owner,
			Keepers: c.Replicas}
		for _, x := range c.Starts {
			w.Starts = append(w.Starts, &wire.Start{Gen: x.Gen, Pos: x.Pos})
		}
		sc.ReplicaSets[sl] = w
	}
	sc.Spare = f.spare(me)
	g.mu.Lock()
	defer g.mu.Unlock()
	sc.Slice = all[g.r.IntN(len(all))]
	sc.Head = uint64(g.r.IntN(200))
	// making rows needs a store, which is expensive
	if old := g.sc; old != nil && g.r.IntN(10) > 0 {
		sc.Keys, sc.Rows = old.Keys, old.Rows
		if g.r.IntN(3) > 0 {
			sc.Slice = old.Slice
		}
	} else {
		sc.Keys = []partition.Key{partition.Key(fmt.Sprintf("web:http://127.77.0.%d/", 1+g.r.IntN(f.s.World.Sites())))}
		ages := []time.Duration{0, time.Minute, time.Hour, -time.Hour, 24 * time.Hour, 365 * 24 * time.Hour}
		rows, err := sc.ForgedRows(time.Now().Add(ages[g.r.IntN(len(ages))]), g.r.IntN(2) == 0)
		if err != nil {
			f.t.Error(err)
		}
		sc.Rows, sc.Slice = rows, f.s.Charter().Slice(sc.Keys[0])
	}
	g.sc = sc
}

// attack does one bad thing.
func (f *fleet) attack(send hostile.Sender, g *rogue) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	g.mu.Lock()
	kinds, spare := hostile.Kinds(), g.sc.Spare
	kind := kinds[g.r.IntN(len(kinds))]
	as := hostile.Forgeries(kind)
	what := g.r.IntN(12)
	var req *wire.Request
	switch {
	case what < 6:
		req = as[g.r.IntN(len(as))].Make(g.sc, g.r)
	case what < 8:
		req = g.sc.Random(g.r, kind)
	case what < 10 && len(g.last) > 0:
		req = hostile.Clone(g.last[g.r.IntN(len(g.last))])
	default:
		req = g.sc.RightMessage(kind)
	}
	r := g.r.IntN(12)
	g.mu.Unlock()
	req.Version = partition.WireVersion
	f.mu.Lock()
	f.sent[string(hostile.KindOf(req))]++
	f.mu.Unlock()
	switch {
	case r == 0:
		_, end := send.Hold(ctx, 40, hostile.Frame(req))
		<-ctx.Done()
		end()
	case r == 1:
		_ = send.Cut(ctx, hostile.Frame(req))
	case r == 2: // a small flood
		for i := 0; i < 30 && maps.Equal(spare, f.spare(send.Host.ID().String())); i++ {
			_, _ = send.Ask(ctx, hostile.Clone(req))
		}
	case r == 3 && what == 0:
		for _, big := range f.huge(g.sc, kind) {
			_, _ = send.Send(ctx, big)
		}
	default:
		_, _ = send.Ask(ctx, req) // the response does not matter
	}
}

func (f *fleet) huge(sc *hostile.Scene, kind hostile.Kind) [][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.large == nil {
		f.large = map[hostile.Kind][][]byte{}
	}
	if f.large[kind] == nil {
		f.large[kind] = sc.HugeFrames(kind)
	}
	return f.large[kind]
}

// add makes a new hostile peer and starts its attacks.
func (f *fleet) add() {
	p := f.s.Add()
	f.mu.Lock()
	g := f.rogue[p.Name]
	f.mu.Unlock()
	g.mu.Lock()
	g.mood = 5
	g.mu.Unlock()
	f.wg.Go(func() { f.rage(p, g) })
}

// churn stops one hostile peer. Some time later it restarts it, or replaces it by a peer with a
// new identity.
func (f *fleet) churn(r *rand.Rand) {
	ps := f.s.Peers[fleetHonest:]
	p := ps[r.IntN(len(ps))]
	if p.Node() == nil {
		return
	}
	f.s.Crash(p)
	switch away := time.Duration(1+r.IntN(180)) * time.Second; r.IntN(3) {
	case 0:
		time.Sleep(away)
		f.add()
		f.s.Retire(p)
	default:
		time.Sleep(away)
		f.s.Start(p)
	}
}

// TestFleet has hostile peers attack five honest ones for some hours of fake time. Crawled data
// is not lost, and no peer acts in a slice of others. Slices whose replicas are mostly honest
// are served.
func TestFleet(t *testing.T) {
	racetest.OneProcessor(t)
	hours, n := *fleetHours, *fleetHostile
	if racetest.Small(t) {
		hours /= 6
	}
	begun := wall()
	f := &fleet{t: t, honest: map[string]bool{}, rogue: map[string]*rogue{}, sent: map[string]int{}}
	for i := range fleetHonest {
		f.honest[fmt.Sprintf("peer%d", i+1)] = true
	}
	o := nodetest.SimOptions{World: world(), SliceBits: *fleetSlices, Wrap: f.wrap, Seed: *fleetSeed,
		Hostile: func(p *nodetest.SimPeer) bool { return !f.isHonest(p) },
		Node:    node.Options{Revisit: 20 * time.Minute}}
	nodetest.RunSim(t, o, func(s *nodetest.Sim) {
		f.s, f.done = s, make(chan struct{})
		for range fleetHonest {
			s.Add()
		}
		s.Until("five peers agree", 5*time.Minute, func() string { return unsettled(s.Peers, true) })
		s.Seed()
		s.Until("the world is crawled", 10*time.Minute, func() string {
			if d := s.World.Compare(s.World.Expected(s.World.Seeds())); len(d.Missing) > 0 {
				return fmt.Sprintf("%d pages are missing", len(d.Missing))
			}
			return ""
		})
		f.targets = slices.Clone(s.Peers)
		f.j = newJudge(f.targets, t.Logf)
		s.Calls.SetJudge(func(from, _ *nodetest.SimPeer, req *wire.Request) nodetest.Effect {
			if f.isHonest(from) {
				f.j.sent(from.ID, req)
			}
			return nodetest.Pass
		})
		f.judging.Store(f.j)
		for range n {
			f.add()
		}
		f.strangers(2)
		f.watch(time.Duration(hours * float64(time.Hour)))
		close(f.done)
		f.wg.Wait()
	})
	f.verdict(wall() - begun)
}

// strangers attack, too.
func (f *fleet) strangers(n int) {
	for i := range n {
		h := f.s.Stranger(newKey(f.t, uint64(100+i)))
		g := &rogue{r: rand.New(rand.NewPCG(*fleetSeed, uint64(1000+i)))}
		f.wg.Go(func() {
			for {
				select {
				case <-f.done:
					return
				case <-time.After(*fleetEvery):
				}
				target := f.targets[i%fleetHonest]
				f.look(h.ID().String(), target, g)
				f.attack(hostile.Sender{Host: h, To: target.PeerID(), Proto: hostile.RPC(f.s.Charter())}, g)
			}
		})
	}
}

// watch takes samples for the duration long, and counts rows four times an hour.
func (f *fleet) watch(long time.Duration) {
	f.wg.Go(func() {
		for r := rand.New(rand.NewPCG(*fleetSeed, 3)); ; {
			select {
			case <-f.done:
				return
			case <-time.After(10*time.Minute + time.Duration(r.IntN(1200))*time.Second):
			}
			f.churn(r)
		}
	})
	begun, next := wall(), time.Now()
	for end := time.Now().Add(long); time.Now().Before(end); time.Sleep(10 * time.Second) {
		f.j.sample()
		if !time.Now().Before(next) {
			next = time.Now().Add(15 * time.Minute)
			f.countRows()
			f.t.Logf("%s to go: %s", time.Until(end).Round(time.Minute), f.j.report(wall()-begun))
		}
	}
	f.countRows()
}

func (f *fleet) countRows() {
	rows := map[string]nodetest.Rows{}
	for _, p := range f.targets {
		rows[p.ID] = rowsOf(f.t, p)
	}
	f.j.count(rows)
}

func (f *fleet) verdict(real time.Duration) {
	f.t.Logf("%.2f hours, %d hostile of %d, attacks %v", *fleetHours, *fleetHostile, *fleetHostile+fleetHonest, f.sent)
	f.t.Log(f.j.report(real))
	if f.j.lost > 0 || f.j.wrong > 0 || f.j.misbelieved > 0 {
		f.t.Errorf("%d rows lost, %d times somebody acted who should not, %d times something was believed that is not true", f.j.lost, f.j.wrong, f.j.misbelieved)
	}
	if all := f.j.served + f.j.unserved; all == 0 || float64(f.j.served) < 0.95*float64(all) {
		f.t.Errorf("honest slices were served in %d of %d samples, want 95 %%", f.j.served, all)
	}
}

// wall returns the real time, which a bubble hides.
func wall() time.Duration {
	var now syscall.Timeval
	if err := syscall.Gettimeofday(&now); err != nil {
		panic(err)
	}
	return time.Duration(now.Nano())
}
