package hostile_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
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

// weak shows one weakness on a stage.
type weak struct {
	role hostile.Role
	// decide is what the sender's peer does with requests, once bad is set.
	decide func(g *stage, from string, req *wire.Request) hostile.Deed
	answer func(g *stage, req *wire.Request) *wire.Response
	show   func(g *stage) // fails when the weakness no longer exists
}

func weaknesses() map[string]weak {
	return map[string]weak{
		"a replica makes up the next replica set": {role: hostile.Replica, show: makesUpReplicaSet},
		"a replica votes for two": {role: hostile.Replica, show: votesForTwo,
			decide: func(g *stage, from string, req *wire.Request) hostile.Deed {
				switch third := g.third(); {
				case from == third && (req.GetLease() != nil || req.GetBallots() != nil):
					return hostile.Lie
				case from == third && req.GetConfigs() != nil: // it ignores the news
					return hostile.Refuse
				}
				return hostile.Serve
			},
			answer: func(_ *stage, req *wire.Request) *wire.Response {
				if req.GetLease() != nil {
					return &wire.Response{Body: &wire.Response_Lease{Lease: &wire.LeaseAnswer{}}}
				}
				a := &wire.BallotsAnswer{}
				for range req.GetBallots().GetProposals() {
					a.Promises = append(a.Promises, &wire.Promise{Ok: true, Copied: true})
				}
				return &wire.Response{Body: &wire.Response_Ballots{Ballots: a}}
			}},
		"an owner forgets links": {role: hostile.Owner, show: forgetsLinks,
			decide: func(_ *stage, _ string, req *wire.Request) hostile.Deed {
				if req.GetForward() != nil {
					return hostile.Lie
				}
				return hostile.Serve
			},
			answer: func(_ *stage, req *wire.Request) *wire.Response {
				a := &wire.ForwardAck{}
				for range req.GetForward().GetLinks() {
					a.Answers = append(a.Answers, wire.ForwardAck_ANSWER_ADMITTED)
				}
				return &wire.Response{Body: &wire.Response_Forward{Forward: a}}
			}},
		"an owner replaces records": {role: hostile.Owner, show: replacesRecords},
		"a replica stops a slice while another is away": {role: hostile.Replica, show: stopsSlice,
			decide: func(_ *stage, _ string, req *wire.Request) hostile.Deed {
				if req.GetLease() != nil || req.GetBallots() != nil {
					return hostile.Refuse
				}
				return hostile.Serve
			}},
	}
}

// TestWeaknesses shows what a hostile replica can still do.
func TestWeaknesses(t *testing.T) {
	racetest.Skip(t)
	tests := weaknesses()
	for _, w := range hostile.Weaknesses() {
		x, ok := tests[w.Name]
		delete(tests, w.Name)
		if !ok {
			t.Errorf("nothing shows that %s", w.Name)
			continue
		}
		t.Run(strings.ReplaceAll(w.Name, " ", "-"), func(t *testing.T) {
			var g *stage
			var bad atomic.Pointer[string] // the id of the hostile peer, once it is hostile
			wrap := func(p *nodetest.SimPeer, h host.Host) host.Host {
				hh := hostile.NewHost(h)
				hh.Decide = func(from string, req *wire.Request) hostile.Deed {
					if id := bad.Load(); x.decide != nil && id != nil && *id == p.ID {
						return x.decide(g, from, req)
					}
					return hostile.Serve
				}
				hh.Answer = func(req *wire.Request, _ bool) *wire.Response { return x.answer(g, req) }
				return hh
			}
			nodetest.RunSim(t, nodetest.SimOptions{World: world(), SliceBits: 4, Wrap: wrap,
				Node: node.Options{Credit: patient()}}, func(s *nodetest.Sim) {
				g = newStage(t, s, x.role)
				id := g.sc.Me
				bad.Store(&id)
				x.show(g)
			})
		})
	}
	for name := range tests {
		t.Errorf("%s is shown and not in the list", name)
	}
}

func makesUpReplicaSet(g *stage) {
	c := g.sc.ReplicaSets[g.sc.Slice]
	stolen := &wire.Config{Slice: c.Slice, Epoch: c.Epoch, Fork: c.Fork, Gen: c.Gen + 1, Owner: g.sc.Me,
		Keepers: []string{g.sc.Me},
		Starts:  append(slices.Clone(c.Starts), &wire.Start{Gen: c.Gen + 1, Pos: 1 << 20})}
	told := &wire.Configs{Decided: []*wire.Config{stolen}}
	resp, err := g.send.Ask(context.Background(), &wire.Request{Body: &wire.Request_Configs{Configs: told}})
	if err != nil || resp.GetRefusal() != nil {
		g.t.Fatalf("%v, %v", resp.GetRefusal(), err)
	}
	time.Sleep(time.Second)
	if got := g.target.Node().Agreed(g.sc.Slice); got.Owner != g.sc.Me {
		g.t.Errorf("it is not believed any more: %+v", got)
	}
}

// third returns the replica of the slice that is neither its owner nor the hostile peer.
func (g *stage) third() string {
	c := g.sc.ReplicaSets[g.sc.Slice]
	for _, k := range c.Keepers {
		if k != g.sc.Me && k != c.Owner {
			return k
		}
	}
	return ""
}

func votesForTwo(g *stage) {
	owner, third := g.sc.ReplicaSets[g.sc.Slice].Owner, g.third()
	g.s.Calls.SetJudge(func(from, to *nodetest.SimPeer, _ *wire.Request) nodetest.Effect {
		if from.ID == owner && to.ID == third || from.ID == third && to.ID == owner {
			return nodetest.Lost
		}
		return nodetest.Pass
	})
	g.s.Until("two peers act in one slice", 2*time.Minute, func() string {
		var acting []string
		for _, p := range g.s.Peers {
			if (p.ID == owner || p.ID == third) && slices.Contains(p.Node().Acting(), g.sc.Slice) {
				acting = append(acting, p.Name)
			}
		}
		if len(acting) < 2 {
			return fmt.Sprintf("%v act in %s", acting, g.sc.Slice)
		}
		return ""
	})
}

func forgetsLinks(g *stage) {
	s := g.s
	// A new page that no peer knows, in the hostile owner's slice.
	var k partition.Key
	for i := 0; k == "" || s.Charter().Slice(k) != g.sc.Slice; i++ {
		k = partition.Key(fmt.Sprintf("web:http://%s/new-%d", g.s.World.Host(i%s.World.Sites()), i))
	}
	from := s.Peers[0]
	if from.ID == g.sc.Me {
		from = s.Peers[1]
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := from.Node().SeedUntilDone(ctx, []partition.Key{k}); err != nil {
		g.t.Fatal(err)
	}
	time.Sleep(time.Minute)
	for _, p := range s.Peers {
		for row := range rowsOf(g.t, p) {
			if row[0] == 'K' && strings.HasSuffix(row, "\x00"+string(k)) {
				g.t.Errorf("%s has %s", p.Name, k)
			}
		}
	}
}

func replacesRecords(g *stage) {
	var head uint64
	probe := func(p *wire.Piece) *wire.Stance {
		resp, err := g.send.Ask(context.Background(),
			&wire.Request{Body: &wire.Request_Ship{Ship: &wire.Ship{Pieces: []*wire.Piece{p}}}})
		if err != nil || len(resp.GetShip().GetStances()) != 1 {
			g.t.Fatalf("%v, %v", resp.GetRefusal(), err)
		}
		return resp.GetShip().Stances[0]
	}
	c := g.sc.ReplicaSets[g.sc.Slice]
	piece := &wire.Piece{Slice: c.Slice, Epoch: c.Epoch, Fork: c.Fork, Gen: c.Gen, Kind: wire.Piece_KIND_PROBE}
	head = probe(piece).Head
	piece.Kind, piece.From, piece.To, piece.Rows = wire.Piece_KIND_TAIL, head, head+1, g.sc.Rows
	was := rowsOf(g.t, g.target)
	st := probe(piece)
	for _, ch := range was.Changes(rowsOf(g.t, g.target)) {
		if ch.Key[0] == 'R' && ch.Slice == g.sc.Slice && ch.Was != "" {
			return
		}
	}
	g.t.Errorf("the forged record is not taken any more: %v", st)
}

func stopsSlice(g *stage) {
	c := g.sc.ReplicaSets[g.sc.Slice]
	for _, p := range g.s.Peers {
		if p.ID != g.sc.Me && p.ID != c.Owner && slices.Contains(c.Keepers, p.ID) {
			g.s.Crash(p)
		}
	}
	time.Sleep(15 * time.Second)
	for _, p := range g.s.Peers {
		if p.Node() != nil && p.ID != g.sc.Me && slices.Contains(p.Node().Acting(), g.sc.Slice) {
			g.t.Errorf("%s acts", p.Name)
		}
	}
}
