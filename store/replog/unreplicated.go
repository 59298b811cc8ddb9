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

// Unreplicated rows are named only by the part of a log that was cut here. A former owner wrote
// them, or an owner about to lose the slice, so perhaps no other replica has them. They stay,
// because one more copy of something that was never acknowledged does no harm. This changes when
// this peer becomes the owner: a peer that sends such a Key then gets the answer Known, which is
// allowed only when a majority has the Key. So a new owner logs its unreplicated rows again.

// unreplicatedKey returns the key of the note that a row is unreplicated.
func unreplicatedKey(sl partition.Slice, name byte, rest string) []byte {
	if name == format.NameNew {
		name = format.NameKey
	}
	return append(append(format.SlicePrefix(format.TabUnreplicated, sl), name), rest...)
}

// noteUnreplicated notes the rows that the log of sl names above head, before the log is cut there.
// It notes all rows of the log when head is not below its end, as after a snapshot.
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

// Relog appends the unreplicated rows to the logs of the slices for which in returns true, if these
// slices are logged. So the rows are replicated. Synced. It reads one row for each unreplicated
// row; nearly always there is none.
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
		return fmt.Errorf("store: unreplicated rows: %w", err)
	}
	return nil
}

// relog does this for one slice.
func (t *batch) relog(sl partition.Slice) error {
	if !t.Part(sl).Log.On {
		return nil // a new replica gets a snapshot
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
			return true, nil // deleted since, and it was never acknowledged
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
