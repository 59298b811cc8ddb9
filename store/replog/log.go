package replog

import (
	"fmt"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// SetLogged sets whether batches of the slices append to their logs. A peer sets it for the slices
// that it owns. It is kept in memory, and off after Open. What a batch writes while it is off is
// not replicated.
func (s *Log) SetLogged(on bool, sls ...partition.Slice) {
	// SetLogs holds the slices' locks, so no batch has only half of its rows named.
	s.engine.SetLogs(sls, func(l *engine.SliceLog) { l.On = on })
}

// Fence shuts slices or opens them again. In a slice that is shut, Admit, Commit and PutSite write
// nothing and return ErrFenced, and Sent keeps its links. ApplyLog, ImportRows, ResetLog and
// DropSlice still work. On return, no write that began earlier is in progress. The state is kept in
// memory; all slices are open after Open.
//
// A peer shuts the slices that it does not own. Otherwise a fetch that ends after the loss of a
// slice could write into a log that another peer owns.
func (s *Log) Fence(shut bool, sls ...partition.Slice) {
	s.engine.SetLogs(sls, func(l *engine.SliceLog) { l.Shut = shut })
}

// Fenced reports whether sl is shut.
func (s *Log) Fenced(sl partition.Slice) bool { return s.engine.Logs.Get(sl).Shut }

// LogDurable returns LogHead once a crash cannot lose it any more. It waits for the disk.
func (s *Log) LogDurable(sl partition.Slice) (uint64, error) {
	if err := s.engine.Enter(); err != nil {
		return 0, err
	}
	defer s.engine.Leave()
	l := s.engine.Logs.Get(sl)
	if l.Durable < l.Last.Pos {
		if err := s.engine.Barrier(); err != nil {
			return 0, fmt.Errorf("store: log of %s: %w", sl, err)
		}
		s.engine.Logs.Synced(sl, l.Last.Pos, l.Cuts)
	}
	return l.Last.Pos, nil
}

// LogHead returns the position of the newest visible batch in the log of sl, or 0 when there is
// none. It decreases only by ResetLog, by DropSlice, or by a crash that loses batches that were
// never acknowledged.
func (s *Log) LogHead(sl partition.Slice) uint64 {
	l := s.engine.Logs.Get(sl)
	return l.Last.Pos
}

// LogLen returns the length of the log of sl, at most MaxLogEntries and MaxLogBytes.
func (s *Log) LogLen(sl partition.Slice) (entries int, bytes int64) {
	l := s.engine.Logs.Get(sl)
	return l.Entries(), l.Bytes()
}

// TrimLog deletes the entries of the log of sl up to and including upTo. It keeps the newest entry,
// so that the head stays known. It is not synced: a crash may undo it.
func (s *Log) TrimLog(sl partition.Slice, upTo uint64) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	if err := s.engine.Ready(); err != nil {
		return err
	}
	defer s.engine.Lock([]partition.Slice{sl})()
	t := s.newBatch()
	defer t.Close()
	if l := t.Part(sl).Log; l.Last.Pos == 0 || upTo < l.First.Pos {
		return nil
	}
	err := t.TrimLog(sl, func(h format.EntryHead) bool { return h.Pos <= upTo })
	if err == nil {
		err = t.Unsynced()
	}
	if err != nil {
		return fmt.Errorf("store: trim log of %s: %w", sl, err)
	}
	return nil
}

// ResetLog records that this store has all of sl up to head, which is 0 or more. It is called after
// a snapshot was imported, or when an owner that had lost the slice wrote what is above head. The
// log becomes empty and continues after head. Rows stay. Those that only the deleted part of the
// log named become unreplicated (Relog). Synced.
func (s *Log) ResetLog(sl partition.Slice, head uint64) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	if head > MaxLogPosition {
		return fmt.Errorf("store: reset log of %s: position %d, at most %d", sl, head, uint64(MaxLogPosition))
	}
	err := s.write([]partition.Slice{sl}, func(t *batch) error {
		p := t.Part(sl)
		if err := t.noteUnreplicated(sl, head); err != nil {
			return err
		}
		if err := t.DeleteRange(format.LogKey(sl, p.Log.First.Pos), format.LogKey(sl, p.Log.Last.Pos+1)); err != nil {
			return err
		}
		ordinal, before := p.Log.Last.Ordinal, p.Log.Last.Before+p.Log.Last.Size
		p.Log.Forget()
		if head == 0 {
			return nil
		}
		e := format.LogEntry{EntryHead: format.EntryHead{Pos: head, Ordinal: ordinal + 1, Before: before}}
		err := t.Rows.Set(format.LogKey(sl, head), e.Encode(), nil)
		p.Log.First, p.Log.Last = e.EntryHead, e.EntryHead
		return err
	})
	if err != nil {
		return fmt.Errorf("store: reset log of %s: %w", sl, err)
	}
	return nil
}
