package hostile_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"

	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/nodetest"
	"github.com/echo-node/echo-node/node/nodetest/hostile"
	"github.com/echo-node/echo-node/node/quota"
	"github.com/echo-node/echo-node/partition"
)

// world returns a small test web that is crawled completely within a minute.
func world() crawltest.Options {
	return crawltest.Options{Seed: 5, Sites: 8, Pages: 3, Words: 20, Plain: true}
}

// patient returns limits that no test of this package reaches. So each message reaches the rule
// that should refuse it.
func patient() quota.Limits {
	much := quota.Rate{PerSecond: 1e9, Burst: 1e9}
	return quota.Limits{Links: much, Bytes: much, Requests: much, Priority: much, SlowAfter: 1 << 30,
		CutAfter: 1 << 30}
}

// newKey returns the identity with number n.
func newKey(t testing.TB, n uint64) crypto.PrivKey {
	t.Helper()
	var seed [32]byte
	for i := range 8 {
		seed[i] = byte(n >> (8 * i))
	}
	seed[31] = 0x66
	key, _, err := crypto.GenerateEd25519Key(rand.NewChaCha8(seed))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// stage is a swarm that has crawled its test web, and one sender in some role.
type stage struct {
	t      *testing.T
	s      *nodetest.Sim
	sc     *hostile.Scene
	target *nodetest.SimPeer
	send   hostile.Sender
	mine   map[partition.Slice]bool // slices that the sender keeps

	mu   sync.Mutex
	said map[hostile.Kind][]*wire.Request // the latest few messages that honest peers sent
}

// replicas returns the replicas of each slice, according to its owner.
func replicas(s *nodetest.Sim) map[partition.Slice][]string {
	out := map[partition.Slice][]string{}
	n := s.Peers[0].Node()
	for _, sl := range n.Slices() {
		out[sl] = n.Agreed(sl).Replicas
	}
	return out
}

// unsettled says why the peers do not all know the same ReplicaSets and act in all slices that
// they own. It returns "" when they do.
func unsettled(ps []*nodetest.SimPeer, moving bool) string {
	acting := 0
	all := ps[0].Node().Slices()
	for _, p := range ps {
		st := p.Node().Status()
		acting += len(p.Node().Acting())
		if moving && st.SlicesMoving > 0 || st.SlicesAwaited > 0 {
			return fmt.Sprintf("%s moves %d slices, awaits %d", p.Name, st.SlicesMoving, st.SlicesAwaited)
		}
		for _, sl := range all {
			if p.Node().Agreed(sl).Compare(ps[0].Node().Agreed(sl)) != 0 {
				return fmt.Sprintf("%s and %s do not know the same of %s", p.Name, ps[0].Name, sl)
			}
		}
	}
	if acting != len(all) {
		return fmt.Sprintf("%d of %d slices are acted in", acting, len(all))
	}
	return ""
}

func newStage(t *testing.T, s *nodetest.Sim, role hostile.Role) *stage {
	t.Helper()
	g := &stage{t: t, s: s, said: map[hostile.Kind][]*wire.Request{}, mine: map[partition.Slice]bool{}}
	s.Calls.SetJudge(func(_, _ *nodetest.SimPeer, req *wire.Request) nodetest.Effect {
		g.mu.Lock()
		defer g.mu.Unlock()
		k := hostile.KindOf(req)
		g.said[k] = append(g.said[k], hostile.Clone(req))
		g.said[k] = g.said[k][max(0, len(g.said[k])-3):]
		return nodetest.Pass
	})
	for range 4 {
		s.Add()
	}
	s.Until("four peers agree", 5*time.Minute, func() string { return unsettled(s.Peers, true) })
	s.Seed()
	s.WaitIdle(s.Peers[0], 10*time.Minute)
	before := replicas(s)
	s.Add()
	s.Until("five peers agree", 5*time.Minute, func() string { return unsettled(s.Peers, true) })
	g.cast(role, before)
	time.Sleep(2 * time.Minute) // until copies that are not needed any more are dropped
	return g
}

// cast chooses the role of each peer.
func (g *stage) cast(role hostile.Role, before map[partition.Slice][]string) {
	s, n := g.s, g.s.Peers[0].Node()
	byID := map[string]*nodetest.SimPeer{}
	for _, p := range s.Peers {
		byID[p.ID] = p
	}
	founder := s.Charter().Founder
	var sender, target *nodetest.SimPeer
	var in partition.Slice
	best := -1
	for _, sl := range n.Slices() {
		c := n.Agreed(sl)
		keys := len(keysOf(g.t, byID[c.Owner], sl))
		for _, p := range s.Peers {
			fits := false
			to := byID[c.Owner]
			switch role {
			case hostile.Stranger, hostile.Member:
				fits = true
			case hostile.Elsewhere:
				fits = !c.Has(p.ID) && !slices.Contains(before[sl], p.ID)
			case hostile.Former:
				fits = !c.Has(p.ID) && slices.Contains(before[sl], p.ID)
			case hostile.Replica:
				fits = c.Has(p.ID) && c.Owner != p.ID
			case hostile.Owner:
				fits = c.Owner == p.ID
				for _, k := range c.Replicas {
					if k != p.ID {
						to = byID[k]
					}
				}
			}
			if fits && p.ID != founder && keys > best {
				best, sender, target, in = keys, p, to, sl
			}
		}
	}
	if sender == nil || best == 0 {
		g.t.Fatalf("nobody is a %s of a slice that has records", role)
	}
	g.target = target
	g.send = hostile.Sender{Host: sender.Host(), To: target.PeerID(), Proto: hostile.RPC(s.Charter())}
	me := sender.ID
	switch role {
	case hostile.Stranger:
		h := s.Stranger(newKey(g.t, 1))
		g.send.Host, me = h, h.ID().String()
	case hostile.Member:
		h := s.Stranger(newKey(g.t, 2))
		g.send.Host, me = h, h.ID().String()
		g.join(h)
	}
	g.sc = sceneOf(g.t, s, in, me, target)
	for _, sl := range n.Slices() {
		g.mine[sl] = n.Agreed(sl).Has(me)
	}
	if role < hostile.Replica {
		g.sc.Spare = g.mine
	}
}

// sceneOf returns what a peer knows after it has explored the swarm.
func sceneOf(t testing.TB, s *nodetest.Sim, in partition.Slice, me string, target *nodetest.SimPeer) *hostile.Scene {
	t.Helper()
	n := target.Node()
	sc := &hostile.Scene{Charter: s.Charter(), All: n.Slices(), Slice: in, Me: me, Target: target.ID,
		ReplicaSets: map[partition.Slice]*wire.Config{}}
	for _, p := range s.Peers {
		sc.Peers = append(sc.Peers, p.ID)
	}
	for _, sl := range sc.All {
		c := n.Agreed(sl)
		w := &wire.Config{Slice: uint64(sl), Epoch: c.Epoch, Fork: c.Fork, Gen: c.Gen, Owner: c.Owner,
			Keepers: c.Replicas}
		for _, x := range c.Starts {
			w.Starts = append(w.Starts, &wire.Start{Gen: x.Gen, Pos: x.Pos})
		}
		sc.ReplicaSets[sl] = w
	}
	sc.Keys = keysOf(t, target, in)
	rows, err := sc.ForgedRows(time.Now().Add(time.Minute), false)
	if err != nil {
		t.Fatal(err)
	}
	sc.Rows = rows
	return sc
}

// keysOf returns the Keys of a slice for which p has records.
func keysOf(t testing.TB, p *nodetest.SimPeer, sl partition.Slice) []partition.Key {
	t.Helper()
	var out []partition.Key
	for k := range rowsOf(t, p) {
		if k[0] == 'R' && nodetest.SliceOfRow(k) == sl {
			_, key, _ := strings.Cut(k[9:], "\x00")
			out = append(out, partition.Key(key))
		}
	}
	slices.Sort(out)
	return out
}

func rowsOf(t testing.TB, p *nodetest.SimPeer) nodetest.Rows {
	t.Helper()
	rows, err := p.Rows()
	if err != nil {
		t.Fatalf("%s: %v", p.Name, err)
	}
	return rows
}

// join makes h a member that refuses every request until the test ends.
func (g *stage) join(h host.Host) {
	ctx, stop := context.WithCancel(context.Background())
	d, err := dht.New(ctx, dht.Options{Key: newKey(g.t, 2), Charter: g.s.Charter(), Host: h,
		Join: []string{g.s.Peers[0].Addr()}})
	if err != nil {
		g.t.Fatal(err)
	}
	d.Handle(func(context.Context, string, *wire.Request) *wire.Response {
		return &wire.Response{Refusal: &wire.Refusal{Code: wire.Refusal_CODE_BUSY, Reason: "later", RetryAfterMs: 1000}}
	})
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	g.s.AtEnd(func() {
		stop()
		<-done
		if err := d.Close(); err != nil {
			g.t.Error(err)
		}
	})
	g.s.Until("the member is known", time.Minute, func() string {
		for _, p := range g.s.Peers {
			if n := p.Node().Status().Peers; n != len(g.s.Peers)+1 {
				return fmt.Sprintf("%s sees %d", p.Name, n)
			}
		}
		return ""
	})
}

// watch lets fake time pass and checks meanwhile that no lease is lost: the owner of every
// slice that the sender does not keep acts in it.
func (g *stage) watch(what string, long time.Duration) {
	g.t.Helper()
	for end := time.Now().Add(long); ; time.Sleep(250 * time.Millisecond) {
		for _, p := range g.s.Peers {
			acting := map[partition.Slice]bool{}
			for _, sl := range p.Node().Acting() {
				acting[sl] = true
			}
			for sl, was := range g.sc.ReplicaSets {
				if g.mine[sl] {
					continue
				}
				if was.Owner == p.ID && !acting[sl] {
					g.t.Fatalf("%s: %s does not act in %s any more", what, p.Name, sl)
				}
				if c := p.Node().Agreed(sl); c.Epoch != was.Epoch || c.Fork != was.Fork || c.Gen != was.Gen ||
					c.Owner != was.Owner {
					g.t.Fatalf("%s: %s believes %+v of %s", what, p.Name, c, sl)
				}
			}
		}
		if !time.Now().Before(end) {
			return
		}
	}
}
