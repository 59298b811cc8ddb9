package engine

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// Caps of the log of one slice. When the log exceeds either, its older half is trimmed. A peer that
// still needed that half takes a snapshot (ErrTrimmed).
const (
	MaxLogEntries = 1 << 16
	MaxLogBytes   = 16 << 20
)

// A batch with more than entryBytes of rows gets several entries, and each of them can be
// replicated alone. A single row may be larger than entryBytes, but not larger than
// store.MaxLogChunkBytes.
const (
	entryBytes = 1 << 20
	SiteBytes  = 64 << 10 // the assumed size of a pace with its robots.txt, whose rows are not read
	rowBytes   = 64       // the assumed size of what is not counted in a row
)

// Logs is the state of the slices' logs in memory. The fields of a slice change under its lock. mu
// is for callers that only read.
type Logs struct {
	mu sync.Mutex
	By map[partition.Slice]SliceLog
}

// SliceLog is the state of the log of one slice.
type SliceLog struct {
	On          bool
	Shut        bool             // only what another peer replicates is written
	First, Last format.EntryHead // Last.Pos is the head; both zero: no entry
	Durable     uint64           // entries up to here survive a crash
	Cuts        uint64           // how often positions were taken back
}

// Get returns the state of the log of sl.
func (l *Logs) Get(sl partition.Slice) SliceLog {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.By[sl]
}

// put stores the state of the log of sl as a batch left it.
func (l *Logs) put(sl partition.Slice, now SliceLog) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.By[sl]
	if now.Durable = old.Durable; now.Cuts != old.Cuts {
		now.Durable = min(old.Durable, now.Last.Pos)
	}
	if now == (SliceLog{}) {
		delete(l.By, sl)
		return
	}
	l.By[sl] = now
}

// Synced records that the entries up to pos are durable, unless the log was cut after they were
// written.
func (l *Logs) Synced(sl partition.Slice, pos, cuts uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.By[sl]; now.Cuts == cuts && now.Durable < pos {
		now.Durable = pos
		l.By[sl] = now
	}
}

// Forget empties the log.
func (l *SliceLog) Forget() { *l = SliceLog{On: l.On, Shut: l.Shut, Cuts: l.Cuts + 1} }

// Entries returns the number of entries.
func (l *SliceLog) Entries() int {
	if l.Last.Pos == 0 {
		return 0
	}
	return int(l.Last.Ordinal - l.First.Ordinal + 1)
}

// Bytes returns the size of all entries in bytes.
func (l *SliceLog) Bytes() int64 { return int64(l.Last.Before + l.Last.Size - l.First.Before) }

// SetLogs changes the state of the logs of sls under their locks, so nothing is written to them
// during the call.
func (s *Engine) SetLogs(sls []partition.Slice, set func(*SliceLog)) {
	defer s.Lock(sls)()
	s.Logs.mu.Lock()
	defer s.Logs.mu.Unlock()
	for _, sl := range sls {
		l := s.Logs.By[sl]
		if set(&l); l == (SliceLog{}) {
			delete(s.Logs.By, sl)
			continue
		}
		s.Logs.By[sl] = l
	}
}

// Fenced returns ErrFenced when sl belongs to another peer now. The caller holds the slice's lock.
func (s *Engine) Fenced(sl partition.Slice) error {
	if s.Logs.Get(sl).Shut {
		return fmt.Errorf("%w: %s", store.ErrFenced, sl)
	}
	return nil
}

// Name records a row that t writes for the log of its slice. rest is the row's key after the slice.
// size is about the size of its value in bytes as it is replicated.
func (t *Batch) Name(sl partition.Slice, name byte, rest []byte, size int, fetched time.Time) {
	if t.Replica {
		return // the entry of the log chunk names them already
	}
	if p := t.Part(sl); p.Log.On {
		p.names = append(p.names, format.LogRow{Name: name, Rest: string(rest), Size: rowBytes + len(rest) + size,
			Fetched: fetched})
	}
}

// entries appends the named rows to the logs. The rows that were named first, a Commit's own key
// state and record, are in the last entry of a batch. So a peer that has only the earlier entries
// has links of a page that is still due (I3).
func (t *Batch) entries() error {
	for sl, p := range t.Parts {
		var chunks [][]format.LogRow
		start, size := 0, 0
		for i, r := range p.names {
			if size += r.Size; size > entryBytes && i > start {
				chunks = append(chunks, p.names[start:i])
				start, size = i, r.Size
			}
		}
		if start < len(p.names) {
			chunks = append(chunks, p.names[start:])
		}
		for i := len(chunks) - 1; i >= 0; i-- {
			if err := t.AppendEntry(sl, 1, chunks[i]); err != nil {
				return err
			}
		}
		if p.names = nil; len(chunks) > 0 {
			if err := t.ShortenLog(sl); err != nil {
				return err
			}
		}
	}
	return nil
}

// AppendEntry adds one entry, span positions after the last one.
func (t *Batch) AppendEntry(sl partition.Slice, span uint64, rows []format.LogRow) error {
	l := &t.Part(sl).Log
	e := format.LogEntry{Rows: rows, EntryHead: format.EntryHead{Pos: l.Last.Pos + span, Span: span,
		Ordinal: l.Last.Ordinal + 1, Before: l.Last.Before + l.Last.Size}}
	err := t.Rows.Set(format.LogKey(sl, e.Pos), e.Encode(), nil)
	if l.Last.Pos == 0 {
		l.First = e.EntryHead
	}
	l.Last = e.EntryHead
	t.Part(sl).grown = true
	return err
}

// ShortenLog trims the older half of a log that exceeds a cap.
func (t *Batch) ShortenLog(sl partition.Slice) error {
	l := t.Part(sl).Log
	if l.Entries() <= MaxLogEntries && l.Bytes() <= MaxLogBytes {
		return nil
	}
	ordinal, before := l.First.Ordinal+uint64(l.Entries()/2), l.First.Before+uint64(l.Bytes()/2)
	return t.TrimLog(sl, func(h format.EntryHead) bool { return h.Ordinal < ordinal && h.Before < before })
}

// TrimLog deletes the oldest entries while old returns true for them. It keeps the last entry on
// disk.
func (t *Batch) TrimLog(sl partition.Slice, old func(format.EntryHead) bool) error {
	l := &t.Part(sl).Log
	first := l.First
	p := format.SlicePrefix(format.TabSlice, sl)
	err := t.s.Scan(format.LogKey(sl, l.First.Pos), format.After(p), func(key, value []byte) (bool, error) {
		h, _, err := format.DecodeHead(key, value)
		if err != nil {
			return false, err
		}
		first = h
		return old(h), nil
	})
	if err != nil || first == l.First {
		return err
	}
	err = t.DeleteRange(format.LogKey(sl, l.First.Pos), format.LogKey(sl, first.Pos))
	l.First = first
	return err
}

// loadLogs finds both ends of every log.
func (s *Engine) loadLogs() (err error) {
	p := []byte{byte(format.TabSlice)}
	it, err := s.DB.NewIter(&pebble.IterOptions{LowerBound: p, UpperBound: format.After(p)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	head := func() (format.EntryHead, error) {
		v, err := it.ValueAndErr()
		if err != nil {
			return format.EntryHead{}, err
		}
		h, _, err := format.DecodeHead(it.Key(), v)
		return h, err
	}
	for ok := it.First(); ok; {
		id, err := format.SplitLogKey(it.Key())
		if err != nil {
			return err
		}
		var l SliceLog
		if l.First, err = head(); err != nil {
			return err
		}
		end := format.After(format.SlicePrefix(format.TabSlice, id))
		if !it.SeekLT(end) {
			return errors.Join(format.ErrBadRow, it.Error())
		}
		if l.Last, err = head(); err != nil {
			return err
		}
		l.Durable = l.Last.Pos // Open has written what it read back to tables
		s.Logs.By[id] = l
		ok = it.SeekGE(end)
	}
	return it.Error()
}
