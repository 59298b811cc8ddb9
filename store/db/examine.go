package db

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/store/engine"
)

// span is the keys from lower up to, but not including, upper.
type span struct{ lower, upper []byte }

// meets reports whether a and b share keys.
func (a span) meets(b span) bool {
	return bytes.Compare(a.lower, b.upper) < 0 && bytes.Compare(b.lower, a.upper) < 0
}

// join returns the smallest span that contains a and b.
func (a span) join(b span) span {
	if bytes.Compare(b.lower, a.lower) < 0 {
		a.lower = b.lower
	}
	if bytes.Compare(b.upper, a.upper) > 0 {
		a.upper = b.upper
	}
	return a
}

// tableFile is one table file of Pebble and the span of the rows in it.
type tableFile struct {
	name string // in Pebble's directory
	size int64
	all  span
}

// tableFiles returns the files that contain the rows now.
func (s *Store) tableFiles() ([]tableFile, error) {
	levels, err := s.engine.DB.SSTables()
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	var out []tableFile
	for _, level := range levels {
		for _, t := range level {
			name := t.BackingSSTNum.String() + ".sst"
			all := span{slices.Clone(t.Smallest.UserKey), append(slices.Clone(t.Largest.UserKey), 0)}
			if i, ok := at[name]; ok { // parts of one file
				out[i].all, out[i].size = out[i].all.join(all), out[i].size+int64(t.Size)
				continue
			}
			at[name] = len(out)
			out = append(out, tableFile{name: name, size: int64(t.Size), all: all})
		}
	}
	return out, nil
}

// verify reads all of a table file, whose blocks have checksums. It returns nil when the file is as
// it was written, or does not exist any more.
func (s *Store) verify(name string) error {
	return s.withTable(name, (*sstable.Reader).ValidateBlockChecksums)
}

// withTable opens a table file and calls read. A missing file is no error.
func (s *Store) withTable(name string, read func(*sstable.Reader) error) error {
	f, err := s.engine.Options.FS.Open(s.engine.Options.FS.PathJoin(engine.DBDir(s.engine.Options.FS, s.engine.Dir),
		name), vfs.RandomReadsOption)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	po := pebble.Options{FS: s.engine.Options.FS}
	po.EnsureDefaults()
	r, err := sstable.NewReader(context.Background(), readable, po.MakeReaderOptions())
	if err != nil {
		return errors.Join(err, readable.Close())
	}
	return errors.Join(read(r), r.Close())
}

// examine finds what cannot be read in a table file. why is nil when the file is good. lost is
// empty when all rows can be read and only the data that Pebble stores beside them is damaged.
//
// The lost span starts at the last row that can be read before the first bad block. This row is
// given up too, so that a reader of the rows before it does not touch the bad block. The span
// includes the first row behind the last bad block, because a newer state of that row may be in the
// bad block.
func (s *Store) examine(t tableFile) (lost []span, why error, err error) {
	why = s.verify(t.name)
	if why == nil || !pebble.IsCorruptionError(why) {
		return nil, nil, why
	}
	err = s.withTable(t.name, func(r *sstable.Reader) error {
		deleted, err := r.NewRawRangeDelIter(context.Background(), sstable.NoFragmentTransforms, sstable.NoReadEnv)
		if err != nil {
			return err
		}
		if deleted != nil {
			deleted.Close()
		}
		from, bad, err := lastGood(r, t.all.lower)
		if err != nil || !bad {
			return err
		}
		to, err := firstGood(r, t.all.upper)
		if bytes.Compare(to, from) <= 0 {
			err = errors.New("its rows are in no order")
		}
		lost = []span{{from, to}}
		return err
	})
	if err != nil { // neither index nor rows can be read: the whole file is lost
		return []span{t.all}, why, nil
	}
	return lost, why, nil
}

// lastGood returns the last row before the first one that cannot be read. first is the default.
func lastGood(r *sstable.Reader, first []byte) (key []byte, bad bool, err error) {
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = it.Close() }() // its error is the one of the row
	key = first
	for kv := it.First(); kv != nil; kv = it.Next() {
		key = append([]byte(nil), kv.K.UserKey...)
	}
	return key, it.Error() != nil, nil
}

// firstGood returns the key just above the first row from which on all rows can be read.
func firstGood(r *sstable.Reader, end []byte) (key []byte, err error) {
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return nil, err
	}
	defer func() { _ = it.Close() }()
	key = end
	for kv := it.Last(); kv != nil; kv = it.Prev() {
		key = append(append([]byte(nil), kv.K.UserKey...), 0)
	}
	return key, nil
}

// Scrub reads every table file once, at most perSecond bytes a second, and stops at the first
// damaged one (Options.Damaged, Damaged). It ends when ctx ends. It does not read what is written
// meanwhile.
func (s *Store) Scrub(ctx context.Context, perSecond int64) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	files, err := s.tableFiles()
	if err != nil {
		return fmt.Errorf("store: scrub: %w", err)
	}
	for _, t := range files {
		why := s.verify(t.name)
		switch {
		case pebble.IsCorruptionError(why):
			return s.engine.Found(engine.Inside(t.name), why)
		case why != nil:
			return fmt.Errorf("store: scrub: %s: %w", t.name, why)
		}
		wait := time.NewTimer(time.Duration(float64(t.size) / float64(max(perSecond, 1)) * float64(time.Second)))
		select {
		case <-ctx.Done():
			wait.Stop()
			return ctx.Err()
		case <-wait.C:
		}
	}
	return nil
}
