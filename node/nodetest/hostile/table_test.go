package hostile_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/nodetest"
	"github.com/echo-node/echo-node/node/nodetest/hostile"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
)

// Every kind of request has a rule, a right message and attacks. The test fails when a kind is
// added to the protocol but not to the table.
func TestNoKindIsForgotten(t *testing.T) {
	sc := &hostile.Scene{}
	for _, kind := range hostile.Kinds() {
		if _, ok := hostile.RuleOf(kind); !ok {
			t.Errorf("%s has no rule", kind)
		}
		if sc.RightMessage(kind) == nil {
			t.Errorf("%s has no right message", kind)
		}
		if len(hostile.Forgeries(kind)) == 0 {
			t.Errorf("nobody thought of attacks by %s", kind)
		}
		if len(sc.Huge(kind)) == 0 {
			t.Errorf("%s has no huge form", kind)
		}
	}
	if len(hostile.Kinds()) != len(hostile.Answers()) {
		t.Errorf("%d kinds of requests and %d of answers", len(hostile.Kinds()), len(hostile.Answers()))
	}
}

// TestTable sends each kind of request in each form, from a sender in each role. The receiver
// is a peer of a swarm that has crawled its test web. Only what the kind's rule allows may
// change on the peer's disk. No lease is lost, and senders without permission are refused.
func TestTable(t *testing.T) {
	for _, role := range hostile.AllRoles() {
		if racetest.Small(t) && role != hostile.Stranger && role != hostile.Replica {
			continue
		}
		t.Run(role.String(), func(t *testing.T) {
			racetest.OneProcessor(t)
			nodetest.RunSim(t, nodetest.SimOptions{World: world(), SliceBits: 4, Node: node.Options{Credit: patient()}},
				func(s *nodetest.Sim) {
					g := newStage(t, s, role)
					was := rowsOf(t, g.target)
					g.watch("nothing", 10*time.Second)
					if c := was.Changes(rowsOf(t, g.target)); len(c) > 0 {
						t.Fatalf("the store of an idle peer changes: %v", c)
					}
					cells := 0
					for _, kind := range hostile.Kinds() {
						for _, form := range hostile.Forms() {
							cells++
							g.cell(kind, role, form)
						}
					}
					t.Logf("%d cells", cells)
				})
		})
	}
}

// cell tests one cell of the table.
func (g *stage) cell(kind hostile.Kind, role hostile.Role, form hostile.Form) {
	g.t.Helper()
	rule, _ := hostile.RuleOf(kind)
	r := rand.New(rand.NewPCG(uint64(role), uint64(form)))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	name := fmt.Sprintf("%s, %s, %s", kind, role, form)
	was := rowsOf(g.t, g.target)
	faults := 0
	answered := func(what string, resp *wire.Response, err error) {
		if err == nil && resp.GetRefusal() == nil && role < rule.Answered {
			if faults++; faults == 1 { // one fault per cell is enough
				g.t.Errorf("%s, %s: answered: %.300s", name, what, resp)
			}
		}
	}
	pause := time.Second
	switch form {
	case hostile.WellFormed:
		resp, err := g.send.Ask(ctx, g.sc.RightMessage(kind))
		answered("", resp, err)
		reads := rule.Changes == hostile.Nothing && kind != "compare" && kind != "overrule"
		if reads && role >= rule.Answered && (err != nil || resp.GetRefusal() != nil) {
			g.t.Errorf("%s: not answered: %v %v", name, resp.GetRefusal(), err)
		}
	case hostile.Forged:
		for _, a := range hostile.Forgeries(kind) {
			resp, err := g.send.Ask(ctx, a.Make(g.sc, r))
			answered(a.Name, resp, err)
		}
		for range 20 {
			resp, err := g.send.Ask(ctx, g.sc.Random(r, kind))
			answered("at random", resp, err)
		}
	case hostile.Replayed:
		g.mu.Lock()
		said := g.said[kind]
		g.mu.Unlock()
		if len(said) == 0 {
			right := g.sc.RightMessage(kind)
			said = []*wire.Request{right, right}
		}
		for _, req := range said {
			resp, err := g.send.Ask(ctx, hostile.Clone(req))
			answered("as it was heard", resp, err)
		}
	case hostile.Huge:
		for _, req := range g.sc.Huge(kind) {
			resp, err := g.send.Ask(ctx, req)
			if err == nil && resp.GetRefusal() == nil {
				g.t.Errorf("%s: answered: %.300s", name, resp)
			}
		}
	case hostile.Slow:
		_, end := g.send.Hold(ctx, 300, hostile.Frame(g.sc.RightMessage(kind)))
		g.watch(name, 8*time.Second) // a lease lasts five
		end()
	case hostile.Truncated:
		if err := g.send.Cut(ctx, hostile.Frame(g.sc.RightMessage(kind))); err != nil {
			g.t.Errorf("%s: %v", name, err)
		}
	case hostile.OutOfOrder:
		for _, frame := range outOfOrder(g, kind) {
			resp, err := g.send.Send(ctx, frame)
			answered("", resp, err)
		}
	}
	g.watch(name, pause)
	may := rule.May(role)
	g.judge(name, may, was.Changes(rowsOf(g.t, g.target)))
	if may != hostile.Nothing {
		g.rest() // its effects end before the next cell
	}
}

// rest waits until nothing was written for a while.
func (g *stage) rest() {
	g.t.Helper()
	for was, end := rowsOf(g.t, g.target), time.Now().Add(10*time.Minute); ; {
		time.Sleep(20 * time.Second)
		is := rowsOf(g.t, g.target)
		if len(was.Changes(is)) == 0 {
			return
		}
		if was = is; time.Now().After(end) {
			g.t.Fatal("the disk does not come to rest")
		}
	}
}

// outOfOrder returns messages at the wrong time: a response as a request, the end of an
// exchange before its beginning, two frames at once.
func outOfOrder(g *stage, kind hostile.Kind) [][]byte {
	r := rand.New(rand.NewPCG(7, 7))
	right := hostile.Frame(version(g.sc.RightMessage(kind)))
	out := [][]byte{append(append([]byte{}, right...), right...), hostile.Frame(g.sc.RandomAnswer(r, kind, 1)),
		hostile.FrameOf(nil), {0}, {0xff, 0xff, 0xff, 0xff, 0xff}}
	last := hostile.Forgeries(kind)
	for i := range last { // backwards: the end comes before the beginning
		out = append(out, hostile.Frame(version(last[len(last)-1-i].Make(g.sc, r))))
	}
	return out
}

func version(req *wire.Request) *wire.Request {
	req.Version = partition.WireVersion
	return req
}

// judge compares what changed on disk with what may change.
func (g *stage) judge(name string, may hostile.Scope, changes []nodetest.Change) {
	g.t.Helper()
	few := 3
	for _, c := range changes {
		ok := false
		switch may {
		case hostile.Links:
			// known rows stay; nothing that was agreed changes
			ok = !c.Agreement() && (c.Is != "" || c.Transient())
		case hostile.OneSlice:
			ok = c.Slice == 0
		}
		ok = ok || g.mine[c.Slice] // another table covers what a replica may do in its own slices
		if !ok {
			if few--; few >= 0 {
				g.t.Errorf("%s: the disk changes: %s", name, c)
			}
		}
	}
}
