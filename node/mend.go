package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
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

// Repaired is what Repair did.
type Repaired struct {
	Files   []string `json:"files"`   // what was wrong with each damaged file
	Lost    []string `json:"lost"`    // from which row to which row nothing could be read
	Slices  int      `json:"slices"`  // that lost rows
	Fetched int      `json:"fetched"` // of them, those that other peers keep too: they bring the rows again
	Records int64    `json:"records"` // that this peer has now
	Renewed bool     `json:"renewed"` // what was agreed with other peers was lost: it is a new peer now
}

// mending is how the store of a data directory is made readable again.
type mending struct {
	o      Options
	id     string
	repair bool // a person asked for it: rows that are kept only here may be lost
	alone  bool
	quorum *quorum.Machine
	slices []partition.Slice
	done   Repaired
}

// errAlone says why a peer does not mend its store by itself.
var errAlone = errors.New("echo-node repair saves what can be read and says what is lost; nothing was changed")

// Repair takes damaged files out of the store in o.Dir, of a peer that does not run, and
// saves what can be read. Every table is read. Slices that other peers keep too are brought
// by them when it runs. Only Dir, FS, Key and Logger of o count.
//
// When what was agreed with other peers may be lost, it becomes a new peer, as a restored one
// (Restore); alone says that no other peer of the swarm is left.
func Repair(ctx context.Context, o Options, alone bool) (Repaired, error) {
	return mendStore(ctx, o.withDefaults(), &mending{repair: true, alone: alone})
}

// mendStore takes the damaged files out of o's store. Unless a person asked for it, only if
// others keep all slices that lost rows.
func mendStore(ctx context.Context, o Options, x *mending) (_ Repaired, err error) {
	x.o = o
	key, err := o.identity(false)
	if err != nil {
		return x.done, err
	}
	x.id = dht.PeerID(key)
	m, err := db.Mend(ctx, o.storeDir(),
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

func (o Options) storeDir() string { return filepath.Join(o.Dir, "store") }

// hopelessDamage says what to do where Mend cannot help.
func hopelessDamage(err error) error {
	var d *store.DamageError
	if !errors.As(err, &d) || d.Final || errors.Is(err, errAlone) {
		return err
	}
	return fmt.Errorf("%w; nothing was changed: restore a backup to an empty directory (echo-node restore), or move this one away and join again", err)
}

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

// allow is store.MendOptions.Allow.
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

// sole says whether this peer is the only one that keeps sl.
func (x *mending) sole(sl partition.Slice) bool {
	c := x.quorum.ReplicaSet(sl)
	return c.Has(x.id) && len(c.Replicas) == 1
}

// seeTo saves what is left of the slices that lost rows.
func (x *mending) seeTo(m *db.Mending) error {
	for _, file := range m.Files {
		x.o.Logger.Warn("a damaged file was put aside", "file", file)
	}
	t, err := trash.Open(x.o.fileSystem(), TrashDir(x.o.Dir), trash.Options{Keep: 100 * 365 * 24 * time.Hour,
		MaxBytes: math.MaxInt64})
	if err != nil {
		return err
	}
	s := m.Store()
	x.done.Slices = len(m.Slices) // those found while it was mended, too
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
		rows = map[string][]byte{replica.MetaPlacement: nil, metaRestored: []byte(restoredNew)}
		if x.alone {
			rows[metaRestored] = []byte(restoredNew + " " + restoredAlone)
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

// putBack brings what was saved of sl into the store again, and the log to where it was.
func putBack(s *db.Store, t *trash.Trash, sl partition.Slice, head uint64) error {
	for _, saved := range t.List() {
		if saved.Slice != sl || !saved.Wanted {
			continue
		}
		err := t.Rows(saved, func(rows []store.Row) error {
			return replica.Halving(rows, func(rows []store.Row) error {
				err := s.Log.ImportRows(sl, rows)
				if len(rows) == 1 && errors.Is(err, store.ErrRow) {
					return nil // half of what it was made of is lost
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

// renewIdentity makes a new peer of one that forgot what it had agreed to.
func (x *mending) renewIdentity() error {
	if !x.done.Renewed || x.o.Key != nil {
		return nil
	}
	disk, name := x.o.fileSystem(), filepath.Join(x.o.Dir, "identity.key")
	if err := disk.Rename(name, name+".old"); err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	_, err := dht.LoadIdentity(name, true)
	return err
}

// openStore opens the store, and mends it before if it is damaged and others have what was lost.
func (n *Node) openStore(ctx context.Context) (err error) {
	o := store.Options{FS: n.o.FS, MaxBytes: n.o.MaxDisk, Logger: n.log, Fatal: n.o.Fatal, Logged: n.logged,
		Ahead: n.ahead.saw, Damaged: n.sawDamage}
	defer func() {
		if n.o.FS != nil && n.store != nil {
			n.disk.other = func() int64 { return n.store.Stats().DiskBytes }
		}
	}()
	n.store, err = db.Open(n.o.storeDir(), o)
	if !errors.Is(err, store.ErrDamaged) {
		return err
	}
	n.log.Error("the store is damaged", "err", err)
	done, err := mendStore(ctx, n.o, &mending{})
	if err != nil {
		return err
	}
	n.log.Warn("the store was mended: other peers bring what was lost", "slices", done.Fetched, "lost", done.Lost)
	select {
	case <-n.damaged: // met while it was opened
	default:
	}
	n.store, err = db.Open(n.o.storeDir(), o)
	return err
}

// sawDamage is store.Options.Damaged.
func (n *Node) sawDamage(err error) {
	select {
	case n.damaged <- err:
	default:
	}
}

// watchDamage ends Run when the store turns out to be damaged: when it is opened again it is mended.
func (n *Node) watchDamage(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-n.damaged:
		return err
	}
}

// explain is err, which ended Run, or the damage that caused it, and what to do.
func (n *Node) explain(err error) error {
	damage := n.store.Damaged()
	if err == nil || damage == nil {
		return err
	}
	return fmt.Errorf("%w: start again: what other peers keep they bring again, for the rest see echo-node repair",
		damage)
}
