package replicate

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/placement"
	"github.com/echo-node/echo-node/node/replica/message"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// swarm returns the charter of a swarm that "self" founded.
func swarm() partition.Charter {
	c := partition.DefaultCharter("test", "self")
	c.SliceBits = 4
	return c
}

// newTest returns the Replicator of a peer that owns all slices. It does not run.
func newTest(t *testing.T, peers message.Peers) *Replicator {
	t.Helper()
	c := swarm()
	s, err := db.Create("store", store.Options{FS: vfs.NewMem(), Charter: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	q := quorum.New(quorum.Options{Self: "self", Founder: "self", Slices: c.Slices(), Started: time.Now(),
		Head: s.Log.LogHead})
	r := New(Options{Self: "self", Quorum: q, Store: s, Peers: peers,
		Placement: placement.New(c.Slices(), c.Replicas, "self", time.Minute, false),
		Logger:    slog.New(slog.NewTextHandler(io.Discard, nil))})
	r.words = deaf{}
	return r
}

// learn puts c in force for s.
func learn(r *Replicator, s partition.Slice, c quorum.ReplicaSet) {
	r.o.Quorum.Learn(quorum.SliceReplicas{Slice: s, ReplicaSet: c})
	r.Changed(s)
}

// deaf ignores all reports.
type deaf struct{}

func (deaf) Hear(string, []quorum.SliceReplicas) error { return nil }

// nobody fails each call.
type nobody struct{}

func (nobody) Call(context.Context, string, *wire.Request) (*wire.Response, error) {
	return nil, errors.New("nobody is there")
}

// answering answers each request.
type answering struct{ answer func() *wire.Response }

func (a *answering) Call(context.Context, string, *wire.Request) (*wire.Response, error) {
	return a.answer(), nil
}

// If the last messages reached no majority of a slice's replicas, no fetch starts there. Fetches
// start again when there is nothing to send or a majority is reached.
func TestFetchesOnlyWhatArrives(t *testing.T) {
	r := newTest(t, nobody{})
	s := swarm().Slices()[0]
	learn(r, s, r.o.Quorum.ReplicaSet(s).Next("self", []string{"self", "a", "b"}, r.o.Store.Log.LogHead(s)))
	a, b := &replicaLane{peer: "a"}, &replicaLane{peer: "b"}
	r.mu.Lock()
	r.lanes = map[string]*replicaLane{"a": a, "b": b}
	r.mu.Unlock()
	want := func(what string, fresh bool) {
		t.Helper()
		if r.Current(s) != fresh {
			t.Errorf("%s: %v", what, !fresh)
		}
	}
	want("nothing has failed", true)
	a.failed = 1
	want("one of two is reached", true)
	b.failed = 3
	want("none is reached", false)
	r.rested(b)
	want("there is nothing to send", true)
}

// TestAttackAnswerOfAnotherSlice: a peer receives a chunk of one slice and answers with the
// ReplicaSet of another slice, which it does not keep. The response is ignored. It would count if
// it were about the slice of the chunk.
func TestAttackAnswerOfAnotherSlice(t *testing.T) {
	peers := &answering{}
	r := newTest(t, peers)
	asked, other := swarm().Slices()[0], swarm().Slices()[1]
	base := r.o.Quorum.ReplicaSet(asked)
	for _, c := range []*wire.Config{nil, message.Set(asked, base), message.Set(other, base)} {
		want := c != nil && c.Slice == uint64(other)
		peers.answer = func() *wire.Response {
			a := &wire.ShipAnswer{Stances: []*wire.Stance{{Newer: c}}}
			return &wire.Response{Body: &wire.Response_Ship{Ship: a}}
		}
		l := &replicaLane{peer: "evil", todo: map[partition.Slice]bool{}}
		if _, err := r.send(t.Context(), l, []sentChunk{{slice: asked, chunk: &wire.Piece{}}}); err != nil ||
			want != (l.failed > 0) {
			t.Errorf("ship, %v: %d failed, %v", c, l.failed, err)
		}
	}
}
