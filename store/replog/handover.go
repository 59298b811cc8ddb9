package replog

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// SliceRows returns rows of a slice for another peer's ImportRows: key states, site states,
// records, outbox rows, captures and items. It returns at least one row and up to maxBytes of them.
// from is the Key of the last row of the previous call, nil at first; next is nil at the end. There
// is no snapshot. The caller finds rows that changed behind it by reading again; importing rows
// twice changes nothing.
//
// A Row's Key is the table's letter, then the store's own row key after the slice (store/format).
// Its Value is the store's own value, except in three tables. In 'X' it is the outbox row, in 'P'
// the whole Site as packed JSON, in 'V' the capture and its body.
func (s *Log) SliceRows(sl partition.Slice, from []byte, maxBytes int) (rows []store.Row, next []byte, err error) {
	return s.sliceRows(sl, from, maxBytes, func(format.Table, []byte) bool { return true })
}

// sliceRows is SliceRows for the rows for which want returns true.
func (s *Log) sliceRows(sl partition.Slice, from []byte, maxBytes int,
	want func(t format.Table, rest []byte) bool) (rows []store.Row, next []byte, err error) {
	if err := s.engine.Enter(); err != nil {
		return nil, nil, err
	}
	defer s.engine.Leave()
	size, full := 0, false
	for _, t := range format.Handed() {
		if len(from) > 0 && format.TableRank(format.Table(from[0])) > format.TableRank(t) {
			continue
		}
		p := format.SlicePrefix(t, sl)
		lower := p
		if len(from) > 0 && format.Table(from[0]) == t {
			lower = append(append(append([]byte(nil), p...), from[1:]...), 0)
		}
		err = s.engine.Scan(lower, format.After(p), func(key, value []byte) (bool, error) {
			if !want(t, key[len(p):]) {
				return true, nil
			}
			r, err := s.outgoing(s.engine.DB, t, sl, key[len(p):], value)
			if errors.Is(err, store.ErrNotExist) {
				return true, nil // Sent deleted it meanwhile
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

// outgoing copies a row for another peer. For the index of an outbox row it copies the outbox row,
// for a site also its robots.txt.
func (s *Log) outgoing(from pebble.Reader, t format.Table, sl partition.Slice, rest, value []byte) (r store.Row,
	err error) {
	r.Key = append([]byte{byte(t)}, rest...)
	switch t {
	case format.TabQueued:
		r.Value, err = engine.Get(from, append([]byte{byte(format.TabOutbox)}, value...))
	case format.TabSite:
		var st store.Site
		if st, err = s.queue.SiteIn(from, format.SiteID{Slice: sl,
			Site: partition.Site(rest[:len(rest)-1])}); err == nil {
			r.Value, err = s.engine.Packer.PackJSON(st)
		}
	case format.TabCapture:
		r.Value, err = s.outgoingCapture(from, sl, rest, value)
	case format.TabRecord:
		// An earlier version of the program may have written a larger record.
		if format.ExpandsTo(value, format.NameRecord) > store.MaxRecordBytes {
			var old store.Record
			if old, err = s.engine.Packer.DecodeRecord(value); err == nil {
				r.Value, err = s.engine.Packer.EncodeRecord(&old)
			}
			break
		}
		r.Value = append([]byte(nil), value...)
	default:
		r.Value = append([]byte(nil), value...)
	}
	return r, err
}

// DropSlice deletes a slice that another peer has acknowledged (I4): all its rows and its log, in
// one batch. It logs its records and posts as changes, so that the index deletes them too.
func (s *Log) DropSlice(sl partition.Slice) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	s.dropping.Lock() // format.MetaFetches is read and written
	defer s.dropping.Unlock()
	err := s.write([]partition.Slice{sl}, func(t *batch) error { return t.drop(sl) })
	if err != nil {
		return fmt.Errorf("store: drop %s: %w", sl, err)
	}
	return nil
}

// drop deletes the rows and the log of sl.
func (t *batch) drop(sl partition.Slice) error {
	if err := t.dropCounts(sl); err != nil {
		return err
	}
	p := format.SlicePrefix(format.TabRecord, sl)
	err := t.s.engine.Scan(p, format.After(p), func(key, _ []byte) (bool, error) {
		_, k, err := format.SplitRow(key)
		if err != nil {
			return false, err
		}
		if err := t.Nowhere(sl, partition.Key(k)); err != nil {
			return false, err
		}
		return true, t.Change(partition.Key(k))
	})
	if err != nil {
		return err
	}
	if err := t.ItemsGone(sl); err != nil {
		return err
	}
	p = format.SlicePrefix(format.TabQueued, sl)
	err = t.s.engine.Scan(p, format.After(p), func(_, value []byte) (bool, error) {
		t.Part(sl).Total.Outbox--
		return true, t.Rows.Delete(append([]byte{byte(format.TabOutbox)}, value...), nil)
	})
	if err != nil {
		return err
	}
	p = format.SlicePrefix(format.TabSite, sl)
	err = t.s.engine.Scan(p, format.After(p), func(key, _ []byte) (bool, error) {
		id, _, err := format.SplitRow(key)
		if err != nil {
			return false, err
		}
		v, err := t.s.engine.Get(format.SiteName(id.Site))
		if err == nil && string(v) == string(key[1:9]) {
			err = t.Rows.Delete(format.SiteName(id.Site), nil)
		}
		return true, engine.IgnoreAbsent(err)
	})
	if err != nil {
		return err
	}
	for _, tab := range append(format.ItemTables(), format.TabCount, format.TabDue, format.TabKey, format.TabSite,
		format.TabRobots, format.TabRecord, format.TabQueued,
		format.TabUnit, format.TabCapture, format.TabBody, format.TabUse, format.TabSlice, format.TabUnreplicated) {
		p := format.SlicePrefix(tab, sl)
		if err := t.DeleteRange(p, format.After(p)); err != nil {
			return err
		}
	}
	t.Part(sl).Log.Forget()
	return nil
}

// dropCounts subtracts the slice from the totals. The number of fetches stays counted.
func (t *batch) dropCounts(sl partition.Slice) error {
	var fetches int64
	p := format.SlicePrefix(format.TabCount, sl)
	err := t.s.engine.Scan(p, format.After(p), func(_, value []byte) (bool, error) {
		c, err := format.DecodeCounts(value)
		t.Part(sl).Total.Counts(c, -1)
		fetches += c.Fetches
		return true, err
	})
	if err != nil || fetches == 0 {
		return err
	}
	return t.AddFetches(fetches)
}
