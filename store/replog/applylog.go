package replog

import (
	"fmt"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// Caps of a position and of a log chunk, beside those of ImportRows: no peer can
// make a log's positions run out.
const (
	MaxLogPosition = 1 << 62
	MaxSpan        = 1 << 32
)

// ApplyLog brings this store's copies of slices forward by what their owners'
// ReadLog made, all log chunks as one batch, synced; on return LogHead of each is
// To, and the log here has what the log chunk has. Several of one slice must
// follow each other.
//
// Rows merge as in ImportRows; but a link that was sent goes, and a site's pace
// is as the owner has it.
//
// Rows of more than MaxAhead after now are left out, and the log here does not name them.
//
// ErrGap: a log chunk's From is not the head here; ErrRow: not understood, as in
// ImportRows, whose caps are those of all log chunks together. Nothing is written
// then. The caller knows that the sender is the slices' owner.
func (s *Log) ApplyLog(now time.Time, ps ...store.LogChunk) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	v := s.NewValidator(now, true)
	ps = slices.Clone(ps) // the caller's stay whole
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

// follow merges one log chunk and appends what it names to the log.
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
			names[i].Fetched = m.states[sliceKey{p.Slice, in[i].key}].Fetched // ours may be later
		}
	}
	if err := t.AppendEntry(p.Slice, p.To-p.From, names); err != nil {
		return err
	}
	return t.ShortenLog(p.Slice)
}
