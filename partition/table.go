package partition

import (
	"slices"
	"strings"
)

// Table holds the replicas of every slice under a View, by capacity-weighted rendezvous
// hashing. Updates are incremental: a join compares one new score per slice, and a leave ranks
// only the slices of the leaving member again. The result depends only on the last View, not on
// the path to it. A Table is not safe for concurrent use.
type Table struct {
	slices   []Slice  // ascending
	mixed    []uint64 // mix(slice), see draw
	centres  []vector // of geo slices; nil when there are none
	replicas int
	depth    int // of the zones to which replicas are restricted, see SetDepth

	rivals []rival          // by slot; a free slot has no weight
	slots  map[string]int32 // member id -> slot
	free   []int32
	chosen []replica // the replicas of each slice, ranked
	kept   []uint8   // the number of replicas of each slice
	view   View
}

// rival is a Member with the fields that scores need.
type rival struct {
	id     string
	seed   uint64
	weight uint64 // 0: free slot
	place  vector // zero when unknown
	spot   uint64 // PlaceOf of the id
}

// replica is one position in the ranking of one slice.
type replica struct {
	log  uint64 // negLog2 of the draw
	slot int32
}

// NewTable returns a Table of c's hash slices without members.
func NewTable(c Charter) *Table { return NewTableOf(c.Slices(), c.Replicas) }

// NewTableOf returns a Table without members of any valid slices, each with up to replicas
// replicas (at least one). In geo slices a member's weight is divided by (1 + (d / 500 km)²)².
// d is the distance through the earth from the member's location to the centre of the cell. A
// member without a location counts as a quarter of the way round the earth from every cell.
func NewTableOf(all []Slice, replicas int) *Table {
	t := &Table{slices: slices.Clone(all), replicas: max(replicas, 1), slots: map[string]int32{}}
	slices.Sort(t.slices)
	t.slices = slices.Compact(t.slices)
	t.mixed = make([]uint64, len(t.slices))
	for i, s := range t.slices {
		t.mixed[i] = mix(uint64(s))
		if !s.IsHash() {
			if t.centres == nil {
				t.centres = make([]vector, len(t.slices))
			}
			t.centres[i] = cellCentre(s)
		}
	}
	t.chosen = make([]replica, len(t.slices)*t.replicas)
	t.kept = make([]uint8, len(t.slices))
	return t
}

// View returns the View of the last Update.
func (t *Table) View() View { return t.view }

// Slices returns the slices of the Table, in order. Do not modify.
func (t *Table) Slices() []Slice { return t.slices }

// Update changes the Table to v and returns the slices whose replicas changed, in order. A
// member whose weight changed counts as a leave and a join. Other fields of a Member change
// nothing.
func (t *Table) Update(v View) []Slice {
	gone, came := t.replace(v)
	if len(gone)+len(came) == 0 {
		return nil
	}
	var changed []Slice
	before := make([]replica, t.replicas)
	for i, s := range t.slices {
		n := copy(before, t.ranking(i))
		if slices.ContainsFunc(before[:n], func(k replica) bool { return gone[k.slot] }) {
			t.rerank(i)
		} else {
			for _, slot := range came {
				t.compete(i, slot)
			}
		}
		if !sameReplicas(t.ranking(i), before[:n]) {
			changed = append(changed, s)
		}
	}
	for slot := range gone {
		if t.rivals[slot].weight == 0 {
			t.rivals[slot] = rival{}
			t.free = append(t.free, slot)
		}
	}
	slices.Sort(t.free) // map order must not be visible, even where it would not matter
	return changed
}

// replace makes the rivals those of v. It returns the slots whose scores are void and those
// with new scores. A changed member is in both.
func (t *Table) replace(v View) (gone map[int32]bool, came []int32) {
	gone = map[int32]bool{}
	old, now := t.view.members, v.members // both in order of ID
	for len(old) > 0 || len(now) > 0 {
		order := -1
		switch {
		case len(old) == 0:
			order = 1
		case len(now) > 0:
			order = strings.Compare(old[0].ID, now[0].ID)
		}
		if order < 0 { // left
			slot := t.slots[old[0].ID]
			gone[slot] = true
			t.rivals[slot].weight = 0
			delete(t.slots, old[0].ID)
			old = old[1:]
			continue
		}
		if order == 0 && t.equalWeight(&old[0], &now[0]) {
			old, now = old[1:], now[1:]
			continue
		}
		slot := t.slots[now[0].ID]
		if order == 0 {
			gone[slot] = true
			old = old[1:]
		} else {
			slot = t.allocate()
			t.slots[now[0].ID] = slot
		}
		t.rivals[slot] = t.rivalOf(now[0])
		came = append(came, slot)
		now = now[1:]
	}
	t.view = v
	return gone, came
}

// equalWeight reports whether a and b, with the same ID, have the same scores everywhere.
func (t *Table) equalWeight(a, b *Member) bool {
	if baseWeight(*a) != baseWeight(*b) {
		return false
	}
	return t.centres == nil || placeOf(a) == placeOf(b)
}

// rivalOf returns the fields of m that scores need.
func (t *Table) rivalOf(m Member) rival {
	r := rival{id: m.ID, seed: memberSeed(m.ID), weight: baseWeight(m), spot: PlaceOf(m.ID)}
	if t.centres != nil {
		r.place = placeOf(&m)
	}
	return r
}

// allocate returns a slot that no member had before this update. Update frees slots only at its
// end, so within an update a slot belongs to one member.
func (t *Table) allocate() int32 {
	if n := len(t.free); n > 0 {
		slot := t.free[n-1]
		t.free = t.free[:n-1]
		return slot
	}
	t.rivals = append(t.rivals, rival{})
	return int32(len(t.rivals) - 1)
}

// ranking returns the present replicas of slice i.
func (t *Table) ranking(i int) []replica {
	return t.chosen[i*t.replicas:][:t.kept[i]]
}

// sameReplicas compares members and ranks, not scores.
func sameReplicas(a, b []replica) bool {
	return slices.EqualFunc(a, b, func(a, b replica) bool { return a.slot == b.slot })
}

// rerank computes the replicas of slice i from all members.
func (t *Table) rerank(i int) {
	t.kept[i] = 0
	for slot := range t.rivals {
		if t.rivals[slot].weight > 0 {
			t.compete(i, int32(slot))
		}
	}
}

// compete puts the member of slot into the ranking of slice i if it belongs there.
func (t *Table) compete(i int, slot int32) {
	r := &t.rivals[slot]
	if t.outside(r, i) {
		return
	}
	h := draw(r.seed, t.mixed[i])
	ranking := t.chosen[i*t.replicas:][:t.replicas]
	n := int(t.kept[i])
	w := t.weight(r, i)
	if n == t.replicas {
		worst := ranking[n-1]
		if !lessScore(floorLog(h), w, worst.log, t.weight(&t.rivals[worst.slot], i)) {
			return
		}
	}
	k := replica{log: negLog2(h), slot: slot}
	at := n
	for at > 0 && t.before(i, k, w, ranking[at-1]) {
		at--
	}
	if at == t.replicas {
		return
	}
	if n < t.replicas {
		n++
		t.kept[i]++
	}
	copy(ranking[at+1:n], ranking[at:n-1])
	ranking[at] = k
}

// before reports whether k, with weight w, ranks before other in slice i: by score, then by ID.
func (t *Table) before(i int, k replica, w uint64, other replica) bool {
	rival := &t.rivals[other.slot]
	v := t.weight(rival, i)
	if lessScore(k.log, w, other.log, v) {
		return true
	}
	return !lessScore(other.log, v, k.log, w) && strings.Compare(t.rivals[k.slot].id, rival.id) < 0
}

// weight returns w of r in slice i. Only weights of one slice are compared.
func (t *Table) weight(r *rival, i int) uint64 {
	if t.centres == nil || t.slices[i].IsHash() {
		return r.weight
	}
	return geoWeight(r.weight, r.place, t.centres[i])
}

// index returns the index of s in t.slices.
func (t *Table) index(s Slice) (int, bool) { return slices.BinarySearch(t.slices, s) }

// Replicas returns the IDs of the members that keep s, ranked; the first is the owner. The
// result is empty when the View is, or when s is no slice of the Table.
func (t *Table) Replicas(s Slice) []string {
	i, ok := t.index(s)
	if !ok {
		return nil
	}
	ranking := t.ranking(i)
	if len(ranking) == 0 {
		return nil
	}
	ids := make([]string, len(ranking))
	for j, k := range ranking {
		ids[j] = t.rivals[k.slot].id
	}
	return ids
}

// Ranks reports whether Replicas(s) are the given ones, in any order, with owner first. It
// allocates nothing.
func (t *Table) Ranks(s Slice, owner string, replicas []string) bool {
	i, ok := t.index(s)
	if !ok {
		return len(replicas) == 0
	}
	ranking := t.ranking(i)
	if len(ranking) != len(replicas) {
		return false
	}
	for j, k := range ranking {
		id := t.rivals[k.slot].id
		if j == 0 && id != owner || !slices.Contains(replicas, id) {
			return false
		}
	}
	return true
}

// Owner returns the first replica of s, or "" when there is none.
func (t *Table) Owner(s Slice) string {
	i, ok := t.index(s)
	if !ok || t.kept[i] == 0 {
		return ""
	}
	return t.rivals[t.chosen[i*t.replicas].slot].id
}

// Owned lists the slices that the member id owns, in order.
func (t *Table) Owned(id string) []Slice {
	return t.ranked(id, 1)
}

// Kept lists the slices that the member id keeps, as owner or not, in order.
func (t *Table) Kept(id string) []Slice {
	return t.ranked(id, t.replicas)
}

// ranked lists the slices in which the member id has one of the first most ranks, in order.
func (t *Table) ranked(id string, most int) []Slice {
	slot, ok := t.slots[id]
	if !ok {
		return nil
	}
	var out []Slice
	for i, s := range t.slices {
		ranking := t.ranking(i)
		for _, k := range ranking[:min(most, len(ranking))] {
			if k.slot == slot {
				out = append(out, s)
			}
		}
	}
	return out
}
