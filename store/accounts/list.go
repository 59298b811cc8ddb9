package accounts

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// doubted returns the end of the newest walk of list that found a list of another account, or zero.
func (s *Accounts) doubted(id format.SiteID, list partition.Key) (at time.Time, err error) {
	err = s.eachWalk(id, list, func(w store.Walk) (bool, error) {
		if w.Ended && !w.Complete && (w.Why == store.WhyNotTheirs || w.Why == store.WhyDoubted) {
			at = store.Latest(at, w.At)
		}
		return true, nil
	})
	return at, err
}

// list writes one page of a commit.
func (t *Batch) list(id format.SiteID, p store.ListPage, now time.Time) error {
	if p.At.IsZero() {
		p.At = now
	}
	began := p.Walk.UTC().Truncate(store.Tick)
	at := store.Latest(p.At.UTC().Truncate(store.Tick), began)
	wid := format.ItemID{SiteID: id, Table: format.TabWalk, Key: p.List, Part: string(store.TimePart(began))}
	had, err := t.State(wid)
	if err != nil {
		return err
	}
	w := store.Walk{List: p.List, Began: began, At: at}
	if had != nil {
		if w, err = format.ParseWalk(wid, had); err != nil {
			return err
		}
		if w.At = store.Latest(w.At, at); w.At.After(at) {
			at = w.At
		}
	}
	ws, err := t.walks(id, p.List)
	if err != nil {
		return err
	}
	for _, to := range p.Accounts {
		if _, err := partition.KeyFromWire(string(to)); err != nil {
			continue
		}
		w.Seen++
		eid := format.ItemID{SiteID: id, Table: format.TabEdge, Key: p.List, Part: string(to)}
		var x format.Edge
		b, err := t.State(eid)
		if err == nil && b != nil {
			x, err = format.ParseEdge(b)
		}
		if err == nil {
			err = t.Item(eid, x.Met(at, ws).Encode())
		}
		if err != nil {
			return err
		}
	}
	w.Claimed = max(p.Claimed, -1)
	if p.End {
		w.Ended, w.Complete, w.Why = true, p.Complete, ""
		if !p.Complete {
			w.Why = store.Clip(p.Why, store.MaxHeader)
		}
	}
	if had != nil { // a page is later than those before, even in the same moment
		if old, err := format.ParseWalk(wid, had); err != nil || !w.At.After(old.At) &&
			!bytes.Equal(format.EncodeWalk(w), had) {
			w.At = old.At.Add(store.Tick)
		}
	}
	return t.Item(wid, format.EncodeWalk(w))
}

// walks returns the complete walks of list before this batch, and those in it.
func (t *Batch) walks(id format.SiteID, list partition.Key) (format.Walks, error) {
	out, err := t.s.walks(id, list)
	if err != nil {
		return nil, err
	}
	prefix := format.ItemKey(format.TabWalk, id, list)
	for row, b := range t.items {
		part, ok := bytes.CutPrefix([]byte(row), prefix)
		if !ok {
			continue
		}
		w, err := format.ParseWalk(format.ItemID{SiteID: id, Table: format.TabWalk, Key: list, Part: string(part)}, b)
		if err != nil {
			return nil, err
		}
		out = slices.DeleteFunc(out, func(o store.Walk) bool { return o.Began.Equal(w.Began) })
		if w.Complete {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b store.Walk) int { return a.Began.Compare(b.Began) })
	return out, nil
}

func (s *Accounts) walks(id format.SiteID, list partition.Key) (format.Walks, error) {
	var out format.Walks
	err := s.eachWalk(id, list, func(w store.Walk) (bool, error) {
		if w.Complete {
			out = append(out, w)
		}
		return true, nil
	})
	return out, err
}

func (s *Accounts) eachWalk(id format.SiteID, list partition.Key, fn func(store.Walk) (bool, error)) error {
	prefix := format.ItemKey(format.TabWalk, id, list)
	return s.engine.Scan(prefix, format.After(prefix), func(key, value []byte) (bool, error) {
		w, err := format.ParseWalk(format.ItemID{SiteID: id, Table: format.TabWalk, Key: list,
			Part: string(key[len(prefix):])}, value)
		if err != nil {
			return false, fmt.Errorf("row %q: %w", key, err)
		}
		return fn(w)
	})
}

// Walks calls fn for the stored walks of list in sl (0: its hash slice), in order of Began, until
// fn returns false.
func (s *Accounts) Walks(sl partition.Slice, list partition.Key, fn func(store.Walk) (bool, error)) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	if err := s.eachWalk(s.engine.IDIn(sl, list), list, fn); err != nil {
		return fmt.Errorf("store: walks of %s: %w", list, err)
	}
	return nil
}

// Edges calls fn for all accounts that were ever seen in list in sl (0: its hash slice), in order
// of To after from, until fn returns false. The list as it was at a time consists of the edges
// whose Edge.At is true.
func (s *Accounts) Edges(sl partition.Slice, list, from partition.Key, fn func(store.Edge) (bool, error)) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	id := s.engine.IDIn(sl, list)
	ws, err := s.walks(id, list)
	var doubted time.Time
	if err == nil {
		doubted, err = s.doubted(id, list)
	}
	prefix := format.ItemKey(format.TabEdge, id, list)
	if err == nil {
		err = s.engine.Scan(lowerItem(prefix, string(from)), format.After(prefix), func(key, value []byte) (bool,
			error) {
			x, err := format.ParseEdge(value)
			if err != nil {
				return false, fmt.Errorf("row %q: %w", key, err)
			}
			return fn(x.Show(partition.Key(key[len(prefix):]), ws, doubted))
		})
	}
	if err != nil {
		return fmt.Errorf("store: edges of %s: %w", list, err)
	}
	return nil
}

// SliceLists calls fn for the lists of sl that have a walk, in order of site and Key after from,
// until fn returns false.
func (s *Accounts) SliceLists(sl partition.Slice, from partition.Key, fn func(partition.Key) (bool, error)) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	p := format.SlicePrefix(format.TabWalk, sl)
	lower := p
	if from != "" {
		lower = format.After(format.ItemKey(format.TabWalk, s.engine.IDIn(sl, from), from))
	}
	for more := true; more; {
		more = false
		var list partition.Key
		err := s.engine.Scan(lower, format.After(p), func(key, _ []byte) (bool, error) {
			id, err := format.SplitItem(format.TabWalk, key)
			list, lower = id.Key, format.After(format.ItemKey(format.TabWalk, id.SiteID, id.Key))
			return false, err
		})
		if err == nil && list != "" {
			more, err = fn(list)
		}
		if err != nil {
			return fmt.Errorf("store: lists of %s: %w", sl, err)
		}
	}
	return nil
}
