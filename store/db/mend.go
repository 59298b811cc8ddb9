package db

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
	"github.com/echo-node/echo-node/store/trash"
)

// MendOptions are the options of Mend.
type MendOptions struct {
	store.Options
	// All makes Mend check every table file, not only those that are known to be damaged.
	All bool
	// Slices returns all slices of the swarm.
	Slices func(partition.Charter) ([]partition.Slice, error)
	// Allow is called before anything is changed. It can read m's Store where this is not damaged.
	// Mend returns its error. Default: mending is allowed.
	Allow func(m *Mending) error
}

// Mending is a store whose damaged files were put aside: everything that is left can be read. The
// slices that lost rows are incomplete. The caller saves what is left of each of them (SetAside),
// then calls Done. Until then, Open refuses the store, also after a crash, and Mend continues the
// work. It is not safe for concurrent use.
type Mending struct {
	s      *Store
	h      engine.Hurt
	spans  []span
	outbox [][]byte // outbox rows of slices that lost rows
	Files  []string // what is wrong with each damaged file, as text
	Lost   []string // from where to where rows were lost, as text
	Slices []partition.Slice
	Meta   bool // values of the node (Meta) may be lost
}

// asideName is the directory for damaged files. It keeps the newest asideFiles of them.
const (
	asideName  = "aside"
	asideFiles = 4
)

// Mend opens the store in dir and removes its damaged files. Some rows may have had a state in a
// part that cannot be read. Mend removes these rows together with their older states, so that
// nothing that was deleted or changed comes back.
//
// Mend cannot replace a damaged manifest or log: it then returns the error of Open.
func Mend(ctx context.Context, dir string, o MendOptions) (_ *Mending, err error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	h, err := engine.ReadHurt(o.FS, dir)
	if err != nil {
		return nil, err
	}
	if err := engine.CheckSums(o.FS, dir); err != nil {
		return nil, err
	}
	inner := o.Options
	inner.Damaged = nil
	s, err := assemble(engine.OpenRaw(dir, inner, false, true))
	if err != nil {
		return nil, err
	}
	m := &Mending{s: s, h: h, Slices: h.Slices, Meta: h.Meta}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.engine.DB.Close())
		}
	}()
	if err := s.engine.Check(partition.Charter{}); err != nil {
		return nil, s.engine.Explain(err)
	}
	slices, err := o.Slices(s.engine.Charter())
	if err != nil {
		return nil, err
	}
	bad, err := m.survey(slices, o.All)
	if err != nil {
		return nil, s.engine.Explain(err)
	}
	if o.Allow != nil {
		if err := o.Allow(m); err != nil {
			return nil, err
		}
	}
	if err := m.cutOut(ctx, bad); err != nil {
		return nil, fmt.Errorf("store: mend %s: %w", dir, err)
	}
	return m, nil
}

// Store returns the store that is mended. Only Meta, Metas, SetMetas, LogHead, SliceRows,
// ImportRows and ResetLog may be called on it.
func (m *Mending) Store() *Store { return m.s }

// survey finds the damaged files and what was in them. It changes nothing.
func (m *Mending) survey(all []partition.Slice, every bool) (bad []tableFile, err error) {
	files, err := m.s.tableFiles()
	if err != nil {
		return nil, err
	}
	every = every || !m.h.Done &&
		!slices.ContainsFunc(m.h.Files, func(f string) bool { return strings.HasSuffix(f, ".sst") })
	for _, t := range files {
		if !every && !slices.Contains(m.h.Files, engine.Inside(t.name)) {
			continue
		}
		lost, why, err := m.s.examine(t)
		if err != nil {
			return nil, err
		}
		if why == nil {
			continue
		}
		bad = append(bad, t)
		m.Files = append(m.Files, (&store.DamageError{Dir: m.s.engine.Dir, File: engine.Inside(t.name),
			Why: why}).Error())
		m.spans = append(m.spans, lost...)
	}
	m.spans = joined(m.spans)
	for _, x := range m.spans {
		m.Lost = append(m.Lost, rowName(x.lower)+" to "+rowName(x.upper))
	}
	hit := slices.Clone(m.Slices)
	for _, sl := range all {
		if slices.ContainsFunc(sliceTables(),
			func(t format.Table) bool { p := format.SlicePrefix(t, sl); return m.met(span{p, format.After(p)}) }) {
			hit = append(hit, sl)
		}
	}
	slices.Sort(hit)
	m.Slices = slices.Compact(hit)
	m.Meta = m.Meta || m.met(span{[]byte{byte(format.TabValue)}, []byte{byte(format.TabValue) + 1}})
	return bad, nil
}

// met reports whether x shares keys with a lost span.
func (m *Mending) met(x span) bool { return slices.ContainsFunc(m.spans, x.meets) }

// joined returns the spans in order; spans that meet become one.
func joined(all []span) (out []span) {
	slices.SortFunc(all, func(a, b span) int { return bytes.Compare(a.lower, b.lower) })
	for _, x := range all {
		if n := len(out); n > 0 && out[n-1].meets(x) {
			out[n-1] = out[n-1].join(x)
			continue
		}
		out = append(out, x)
	}
	return out
}

// sliceTables returns the tables whose row keys begin with their slice.
func sliceTables() []format.Table {
	return append(format.ItemTables(), format.TabCount, format.TabDue, format.TabKey, format.TabSite,
		format.TabRobots, format.TabRecord, format.TabQueued, format.TabUnit, format.TabCapture,
		format.TabBody, format.TabUse, format.TabSlice, format.TabUnreplicated)
}

// rowName describes a row's key as text.
func rowName(key []byte) string {
	if len(key) == 0 {
		return "the end"
	}
	if id, rest, err := format.SplitRow(key); err == nil && slices.Contains(sliceTables(), format.Table(key[0])) &&
		format.Table(key[0]) != format.TabSlice {
		return fmt.Sprintf("%c %s %s %q", key[0], id.Slice, id.Site, short(rest))
	}
	return fmt.Sprintf("%q", short(key))
}

func short(b []byte) []byte { return b[:min(len(b), 80)] }

// cutOut records the incomplete slices on disk. Then it replaces the damaged files with the rows
// that can be read from them and from the files above and below them.
func (m *Mending) cutOut(ctx context.Context, bad []tableFile) error {
	s := m.s
	m.h.Slices, m.h.Meta = m.Slices, m.Meta
	if err := engine.WriteHurt(s.engine.Options.FS, s.engine.Dir, m.h); err != nil {
		return err
	}
	var all []span
	for _, t := range bad {
		all = append(all, t.all)
		if err := m.putAside(t.name); err != nil {
			return fmt.Errorf("put %s aside: %w", t.name, err)
		}
	}
	for _, x := range joined(all) {
		if err := m.rewrite(ctx, x); err != nil {
			return err
		}
	}
	if err := m.remake(); err != nil {
		return s.engine.Explain(err)
	}
	m.h.Done = true
	if err := engine.WriteHurt(s.engine.Options.FS, s.engine.Dir, m.h); err != nil {
		return err
	}
	return s.engine.Load()
}

// rewrite makes one new file with the rows in all that are not lost.
func (m *Mending) rewrite(ctx context.Context, all span) error {
	s, disk := m.s, m.s.engine.Options.FS
	name := disk.PathJoin(s.engine.Dir, "mend.sst")
	rows, err := m.collect(name, all)
	if err != nil {
		return s.engine.Explain(err)
	}
	cut := pebble.KeyRange{Start: all.lower, End: all.upper}
	if rows == 0 {
		err = s.engine.DB.Excise(ctx, cut)
	} else {
		_, err = s.engine.DB.IngestAndExcise(ctx, []string{name}, nil, nil, cut)
	}
	if rerr := disk.Remove(name); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	return err
}

// collect writes the rows in all that are not lost to the table file name, and returns their
// number.
func (m *Mending) collect(name string, all span) (rows int, err error) {
	s, disk := m.s, m.s.engine.Options.FS
	f, err := disk.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return 0, err
	}
	po := pebble.Options{FS: disk}
	po.EnsureDefaults()
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(f), po.MakeWriterOptions(0, s.engine.DB.TableFormat()))
	defer func() { err = errors.Join(err, w.Close()) }()
	at := all.lower
	for _, lost := range append(slices.Clone(m.spans), span{all.upper, nil}) {
		if bytes.Compare(at, lost.lower) < 0 && bytes.Compare(at, all.upper) < 0 {
			upper := lost.lower
			if bytes.Compare(all.upper, upper) < 0 {
				upper = all.upper
			}
			err := s.engine.Scan(at, upper, func(key, value []byte) (bool, error) {
				rows++
				return true, w.Set(key, value)
			})
			if err != nil {
				return rows, err
			}
		}
		if bytes.Compare(at, lost.upper) < 0 {
			at = lost.upper
		}
	}
	return rows, nil
}

// putAside keeps a link to a damaged file, so that it can be examined later.
func (m *Mending) putAside(name string) error {
	s, disk := m.s, m.s.engine.Options.FS
	dir := disk.PathJoin(s.engine.Dir, asideName)
	if err := disk.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	names, err := disk.List(dir)
	if err != nil {
		return err
	}
	slices.Sort(names) // Pebble's file numbers increase
	for len(names) >= asideFiles {
		if err := disk.Remove(disk.PathJoin(dir, names[0])); err != nil {
			return err
		}
		names = names[1:]
	}
	err = disk.Link(disk.PathJoin(engine.DBDir(disk, s.engine.Dir), name), disk.PathJoin(dir, name))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil { // a file system without links
		_, err = vfs.Clone(disk, disk, disk.PathJoin(engine.DBDir(disk, s.engine.Dir), name), disk.PathJoin(dir,
			name), vfs.CloneSync)
	}
	return err
}

// remake writes the store's own rows that were lost, and what follows from other rows.
func (m *Mending) remake() error {
	s := m.s
	b := s.engine.DB.NewBatch()
	if err := s.engine.NewID(b); err != nil { // an index of the old store is rebuilt
		return err
	}
	if _, err := s.engine.Get(format.MetaKey(format.MetaSeq)); errors.Is(err, store.ErrNotExist) {
		next, err := m.nextSeq()
		if err != nil {
			return err
		}
		_ = b.Set(format.MetaKey(format.MetaSeq), binary.BigEndian.AppendUint64(nil, next), nil)
	} else if err != nil {
		return err
	}
	if err := m.orphans(b); err != nil {
		return err
	}
	if err := m.homes(b); err != nil {
		return err
	}
	return s.engine.Commit(b)
}

// nextSeq returns a number above all sequence numbers in use.
func (m *Mending) nextSeq() (next uint64, err error) {
	for _, t := range []format.Table{format.TabLog, format.TabOutbox} {
		err := m.s.engine.Scan([]byte{byte(t)}, []byte{byte(t) + 1}, func(key, _ []byte) (bool, error) {
			if len(key) == 9 {
				next = max(next, binary.BigEndian.Uint64(key[1:]))
			}
			return true, nil
		})
		if err != nil {
			return 0, err
		}
	}
	err = m.s.engine.Scan([]byte{byte(format.TabKey)}, []byte{byte(format.TabKey) + 1}, func(_, value []byte) (bool,
		error) {
		if k, err := format.DecodeKeyState(value); err == nil {
			next = max(next, k.Seq)
		}
		return true, nil
	})
	return next + 1, err
}

// orphans collects the outbox rows of slices that lost rows; they come back with the rows that are
// saved. It also finds slices whose rows in the outbox were lost.
func (m *Mending) orphans(b *pebble.Batch) error {
	s := m.s
	err := s.engine.Scan([]byte{byte(format.TabOutbox)}, []byte{byte(format.TabOutbox) + 1}, func(key,
		value []byte) (bool, error) {
		d := format.NewDecoder(value)
		if sl := partition.Slice(d.Uint(math.MaxUint64)); d.Bad {
			_ = b.Delete(key, nil)
		} else if _, hit := slices.BinarySearch(m.Slices, sl); hit {
			// SetAside saves the outbox row first, if it still has its row in TabQueued: SetAside
			// finds it by that row.
			m.outbox = append(m.outbox, slices.Clone(key))
		}
		return true, nil
	})
	if err != nil || !m.met(span{[]byte{byte(format.TabOutbox)}, []byte{byte(format.TabOutbox) + 1}}) {
		return err
	}
	return s.engine.Scan([]byte{byte(format.TabQueued)}, []byte{byte(format.TabQueued) + 1}, func(key,
		value []byte) (bool, error) {
		_, err := s.engine.Get(append([]byte{byte(format.TabOutbox)}, value...))
		if errors.Is(err, store.ErrNotExist) && len(key) >= 9 {
			sl := partition.Slice(binary.BigEndian.Uint64(key[1:9]))
			if at, hit := slices.BinarySearch(m.Slices, sl); !hit {
				m.Slices = slices.Insert(m.Slices, at, sl)
				m.h.Slices = m.Slices
			}
			err = nil
		}
		return true, err
	})
}

// homes restores lost rows that say in which slice each site and each record is.
func (m *Mending) homes(b *pebble.Batch) error {
	s := m.s
	if m.met(span{[]byte{byte(format.TabName)}, []byte{byte(format.TabName) + 1}}) {
		err := s.engine.Scan([]byte{byte(format.TabSite)}, []byte{byte(format.TabSite) + 1}, func(key,
			_ []byte) (bool, error) {
			id, _, err := format.SplitRow(key)
			if err != nil {
				return false, err
			}
			if _, err := s.engine.Get(format.SiteName(id.Site)); errors.Is(err, store.ErrNotExist) {
				_ = b.Set(format.SiteName(id.Site), key[1:9], nil)
			}
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	if s.engine.Charter().Mode != partition.ModeGeo || !m.met(span{[]byte{byte(format.TabWhere)},
		[]byte{byte(format.TabWhere) + 1}}) {
		return nil
	}
	return s.engine.Scan([]byte{byte(format.TabRecord)}, []byte{byte(format.TabRecord) + 1}, func(key,
		_ []byte) (bool, error) {
		id, k, err := format.SplitRow(key)
		if err != nil || id.Slice.IsHash() {
			return err == nil, err
		}
		if _, err := s.engine.Get(format.WhereKey(partition.Key(k))); errors.Is(err, store.ErrNotExist) {
			_ = b.Set(format.WhereKey(partition.Key(k)), key[1:9], nil)
		}
		return true, nil
	})
}

// SetAside saves the rows of sl that are left into t and marks them as wanted back. Then it deletes
// the slice and its log from the store.
func (m *Mending) SetAside(t *trash.Trash, sl partition.Slice, now time.Time) error {
	if err := t.Put(m.s.Log, sl, "damaged", now); err != nil {
		return err
	}
	if _, err := t.Want(sl); err != nil {
		return err
	}
	return m.s.Log.DropSlice(sl)
}

// Done ends the mending after all slices that lost rows were handled, and closes the store. Open
// then opens it.
func (m *Mending) Done() error {
	s := m.s
	b := s.engine.DB.NewBatch()
	for _, key := range m.outbox {
		v, err := s.engine.Get(key)
		if err != nil {
			continue // it was deleted with its slice
		}
		d := format.NewDecoder(v)
		sl := partition.Slice(d.Uint(math.MaxUint64))
		r, err := format.DecodeOutboxRow(v)
		if err == nil {
			q, qerr := s.engine.Get(format.QueuedKey(sl, r.Key))
			if err = qerr; err == nil && !bytes.Equal(q, key[1:]) {
				err = store.ErrNotExist
			}
		}
		if errors.Is(err, store.ErrNotExist) || errors.Is(err, format.ErrBadRow) {
			_ = b.Delete(key, nil)
		}
	}
	err := s.engine.Commit(b)
	if err == nil {
		err = m.Close()
	}
	if err == nil {
		err = engine.WriteHurt(s.engine.Options.FS, s.engine.Dir, engine.Hurt{})
	}
	return cmp.Or(err, nil)
}

// Close closes the store. Without Done, the next Mend must finish before the store can be opened.
func (m *Mending) Close() error { return m.s.Close() }
