package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Loose rows are those that only a part of a log that was cut here named: an
// owner wrote them that was none any more, or was about to be, and no other
// replica needs have them. They stay, as another copy of what was never
// acknowledged does no harm, until this peer comes to own the slice: then
// whoever asks for such a Key is told that it is known, which must not be said
// before a majority has it. So an owner logs its unreplicated rows anew.

func unreplicatedKey(sl partition.Slice, name byte, rest string) []byte {
	if name == nameNew {
		name = nameKey
	}
	return append(append(slicePrefix(tabUnreplicated, sl), name), rest...)
}

// noteUnreplicated notes what the log of sl names above head before it is cut there; all
// of it when the log goes on further up, after a snapshot.
func (t *txn) noteUnreplicated(sl partition.Slice, head uint64) error {
	l := t.part(sl).log
	if l.last.pos == 0 {
		return nil
	}
	from := l.first.pos
	if head < l.last.pos {
		from = max(from, head+1)
	}
	return t.s.scan(logKey(sl, from), logKey(sl, l.last.pos+1), func(key, value []byte) (bool, error) {
		e, err := decodeEntry(key, value)
		if err != nil {
			return false, err
		}
		for _, r := range e.rows {
			_ = t.b.Set(unreplicatedKey(sl, r.name, r.rest), nil, nil)
		}
		return true, nil
	})
}

// Relog appends the unreplicated rows of the slices that in is true of to their logs,
// as far as these are logged, so that they are replicated. Synced. Cost: one row a
// unreplicated row; nearly always there is none.
func (s *Store) Relog(in func(partition.Slice) bool) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	var sls []partition.Slice
	p := []byte{byte(tabUnreplicated)}
	err := s.scan(p, after(p), func(key, _ []byte) (bool, error) {
		if len(key) < 10 {
			return false, errBadRow
		}
		sl := partition.Slice(binary.BigEndian.Uint64(key[1:9]))
		if (len(sls) == 0 || sls[len(sls)-1] != sl) && in(sl) {
			sls = append(sls, sl)
		}
		return true, nil
	})
	for _, sl := range sls {
		if err == nil {
			err = s.write([]partition.Slice{sl}, func(t *txn) error { return t.relog(sl) })
		}
	}
	if err != nil {
		return fmt.Errorf("store: loose rows: %w", err)
	}
	return nil
}

func (t *txn) relog(sl partition.Slice) error {
	if !t.part(sl).log.on {
		return nil // whoever comes to keep it gets a snapshot
	}
	p := slicePrefix(tabUnreplicated, sl)
	return t.s.scan(p, after(p), func(key, _ []byte) (bool, error) {
		name, rest := key[len(p)], key[len(p)+1:]
		_ = t.b.Delete(key, nil)
		tab := table(name)
		if name == namePace {
			tab = tabSite
		}
		v, err := t.s.get(append(slicePrefix(tab, sl), rest...))
		if errors.Is(err, ErrNotExist) {
			return true, nil // gone since, and nobody was told of it
		}
		if err != nil {
			return false, err
		}
		var fetched time.Time
		if name == nameKey {
			st, err := decodeKeyState(v)
			if err != nil {
				return false, err
			}
			fetched = st.fetched
		}
		t.name(sl, name, rest, len(v), fetched)
		return true, nil
	})
}
