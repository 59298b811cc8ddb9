package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/placement"
	"github.com/echo-node/echo-node/node/replica/message"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// elsewhere is the store of another peer of n's swarm.
func elsewhere(t *testing.T, n *Node) *db.Store {
	t.Helper()
	s, err := db.Create("other", store.Options{FS: vfs.NewMem(), Charter: n.charter})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func mustKey(t *testing.T, url string) partition.Key {
	t.Helper()
	k, err := partition.ParseKey(url)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// enter puts members into n's view.
func enter(n *Node, ids ...string) {
	live, _ := n.placement.Views()
	ms := append([]partition.Member(nil), live.Members()...)
	for _, id := range ids {
		ms = append(ms, partition.Member{ID: id, Capacity: 1})
	}
	n.placement.SetView(partition.NewView(ms), time.Now())
}

// give makes owner the only replica of s, as n learns it.
func give(t *testing.T, n *Node, s partition.Slice, owner string) quorum.ReplicaSet {
	t.Helper()
	c := n.quorum.ReplicaSet(s).Next(owner, []string{owner}, n.store.Log.LogHead(s))
	if err := n.decide(func() { n.quorum.Learn(quorum.SliceReplicas{Slice: s, ReplicaSet: c}) }); err != nil {
		t.Fatal(err)
	}
	return c
}

// I2: a slice is not given away while an admission that began before is under
// way, and once it is another's nothing is written to it.
func TestI2HandoverWaitsForAdmissions(t *testing.T) {
	n := openNode(t, Options{AllowNet: []netip.Prefix{netip.MustParsePrefix("127.99.0.0/16")}})
	k := mustKey(t, "http://127.99.0.1:9009/")
	s := n.store.SliceOf(k)
	n.deciding.RLock() // an admission under way
	given := make(chan struct{})
	go func() {
		defer close(given)
		give(t, n, s, "other")
	}()
	select {
	case <-given:
		t.Error("given away during an admission")
	case <-time.After(100 * time.Millisecond):
	}
	if _, err := n.store.Queue.Admit([]store.Admission{{Key: k}}, time.Now()); err != nil {
		t.Error(err)
	}
	n.deciding.RUnlock()
	<-given
	for what, err := range map[string]error{
		"admit":  func() error { _, err := n.store.Queue.Admit([]store.Admission{{Key: k}}, time.Now()); return err }(),
		"commit": n.store.Commit(store.Commit{Key: k, Now: time.Now(), Next: store.Next{State: store.StateDone}}),
	} {
		if !errors.Is(err, store.ErrFenced) {
			t.Errorf("%s into a slice of another: %v", what, err)
		}
	}
	if n.acts(s) || n.fetches(s) {
		t.Error("acts in a slice of another")
	}
}

// Rows that come into a slice acted in already are crawled too; nobody but its
// replicas' owner may bring rows to a replica.
func TestReconciledRowsAreCrawled(t *testing.T) {
	n := openNode(t, Options{AllowNet: []netip.Prefix{netip.MustParsePrefix("127.99.0.0/16")}, Delay: time.Millisecond})
	k := mustKey(t, "http://127.99.0.1:9009/")
	s := n.store.SliceOf(k)
	other := elsewhere(t, n)
	if _, err := other.Queue.Admit([]store.Admission{{Key: k}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	rows, _, err := other.Log.SliceRows(s, nil, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	unite := func(from string) *wire.Response {
		return n.serve(t.Context(), from,
			&wire.Request{Body: &wire.Request_Unite{Unite: &wire.Unite{Slice: uint64(s), Rows: message.Rows(rows)}}})
	}
	if r := unite("stranger"); r.GetRefusal() == nil {
		t.Errorf("a stranger's rows are taken: %v", r)
	}
	enter(n, "member")
	if r := unite("member"); !r.GetUnite().GetOk() {
		t.Fatal(r)
	}
	for deadline := time.Now().Add(20 * time.Second); n.crawler.Stats().Requests == 0; time.Sleep(
		10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("its site is never asked: %+v", n.crawler.Stats())
		}
	}
	give(t, n, s, "somebody")
	if r := unite("member"); r.GetRefusal() == nil {
		t.Errorf("rows of a slice of another are taken: %v", r)
	}
}

// Texts that expand a thousandfold do not keep a slice from being taken over.
func TestImportOfWhatExpands(t *testing.T) {
	racetest.Skip(t)
	n := openNode(t, Options{})
	other := elsewhere(t, n)
	now := time.Now()
	text := strings.Repeat("spam ", 200_000)
	var s partition.Slice
	for i := range 70 {
		k := mustKey(t, fmt.Sprintf("http://spam.example/%d", i))
		s = other.SliceOf(k)
		if _, err := other.Queue.Admit([]store.Admission{{Key: k}}, now); err != nil {
			t.Fatal(err)
		}
		r := &store.Record{V: store.RecordVersion, Key: k, Kind: "page", URL: k.URL(), FetchedAt: now, Source: "web",
			Status: 200, Text: text}
		if err := other.Commit(store.Commit{Key: k, Now: now, Record: r,
			Next: store.Next{State: store.StateDone}}); err != nil {
			t.Fatal(err)
		}
	}
	rows, next, err := other.Log.SliceRows(s, nil, reconcilePage)
	if err != nil || len(next) > 0 {
		t.Fatal(len(rows), next, err)
	}
	if err := n.importRows(s, rows); err != nil {
		t.Fatal(err)
	}
	if st := n.store.Stats(); st.Records != 70 {
		t.Errorf("%d records of 70", st.Records)
	}
}

// What is left of a copy that was never finished is dropped at the next start:
// forgotten, its Keys would be pending for ever.
func TestUnfinishedCopyIsDropped(t *testing.T) {
	o := Options{Dir: t.TempDir(), SliceBits: 4, Listen: []string{"/ip4/127.0.0.1/udp/0/quic-v1"}}
	if err := Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	n, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	k := mustKey(t, "http://example.org/")
	s := n.store.SliceOf(k)
	if _, err := n.store.Queue.Admit([]store.Admission{{Key: k}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	give(t, n, s, "other")
	if err := n.decide(func() { n.quorum.Forget(s) }); err != nil { // as if the rows had come as the first of a copy
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err = Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if st := n.store.Stats(); st.Keys != 0 {
		t.Errorf("%d keys are here of a slice that no copy is here of", st.Keys)
	}
}

// Who has just come by a slice that is in use keeps it for a while, whoever should
// have it: each change of owner costs its sites their delay.
func TestSettledBeforeGivenAway(t *testing.T) {
	n := openNode(t, Options{AllowNet: []netip.Prefix{netip.MustParsePrefix("127.99.0.0/16")}})
	k := mustKey(t, "http://127.99.0.1:9009/")
	s := n.store.SliceOf(k)
	if _, err := n.store.Queue.Admit([]store.Admission{{Key: k}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	other := ""
	for i := 0; other == ""; i++ { // one that should own s
		id, place := fmt.Sprint("peer", i), placement.New([]partition.Slice{s}, 3, n.id, time.Minute, false)
		place.SetView(partition.NewView([]partition.Member{{ID: n.id, Capacity: 1}, {ID: id, Capacity: 1}}), time.Now())
		if place.Ranked(s)[0] == id {
			other = id
		}
	}
	enter(n, n.id, other)
	give(t, n, s, other)
	n.store.Log.SetLogged(true, s)
	c := n.quorum.ReplicaSet(s).Next(n.id, []string{n.id, other}, n.store.Log.LogHead(s))
	came := time.Now()
	if err := n.decide(func() {
		n.quorum.Copied(s)
		n.quorum.Learn(quorum.SliceReplicas{Slice: s,
			ReplicaSet: c})
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.store.Queue.Admit([]store.Admission{{Key: mustKey(t, "http://127.99.0.1:9009/more")}},
		time.Now()); err != nil {
		t.Fatal(err)
	}
	ask := n.quorum.AskFor(other, true, time.Now())
	n.quorum.Granted(other, ask, quorum.Grant{})
	n.replicator.mu.Lock()
	n.replicator.slices[s].to[other] = &copyProgress{known: true, head: n.store.Log.LogHead(s)}
	n.replicator.mu.Unlock()
	given := func(now time.Time) bool {
		return slices.ContainsFunc(n.plan(now), func(m move) bool { return m.slice == s && m.owner == other })
	}
	if given(came.Add(ownerStays / 2)) {
		t.Error("given away at once")
	}
	if !given(time.Now().Add(ownerStays)) {
		t.Error("not given away afterwards")
	}
}

// Who has reached no majority of a slice's replicas when it last sent them something
// begins no fetch there, and begins again when it has nothing to send or one is reached.
func TestFetchesOnlyWhatArrives(t *testing.T) {
	n := openNode(t, Options{AllowNet: []netip.Prefix{netip.MustParsePrefix("127.99.0.0/16")}})
	s := n.slices[0]
	c := n.quorum.ReplicaSet(s).Next(n.id, []string{n.id, "a", "b"}, n.store.Log.LogHead(s))
	if err := n.decide(func() { n.quorum.Learn(quorum.SliceReplicas{Slice: s, ReplicaSet: c}) }); err != nil {
		t.Fatal(err)
	}
	a, b := &replicaLane{peer: "a"}, &replicaLane{peer: "b"}
	n.replicator.mu.Lock()
	n.replicator.lanes = map[string]*replicaLane{"a": a, "b": b}
	n.replicator.mu.Unlock()
	want := func(what string, fresh bool) {
		t.Helper()
		if n.replicator.current(s) != fresh {
			t.Errorf("%s: %v", what, !fresh)
		}
	}
	want("nothing has failed", true)
	a.failed = 1
	want("one of two is reached", true)
	b.failed = 3
	want("none is reached", false)
	n.replicator.rested(b)
	want("there is nothing to send", true)
}

// opened is a node that does not run, with another member in its view.
func opened(t *testing.T, other string) *Node {
	t.Helper()
	o := Options{Dir: t.TempDir(), SliceBits: 4, Listen: []string{"/ip4/127.0.0.1/udp/0/quic-v1"}}
	if err := Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	n, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	enter(n, n.id, other)
	return n
}

// during runs one part of a node until is says that it has done what it should.
func during(t *testing.T, n *Node, part func(context.Context) error, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- part(ctx) }()
	waitFor(t, what, is)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	n.telling.Wait()
}

// When the swarm is found idle nothing is to move any more, though a slice was about
// to: nobody waits for that, and what rested for it goes on.
func TestNothingMovesWhenDone(t *testing.T) {
	n := opened(t, "other")
	s := n.slices[0]
	n.plan(time.Now())
	n.rest([]move{{slice: s, owner: "other"}})
	if n.Status().SlicesMoving == 0 || n.fetches(s) {
		t.Fatalf("%d slices move, s rests: %v", n.Status().SlicesMoving, !n.fetches(s))
	}
	n.placement.Freeze()
	during(t, n, n.runHandover, "nothing moves", func() bool { return n.Status().SlicesMoving == 0 && n.fetches(s) })
}

// What was proposed just before the swarm was found idle is still decided: nobody
// acts in that slice until it is.
func TestProposalIsFinishedWhenDone(t *testing.T) {
	n := opened(t, "other")
	s := n.slices[0]
	n.quorum.Seal(s)
	err := n.decide(func() {
		if _, ok := n.quorum.Propose(s, n.id, []string{n.id, "other"}); !ok {
			t.Error("nothing can be proposed")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	n.placement.Freeze()
	during(t, n, n.runProposals, "the proposal is decided", func() bool { return n.quorum.ReplicaSet(s).Has("other") })
}

// A peer that is about to keep slices says that it knows better of them, which does
// not count. When it has learned what does, its copies are made: it is asked again.
func TestLearnerComesToKnowBetter(t *testing.T) {
	learner := peerIDs(t, 1)[0]
	var mu sync.Mutex
	learned, asked := false, map[partition.Slice]bool{}
	fork := quorum.First(learner).Adopted(learner, 0)
	answer := func(req *wire.Request) *wire.Response {
		if req.GetShip() == nil {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		a := &wire.ShipAnswer{}
		for _, p := range req.GetShip().Pieces {
			s := partition.Slice(p.Slice)
			st := &wire.Stance{Ok: true, Whole: true, Head: p.To}
			if asked[s] = true; !learned {
				st = &wire.Stance{Newer: message.Set(s, fork)}
			}
			a.Stances = append(a.Stances, st)
		}
		return &wire.Response{Body: &wire.Response_Ship{Ship: a}}
	}
	n := openNode(t, Options{Around: answering(map[string]func(*wire.Request) *wire.Response{learner: answer})})
	enter(n, n.id, learner)
	waitFor(t, "all slices are asked about", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(asked) == len(n.slices)
	})
	mu.Lock()
	learned = true
	mu.Unlock()
	waitFor(t, "it keeps all of them", func() bool {
		return !slices.ContainsFunc(n.slices,
			func(s partition.Slice) bool { return !n.quorum.ReplicaSet(s).Has(learner) })
	})
}

// A swarm at rest costs its peers next to nothing, however many slices it has:
// the planner looks at all of them four times a second.
func TestManySlicesAtRest(t *testing.T) {
	n := openNode(t, Options{Partition: partition.ModeGeo})
	if len(n.slices) < 10_000 {
		t.Fatalf("%d slices", len(n.slices))
	}
	if moves := n.plan(time.Now()); len(moves) != 0 {
		t.Fatalf("%d moves at rest", len(moves))
	}
	const few = 100
	if a := leastAllocs(few, func() { n.plan(time.Now()) }); a > few {
		t.Errorf("%.0f allocations to find that %d slices stay where they are", a, len(n.slices))
	}
	met := meetings{}
	if a := leastAllocs(few, func() {
		if err := n.adoptOrphans(time.Now(), met); err != nil {
			t.Error(err)
		}
	}); a > few {
		t.Errorf("%.0f allocations to find that no slice is an orphan", a)
	}
	if who := n.quorum.Replicas(); len(who) != 1 || who[0] != n.id {
		t.Errorf("kept by %v", who)
	}
	give(t, n, n.slices[7], "other")
	if who := n.quorum.Replicas(); len(who) != 2 {
		t.Errorf("kept by %v", who)
	}
}

// leastAllocs is how often f allocates. All of the process is counted, so it is the least of many runs: in one of
// them the rest of the peer does nothing. It ends with the first run that has no more than few.
func leastAllocs(few float64, f func()) float64 {
	least := math.Inf(1)
	for n := 0; n < 500 && least > few; n++ {
		least = min(least, testing.AllocsPerRun(1, f))
	}
	return least
}
