package replica

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/node/placement"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/node/replica/replicate"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/geo"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
	"github.com/echo-node/echo-node/store/trash"
)

// rig has all parts of this package for one peer, with a real store in memory. Other peers and the
// crawler are fakes. No part runs until a test starts it.
type rig struct {
	t         *testing.T
	o         Options
	agreement *Agreement
	elections *Elections
	handover  *Handover
	receiver  *Receiver
	tidier    *Tidier
	answers   map[string]func(*wire.Request) *wire.Response // of other peers

	mu    sync.Mutex
	since map[partition.Slice]time.Time // when each slice was gained
}

// swarm returns the charter of a swarm that "self" founded.
func swarm() partition.Charter {
	c := partition.DefaultCharter("test", "self")
	c.SliceBits = 4
	return c
}

func geoSwarm(t *testing.T) partition.Charter {
	t.Helper()
	g, err := geo.Open()
	if err != nil {
		t.Fatal(err)
	}
	c := partition.DefaultCharter("test", "self")
	c.Mode, c.CellLevel, c.Gazetteer = partition.ModeGeo, geo.CellLevel, g.Digest()
	return c
}

func newRig(t *testing.T, c partition.Charter) *rig {
	t.Helper()
	x := &rig{t: t, answers: map[string]func(*wire.Request) *wire.Response{}, since: map[partition.Slice]time.Time{}}
	var cells []partition.Slice
	if c.Mode == partition.ModeGeo {
		g, err := geo.Open()
		if err != nil {
			t.Fatal(err)
		}
		cells = geo.NewJudge(g, c.CellLevel).Slices()
	}
	slices, err := c.AllSlices(cells)
	if err != nil {
		t.Fatal(err)
	}
	fs, log := vfs.NewMem(), slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := db.Create("store", store.Options{FS: fs, Charter: c, Logged: func(s partition.Slice) {
		if x.o.Replicator != nil {
			x.o.Replicator.Logged(s)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	trash, err := trash.Open(fs, "trash", trash.Options{Keep: time.Hour, MaxBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	q := quorum.New(quorum.Options{Self: "self", Founder: c.Founder, Slices: slices, Started: time.Now(),
		Head: s.Log.LogHead})
	p := placement.New(slices, c.Replicas, "self", time.Minute, false)
	r := replicate.New(replicate.Options{Self: "self", Quorum: q, Store: s, Placement: p, Peers: x, Logger: log})
	x.o = Options{Self: "self", Charter: c, Slices: slices, Quorum: q, Store: s, Trash: trash, Placement: p,
		Replicator: r, Peers: x, Rest: x, Crawler: x, Logger: log, Counts: &Counts{}, Started: time.Now(),
		OrphanAfter: time.Minute}
	x.agreement = NewAgreement(x.o)
	x.elections = NewElections(x.o, x.agreement)
	x.handover = NewHandover(x.o, x.agreement, x.elections)
	x.receiver = NewReceiver(x.o, x.agreement)
	x.tidier = NewTidier(x.o, x.agreement, x.receiver)
	if err := x.agreement.Open(false); err != nil {
		t.Fatal(err)
	}
	return x
}

// Call returns the response of the fake peer instead of using the network.
func (x *rig) Call(_ context.Context, peer string, req *wire.Request) (*wire.Response, error) {
	answer := x.answers[peer]
	if answer == nil {
		return nil, errors.New("nobody is there")
	}
	resp := answer(req)
	if r := resp.GetRefusal(); r != nil {
		return nil, &call.Refusal{Code: r.Code, Reason: r.Reason,
			After: time.Duration(r.RetryAfterMs) * time.Millisecond}
	}
	return resp, nil
}

func (x *rig) Gained([]partition.Slice)                {}
func (x *rig) Keep([]partition.Slice)                  {}
func (x *rig) Reread()                                 {}
func (x *rig) Overrules(string) bool                   { return false }
func (x *rig) MayAdmit(partition.Key, int) error       { return nil }
func (x *rig) Wake(partition.Slice, ...partition.Site) {}
func (x *rig) Busy(partition.Slice) int                { return 0 }

func (x *rig) Recrawl(_, _, gained []partition.Slice) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range gained {
		x.since[s] = time.Now()
	}
}

func (x *rig) Since(s partition.Slice) time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.since[s]
}

// enter adds members to the view.
func (x *rig) enter(ids ...string) {
	live, _ := x.o.Placement.Views()
	ms := append([]partition.Member(nil), live.Members()...)
	for _, id := range ids {
		ms = append(ms, partition.Member{ID: id, Capacity: 1})
	}
	x.o.Placement.SetView(partition.NewView(ms), time.Now())
}

// give makes owner the only replica of s, as this peer learns it.
func (x *rig) give(s partition.Slice, owner string) {
	x.t.Helper()
	c := x.o.Quorum.ReplicaSet(s).Next(owner, []string{owner}, x.o.Store.Log.LogHead(s))
	err := x.agreement.Decide(func() { x.o.Quorum.Learn(quorum.SliceReplicas{Slice: s, ReplicaSet: c}) })
	if err != nil {
		x.t.Fatal(err)
	}
}

// surplus gives this peer a copy of k's slice, with one page, that owner keeps.
func (x *rig) surplus(k partition.Key, owner string) partition.Slice {
	x.t.Helper()
	now := time.Now().Add(-time.Hour)
	if _, err := x.o.Store.Queue.Admit([]store.Admission{{Key: k}}, now); err != nil {
		x.t.Fatal(err)
	}
	r := &store.Record{V: store.RecordVersion, Key: k, Kind: "page", URL: k.URL(), FetchedAt: now, Source: "web",
		Status: 200, Text: "honest"}
	if err := x.o.Store.Commit(store.Commit{Key: k, Now: now, Record: r,
		Next: store.Next{State: store.StateDone}}); err != nil {
		x.t.Fatal(err)
	}
	s := x.o.Store.SliceOf(k)
	x.give(s, owner)
	return s
}

// during runs part until is returns true, and fails the test after 20 s.
func (x *rig) during(part func(context.Context) error, what string, is func() bool) {
	x.t.Helper()
	ctx, cancel := context.WithCancel(x.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- part(ctx) }()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			x.t.Fatalf("never: %s", what)
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		x.t.Error(err)
	}
	x.elections.Wait()
}

// elsewhere returns the store of another peer of the swarm.
func elsewhere(t *testing.T, x *rig) *db.Store {
	t.Helper()
	s, err := db.Create("other", store.Options{FS: vfs.NewMem(), Charter: x.o.Charter})
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
