package quorum

import (
	"testing"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// trio has three Machines that know each other as replicas of slice 1. Its owner is a.
type trio map[string]*Machine

var began = time.Unix(1e9, 0)

// afterStart is a time when a restarted Machine may promise again.
var afterStart = began.Add(LeaseGrant)

func newTrio(c ReplicaSet, heads map[string]uint64, copies map[string]uint64) trio {
	t := trio{}
	for _, id := range c.Replicas {
		m := New(Options{Self: id, Founder: "x", Slices: []partition.Slice{1, 2}, Started: began,
			Head: func(partition.Slice) uint64 { return heads[id] }})
		m.Learn(SliceReplicas{1, c})
		if gen, ok := copies[id]; ok {
			m.slots[0].copied = copied{true, c.Epoch, c.Fork, gen}
		}
		t[id] = m
	}
	return t
}

func abc() ReplicaSet {
	return ReplicaSet{Gen: 3, Owner: "a", Replicas: []string{"a", "b", "c"}, Starts: []Start{{1, 0}, {2, 0}, {3, 5}}}
}

func allOf(gen uint64) map[string]uint64 { return map[string]uint64{"a": gen, "b": gen, "c": gen} }

// TestPromiseOutlivesLeases checks a replica that promised its slice to a candidate after the
// owner's lease ran out. Leases for other slices do not bind it to that owner again.
func TestPromiseOutlivesLeases(t *testing.T) {
	k := newTrio(abc(), nil, allOf(3))
	p := Proposal{Slice: 1, Base: abc(), Ballot: Ballot{2, "c"}}
	now := afterStart
	if r := k["b"].Prepare(p, now); !r.OK {
		t.Fatalf("%+v", r)
	}
	a := k["a"].AskFor("b", true, now)
	g := k["b"].Grant("a", a, now)
	if len(g.Refused) != 1 {
		t.Fatalf("leased what it promised away: %+v", g)
	}
	p.Next = abc().Next("c", abc().Replicas, 5)
	if r := k["b"].Accept(p, now.Add(time.Second)); !r.OK {
		t.Fatalf("a lease of nothing binds: %+v", r)
	}
}

// TestStartedPromisesNothing: a replica may have leased the slice before it stopped.
func TestStartedPromisesNothing(t *testing.T) {
	k := newTrio(abc(), nil, allOf(3))
	p := Proposal{Slice: 1, Base: abc(), Ballot: Ballot{2, "c"}}
	if r := k["b"].Prepare(p, afterStart.Add(-1)); r.OK || r.Leased != 1 {
		t.Fatalf("%+v", r)
	}
	if r := k["b"].Prepare(p, afterStart); !r.OK {
		t.Fatalf("%+v", r)
	}
}

// TestOwnerIsBound checks that an owner that acts promises nothing, and that it does promise
// once its leases have run out.
func TestOwnerIsBound(t *testing.T) {
	k := newTrio(abc(), nil, allOf(3))
	ask := k["a"].AskFor("b", true, afterStart)
	k["a"].Granted("b", ask, k["b"].Grant("a", ask, afterStart))
	p := Proposal{Slice: 1, Base: abc(), Ballot: Ballot{2, "c"}}
	if r := k["a"].Prepare(p, afterStart.Add(LeaseHold-1)); r.OK || r.Leased <= 0 {
		t.Fatalf("%+v", r)
	}
	if r := k["a"].Prepare(p, afterStart.Add(LeaseHold)); !r.OK {
		t.Fatalf("%+v", r)
	}
	if k["a"].Acts(1, afterStart) {
		t.Fatal("acts after a promise to another")
	}
}

// TestLeaseOfAnEarlierReplicaSet checks that a lease does not cover a ReplicaSet that became
// known after the request for the lease.
func TestLeaseOfAnEarlierReplicaSet(t *testing.T) {
	k := newTrio(abc(), nil, allOf(3))
	ask := k["a"].AskFor("b", true, afterStart)
	g := k["b"].Grant("a", ask, afterStart)
	next := abc().Next("a", []string{"a", "b", "c"}, 0)
	k["a"].Learn(SliceReplicas{1, next})
	k["a"].Granted("b", ask, g)
	if k["a"].Acts(1, afterStart) {
		t.Fatal("acts by a lease of the generation before")
	}
	ask = k["a"].AskFor("b", true, afterStart)
	k["a"].Granted("b", ask, k["b"].Grant("a", ask, afterStart))
	if !k["a"].Acts(1, afterStart) {
		t.Fatal("does not act")
	}
}

// TestStrangersBallots checks that only a replica may be a candidate, and that there is always
// a ballot above the highest accepted one.
func TestStrangersBallots(t *testing.T) {
	k := newTrio(abc(), nil, allOf(3))
	for _, b := range []Ballot{{2, "x"}, {2, ""}, {^uint64(0), "c"}} {
		p := Proposal{Slice: 1, Base: abc(), Ballot: b, Next: abc().Next("c", abc().Replicas, 5)}
		if r := k["b"].Prepare(p, afterStart); r.OK {
			t.Errorf("promised to %v", b)
		}
		if r := k["b"].Accept(p, afterStart); r.OK {
			t.Errorf("accepted of %v", b)
		}
		k["c"].Refused(1, b)
		if c, ok := k["c"].Campaign(1); !ok || c.Ballot.N < 2 {
			t.Errorf("after %v a campaign has %v", b, c.Ballot)
		}
	}
}

// TestChooseKnowsNotAnOldCopy: b was away for so many generations that its copy cannot be
// compared. It may have entries that were acknowledged while c was far behind. So b and c may
// not choose alone; with a they may.
func TestChooseKnowsNotAnOldCopy(t *testing.T) {
	c := ReplicaSet{Gen: 0, Owner: "a", Replicas: []string{"a", "b", "c"}}
	for range MaxStarts + 5 {
		c = c.Next("a", c.Replicas, 10)
	}
	heads := map[string]uint64{"a": 10, "b": 10, "c": 5}
	k := newTrio(c, heads, map[string]uint64{"a": c.Gen, "b": 1, "c": c.Gen})
	campaign, ok := k["c"].Campaign(1)
	if !ok {
		t.Fatal("no campaign")
	}
	b, own := k["b"].Prepare(campaign, afterStart), k["c"].Prepare(campaign, afterStart)
	if !b.OK || !own.OK {
		t.Fatalf("%+v %+v", b, own)
	}
	if p, ok := k["c"].Choose(campaign, []Promise{b, own}); ok {
		t.Fatalf("chose %+v: 6 to 10 are lost", p.Next)
	}
	heads["c"] = 10
	campaign, _ = k["c"].Campaign(1)
	b, own = k["b"].Prepare(campaign, afterStart), k["c"].Prepare(campaign, afterStart)
	a := k["a"].Prepare(campaign, afterStart)
	if p, ok := k["c"].Choose(campaign, []Promise{b, own, a}); !ok || p.Next.Owner != "c" {
		t.Fatalf("%+v, %v of %+v", p, ok, a)
	}
}

// TestLongestLogIsElected: the candidate's log is shorter than another one of its majority, so
// it makes that replica the owner, which acts at once. The candidate does not keep campaigning
// in vain, with ballots that would delay the other's campaign.
func TestLongestLogIsElected(t *testing.T) {
	heads := map[string]uint64{"a": 9, "b": 7, "c": 6}
	k := newTrio(abc(), heads, allOf(3))
	campaign, ok := k["c"].Campaign(1)
	if !ok {
		t.Fatal("no campaign")
	}
	b, own := k["b"].Prepare(campaign, afterStart), k["c"].Prepare(campaign, afterStart)
	p, ok := k["c"].Choose(campaign, []Promise{b, own})
	if !ok || p.Next.Owner != "b" || p.Next.Starts[len(p.Next.Starts)-1] != (Start{4, 7}) {
		t.Fatalf("%+v, %v", p.Next, ok)
	}
	for _, id := range []string{"c", "b"} {
		if r := k[id].Accept(p, afterStart); !r.OK {
			t.Fatalf("%s: %+v", id, r)
		}
	}
	k["b"].Learn(SliceReplicas{1, p.Next})
	k["c"].Learn(SliceReplicas{1, p.Next})
	ask := k["b"].AskFor("c", true, afterStart)
	k["b"].Granted("c", ask, k["c"].Grant("b", ask, afterStart))
	if !k["b"].Acts(1, afterStart) {
		t.Error("the elected one does not act")
	}
	stranger := b
	stranger.By = "x"
	if p, ok := k["c"].Choose(campaign, []Promise{stranger, own}); ok {
		t.Errorf("elected %+v, which is no replica", p.Next)
	}
}

// TestElectedHearsOfIt: a peer became the owner of a slice without knowing it. It learns that
// from a replica when it asks for a lease of another slice. Otherwise its lease there would
// keep every peer from acting in that slice.
func TestElectedHearsOfIt(t *testing.T) {
	k := newTrio(abc(), nil, allOf(3))
	other := ReplicaSet{Gen: 1, Owner: "b", Replicas: []string{"a", "b", "c"}}
	for _, m := range k {
		m.Learn(SliceReplicas{2, other})
	}
	next := abc().Next("b", abc().Replicas, 0)
	k["c"].Learn(SliceReplicas{1, next})
	ask := k["b"].AskFor("c", false, afterStart)
	g := k["c"].Grant("b", ask, afterStart)
	if !g.Differs || !k["b"].Granted("c", ask, g) {
		t.Fatalf("%+v", g)
	}
	ask = k["b"].AskFor("c", true, afterStart)
	k["b"].Granted("c", ask, k["c"].Grant("b", ask, afterStart))
	if got := k["b"].ReplicaSet(1); got.Compare(next) != 0 {
		t.Errorf("b knows %+v", got)
	}
}

// TestNewsInsteadOfTheList checks that after a change the owner sends only the change to a
// replica that leased before and may not know it.
func TestNewsInsteadOfTheList(t *testing.T) {
	k := newTrio(abc(), nil, allOf(3))
	other := ReplicaSet{Gen: 1, Owner: "a", Replicas: []string{"a", "b", "c"}}
	for _, m := range k {
		m.Learn(SliceReplicas{2, other})
	}
	ask := k["a"].AskFor("b", true, afterStart)
	k["a"].Granted("b", ask, k["b"].Grant("a", ask, afterStart))
	next := abc().Next("a", abc().Replicas, 7)
	k["a"].Learn(SliceReplicas{1, next})
	ask = k["a"].AskFor("b", false, afterStart)
	if len(ask.News) != 1 || ask.News[0].Slice != 1 || ask.Count != 2 {
		t.Fatalf("%+v", ask)
	}
	if g := k["b"].Grant("a", ask, afterStart); g.Differs || k["a"].Granted("b", ask, g) {
		t.Fatalf("the list is needed all the same: %+v", g)
	}
	k["a"].Copied(1)
	if !k["a"].Acts(1, afterStart) {
		t.Error("the lease does not cover what the news were of")
	}
	if ask := k["a"].AskFor("b", false, afterStart); len(ask.News) > 0 {
		t.Errorf("news again: %+v", ask)
	}
}
