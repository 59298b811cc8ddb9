package replog

import (
	"fmt"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// SetLogged says whether batches of the slices append to their logs: so for
// those this peer owns. It is kept in memory, and off after Open. What a batch
// writes meanwhile unlogged is replicated to nobody.
func (s *Log) SetLogged(on bool, sls ...partition.Slice) {
	s.engine.SetLogs(sls, func(l *engine.SliceLog) { l.On = on }) // no batch has one half of its rows named
}

// Fence shuts slices, or opens them again: into one that is shut Admit, Commit
// and PutSite write nothing and answer ErrFenced, and Sent leaves its links.
// ApplyLog, ImportRows, ResetLog and DropSlice are not concerned. On return no
// write that began before is under way. It is kept in memory; all are open after
// Open.
//
// A peer shuts what it does not own, so that a fetch that outlives the loss of a
// slice cannot write into a log that is another's now.
func (s *Log) Fence(shut bool, sls ...partition.Slice) {
	s.engine.SetLogs(sls, func(l *engine.SliceLog) { l.Shut = shut })
}

// Fenced says whether sl is shut.
func (s *Log) Fenced(sl partition.Slice) bool { return s.engine.Logs.Get(sl).Shut }

// LogDurable is LogHead once that cannot be forgotten any more: it waits for the
// disk.
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

// LogHead is the position of the newest visible batch in the log of sl, 0 when
// there is none. It never falls but by ResetLog, DropSlice, or a crash that
// loses batches nobody was told of.
func (s *Log) LogHead(sl partition.Slice) uint64 {
	l := s.engine.Logs.Get(sl)
	return l.Last.Pos
}

// LogLen is how long the log of sl is, at most MaxLogEntries and MaxLogBytes.
func (s *Log) LogLen(sl partition.Slice) (entries int, bytes int64) {
	l := s.engine.Logs.Get(sl)
	return l.Entries(), l.Bytes()
}

// TrimLog forgets the log of sl up to and with upTo; its newest entry stays, so
// that the head is known. It is not synced: a crash may undo it.
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

// ResetLog says that this store has all of sl up to head, which is 0 or more: a
// snapshot was imported, or what is above head was written by an owner that was
// none any more. The log is empty and goes on after head. Rows stay, and are loose (Relog).
// Synced.
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
