package db

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// Changes returns up to limit durable entries of the change log above the number from, in order of
// Seq. A Key may occur several times. The caller reads its record with Record; the record may be
// newer than the entry, or deleted. ErrTrimmed means that entries above from were trimmed.
func (s *Store) Changes(from uint64, limit int) (out []store.Change, err error) {
	if err := s.engine.Enter(); err != nil {
		return nil, err
	}
	defer s.engine.Leave()
	horizon := s.engine.Seqs.Horizon()
	if trimmed, err := s.engine.Number(format.MetaTrimmed); err != nil {
		return nil, fmt.Errorf("store: changes: %w", err)
	} else if from < trimmed {
		return nil, fmt.Errorf("%w: changes up to %d, asked from %d", store.ErrTrimmed, trimmed, from)
	}
	if from >= horizon {
		return nil, nil
	}
	err = s.engine.Scan(format.SeqKey(format.TabLog, from+1), format.SeqKey(format.TabLog, horizon+1), func(key,
		value []byte) (bool, error) {
		if len(out) >= limit {
			return false, nil
		}
		k, post, _ := bytes.Cut(value, []byte{format.SepByte})
		out = append(out, store.Change{Seq: binary.BigEndian.Uint64(key[1:]), Key: partition.Key(k),
			Post: string(post)})
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("store: changes: %w", err)
	}
	return out, nil
}

// Changed returns a channel that is closed when the change log has grown since the call, or when
// the store is closed. Call Changed, then Changes, then wait on the channel: so no change is
// missed.
func (s *Store) Changed() <-chan struct{} { return s.engine.News.Wait() }

// LastChange returns the number of the newest entry of the change log, or 0 when there is none. A
// reader that has read up to it has seen everything.
func (s *Store) LastChange() uint64 { return s.engine.Newest.Load() }

// LastSeq returns a number that is not below the number of any durable change and below the numbers
// of all later ones. A reader with a higher position followed another store.
func (s *Store) LastSeq() uint64 { return s.engine.Seqs.Horizon() }

// TrimChanges deletes the change log up to and including upto. Call it when its one reader has made
// upto durable.
func (s *Store) TrimChanges(upto uint64) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	s.trimming.Lock()
	defer s.trimming.Unlock()
	upto = min(upto, s.engine.Seqs.Horizon())
	old, err := s.engine.Number(format.MetaTrimmed)
	if err != nil {
		return fmt.Errorf("store: trim: %w", err)
	}
	if upto <= old {
		return nil
	}
	return s.write(nil, func(t *batch) error {
		_ = t.Rows.Set(format.MetaKey(format.MetaTrimmed), binary.BigEndian.AppendUint64(nil, upto), nil)
		return t.Rows.DeleteRange(format.SeqKey(format.TabLog, old), format.SeqKey(format.TabLog, upto+1),
			pebble.NoSync)
	})
}
