package store

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/echo-node/echo-node/partition"
)

// Caps of the log of one slice. Above either, its older half is trimmed by
// itself; a peer that still needed it takes a snapshot (ErrTrimmed).
const (
	MaxLogEntries = 1 << 16
	MaxLogBytes   = 16 << 20
)

// A batch whose rows are of more than entryBytes has several entries, each of
// which can be replicated alone. One row may be larger; none is above MaxRowBytes.
const (
	entryBytes = 1 << 20
	siteBytes  = 64 << 10 // taken for a pace with its robots.txt, whose rows are not at hand
	rowBytes   = 64       // taken for what is not counted of a row
)

// logs is what is kept in memory of the slices' logs. A slice's own fields
// change under its lock; mu is for those who only read.
type logs struct {
	mu sync.Mutex
	by map[partition.Slice]sliceLog
}

// sliceLog is the state of the log of one slice.
type sliceLog struct {
	on          bool
	shut        bool      // nothing is written but what another peer replicates
	first, last entryHead // last.pos is the head; both zero: there is no entry
	durable     uint64    // entries up to here cannot be forgotten
	cuts        uint64    // how often positions were taken back
}

func (l *logs) get(sl partition.Slice) sliceLog {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.by[sl]
}

// put takes over what a batch made of the log of sl.
func (l *logs) put(sl partition.Slice, now sliceLog) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.by[sl]
	if now.durable = old.durable; now.cuts != old.cuts {
		now.durable = min(old.durable, now.last.pos)
	}
	if now == (sliceLog{}) {
		delete(l.by, sl)
		return
	}
	l.by[sl] = now
}

// synced says that the entries up to pos are durable, unless the log was cut since.
func (l *logs) synced(sl partition.Slice, pos, cuts uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.by[sl]; now.cuts == cuts && now.durable < pos {
		now.durable = pos
		l.by[sl] = now
	}
}

// forget empties the log.
func (l *sliceLog) forget() { *l = sliceLog{on: l.on, shut: l.shut, cuts: l.cuts + 1} }

func (l *sliceLog) entries() int {
	if l.last.pos == 0 {
		return 0
	}
	return int(l.last.ordinal - l.first.ordinal + 1)
}

func (l *sliceLog) bytes() int64 { return int64(l.last.before + l.last.size - l.first.before) }

// SetLogged says whether batches of the slices append to their logs: so for
// those this peer owns. It is kept in memory, and off after Open. What a batch
// writes meanwhile unlogged is replicated to nobody.
func (s *Store) SetLogged(on bool, sls ...partition.Slice) {
	s.setLogs(sls, func(l *sliceLog) { l.on = on }) // no batch has one half of its rows named
}

// setLogs changes what is known of the logs of slices while nothing is written
// to them.
func (s *Store) setLogs(sls []partition.Slice, set func(*sliceLog)) {
	defer s.lock(sls)()
	s.logs.mu.Lock()
	defer s.logs.mu.Unlock()
	for _, sl := range sls {
		l := s.logs.by[sl]
		if set(&l); l == (sliceLog{}) {
			delete(s.logs.by, sl)
			continue
		}
		s.logs.by[sl] = l
	}
}

// Fence shuts slices, or opens them again: into one that is shut Admit, Commit
// and PutSite write nothing and answer ErrFenced, and Sent leaves its links.
// ApplyLog, ImportRows, ResetLog and DropSlice are not concerned. On return no
// write that began before is under way. It is kept in memory; all are open after
// Open.
//
// A peer shuts what it does not own, so that a fetch that outlives the loss of a
// slice cannot write into a log that is another's now.
func (s *Store) Fence(shut bool, sls ...partition.Slice) {
	s.setLogs(sls, func(l *sliceLog) { l.shut = shut })
}

// Fenced says whether sl is shut.
func (s *Store) Fenced(sl partition.Slice) bool { return s.logs.get(sl).shut }

// fenced is asked under the slice's lock.
func (s *Store) fenced(sl partition.Slice) error {
	if s.logs.get(sl).shut {
		return fmt.Errorf("%w: %s", ErrFenced, sl)
	}
	return nil
}

// LogDurable is LogHead once that cannot be forgotten any more: it waits for the
// disk.
func (s *Store) LogDurable(sl partition.Slice) (uint64, error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.leave()
	l := s.logs.get(sl)
	if l.durable < l.last.pos {
		if err := s.barrier(); err != nil {
			return 0, fmt.Errorf("store: log of %s: %w", sl, err)
		}
		s.logs.synced(sl, l.last.pos, l.cuts)
	}
	return l.last.pos, nil
}

// LogHead is the position of the newest visible batch in the log of sl, 0 when
// there is none. It never falls but by ResetLog, DropSlice, or a crash that
// loses batches nobody was told of.
func (s *Store) LogHead(sl partition.Slice) uint64 {
	l := s.logs.get(sl)
	return l.last.pos
}

// LogLen is how long the log of sl is, at most MaxLogEntries and MaxLogBytes.
func (s *Store) LogLen(sl partition.Slice) (entries int, bytes int64) {
	l := s.logs.get(sl)
	return l.entries(), l.bytes()
}

// TrimLog forgets the log of sl up to and with upTo; its newest entry stays, so
// that the head is known. It is not synced: a crash may undo it.
func (s *Store) TrimLog(sl partition.Slice, upTo uint64) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if err := s.ready(); err != nil {
		return err
	}
	defer s.lock([]partition.Slice{sl})()
	t := s.newTxn()
	defer t.close()
	if l := t.part(sl).log; l.last.pos == 0 || upTo < l.first.pos {
		return nil
	}
	err := t.trim(sl, func(h entryHead) bool { return h.pos <= upTo })
	if err == nil {
		err = t.unsynced()
	}
	if err != nil {
		return fmt.Errorf("store: trim log of %s: %w", sl, err)
	}
	return nil
}

// ResetLog says that this store has all of sl up to head, which is 0 or more: a
// snapshot was imported, or what is above head was written by an owner that was
// none any more. The log is empty and goes on after head. Rows stay, and are loose (Relog).
// Synced.
func (s *Store) ResetLog(sl partition.Slice, head uint64) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if head > MaxLogPosition {
		return fmt.Errorf("store: reset log of %s: position %d, at most %d", sl, head, uint64(MaxLogPosition))
	}
	err := s.write([]partition.Slice{sl}, func(t *txn) error {
		p := t.part(sl)
		if err := t.noteUnreplicated(sl, head); err != nil {
			return err
		}
		if err := t.deleteRange(logKey(sl, p.log.first.pos), logKey(sl, p.log.last.pos+1)); err != nil {
			return err
		}
		ordinal, before := p.log.last.ordinal, p.log.last.before+p.log.last.size
		p.log.forget()
		if head == 0 {
			return nil
		}
		e := logEntry{entryHead: entryHead{pos: head, ordinal: ordinal + 1, before: before}}
		err := t.b.Set(logKey(sl, head), e.encode(), nil)
		p.log.first, p.log.last = e.entryHead, e.entryHead
		return err
	})
	if err != nil {
		return fmt.Errorf("store: reset log of %s: %w", sl, err)
	}
	return nil
}

// name puts a row that t writes down for the log of its slice. rest is the
// row's key after the slice, size the bytes of its value as it is replicated, about.
func (t *txn) name(sl partition.Slice, name byte, rest []byte, size int, fetched time.Time) {
	if t.replica {
		return // the log chunk's own entry names them
	}
	if p := t.part(sl); p.log.on {
		p.names = append(p.names, logRow{name: name, rest: string(rest), size: rowBytes + len(rest) + size,
			fetched: fetched})
	}
}

// entries appends the rows named to the logs. The rows that were named first,
// a Commit's own key state and record, are in the last entry of a batch: who
// has only those before has links of a page that is still due (I3).
func (t *txn) entries() error {
	for sl, p := range t.parts {
		var chunks [][]logRow
		start, size := 0, 0
		for i, r := range p.names {
			if size += r.size; size > entryBytes && i > start {
				chunks = append(chunks, p.names[start:i])
				start, size = i, r.size
			}
		}
		if start < len(p.names) {
			chunks = append(chunks, p.names[start:])
		}
		for i := len(chunks) - 1; i >= 0; i-- {
			if err := t.append(sl, 1, chunks[i]); err != nil {
				return err
			}
		}
		if p.names = nil; len(chunks) > 0 {
			if err := t.shorten(sl); err != nil {
				return err
			}
		}
	}
	return nil
}

// append adds one entry, span positions further.
func (t *txn) append(sl partition.Slice, span uint64, rows []logRow) error {
	l := &t.part(sl).log
	e := logEntry{rows: rows, entryHead: entryHead{pos: l.last.pos + span, span: span,
		ordinal: l.last.ordinal + 1, before: l.last.before + l.last.size}}
	err := t.b.Set(logKey(sl, e.pos), e.encode(), nil)
	if l.last.pos == 0 {
		l.first = e.entryHead
	}
	l.last = e.entryHead
	t.part(sl).grown = true
	return err
}

// shorten trims the older half of a log that is too long.
func (t *txn) shorten(sl partition.Slice) error {
	l := t.part(sl).log
	if l.entries() <= MaxLogEntries && l.bytes() <= MaxLogBytes {
		return nil
	}
	ordinal, before := l.first.ordinal+uint64(l.entries()/2), l.first.before+uint64(l.bytes()/2)
	return t.trim(sl, func(h entryHead) bool { return h.ordinal < ordinal && h.before < before })
}

// trim deletes the oldest entries while old says so; the last on disk stays.
func (t *txn) trim(sl partition.Slice, old func(entryHead) bool) error {
	l := &t.part(sl).log
	first := l.first
	p := slicePrefix(tabSlice, sl)
	err := t.s.scan(logKey(sl, l.first.pos), after(p), func(key, value []byte) (bool, error) {
		h, _, err := decodeHead(key, value)
		if err != nil {
			return false, err
		}
		first = h
		return old(h), nil
	})
	if err != nil || first == l.first {
		return err
	}
	err = t.deleteRange(logKey(sl, l.first.pos), logKey(sl, first.pos))
	l.first = first
	return err
}

// loadLogs finds both ends of every log.
func (s *Store) loadLogs() (err error) {
	p := []byte{byte(tabSlice)}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: p, UpperBound: after(p)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	head := func() (entryHead, error) {
		v, err := it.ValueAndErr()
		if err != nil {
			return entryHead{}, err
		}
		h, _, err := decodeHead(it.Key(), v)
		return h, err
	}
	for ok := it.First(); ok; {
		id, err := splitLogKey(it.Key())
		if err != nil {
			return err
		}
		var l sliceLog
		if l.first, err = head(); err != nil {
			return err
		}
		end := after(slicePrefix(tabSlice, id))
		if !it.SeekLT(end) {
			return errors.Join(errBadRow, it.Error())
		}
		if l.last, err = head(); err != nil {
			return err
		}
		l.durable = l.last.pos // Open has written what it read back to tables
		s.logs.by[id] = l
		ok = it.SeekGE(end)
	}
	return it.Error()
}
