package queue

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// Backlogs returns the sites of sl that have rows in the frontier, pending or due for a revisit, in
// order of Site. It reads one row for each site ever seen in the slice, and seeks once for each
// site returned.
func (s *Queue) Backlogs(sl partition.Slice) (out []store.Backlog, err error) {
	if err := s.engine.Enter(); err != nil {
		return nil, err
	}
	defer s.engine.Leave()
	now := s.engine.DB.NewSnapshot() // counts and rows of the same moment
	defer func() { err = errors.Join(err, now.Close()) }()
	p := format.SlicePrefix(format.TabDue, sl)
	due, err := now.NewIter(&pebble.IterOptions{LowerBound: p, UpperBound: format.After(p)})
	if err != nil {
		return nil, fmt.Errorf("store: backlogs of %s: %w", sl, err)
	}
	defer func() { err = errors.Join(err, due.Close()) }()
	p = format.SlicePrefix(format.TabCount, sl)
	err = engine.Scan(now, p, format.After(p), func(key, value []byte) (bool, error) {
		id, _, err := format.SplitRow(key)
		if err != nil {
			return false, err
		}
		c, err := format.DecodeCounts(value)
		if err != nil || c.Due == 0 {
			return err == nil, err
		}
		b := store.Backlog{Slice: sl, Site: id.Site, Pending: c.State[store.StatePending]}
		// Both iterators are in order of Site, so each seek continues from the last one.
		rows := format.SitePrefix(format.TabDue, id)
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

// PendingOf returns up to limit rows of one site's frontier in reading order: by the hour of At,
// then by priority, then by admission. So rows that are not yet due may come before due rows of the
// same hour: the caller must check each At. next is the position to continue from, nil at the end.
// The cost is O(rows returned). The first read of a site also steps over rows that were recently
// taken from its queue.
func (s *Queue) PendingOf(sl partition.Slice, site partition.Site, from []byte, limit int) (rows []store.Due,
	next []byte,
	err error) {
	if err := s.engine.Enter(); err != nil {
		return nil, nil, err
	}
	defer s.engine.Leave()
	id := format.SiteID{Slice: sl, Site: site}
	if len(from) != 0 && len(from) != format.DueSuffixLen {
		return nil, nil, fmt.Errorf("store: pending of %s: not a position of this store", site)
	}
	p := format.SitePrefix(format.TabDue, id)
	var lower, first []byte
	var change uint64
	if len(from) > 0 {
		lower = append(append(append(lower, p...), from...), 0)
	} else {
		lower, change = s.fronts.get(id, p)
		first = format.After(p)
	}
	begun := false
	err = s.engine.Scan(lower, format.After(p), func(key, value []byte) (bool, error) {
		if !begun && first != nil {
			first = append(first[:0], key...)
		}
		begun = true
		if len(rows) >= limit {
			return false, nil
		}
		k := partition.Key(value)
		v, err := s.engine.Get(format.KeyRow(format.TabKey, id, k))
		if errors.Is(err, store.ErrNotExist) {
			return true, nil // DropSlice deleted it meanwhile
		}
		if err != nil {
			return false, err
		}
		st, err := format.DecodeKeyState(v)
		if err != nil {
			return false, fmt.Errorf("%s: %w", k, err)
		}
		if !bytes.Equal(format.DueKey(id, st), key) {
			return true, nil // a Commit moved it since the scan began
		}
		rows = append(rows, st.Due(k))
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

// DueOf returns the row of k in its hash slice. It returns ErrNotExist when k was never admitted
// here.
func (s *Queue) DueOf(k partition.Key) (store.Due, error) { return s.DueIn(0, k) }

// DueIn returns the row of k in sl; 0 is its hash slice.
func (s *Queue) DueIn(sl partition.Slice, k partition.Key) (store.Due, error) {
	if err := s.engine.Enter(); err != nil {
		return store.Due{}, err
	}
	defer s.engine.Leave()
	v, err := s.engine.Get(format.KeyRow(format.TabKey, s.engine.IDIn(sl, k), k))
	if err != nil {
		return store.Due{}, fmt.Errorf("store: %s: %w", k, err)
	}
	st, err := format.DecodeKeyState(v)
	if err != nil {
		return store.Due{}, fmt.Errorf("store: %s: %w", k, err)
	}
	return st.Due(k), nil
}
