package replog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// Loose rows are those that only a part of a log that was cut here named: an
// owner wrote them that was none any more, or was about to be, and no other
// replica needs have them. They stay, as another copy of what was never
// acknowledged does no harm, until this peer comes to own the slice: then
// whoever asks for such a Key is told that it is known, which must not be said
// before a majority has it. So an owner logs its unreplicated rows anew.

func unreplicatedKey(sl partition.Slice, name byte, rest string) []byte {
	if name == format.NameNew {
		name = format.NameKey
	}
	return append(append(format.SlicePrefix(format.TabUnreplicated, sl), name), rest...)
}

// noteUnreplicated notes what the log of sl names above head before it is cut there; all
// of it when the log goes on further up, after a snapshot.
func (t *batch) noteUnreplicated(sl partition.Slice, head uint64) error {
	l := t.Part(sl).Log
	if l.Last.Pos == 0 {
		return nil
	}
	from := l.First.Pos
	if head < l.Last.Pos {
		from = max(from, head+1)
	}
	return t.s.engine.Scan(format.LogKey(sl, from), format.LogKey(sl, l.Last.Pos+1), func(key, value []byte) (bool,
		error) {
		e, err := format.DecodeEntry(key, value)
		if err != nil {
			return false, err
		}
		for _, r := range e.Rows {
			_ = t.Rows.Set(unreplicatedKey(sl, r.Name, r.Rest), nil, nil)
		}
		return true, nil
	})
}

// Relog appends the unreplicated rows of the slices that in is true of to their logs,
// as far as these are logged, so that they are replicated. Synced. Cost: one row a
// unreplicated row; nearly always there is none.
func (s *Log) Relog(in func(partition.Slice) bool) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	var sls []partition.Slice
	p := []byte{byte(format.TabUnreplicated)}
	err := s.engine.Scan(p, format.After(p), func(key, _ []byte) (bool, error) {
		if len(key) < 10 {
			return false, format.ErrBadRow
		}
		sl := partition.Slice(binary.BigEndian.Uint64(key[1:9]))
		if (len(sls) == 0 || sls[len(sls)-1] != sl) && in(sl) {
			sls = append(sls, sl)
		}
		return true, nil
	})
	for _, sl := range sls {
		if err == nil {
			err = s.write([]partition.Slice{sl}, func(t *batch) error { return t.relog(sl) })
		}
	}
	if err != nil {
		return fmt.Errorf("store: loose rows: %w", err)
	}
	return nil
}

func (t *batch) relog(sl partition.Slice) error {
	if !t.Part(sl).Log.On {
		return nil // whoever comes to keep it gets a snapshot
	}
	p := format.SlicePrefix(format.TabUnreplicated, sl)
	return t.s.engine.Scan(p, format.After(p), func(key, _ []byte) (bool, error) {
		name, rest := key[len(p)], key[len(p)+1:]
		_ = t.Rows.Delete(key, nil)
		tab := format.Table(name)
		if name == format.NamePace {
			tab = format.TabSite
		}
		v, err := t.s.engine.Get(append(format.SlicePrefix(tab, sl), rest...))
		if errors.Is(err, store.ErrNotExist) {
			return true, nil // gone since, and nobody was told of it
		}
		if err != nil {
			return false, err
		}
		var fetched time.Time
		if name == format.NameKey {
			st, err := format.DecodeKeyState(v)
			if err != nil {
				return false, err
			}
			fetched = st.Fetched
		}
		t.Name(sl, name, rest, len(v), fetched)
		return true, nil
	})
}
