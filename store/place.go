package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/echo-node/echo-node/partition"
)

// Placement, in geo mode: a unit (a host, an instance, an account that stands
// alone) whose Keys begin in their hash slice is crawled in a geo slice once it
// is known where it belongs, and in another one when that changes.
//
// A Placement is a row of the slice that the unit leaves. It is made by Commit,
// when no fetch of the site is under way; from then on the slice fetches none of
// the unit's Keys: whoever finds one due there calls Move, which turns a number
// of them into StatePlaced and outbox rows to the other slice, in one batch. A
// crash leaves some of them pending, and the next to be found due goes on. So
// Keys that come later, or are merged in, are moved in the same way.
//
// What was fetched before stays, with its record, where it was fetched: a record
// is in one slice. Revisits of it are given up. A Key that an owner has fetched
// and lost before anybody else knew is due again, may be placed, and is fetched
// there: where it is StatePlaced it has no record, whoever had one.
//
// Gen grows by one with each move, so of two placements of a unit in one slice
// the later is known. One that names its own slice says that the unit has come
// back; Keys placed before are then admitted again when they are sent back.

// Placement says where the Keys of a unit of one slice are crawled.
type Placement struct {
	Unit partition.Unit
	To   partition.Slice // the slice itself: here
	Gen  uint64          // 1 for the first
	At   time.Time
	Why  string // evidence, to be shown; at most MaxWhy bytes
}

// MaxWhy is the length of the longest Placement.Why in bytes.
const (
	MaxWhy  = 4 << 10
	MaxGen  = 1 << 40        // of Placement.Gen: nobody moves so often
	maxWait = 24 * time.Hour // of a Pace
)

func unitKey(sl partition.Slice, u partition.Unit) []byte {
	return append(slicePrefix(tabUnit, sl), u...)
}

func whereKey(k partition.Key) []byte { return append([]byte{byte(tabWhere)}, k...) }

func (p Placement) encode() []byte {
	e := encoder{b: make([]byte, 0, 40+len(p.Why))}
	e.byte(rowVersion)
	e.uint(uint64(p.To))
	e.uint(p.Gen)
	e.time(p.At)
	e.text(p.Why)
	return e.b
}

func decodePlacement(u partition.Unit, b []byte) (Placement, error) {
	d := newDecoder(b)
	p := Placement{Unit: u, To: partition.Slice(d.uint(math.MaxUint64)), Gen: d.uint(MaxGen), At: d.time(),
		Why: d.text(MaxWhy)}
	return p, d.end("placement")
}

func (e *encoder) pace(p Pace) {
	e.time(p.Next)
	e.uint(uint64(max(p.Wait, 0)))
	e.uint(uint64(max(p.BackOff, 0)))
	e.uint(uint64(max(p.Fetched, 0)))
}

func (d *decoder) pace() Pace {
	return Pace{Next: d.time(), Wait: time.Duration(d.uint(uint64(maxWait))),
		BackOff: time.Duration(d.uint(uint64(maxWait))), Fetched: int64(d.uint(math.MaxInt64))}
}

// clamp bounds what another peer says: a wait of more than a day would be a way
// to switch a site off.
func (p Pace) clamp(now time.Time) Pace {
	p.Wait, p.BackOff = min(max(p.Wait, 0), maxWait), min(max(p.BackOff, 0), maxWait)
	p.Fetched = max(p.Fetched, 0)
	if most := now.Add(maxWait); p.Next.After(most) {
		p.Next = most
	}
	return p
}

// checkPlacement finds what is no placement of k's unit out of id's slice.
func (s *Store) checkPlacement(id siteID, k partition.Key, p Placement) error {
	switch {
	case p.Unit == "" || p.Unit != s.charter.Unit(k):
		return fmt.Errorf("placement of %.80q, the key is of %q", p.Unit, s.charter.Unit(k))
	case !s.charter.MayHold(p.To, k) || p.To.IsHash() && p.To != id.slice:
		return fmt.Errorf("placement in %s", p.To)
	case p.Gen == 0 || p.Gen > MaxGen || len(p.Why) > MaxWhy:
		return fmt.Errorf("placement of generation %d, for %d bytes of reasons", p.Gen, len(p.Why))
	}
	return nil
}

// incomingPlacement validates a row of another peer as if from an enemy.
func (s *Store) incomingPlacement(sl partition.Slice, u partition.Unit, value []byte) (*Placement, error) {
	p, err := decodePlacement(u, value)
	if err != nil {
		return nil, err
	}
	k, ok := s.charter.UnitKey(u)
	if !ok || !s.charter.MayHold(sl, k) {
		return nil, fmt.Errorf("unit %.80q is none of %s", u, sl)
	}
	return &p, s.checkPlacement(siteID{slice: sl, site: k.Site()}, k, p)
}

// above says that p is later than old; of two of one generation the greater row
// is, so that the order of imports does not matter.
func (p Placement) above(old Placement) bool {
	if p.Gen != old.Gen {
		return p.Gen > old.Gen
	}
	return string(p.encode()) > string(old.encode())
}

// place writes p unless a later placement is known.
func (t *txn) place(id siteID, p Placement) error {
	old, err := t.s.placement(id.slice, p.Unit)
	if ignoreAbsent(err) != nil {
		return err
	}
	if err == nil && !p.above(old) {
		return nil
	}
	row := unitKey(id.slice, p.Unit)
	t.name(id.slice, nameUnit, row[9:], 0, time.Time{})
	return t.b.Set(row, p.encode(), nil)
}

func (s *Store) placement(sl partition.Slice, u partition.Unit) (Placement, error) {
	if u == "" || s.charter.Mode != partition.ModeGeo {
		return Placement{}, ErrNotExist
	}
	v, err := s.get(unitKey(sl, u))
	if err != nil {
		return Placement{}, err
	}
	return decodePlacement(u, v)
}

// PlacementOf is the placement of k's unit in sl (0: its hash slice);
// ErrNotExist when it has none, or was never away.
func (s *Store) PlacementOf(sl partition.Slice, k partition.Key) (Placement, error) {
	if err := s.enter(); err != nil {
		return Placement{}, err
	}
	defer s.leave()
	p, err := s.placement(s.idIn(sl, k).slice, s.charter.Unit(k))
	if err != nil {
		return p, fmt.Errorf("store: placement of %s: %w", k, err)
	}
	return p, nil
}

// Placements calls fn for the placements of sl in order of Unit, until it
// answers false.
func (s *Store) Placements(sl partition.Slice, fn func(Placement) (bool, error)) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	p := slicePrefix(tabUnit, sl)
	err := s.scan(p, after(p), func(key, value []byte) (bool, error) {
		pl, err := decodePlacement(partition.Unit(key[len(p):]), value)
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

// Learn takes the word of the slice that a unit's Keys are sent to: it went on
// to p.To. What is due in sl from now on is sent there at once.
func (s *Store) Learn(sl partition.Slice, k partition.Key, p Placement) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	id := s.idIn(sl, k)
	if err := s.checkPlacement(id, k, p); err != nil {
		return fmt.Errorf("store: learn: %w", err)
	}
	return s.write([]partition.Slice{id.slice}, func(t *txn) error {
		if err := s.fenced(id.slice); err != nil {
			return err
		}
		return t.place(id, p)
	})
}

// MoveRows is how many Keys one Move moves at most.
const MoveRows = 1000

// Move sends up to MoveRows Keys of k's unit that are due in sl on to the slice
// that the unit is placed in, with pace: one batch, durable on return. It
// answers how many; 0 and no error when the unit is not placed elsewhere, or
// nothing of it is due. The caller sees to it that no fetch of the site is
// under way.
func (s *Store) Move(sl partition.Slice, k partition.Key, pace Pace, now time.Time) (moved int, err error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.leave()
	id := s.idIn(sl, k)
	unit := s.charter.Unit(k)
	err = s.write([]partition.Slice{id.slice}, func(t *txn) error {
		if err := s.fenced(id.slice); err != nil {
			return err
		}
		p, err := s.placement(id.slice, unit)
		if err != nil || p.To == id.slice {
			return ignoreAbsent(err)
		}
		moved, err = t.move(id, p, pace.clamp(now), now)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("store: move %s: %w", unit, err)
	}
	return moved, nil
}

// move takes the unit's Keys from the due index. The other units of the site,
// which stay, stand between them when a service's accounts stand alone.
func (t *txn) move(id siteID, p Placement, pace Pace, now time.Time) (moved int, err error) {
	prefix := sitePrefix(tabDue, id)
	err = t.s.scan(prefix, after(prefix), func(_, value []byte) (bool, error) {
		k := partition.Key(value)
		if t.s.charter.Unit(k) != p.Unit {
			return true, nil
		}
		old, err := t.keyState(id, k)
		if err != nil {
			return false, err
		}
		next := old.moved(now)
		next.at = time.Time{}
		if old.state == StatePending {
			next.state, next.attempts, next.reason = StatePlaced, 0, ""
		}
		if err := t.put(id, k, &old, next); err != nil {
			return false, err
		}
		if old.state == StatePending { // named after the Key, so replicated no later: see entries
			a := Admission{Key: k, Referrer: old.referrer, Depth: old.depth, Priority: int(old.priority),
				Seed: old.seed, In: p.To, Gen: p.Gen, Pace: pace}
			if err := t.queue(OutboxRow{Slice: id.slice, To: p.To, Admission: a}); err != nil {
				return false, err
			}
			if err := t.unrecord(id, k, false); err != nil { // of a visit that failed
				return false, err
			}
		}
		moved++
		return moved < MoveRows, nil
	})
	return moved, err
}

// unrecord forgets the record, the captures and the items of k, which is a file that was withdrawn, or is
// placed in another slice: it is fetched there, and a record is in one slice. written says that
// this batch has put the record. Replicas do the same when they learn the state.
func (t *txn) unrecord(id siteID, k partition.Key, written bool) error {
	if err := t.dropItems(id, k); err != nil {
		return err
	}
	names, err := t.captureNames(id, k)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := t.dropCapture(n); err != nil {
			return err
		}
	}
	row := keyRow(tabRecord, id, k)
	if _, err := t.s.get(row); errors.Is(err, ErrNotExist) && !written {
		return nil
	} else if ignoreAbsent(err) != nil {
		return err
	}
	n, err := t.count(id)
	if err != nil {
		return err
	}
	n.records--
	if err := t.sized(id, k, nil); err != nil {
		return err
	}
	if err := t.b.Delete(row, nil); err != nil {
		return err
	}
	if err := t.nowhere(id.slice, k); err != nil {
		return err
	}
	return t.log(k)
}

// moved is k at now, later than it was, so that every replica takes it.
func (k keyState) moved(now time.Time) keyState {
	at := now.UTC().Truncate(tick)
	if !at.After(k.fetched) {
		at = k.fetched.Add(tick)
	}
	k.fetched = at
	return k
}

// known answers for a Key that has a row in id's slice. One that was placed
// elsewhere is due again only when the placement that brought its unit back
// sends it: an older message that comes late would have it fetched twice.
func (t *txn) known(id siteID, a Admission, old *keyState, now time.Time, fresh map[partition.Key]bool) (Answer,
	error) {
	if old.state != StatePlaced || id.slice.IsHash() {
		return Known, nil
	}
	p, err := t.s.placement(id.slice, t.s.charter.Unit(a.Key))
	if ignoreAbsent(err) != nil {
		return 0, err
	}
	if a.Gen < p.Gen || a.Gen == p.Gen && p.To != id.slice {
		return Known, nil
	}
	if err := t.arrived(id, a, now); err != nil {
		return 0, err
	}
	next := old.moved(now)
	next.state, next.at = StatePending, now.UTC()
	fresh[a.Key] = true
	return Admitted, t.put(id, a.Key, old, next)
}

// arrived takes note of a Key that a placement has sent to a geo slice: its unit
// lives here now, if no later placement of it is known; and the first Key of a
// site brings its pace (I7): no request before the slice that it left allows it,
// nor sooner than the gap after this moment.
func (t *txn) arrived(id siteID, a Admission, now time.Time) error {
	if id.slice.IsHash() {
		return nil
	}
	unit := t.s.charter.Unit(a.Key)
	if a.Gen != 0 && a.Gen <= MaxGen && t.homed[unit] < a.Gen {
		if t.homed == nil {
			t.homed = map[partition.Unit]uint64{}
		}
		t.homed[unit] = a.Gen
		old, err := t.s.placement(id.slice, unit)
		if ignoreAbsent(err) != nil {
			return err
		}
		if old.Gen < a.Gen {
			if err := t.place(id, Placement{Unit: unit, To: id.slice, Gen: a.Gen, At: now.UTC()}); err != nil {
				return err
			}
		}
	}
	if t.paced[id] {
		return nil
	}
	if t.paced == nil {
		t.paced = map[siteID]bool{}
	}
	t.paced[id] = true
	_, err := t.s.siteRow(t.s.db, id)
	if !errors.Is(err, ErrNotExist) {
		return err
	}
	p := a.Pace.clamp(now)
	st, err := t.s.siteByName(id.site) // this peer may have asked it in another slice
	if ignoreAbsent(err) != nil {
		return err
	}
	st.NextAllowed = last(last(st.NextAllowed, p.Next), now.Add(max(p.Wait, p.BackOff))).UTC()
	st.BackOff, st.Fetched = max(st.BackOff, p.BackOff), max(st.Fetched, p.Fetched)
	return t.site(id, st)
}

func last(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// seenIn says that a geo slice has k already, so that a link to it need not go
// to its registrar again.
func (t *txn) seenIn(sl partition.Slice, k partition.Key) (bool, error) {
	if sl.IsHash() {
		return false, nil
	}
	_, c, err := t.s.db.Get(keyRow(tabKey, t.s.idIn(sl, k), k))
	if err == nil {
		return true, c.Close()
	}
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	return false, err
}

// where notes in which geo slice the record of k is; nowhere forgets it when
// that slice goes. The row is this store's own and not handed over.
func (t *txn) where(sl partition.Slice, k partition.Key) error {
	if sl.IsHash() {
		return nil
	}
	return t.b.Set(whereKey(k), binary.BigEndian.AppendUint64(nil, uint64(sl)), nil)
}

func (t *txn) nowhere(sl partition.Slice, k partition.Key) error {
	if sl.IsHash() {
		return nil
	}
	at, err := t.s.whereIs(k)
	if err != nil || at != sl {
		return ignoreAbsent(err)
	}
	return t.b.Delete(whereKey(k), nil)
}

func (s *Store) whereIs(k partition.Key) (partition.Slice, error) {
	if s.charter.Mode != partition.ModeGeo {
		return 0, ErrNotExist
	}
	v, err := s.get(whereKey(k))
	if err != nil {
		return 0, err
	}
	if len(v) != 8 {
		return 0, errBadRow
	}
	return partition.Slice(binary.BigEndian.Uint64(v)), nil
}
