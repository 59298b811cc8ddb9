package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/echo-node/echo-node/partition"
)

// Changes are up to limit durable entries of the change log above the number
// from, in order of Seq. A Key may come several times; its record is read with
// Record and may be newer than the entry, or gone. ErrTrimmed: entries above
// from were trimmed.
func (s *Store) Changes(from uint64, limit int) (out []Change, err error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	horizon := s.seqs.horizon()
	if trimmed, err := s.number(metaTrimmed); err != nil {
		return nil, fmt.Errorf("store: changes: %w", err)
	} else if from < trimmed {
		return nil, fmt.Errorf("%w: changes up to %d, asked from %d", ErrTrimmed, trimmed, from)
	}
	if from >= horizon {
		return nil, nil
	}
	err = s.scan(seqKey(tabLog, from+1), seqKey(tabLog, horizon+1), func(key, value []byte) (bool, error) {
		if len(out) >= limit {
			return false, nil
		}
		k, post, _ := bytes.Cut(value, []byte{sepByte})
		out = append(out, Change{Seq: binary.BigEndian.Uint64(key[1:]), Key: partition.Key(k), Post: string(post)})
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("store: changes: %w", err)
	}
	return out, nil
}

// Changed is closed when the change log has grown since the call, or the store
// was closed. Call it, then Changes, then wait: nothing is missed.
func (s *Store) Changed() <-chan struct{} { return s.news.wait() }

// LastChange is the number of the newest entry of the change log, 0 when there
// is none: who has followed to it has seen everything.
func (s *Store) LastChange() uint64 { return s.changed.Load() }

// loadChanged finds LastChange on disk.
func (s *Store) loadChanged() error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{byte(tabLog)},
		UpperBound: after([]byte{byte(tabLog)})})
	if err != nil {
		return err
	}
	if it.Last() {
		s.changed.Store(binary.BigEndian.Uint64(it.Key()[1:]))
	}
	return it.Close()
}

// LastSeq is a number that every durable change is at or below, and that every
// later one is above. A reader that was at a higher one followed another store.
func (s *Store) LastSeq() uint64 { return s.seqs.horizon() }

// TrimChanges forgets the change log up to and with upto, when its one reader
// has made that durable.
func (s *Store) TrimChanges(upto uint64) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	s.trimming.Lock()
	defer s.trimming.Unlock()
	upto = min(upto, s.seqs.horizon())
	old, err := s.number(metaTrimmed)
	if err != nil {
		return fmt.Errorf("store: trim: %w", err)
	}
	if upto <= old {
		return nil
	}
	return s.write(nil, func(t *txn) error {
		_ = t.b.Set(metaKey(metaTrimmed), binary.BigEndian.AppendUint64(nil, upto), nil)
		return t.b.DeleteRange(seqKey(tabLog, old), seqKey(tabLog, upto+1), pebble.NoSync)
	})
}

// number is an 8-byte row of tabMeta, 0 when there is none.
func (s *Store) number(name string) (uint64, error) {
	v, err := s.get(metaKey(name))
	if errors.Is(err, ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if len(v) != 8 {
		return 0, fmt.Errorf("%s: %w", name, errBadRow)
	}
	return binary.BigEndian.Uint64(v), nil
}
