package queue

import (
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// CheckPlacement returns an error when p is not a valid placement of k's unit from the slice of id.
func (s *Queue) CheckPlacement(id format.SiteID, k partition.Key, p store.Placement) error {
	switch {
	case p.Unit == "" || p.Unit != s.engine.Charter().Unit(k):
		return fmt.Errorf("placement of %.80q, the key is of %q", p.Unit, s.engine.Charter().Unit(k))
	case !s.engine.Charter().MayHold(p.To, k) || p.To.IsHash() && p.To != id.Slice:
		return fmt.Errorf("placement in %s", p.To)
	case p.Gen == 0 || p.Gen > store.MaxGen || len(p.Why) > store.MaxWhy:
		return fmt.Errorf("placement of generation %d, for %d bytes of reasons", p.Gen, len(p.Why))
	}
	return nil
}

// Place writes p unless a later placement is known.
func (t *Batch) Place(id format.SiteID, p store.Placement) error {
	old, err := t.s.placement(id.Slice, p.Unit)
	if engine.IgnoreAbsent(err) != nil {
		return err
	}
	if err == nil && !format.PlacementAbove(p, old) {
		return nil
	}
	row := format.UnitKey(id.Slice, p.Unit)
	t.Name(id.Slice, format.NameUnit, row[9:], 0, time.Time{})
	return t.Rows.Set(row, format.EncodePlacement(p), nil)
}

// placement returns the placement of u in sl, or ErrNotExist.
func (s *Queue) placement(sl partition.Slice, u partition.Unit) (store.Placement, error) {
	if u == "" || s.engine.Charter().Mode != partition.ModeGeo {
		return store.Placement{}, store.ErrNotExist
	}
	v, err := s.engine.Get(format.UnitKey(sl, u))
	if err != nil {
		return store.Placement{}, err
	}
	return format.DecodePlacement(u, v)
}

// PlacementOf returns the placement of k's unit in sl (0: its hash slice). It returns ErrNotExist
// when the unit has none, because it was never placed elsewhere.
func (s *Queue) PlacementOf(sl partition.Slice, k partition.Key) (store.Placement, error) {
	if err := s.engine.Enter(); err != nil {
		return store.Placement{}, err
	}
	defer s.engine.Leave()
	p, err := s.placement(s.engine.IDIn(sl, k).Slice, s.engine.Charter().Unit(k))
	if err != nil {
		return p, fmt.Errorf("store: placement of %s: %w", k, err)
	}
	return p, nil
}

// Placements calls fn for the placements of sl in order of Unit, until fn returns false.
func (s *Queue) Placements(sl partition.Slice, fn func(store.Placement) (bool, error)) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	p := format.SlicePrefix(format.TabUnit, sl)
	err := s.engine.Scan(p, format.After(p), func(key, value []byte) (bool, error) {
		pl, err := format.DecodePlacement(partition.Unit(key[len(p):]), value)
		if err != nil {
			return false, err
		}
		return fn(pl)
	})
	if err != nil {
		return fmt.Errorf("store: placements of %s: %w", sl, err)
	}
	return nil
}

// Learn records that a unit moved on to p.To, as reported by the slice to which its Keys are sent.
// Keys of the unit that become due in sl from now on are sent to p.To directly.
func (s *Queue) Learn(sl partition.Slice, k partition.Key, p store.Placement) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	id := s.engine.IDIn(sl, k)
	if err := s.CheckPlacement(id, k, p); err != nil {
		return fmt.Errorf("store: learn: %w", err)
	}
	return s.write([]partition.Slice{id.Slice}, func(t *Batch) error {
		if err := s.engine.Fenced(id.Slice); err != nil {
			return err
		}
		return t.Place(id, p)
	})
}

// MoveRows is the number of Keys that one Move moves at most.
const MoveRows = 1000

// Move takes up to MoveRows Keys of k's unit from the frontier of sl, whether or not they are due
// yet. It sends them, together with pace, to the slice in which the unit is placed. It is one
// batch, durable on return. It returns the number of Keys moved. The number is 0, without an error,
// when the unit is not placed elsewhere or when none of its Keys are in the frontier. The caller
// makes sure that no fetch of the site is in progress.
func (s *Queue) Move(sl partition.Slice, k partition.Key, pace store.Pace, now time.Time) (moved int, err error) {
	if err := s.engine.Enter(); err != nil {
		return 0, err
	}
	defer s.engine.Leave()
	id := s.engine.IDIn(sl, k)
	unit := s.engine.Charter().Unit(k)
	err = s.write([]partition.Slice{id.Slice}, func(t *Batch) error {
		if err := s.engine.Fenced(id.Slice); err != nil {
			return err
		}
		p, err := s.placement(id.Slice, unit)
		if err != nil || p.To == id.Slice {
			return engine.IgnoreAbsent(err)
		}
		moved, err = t.move(id, p, pace.Clamp(now), now)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("store: move %s: %w", unit, err)
	}
	return moved, nil
}

// move takes the unit's Keys from the due index. Keys of other units of the site stay; they may be
// between them, because each account of a service can be its own unit.
func (t *Batch) move(id format.SiteID, p store.Placement, pace store.Pace, now time.Time) (moved int, err error) {
	prefix := format.SitePrefix(format.TabDue, id)
	err = t.s.engine.Scan(prefix, format.After(prefix), func(_, value []byte) (bool, error) {
		k := partition.Key(value)
		if t.s.engine.Charter().Unit(k) != p.Unit {
			return true, nil
		}
		old, err := t.KeyState(id, k)
		if err != nil {
			return false, err
		}
		next := old.Moved(now)
		next.At = time.Time{}
		if old.State == store.StatePending {
			next.State, next.Attempts, next.Reason = store.StatePlaced, 0, ""
		}
		if err := t.Put(id, k, &old, next); err != nil {
			return false, err
		}
		if old.State == store.StatePending { // named after the Key, so replicated no later
			a := store.Admission{Key: k, Referrer: old.Referrer, Depth: old.Depth, Priority: int(old.Priority),
				Seed: old.Seed, In: p.To, Gen: p.Gen, Pace: pace}
			if err := t.Queue(store.OutboxRow{Slice: id.Slice, To: p.To, Admission: a}); err != nil {
				return false, err
			}
			if err := t.Unrecord(id, k, false); err != nil { // a failed visit left it
				return false, err
			}
		}
		moved++
		return moved < MoveRows, nil
	})
	return moved, err
}

// Unrecord deletes the record, the captures and the items of k. k is a file that was withdrawn, or
// a Key that is placed in another slice: it is fetched there, and a record is in only one slice.
// written says that this batch has put the record. Replicas do the same when they receive the state
// of k.
func (t *Batch) Unrecord(id format.SiteID, k partition.Key, written bool) error {
	if err := t.DropItems(id, k); err != nil {
		return err
	}
	names, err := t.CaptureNames(id, k)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := t.DropCapture(n); err != nil {
			return err
		}
	}
	row := format.KeyRow(format.TabRecord, id, k)
	if _, err := t.s.engine.Get(row); errors.Is(err, store.ErrNotExist) && !written {
		return nil
	} else if engine.IgnoreAbsent(err) != nil {
		return err
	}
	n, err := t.Count(id)
	if err != nil {
		return err
	}
	n.Records--
	if err := t.Sized(id, k, nil); err != nil {
		return err
	}
	if err := t.Rows.Delete(row, nil); err != nil {
		return err
	}
	if err := t.Nowhere(id.Slice, k); err != nil {
		return err
	}
	return t.Change(k)
}

// known returns the answer for a Key that has a row in id's slice. A Key that was placed elsewhere
// becomes due again only when the placement that brought its unit back sends it. An older message
// that arrives late would otherwise cause a second fetch.
func (t *Batch) known(id format.SiteID, a store.Admission, old *format.KeyState, now time.Time,
	fresh map[partition.Key]bool) (store.Answer,
	error) {
	if old.State != store.StatePlaced || id.Slice.IsHash() {
		return store.Known, nil
	}
	p, err := t.s.placement(id.Slice, t.s.engine.Charter().Unit(a.Key))
	if engine.IgnoreAbsent(err) != nil {
		return 0, err
	}
	if a.Gen < p.Gen || a.Gen == p.Gen && p.To != id.Slice {
		return store.Known, nil
	}
	if err := t.arrived(id, a, now); err != nil {
		return 0, err
	}
	next := old.Moved(now)
	next.State, next.At = store.StatePending, now.UTC()
	fresh[a.Key] = true
	return store.Admitted, t.Put(id, a.Key, old, next)
}

// arrived handles a Key that a placement has sent to a geo slice. Its unit is in this slice now,
// unless a later placement of it is known. The first Key of a site brings the site's pace (I7). The
// next request must wait until the time that the old slice gave, and until the gap has passed from
// now.
func (t *Batch) arrived(id format.SiteID, a store.Admission, now time.Time) error {
	if id.Slice.IsHash() {
		return nil
	}
	unit := t.s.engine.Charter().Unit(a.Key)
	if a.Gen != 0 && a.Gen <= store.MaxGen && t.homed[unit] < a.Gen {
		if t.homed == nil {
			t.homed = map[partition.Unit]uint64{}
		}
		t.homed[unit] = a.Gen
		old, err := t.s.placement(id.Slice, unit)
		if engine.IgnoreAbsent(err) != nil {
			return err
		}
		if old.Gen < a.Gen {
			if err := t.Place(id, store.Placement{Unit: unit, To: id.Slice, Gen: a.Gen, At: now.UTC()}); err != nil {
				return err
			}
		}
	}
	if t.paced[id] {
		return nil
	}
	if t.paced == nil {
		t.paced = map[format.SiteID]bool{}
	}
	t.paced[id] = true
	_, err := t.s.SiteRow(t.s.engine.DB, id)
	if !errors.Is(err, store.ErrNotExist) {
		return err
	}
	p := a.Pace.Clamp(now)
	st, err := t.s.siteByName(id.Site) // this peer may have fetched from it in another slice
	if engine.IgnoreAbsent(err) != nil {
		return err
	}
	st.NextAllowed = store.Latest(store.Latest(st.NextAllowed, p.Next), now.Add(max(p.Wait, p.BackOff))).UTC()
	st.BackOff, st.Fetched = max(st.BackOff, p.BackOff), max(st.Fetched, p.Fetched)
	return t.Site(id, st)
}

// SeenIn reports whether the geo slice sl has k already, so that a link to it need not go to its
// registrar again.
func (t *Batch) SeenIn(sl partition.Slice, k partition.Key) (bool, error) {
	if sl.IsHash() {
		return false, nil
	}
	_, c, err := t.s.engine.DB.Get(format.KeyRow(format.TabKey, t.s.engine.IDIn(sl, k), k))
	if err == nil {
		return true, c.Close()
	}
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	return false, err
}
