package search

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/dht/zone"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/geo"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
	"github.com/echo-node/echo-node/store/index"
)

// fixture is an Engine of a founder that has all slices, over a store and an index in memory. It is
// also its own Swarm.
type fixture struct {
	*Engine
	id      string
	charter partition.Charter
	slices  []partition.Slice
	store   *db.Store
	quorum  *quorum.Machine

	call func(ctx context.Context, peer string, req *wire.Request) (*wire.Response, error) // nil: no peer is reachable

	mu   sync.Mutex
	view partition.View
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{id: strangeID(t)}
	f.charter = partition.DefaultCharter("test", f.id)
	f.charter.SliceBits = 4
	f.slices = f.charter.Slices()
	f.view = partition.NewView([]partition.Member{{ID: f.id, Capacity: 16}})
	var err error
	if f.store, err = db.Create("store", store.Options{FS: vfs.NewMem(), Charter: f.charter}); err != nil {
		t.Fatal(err)
	}
	f.quorum = quorum.New(quorum.Options{Self: f.id, Founder: f.id, Slices: f.slices, Started: time.Now(),
		Head: f.store.Log.LogHead})
	ix, err := index.Open("", f.store, index.Options{Slices: f.slices, Fingerprint: IndexFingerprint,
		FingerprintVersion: FingerprintVersion})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- ix.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		if err := ix.Close(); err != nil {
			t.Error(err)
		}
		if err := f.store.Close(); err != nil {
			t.Error(err)
		}
	})
	f.Engine = New(Options{ID: f.id, Charter: f.charter, Slices: f.slices, Store: f.store, Index: ix, Quorum: f.quorum,
		Gazetteer: sync.OnceValues(geo.Open), Timeout: 2 * time.Second, OrphanAfter: time.Minute}, f)
	return f
}

// indexed waits until the whole store is in the index.
func (f *fixture) indexed(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); Lag(f.store, f.o.Index) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the index does not follow")
		}
	}
}

func admit(t *testing.T, f *fixture, k partition.Key) {
	t.Helper()
	if _, err := f.store.Queue.Admit([]store.Admission{{Key: k}}, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// enter adds members to f's view.
func enter(f *fixture, ids ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ms := append([]partition.Member(nil), f.view.Members()...)
	for _, id := range ids {
		ms = append(ms, partition.Member{ID: id, Capacity: 1})
	}
	f.view = partition.NewView(ms)
}

// give makes owner the only replica of s.
func give(t *testing.T, f *fixture, s partition.Slice, owner string) {
	t.Helper()
	c := f.quorum.ReplicaSet(s).Next(owner, []string{owner}, f.store.Log.LogHead(s))
	f.quorum.Learn(quorum.SliceReplicas{Slice: s, ReplicaSet: c})
}

func mustKey(t *testing.T, url string) partition.Key {
	t.Helper()
	k, err := partition.ParseKey(url)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (f *fixture) Call(ctx context.Context, peer string, req *wire.Request) (*wire.Response, error) {
	if f.call == nil {
		return nil, fmt.Errorf("dial %s: %w", peer, dht.ErrNoPeer)
	}
	return f.call(ctx, peer, req)
}

func (f *fixture) Members() partition.View {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view
}

func (f *fixture) Alive(peer string) bool {
	_, ok := f.Members().Find(peer)
	return ok
}

func (f *fixture) Vanished(string) (time.Time, bool) { return time.Time{}, false }
func (f *fixture) Zone() partition.Zone              { return partition.HashZone }
func (f *fixture) Foreign(partition.Slice) bool      { return false }

func (f *fixture) FindOwner(context.Context, partition.Slice) (zone.Owner, error) {
	return zone.Owner{}, dht.ErrNoPeer
}

func (f *fixture) SliceFrom(v uint64, k partition.Key) (partition.Slice, error) {
	if v != 0 {
		return 0, fmt.Errorf("%s is said to be in %x", k, v)
	}
	return f.store.SliceOf(k), nil
}
