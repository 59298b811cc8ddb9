package datadir

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/node/replica"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/geo"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
	"github.com/echo-node/echo-node/store/trash"
)

// Repaired is the result of Repair.
type Repaired struct {
	Files   []string `json:"files"`   // what was wrong with each damaged file
	Lost    []string `json:"lost"`    // ranges of rows that could not be read
	Slices  int      `json:"slices"`  // slices that lost rows
	Fetched int      `json:"fetched"` // of those, slices that other peers will send again
	Records int64    `json:"records"` // records that this peer has now
	Renewed bool     `json:"renewed"` // its agreements were lost, so it is a new peer now
}

// mending is one attempt to make the store of a data directory readable again.
type mending struct {
	o      Options
	id     string
	repair bool // a person asked for it, so rows that only this peer has may be lost
	alone  bool
	quorum *quorum.Machine
	slices []partition.Slice
	done   Repaired
}

// errAlone explains why a peer does not repair its store by itself.
var errAlone = errors.New("echo-node repair saves what can be read and says what is lost; nothing was changed")

// Repair removes damaged files from the store in o.Dir, of a peer that does not run, and saves what
// can be read. It reads every table. Other peers send the slices that they keep too, once the peer
// runs.
//
// If what was agreed with other peers may be lost, the peer becomes a new peer, like a restored one
// (Restore). alone says that no other peer of the swarm is left.
func Repair(ctx context.Context, o Options, alone bool) (Repaired, error) {
	return mendStore(ctx, o.withDefaults(), &mending{repair: true, alone: alone})
}

// Mend is Repair without a person: it removes damaged files only if other peers keep all slices that
// lost rows. Otherwise nothing is changed, and the error says why.
func Mend(ctx context.Context, o Options) (Repaired, error) {
	return mendStore(ctx, o.withDefaults(), &mending{})
}

// mendStore removes the damaged files from o's store. Unless a person asked for it, it does so only
// if other peers keep all slices that lost rows.
func mendStore(ctx context.Context, o Options, x *mending) (_ Repaired, err error) {
	x.o = o
	key, err := o.identity()
	if err != nil {
		return x.done, err
	}
	x.id = dht.PeerID(key)
	m, err := db.Mend(ctx, Store(o.Dir),
		db.MendOptions{Options: store.Options{FS: o.FS, Logger: o.Logger, Fatal: o.Fatal},
			All: x.repair, Slices: x.allSlices, Allow: x.allow})
	if err != nil {
		return x.done, hopelessDamage(err)
	}
	if err := x.seeTo(m); err != nil {
		return x.done, errors.Join(fmt.Errorf("repair: %w", err), m.Close())
	}
	x.done.Records = m.Store().Stats().Records
	if err := m.Done(); err != nil {
		return x.done, fmt.Errorf("repair: %w", err)
	}
	return x.done, x.renewIdentity()
}

// hopelessDamage adds advice to an error that Mend cannot repair.
func hopelessDamage(err error) error {
	var d *store.DamageError
	if !errors.As(err, &d) || d.Final || errors.Is(err, errAlone) {
		return err
	}
	return fmt.Errorf("%w; nothing was changed: restore a backup to an empty directory (echo-node restore), or move this one away and join again", err)
}

// allSlices returns all slices of the swarm with charter c, and stores them in x.
func (x *mending) allSlices(c partition.Charter) ([]partition.Slice, error) {
	var cells []partition.Slice
	if c.Mode == partition.ModeGeo {
		g, err := geo.Open()
		if err != nil {
			return nil, err
		}
		cells = geo.NewJudge(g, c.CellLevel).Slices()
	}
	var err error
	x.slices, err = c.AllSlices(cells)
	return x.slices, err
}

// allow is db.MendOptions.Allow. It returns an error if the repair must not go on.
func (x *mending) allow(m *db.Mending) error {
	x.done.Files, x.done.Lost, x.done.Slices = m.Files, m.Lost, len(m.Slices)
	x.done.Renewed = m.Meta
	s := m.Store()
	x.quorum = quorum.New(quorum.Options{Self: x.id, Founder: s.Charter().Founder, Slices: x.slices,
		Head: s.Log.LogHead})
	if !m.Meta {
		aside := func(partition.Slice, *quorum.AsideError, string, []byte) {}
		if err := replica.Load(s, x.quorum, aside); err != nil {
			return err
		}
	}
	if x.repair {
		return nil
	}
	sole := 0
	for _, sl := range m.Slices {
		if x.sole(sl) {
			sole++
		}
	}
	damaged := fmt.Errorf("%w: %s", store.ErrDamaged, strings.Join(m.Files, "; "))
	switch {
	case m.Meta:
		return fmt.Errorf("%w: what was agreed with other peers may be lost: %w", damaged, errAlone)
	case sole > 0:
		return fmt.Errorf("%w: no other peer keeps %d of the %d slices in it: %w", damaged, sole, len(m.Slices),
			errAlone)
	}
	return nil
}

// sole reports whether this peer is the only replica of sl.
func (x *mending) sole(sl partition.Slice) bool {
	c := x.quorum.ReplicaSet(sl)
	return c.Has(x.id) && len(c.Replicas) == 1
}

// seeTo saves the remaining rows of the slices that lost some, and updates the agreement.
func (x *mending) seeTo(m *db.Mending) error {
	for _, file := range m.Files {
		x.o.Logger.Warn("a damaged file was put aside", "file", file)
	}
	t, err := trash.Open(x.o.FS, Trash(x.o.Dir), trash.Options{Keep: 100 * 365 * 24 * time.Hour,
		MaxBytes: math.MaxInt64})
	if err != nil {
		return err
	}
	s := m.Store()
	x.done.Slices = len(m.Slices) // includes slices found during the repair
	for _, sl := range m.Slices {
		head := s.Log.LogHead(sl)
		if err := m.SetAside(t, sl, time.Now()); err != nil {
			return err
		}
		if !m.Meta && !x.sole(sl) {
			x.quorum.Lose(sl)
			x.done.Fetched++
			continue
		}
		if starts := x.quorum.ReplicaSet(sl).Starts; len(starts) > 0 {
			head = max(head, starts[len(starts)-1].Pos)
		}
		if err := putBack(s, t, sl, head); err != nil {
			return err
		}
	}
	rows := map[string][]byte{}
	for sl, b := range x.quorum.Dirty() {
		rows[replica.MetaSets+sl.String()] = b
	}
	if m.Meta {
		rows = map[string][]byte{replica.MetaPlacement: nil, MetaRestored: []byte(restoredNew)}
		if x.alone {
			rows[MetaRestored] = []byte(restoredNew + " " + RestoredAlone)
		}
		err := s.Metas(replica.MetaSets, func(name string, _ []byte) error {
			rows[name] = nil
			return nil
		})
		if err != nil {
			return err
		}
	}
	return s.SetMetas(rows)
}

// putBack imports the saved rows of sl into the store again, and sets the log to its old position.
func putBack(s *db.Store, t *trash.Trash, sl partition.Slice, head uint64) error {
	for _, saved := range t.List() {
		if saved.Slice != sl || !saved.Wanted {
			continue
		}
		err := t.Rows(saved, func(rows []store.Row) error {
			return replica.Halving(rows, func(rows []store.Row) error {
				err := s.Log.ImportRows(sl, rows)
				if len(rows) == 1 && errors.Is(err, store.ErrRow) {
					return nil // a part of its source is lost
				}
				return err
			})
		})
		if err == nil && head > 0 {
			err = s.Log.ResetLog(sl, head)
		}
		if err == nil {
			err = t.Remove(saved)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// renewIdentity gives a new identity to a peer that forgot its agreements.
func (x *mending) renewIdentity() error {
	if !x.done.Renewed || x.o.Key != nil {
		return nil
	}
	disk, name := x.o.FS, Identity(x.o.Dir)
	if err := disk.Rename(name, name+".old"); err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	_, err := dht.LoadIdentity(name, true)
	return err
}
