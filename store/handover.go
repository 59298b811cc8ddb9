package store

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/echo-node/echo-node/partition"
)

// handed are the tables that move with a slice, in the order they are sent:
// key states first, as a record without one is put down as due again. The due
// index, counts and change log are each peer's own and are made anew.
func handed() []table {
	return append([]table{tabKey, tabSite, tabRecord, tabQueued, tabUnit, tabCapture}, itemTables()...)
}

// SliceRows are rows of a slice for another peer's ImportRows: key states, site
// states, records, outbox rows, captures, items; at least one and up to maxBytes of them. from
// is the last row's Key of the call before, nil at first; next is nil at the
// end. There is no snapshot: what changed behind the reader is found by
// reading again, and importing twice changes nothing.
//
// A Row's Key is the table's letter, then what follows the slice in the store's
// own row (doc.go). Its Value is the store's own; of 'X', the outbox row; of
// 'P', the whole Site as JSON, packed; of 'V', the capture and its body.
func (s *Store) SliceRows(sl partition.Slice, from []byte, maxBytes int) (rows []Row, next []byte, err error) {
	return s.sliceRows(sl, from, maxBytes, func(table, []byte) bool { return true })
}

// sliceRows is SliceRows of the rows that are wanted.
func (s *Store) sliceRows(sl partition.Slice, from []byte, maxBytes int,
	want func(t table, rest []byte) bool) (rows []Row, next []byte, err error) {
	if err := s.enter(); err != nil {
		return nil, nil, err
	}
	defer s.leave()
	size, full := 0, false
	for _, t := range handed() {
		if len(from) > 0 && tableRank(table(from[0])) > tableRank(t) {
			continue
		}
		p := slicePrefix(t, sl)
		lower := p
		if len(from) > 0 && table(from[0]) == t {
			lower = append(append(append([]byte(nil), p...), from[1:]...), 0)
		}
		err = s.scan(lower, after(p), func(key, value []byte) (bool, error) {
			if !want(t, key[len(p):]) {
				return true, nil
			}
			r, err := s.outgoing(s.db, t, sl, key[len(p):], value)
			if errors.Is(err, ErrNotExist) {
				return true, nil // Sent came between
			}
			if err != nil {
				return false, err
			}
			if n := len(r.Key) + len(r.Value); len(rows) > 0 && size+n > maxBytes {
				full = true
				return false, nil
			} else {
				size += n
			}
			rows = append(rows, r)
			return true, nil
		})
		if err != nil {
			return nil, nil, fmt.Errorf("store: rows of %s: %w", sl, err)
		}
		if full {
			return rows, rows[len(rows)-1].Key, nil
		}
	}
	return rows, nil, nil
}

func tableRank(t table) int {
	for i, h := range handed() {
		if h == t {
			return i
		}
	}
	return len(handed())
}

// outgoing copies a row; of an outbox row's index, the row; of a site, all.
func (s *Store) outgoing(from pebble.Reader, t table, sl partition.Slice, rest, value []byte) (r Row, err error) {
	r.Key = append([]byte{byte(t)}, rest...)
	switch t {
	case tabQueued:
		r.Value, err = get(from, append([]byte{byte(tabOutbox)}, value...))
	case tabSite:
		var st Site
		if st, err = s.siteIn(from, siteID{slice: sl, site: partition.Site(rest[:len(rest)-1])}); err == nil {
			r.Value, err = s.packer.packJSON(st)
		}
	case tabCapture:
		r.Value, err = s.outgoingCapture(from, sl, rest, value)
	case tabRecord:
		if expandsTo(value, nameRecord) > MaxRecordBytes { // of an earlier version
			var old Record
			if old, err = s.packer.decodeRecord(value); err == nil {
				r.Value, err = s.packer.encodeRecord(&old)
			}
			break
		}
		r.Value = append([]byte(nil), value...)
	default:
		r.Value = append([]byte(nil), value...)
	}
	return r, err
}

// Sent says that r is of a log and tells that a link was sent.
func (r Row) Sent() bool { return len(r.Key) > 0 && r.Key[0] == nameLink && len(r.Value) == 0 }

// DropSlice forgets a slice that another peer has acknowledged (I4): all its
// rows and its log, in one batch. Its records are logged as changes, so that
// the index forgets them too.
func (s *Store) DropSlice(sl partition.Slice) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	s.dropping.Lock() // metaFetches is read and written
	defer s.dropping.Unlock()
	err := s.write([]partition.Slice{sl}, func(t *txn) error { return t.drop(sl) })
	if err != nil {
		return fmt.Errorf("store: drop %s: %w", sl, err)
	}
	return nil
}

func (t *txn) drop(sl partition.Slice) error {
	if err := t.dropCounts(sl); err != nil {
		return err
	}
	p := slicePrefix(tabRecord, sl)
	err := t.s.scan(p, after(p), func(key, _ []byte) (bool, error) {
		_, k, err := splitRow(key)
		if err != nil {
			return false, err
		}
		if err := t.nowhere(sl, partition.Key(k)); err != nil {
			return false, err
		}
		return true, t.log(partition.Key(k))
	})
	if err != nil {
		return err
	}
	if err := t.itemsGone(sl); err != nil {
		return err
	}
	p = slicePrefix(tabQueued, sl)
	err = t.s.scan(p, after(p), func(_, value []byte) (bool, error) {
		t.part(sl).total.outbox--
		return true, t.b.Delete(append([]byte{byte(tabOutbox)}, value...), nil)
	})
	if err != nil {
		return err
	}
	p = slicePrefix(tabSite, sl)
	err = t.s.scan(p, after(p), func(key, _ []byte) (bool, error) {
		id, _, err := splitRow(key)
		if err != nil {
			return false, err
		}
		v, err := t.s.get(siteName(id.site))
		if err == nil && string(v) == string(key[1:9]) {
			err = t.b.Delete(siteName(id.site), nil)
		}
		return true, ignoreAbsent(err)
	})
	if err != nil {
		return err
	}
	for _, tab := range append(itemTables(), tabCount, tabDue, tabKey, tabSite, tabRobots, tabRecord, tabQueued,
		tabUnit, tabCapture, tabBody, tabUse, tabSlice, tabUnreplicated) {
		p := slicePrefix(tab, sl)
		if err := t.deleteRange(p, after(p)); err != nil {
			return err
		}
	}
	t.part(sl).log.forget()
	return nil
}

// dropCounts takes the slice out of the totals; the fetches stay counted.
func (t *txn) dropCounts(sl partition.Slice) error {
	var fetches int64
	p := slicePrefix(tabCount, sl)
	err := t.s.scan(p, after(p), func(_, value []byte) (bool, error) {
		c, err := decodeCounts(value)
		t.part(sl).total.counts(c, -1)
		fetches += c.fetches
		return true, err
	})
	if err != nil || fetches == 0 {
		return err
	}
	return t.s.addFetches(t, fetches)
}

func ignoreAbsent(err error) error {
	if errors.Is(err, ErrNotExist) || errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	return err
}
