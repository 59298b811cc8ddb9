package node

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/replica/message"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// elsewhere returns the store of another peer of n's swarm.
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

// enter adds members to n's view.
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
	if err := n.agreement.Decide(func() { n.quorum.Learn(quorum.SliceReplicas{Slice: s, ReplicaSet: c}) }); err != nil {
		t.Fatal(err)
	}
	return c
}

// I2: a slice is not given away while an earlier admission is under way. After it has another
// owner, nothing is written to it.
func TestI2HandoverWaitsForAdmissions(t *testing.T) {
	n := openNode(t, Options{AllowNet: []netip.Prefix{netip.MustParsePrefix("127.99.0.0/16")}})
	k := mustKey(t, "http://127.99.0.1:9009/")
	s := n.store.SliceOf(k)
	n.agreement.RLock() // an admission under way
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
	n.agreement.RUnlock()
	<-given
	for what, err := range map[string]error{
		"admit":  func() error { _, err := n.store.Queue.Admit([]store.Admission{{Key: k}}, time.Now()); return err }(),
		"commit": n.store.Commit(store.Commit{Key: k, Now: time.Now(), Next: store.Next{State: store.StateDone}}),
	} {
		if !errors.Is(err, store.ErrFenced) {
			t.Errorf("%s into a slice of another: %v", what, err)
		}
	}
	if n.agreement.Acts(s) || n.agreement.Fetches(s) {
		t.Error("acts in a slice of another")
	}
}

// Rows that arrive in a slice where the peer already acts are crawled too. Only the slice's owner
// may send rows to a replica.
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

// The rows of an unfinished copy are dropped at the next start. Otherwise their Keys would be
// pending for ever.
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
	// Make the rows look like the first ones of a copy.
	if err := n.agreement.Decide(func() { n.quorum.Forget(s) }); err != nil {
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

// opened returns a node that does not run, with another member in its view.
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

// during runs one part of a node until is returns true.
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
	n.elections.Wait()
}

// A proposal made just before the swarm was found idle is still decided. Until then no peer acts in
// that slice.
func TestProposalIsFinishedWhenDone(t *testing.T) {
	n := opened(t, "other")
	s := n.slices[0]
	n.quorum.Seal(s)
	err := n.agreement.Decide(func() {
		if _, ok := n.quorum.Propose(s, n.id, []string{n.id, "other"}); !ok {
			t.Error("nothing can be proposed")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	n.placement.Freeze()
	during(t, n, n.elections.RunProposals, "the proposal is decided",
		func() bool { return n.quorum.ReplicaSet(s).Has("other") })
}

// A learner reports newer ReplicaSets of slices, and its report does not count. When it has learned
// the ones that count, it is asked again and gets its copies.
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
