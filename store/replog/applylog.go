package replog

import (
	"fmt"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// Caps of a position and of a log chunk, in addition to those of ImportRows. With them, no peer can
// use up the positions of a log.
const (
	MaxLogPosition = 1 << 62
	MaxSpan        = 1 << 32
)

// ApplyLog updates this store's copies of slices with log chunks that their owners' ReadLog made.
// It applies all chunks as one batch, synced. On return, LogHead of each slice is To, and the log
// here contains what the chunk contains. Several chunks of one slice must follow each other.
//
// Rows merge as in ImportRows, with two differences: a link that was sent is deleted, and a site's
// pace is taken from the owner as it is.
//
// Rows more than MaxAhead after now are left out, and the log here does not name them.
//
// ErrGap means that a chunk's From is not the head here. ErrRow means that a row is not valid, as
// in ImportRows; the caps of ImportRows are for all chunks together. After either error, nothing is
// written. The caller must check that the sender owns the slices.
func (s *Log) ApplyLog(now time.Time, ps ...store.LogChunk) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	v := s.NewValidator(now, true)
	ps = slices.Clone(ps) // the caller's slice is not changed
	sls := make([]partition.Slice, len(ps))
	in := make([][]incoming, len(ps))
	for i, p := range ps {
		var err error
		if sls[i] = p.Slice; p.From > p.To || p.To > MaxLogPosition || p.To-p.From > MaxSpan || p.From == p.To &&
			len(p.Rows) > 0 {
			err = fmt.Errorf("%w: %d rows from %d to %d", store.ErrRow, len(p.Rows), p.From, p.To)
		} else {
			in[i], ps[i].Rows, err = v.Rows(p.Slice, p.Rows)
			v.tellAhead(p.Slice)
		}
		if err != nil {
			return fmt.Errorf("store: log of %s: %w", p.Slice, err)
		}
	}
	return s.write(sls, func(t *batch) error {
		t.Replica = true
		m := newMerger(t, true)
		for i, p := range ps {
			if err := t.follow(m, p, in[i]); err != nil {
				return fmt.Errorf("store: log of %s: %w", p.Slice, err)
			}
		}
		return m.end()
	})
}

// follow merges one log chunk and appends the names of its rows to the log.
func (t *batch) follow(m *merger, p store.LogChunk, in []incoming) error {
	head := t.Part(p.Slice).Log.Last.Pos
	if p.From != head {
		return fmt.Errorf("%w: it is after %d, the head is %d", store.ErrGap, p.From, head)
	}
	if p.To == p.From {
		return nil
	}
	if err := m.merge(in); err != nil {
		return err
	}
	names := make([]format.LogRow, len(in))
	for i, r := range p.Rows {
		names[i] = format.LogRow{Name: r.Key[0], Rest: string(r.Key[1:])}
		if in[i].state != nil {
			// The state here may be later than the one in the chunk.
			names[i].Fetched = m.states[sliceKey{p.Slice, in[i].key}].Fetched
		}
	}
	if err := t.AppendEntry(p.Slice, p.To-p.From, names); err != nil {
		return err
	}
	return t.ShortenLog(p.Slice)
}
