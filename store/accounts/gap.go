package accounts

import (
	"fmt"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// gap writes one gap of a commit.
func (t *Batch) gap(id format.SiteID, k partition.Key, g store.Gap, now time.Time) error {
	if g.Key = k; g.At.IsZero() {
		g.At = now
	}
	if err := g.Check(); err != nil {
		return err
	}
	at := format.ItemID{SiteID: id, Table: format.TabGap, Key: k, Part: g.Part()}
	had, err := t.State(at)
	if err != nil {
		return err
	}
	if had != nil {
		old, err := format.ParseGap(had)
		if err != nil {
			return err
		}
		if !g.At.After(old.At) { // the clock was set back
			g.At = old.At.Add(store.Tick)
		}
	}
	state, err := store.PlainJSON(g)
	if err != nil {
		return err
	}
	return t.Item(at, state)
}

// Gaps calls fn for the gaps of k in sl (0: its hash slice) in order of From, until fn returns
// false.
func (s *Accounts) Gaps(sl partition.Slice, k partition.Key, fn func(store.Gap) (bool, error)) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	p := format.ItemKey(format.TabGap, s.engine.IDIn(sl, k), k)
	return s.gaps(p, format.After(p), fn)
}

// SliceGaps calls fn for the gaps of sl in order of site, Key and From, until fn returns false.
// from is the last Gap of the previous call, the zero Gap at first.
func (s *Accounts) SliceGaps(sl partition.Slice, from store.Gap, fn func(store.Gap) (bool, error)) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	p := format.SlicePrefix(format.TabGap, sl)
	lower := p
	if from.Key != "" {
		lower = lowerItem(format.ItemKey(format.TabGap, s.engine.IDIn(sl, from.Key), from.Key), from.Part())
	}
	return s.gaps(lower, format.After(p), fn)
}

func (s *Accounts) gaps(lower, upper []byte, fn func(store.Gap) (bool, error)) error {
	err := s.engine.Scan(lower, upper, func(key, value []byte) (bool, error) {
		v, err := s.engine.Packer.OpenItem(format.TabGap, value)
		if err != nil {
			return false, err
		}
		g, err := format.ParseGap(v)
		if err != nil {
			return false, fmt.Errorf("row %q: %w", key, err)
		}
		return fn(g)
	})
	if err != nil {
		return fmt.Errorf("store: gaps: %w", err)
	}
	return nil
}
