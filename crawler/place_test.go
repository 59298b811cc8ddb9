package crawler

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// linker answers every page with links to the next pages of its site.
type linker struct {
	keys    []partition.Key
	fetched atomic.Int64
}

func (*linker) Name() string               { return "linker" }
func (*linker) Handles(partition.Key) bool { return true }

func (l *linker) Fetch(ctx context.Context, t fetch.Task) (fetch.Result, error) {
	if err := t.Gate(ctx); err != nil {
		return fetch.Result{}, err
	}
	l.fetched.Add(1)
	res := fetch.Result{Site: t.Site, Next: store.Next{State: store.StateDone}, Reqs: 1,
		Record: &store.Record{V: store.RecordVersion, Key: t.Due.Key, Kind: "page", FetchedAt: t.Now, Status: 200}}
	for _, k := range l.keys {
		res.Links = append(res.Links, store.Link{Key: k})
	}
	return res, nil
}

// A page says where its site belongs, and is the last page fetched here. All rows that are due or
// linked move on, with the site's pace, however often that happens.
func TestPlacedSiteGoesOn(t *testing.T) {
	c := partition.DefaultCharter("test", "12D3KooWfounder")
	c.Mode, c.CellLevel, c.Gazetteer, c.SliceBits = partition.ModeGeo, 7, "digest", 4
	s, err := db.Create("d", store.Options{FS: vfs.NewMem(), Charter: c})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	src := &linker{}
	for _, path := range []string{"1", "2", "3", "4", "5"} {
		src.keys = append(src.keys, partition.Key("web:http://h.example/"+path))
	}
	cell := partition.Slice(5<<47 | 1<<46)
	cr, err := New(Options{Store: s, Sources: []Source{src}, Delay: 10 * time.Millisecond,
		Swarm: placing{place: func(r *store.Record) *store.Placement {
			return &store.Placement{Unit: c.Unit(r.Key), To: cell, Gen: 1, At: time.Now()}
		}}})
	if err != nil {
		t.Fatal(err)
	}
	home := s.SliceOf(src.keys[0])
	cr.SetSlices([]partition.Slice{home})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- cr.Run(ctx) }()
	if _, err := s.Queue.Admit([]store.Admission{{Key: src.keys[0]}, {Key: src.keys[1]}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	cr.Wake(home, src.keys[0].Site())
	for deadline := time.Now().Add(20 * time.Second); s.Stats().Outbox < 4; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%+v", s.Stats())
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	rows, _, err := s.Queue.Outbox(0, 10, nil)
	if err != nil || len(rows) != 4 || src.fetched.Load() != 1 {
		t.Fatalf("%d fetched, %d rows, %v", src.fetched.Load(), len(rows), err)
	}
	for _, r := range rows {
		if r.To != cell || r.In != cell || r.Gen != 1 || r.Pace.Wait != 10*time.Millisecond {
			t.Errorf("%+v", r)
		}
	}
}

// placing is a Swarm in geo mode.
type placing struct {
	Alone
	place func(*store.Record) *store.Placement
}

func (placing) Moves() bool { return true }

func (p placing) Place(_ partition.Slice, r *store.Record) *store.Placement { return p.place(r) }
