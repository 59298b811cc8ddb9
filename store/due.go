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
func (s *Store) scan(lower, upper []byte, fn func(key, value []byte) (bool, error)) (err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
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
func (s *Store) Backlogs(sl partition.Slice) ([]Backlog, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	var out []Backlog
	p := slicePrefix(tabCount, sl)
	err := s.scan(p, after(p), func(key, value []byte) (bool, error) {
		id, _, err := splitRow(key)
		if err != nil {
			return false, err
		}
		c, err := decodeCounts(value)
		if err != nil || c.due == 0 {
			return err == nil, err
		}
		at, err := s.earliest(id)
		out = append(out, Backlog{Slice: sl, Site: id.site, Pending: c.state[StatePending], Earliest: at})
		return true, err
	})
	if err != nil {
		return nil, fmt.Errorf("store: backlogs of %s: %w", sl, err)
	}
	return out, nil
}

// earliestScan bounds the rows read for Backlog.Earliest.
const earliestScan = 64

// earliest is the time of the first row due of a site: exact when its bucket
// has at most earliestScan rows, else the start of the bucket at the latest.
func (s *Store) earliest(id siteID) (at time.Time, err error) {
	var first uint64
	n := 0
	p := sitePrefix(tabDue, id)
	err = s.scan(p, after(p), func(key, value []byte) (bool, error) {
		b := binary.BigEndian.Uint64(key[len(p):])
		if n++; n == 1 {
			first = b
		}
		if b != first {
			return false, nil
		}
		if n > earliestScan {
			if start := time.Unix(int64(first), 0).UTC(); start.Before(at) {
				at = start
			}
			return false, nil
		}
		v, err := s.get(keyRow(tabKey, id, partition.Key(value)))
		if err != nil {
			return false, fmt.Errorf("%s: %w", value, err)
		}
		k, err := decodeKeyState(v)
		if err == nil && (at.IsZero() || k.at.Before(at)) {
			at = k.at
		}
		return true, err
	})
	return at, err
}

// PendingOf are rows of one site's frontier in the order they are to be read:
// by hour of At, in it by priority, in that by admission. So rows not yet due
// may stand before due ones of the same hour: look at each At. next is where to
// go on, nil at the end. Cost: O(rows returned).
func (s *Store) PendingOf(sl partition.Slice, site partition.Site, from []byte, limit int) (rows []Due, next []byte, err error) {
	if err := s.enter(); err != nil {
		return nil, nil, err
	}
	defer s.leave()
	id := siteID{slice: sl, site: site}
	if len(from) != 0 && len(from) != dueSuffixLen {
		return nil, nil, fmt.Errorf("store: pending of %s: not a position of this store", site)
	}
	p := sitePrefix(tabDue, id)
	lower := append([]byte(nil), p...)
	if len(from) > 0 {
		lower = append(append(lower, from...), 0)
	}
	err = s.scan(lower, after(p), func(key, value []byte) (bool, error) {
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
	if len(rows) < limit {
		next = nil
	}
	return rows, next, nil
}

// DueOf is the row of k; ErrNotExist when it was never admitted here.
func (s *Store) DueOf(k partition.Key) (Due, error) {
	if err := s.enter(); err != nil {
		return Due{}, err
	}
	defer s.leave()
	v, err := s.get(keyRow(tabKey, s.idOf(k), k))
	if err != nil {
		return Due{}, fmt.Errorf("store: %s: %w", k, err)
	}
	st, err := decodeKeyState(v)
	if err != nil {
		return Due{}, fmt.Errorf("store: %s: %w", k, err)
	}
	return st.due(k), nil
}

// Records calls fn for the latest record of each Key above from ("" = all), in
// store order (slice, site, Key), until it answers false. Records committed
// meanwhile may or may not be seen. fn may call the Store.
func (s *Store) Records(from partition.Key, fn func(Record) (bool, error)) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	lower := []byte{byte(tabRecord)}
	if from != "" {
		lower = append(keyRow(tabRecord, s.idOf(from), from), 0)
	}
	return s.scan(lower, after([]byte{byte(tabRecord)}), func(key, value []byte) (bool, error) {
		r, err := s.packer.decodeRecord(value)
		if err != nil {
			return false, fmt.Errorf("store: row %x: %w", key, err)
		}
		return fn(r)
	})
}
