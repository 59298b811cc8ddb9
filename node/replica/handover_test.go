package replica

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/placement"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// A new owner of a slice in use keeps it for a while, even if another peer should own it. Each
// change of owner costs its sites their delay.
func TestSettledBeforeGivenAway(t *testing.T) {
	n := newRig(t, swarm())
	k := mustKey(t, "http://127.99.0.1:9009/")
	s := n.o.Store.SliceOf(k)
	if _, err := n.o.Store.Queue.Admit([]store.Admission{{Key: k}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	other := ""
	for i := 0; other == ""; i++ { // find a peer that should own s
		id, place := fmt.Sprint("peer", i), placement.New([]partition.Slice{s}, 3, n.o.Self, time.Minute, false)
		both := []partition.Member{{ID: n.o.Self, Capacity: 1}, {ID: id, Capacity: 1}}
		place.SetView(partition.NewView(both), time.Now())
		if place.Ranked(s)[0] == id {
			other = id
		}
	}
	n.enter(n.o.Self, other)
	n.give(s, other)
	n.o.Store.Log.SetLogged(true, s)
	c := n.o.Quorum.ReplicaSet(s).Next(n.o.Self, []string{n.o.Self, other}, n.o.Store.Log.LogHead(s))
	came := time.Now()
	if err := n.agreement.Decide(func() {
		n.o.Quorum.Copied(s)
		n.o.Quorum.Learn(quorum.SliceReplicas{Slice: s,
			ReplicaSet: c})
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.o.Store.Queue.Admit([]store.Admission{{Key: mustKey(t, "http://127.99.0.1:9009/more")}},
		time.Now()); err != nil {
		t.Fatal(err)
	}
	ask := n.o.Quorum.AskFor(other, true, time.Now())
	n.o.Quorum.Granted(other, ask, quorum.Grant{})
	n.answers[other] = func(req *wire.Request) *wire.Response {
		a := &wire.ShipAnswer{}
		for _, p := range req.GetShip().GetPieces() {
			head := n.o.Store.Log.LogHead(partition.Slice(p.Slice))
			a.Stances = append(a.Stances, &wire.Stance{Ok: true, Whole: true, Head: head})
		}
		return &wire.Response{Body: &wire.Response_Ship{Ship: a}}
	}
	replicate := func(ctx context.Context) error { return n.o.Replicator.Run(ctx, n.agreement) }
	n.during(replicate, "the other has the slice", func() bool { return n.handover.caughtUp(s, other) })
	given := func(now time.Time) bool {
		return slices.ContainsFunc(n.handover.plan(now), func(m move) bool { return m.slice == s && m.owner == other })
	}
	if given(came.Add(ownerStays / 2)) {
		t.Error("given away at once")
	}
	if !given(time.Now().Add(ownerStays)) {
		t.Error("not given away afterwards")
	}
}

// When the swarm is done, nothing moves any more, even if a move was planned. No part waits for the
// move, and a slice that rested goes on.
func TestNothingMovesWhenDone(t *testing.T) {
	n := newRig(t, swarm())
	n.enter(n.o.Self, "other")
	s := n.o.Slices[0]
	n.handover.plan(time.Now())
	n.handover.rest([]move{{slice: s, owner: "other"}})
	if n.handover.Moving() == 0 || n.agreement.Fetches(s) {
		t.Fatalf("%d slices move, s rests: %v", n.handover.Moving(), !n.agreement.Fetches(s))
	}
	n.o.Placement.Freeze()
	n.during(n.handover.Run, "nothing moves", func() bool { return n.handover.Moving() == 0 && n.agreement.Fetches(s) })
}

// A swarm at rest costs its peers next to nothing, even with many slices. The planner looks at all
// of them four times a second.
func TestManySlicesAtRest(t *testing.T) {
	n := newRig(t, geoSwarm(t))
	if len(n.o.Slices) < 10_000 {
		t.Fatalf("%d slices", len(n.o.Slices))
	}
	if moves := n.handover.plan(time.Now()); len(moves) != 0 {
		t.Fatalf("%d moves at rest", len(moves))
	}
	const few = 100
	if a := leastAllocs(few, func() { n.handover.plan(time.Now()) }); a > few {
		t.Errorf("%.0f allocations to find that %d slices stay where they are", a, len(n.o.Slices))
	}
	met := meetings{}
	if a := leastAllocs(few, func() {
		if err := n.elections.adoptOrphans(time.Now(), met); err != nil {
			t.Error(err)
		}
	}); a > few {
		t.Errorf("%.0f allocations to find that no slice is an orphan", a)
	}
	if who := n.o.Quorum.Replicas(); len(who) != 1 || who[0] != n.o.Self {
		t.Errorf("kept by %v", who)
	}
	n.give(n.o.Slices[7], "other")
	if who := n.o.Quorum.Replicas(); len(who) != 2 {
		t.Errorf("kept by %v", who)
	}
}

// leastAllocs returns how often f allocates: the least of many runs, because allocations of the
// whole process are counted. In one of the runs the rest of the peer does nothing. It stops at the
// first run with at most few allocations.
func leastAllocs(few float64, f func()) float64 {
	least := math.Inf(1)
	for n := 0; n < 500 && least > few; n++ {
		least = min(least, testing.AllocsPerRun(1, f))
	}
	return least
}
