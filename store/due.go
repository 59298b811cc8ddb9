package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/echo-node/echo-node/partition"
)

func isAbsent(err error) bool { return errors.Is(err, pebble.ErrNotFound) }

// scan calls fn for the rows from lower up to upper until it answers false.
// The slices given to fn are Pebble's: copy what is kept.
func (s *Store) scan(lower, upper []byte, fn func(key, value []byte) (bool, error)) error {
	return scan(s.db, lower, upper, fn)
}

func scan(r pebble.Reader, lower, upper []byte, fn func(key, value []byte) (bool, error)) (err error) {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if more, err := fn(it.Key(), v); err != nil || !more {
			return err
		}
	}
	return it.Error()
}

// Backlogs are the sites of sl that have rows in the frontier, pending or due
// for a revisit, in order of Site. Cost: one row a site ever seen in the slice,
// and a seek for each of those answered.
func (s *Store) Backlogs(sl partition.Slice) (out []Backlog, err error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	now := s.db.NewSnapshot() // counts and rows of the same moment
	defer func() { err = errors.Join(err, now.Close()) }()
	p := slicePrefix(tabDue, sl)
	due, err := now.NewIter(&pebble.IterOptions{LowerBound: p, UpperBound: after(p)})
	if err != nil {
		return nil, fmt.Errorf("store: backlogs of %s: %w", sl, err)
	}
	defer func() { err = errors.Join(err, due.Close()) }()
	p = slicePrefix(tabCount, sl)
	err = scan(now, p, after(p), func(key, value []byte) (bool, error) {
		id, _, err := splitRow(key)
		if err != nil {
			return false, err
		}
		c, err := decodeCounts(value)
		if err != nil || c.due == 0 {
			return err == nil, err
		}
		b := Backlog{Slice: sl, Site: id.site, Pending: c.state[StatePending]}
		// Both iterators are in order of Site: each seek goes on from the last.
		rows := sitePrefix(tabDue, id)
		if due.SeekGE(rows) && bytes.HasPrefix(due.Key(), rows) {
			b.Earliest = time.Unix(int64(binary.BigEndian.Uint64(due.Key()[len(rows):])), 0).UTC()
			out = append(out, b)
		}
		return true, due.Error()
	})
	if err != nil {
		return nil, fmt.Errorf("store: backlogs of %s: %w", sl, err)
	}
	return out, nil
}

// PendingOf are rows of one site's frontier in the order they are to be read:
// by hour of At, in it by priority, in that by admission. So rows not yet due
// may stand before due ones of the same hour: look at each At. next is where to
// go on, nil at the end. Cost: O(rows returned), and for the first reading of a site those taken from its queue of
// late.
func (s *Store) PendingOf(sl partition.Slice, site partition.Site, from []byte, limit int) (rows []Due, next []byte,
	err error) {
	if err := s.enter(); err != nil {
		return nil, nil, err
	}
	defer s.leave()
	id := siteID{slice: sl, site: site}
	if len(from) != 0 && len(from) != dueSuffixLen {
		return nil, nil, fmt.Errorf("store: pending of %s: not a position of this store", site)
	}
	p := sitePrefix(tabDue, id)
	var lower, first []byte
	var change uint64
	if len(from) > 0 {
		lower = append(append(append(lower, p...), from...), 0)
	} else {
		lower, change = s.fronts.get(id, p)
		first = after(p)
	}
	begun := false
	err = s.scan(lower, after(p), func(key, value []byte) (bool, error) {
		if !begun && first != nil {
			first = append(first[:0], key...)
		}
		begun = true
		if len(rows) >= limit {
			return false, nil
		}
		k := partition.Key(value)
		v, err := s.get(keyRow(tabKey, id, k))
		if errors.Is(err, ErrNotExist) {
			return true, nil // DropSlice came between
		}
		if err != nil {
			return false, err
		}
		st, err := decodeKeyState(v)
		if err != nil {
			return false, fmt.Errorf("%s: %w", k, err)
		}
		if !bytes.Equal(dueKey(id, st), key) {
			return true, nil // a Commit moved it since the scan began
		}
		rows = append(rows, st.due(k))
		next = append(next[:0], key[len(p):]...)
		return true, nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("store: pending of %s: %w", site, err)
	}
	if first != nil {
		s.fronts.set(id, first, change)
	}
	if len(rows) < limit {
		next = nil
	}
	return rows, next, nil
}

// DueOf is the row of k in its hash slice; ErrNotExist when it was never
// admitted here.
func (s *Store) DueOf(k partition.Key) (Due, error) { return s.DueIn(0, k) }

// DueIn is the row of k in sl; 0 is its hash slice.
func (s *Store) DueIn(sl partition.Slice, k partition.Key) (Due, error) {
	if err := s.enter(); err != nil {
		return Due{}, err
	}
	defer s.leave()
	v, err := s.get(keyRow(tabKey, s.idIn(sl, k), k))
	if err != nil {
		return Due{}, fmt.Errorf("store: %s: %w", k, err)
	}
	st, err := decodeKeyState(v)
	if err != nil {
		return Due{}, fmt.Errorf("store: %s: %w", k, err)
	}
	return st.due(k), nil
}

// Records is RecordsFrom for those to whom slices do not matter.
func (s *Store) Records(from partition.Key, fn func(Record) (bool, error)) error {
	return s.RecordsFrom(0, from, func(_ partition.Slice, r Record) (bool, error) { return fn(r) })
}

// RecordsFrom calls fn for the latest record of each Key above from, in sl (0:
// its hash slice), in store order (slice, site, Key), until it answers false;
// "" begins with sl, or with all. Records committed meanwhile may or may not be seen. fn may call the Store.
func (s *Store) RecordsFrom(sl partition.Slice, from partition.Key,
	fn func(partition.Slice, Record) (bool, error)) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	lower := []byte{byte(tabRecord)}
	if from != "" {
		lower = append(keyRow(tabRecord, s.idIn(sl, from), from), 0)
	} else if sl != 0 {
		lower = slicePrefix(tabRecord, sl)
	}
	return s.records(lower, after([]byte{byte(tabRecord)}), fn)
}

// SliceRecords is RecordsFrom for the records of sl alone.
func (s *Store) SliceRecords(sl partition.Slice, from partition.Key, fn func(Record) (bool, error)) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	p := slicePrefix(tabRecord, sl)
	lower := p
	if from != "" {
		lower = append(keyRow(tabRecord, s.idIn(sl, from), from), 0)
	}
	return s.records(lower, after(p), func(_ partition.Slice, r Record) (bool, error) { return fn(r) })
}

func (s *Store) records(lower, upper []byte, fn func(partition.Slice, Record) (bool, error)) error {
	return s.scan(lower, upper, func(key, value []byte) (bool, error) {
		id, _, err := splitRow(key)
		if err != nil {
			return false, err
		}
		r, err := s.packer.decodeRecord(value)
		if err != nil {
			return false, fmt.Errorf("store: row %x: %w", key, err)
		}
		return fn(id.slice, r)
	})
}
