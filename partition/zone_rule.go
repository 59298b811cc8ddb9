package partition

// ZoneRule says when a zone splits into its halves and when it merges again, as seen by one
// member. It is pure, and it is no agreement: members decide one after the other, with Views
// that differ.
//
// Safety while members disagree. A member that has split ranks the replicas of a slice among
// the members of the slice's half. A member that has not split ranks them among all members.
// Both rankings are only desired replicas. A slice changes its replicas only with its present
// replicas (I4). A peer that gets a request for a slice that it does not own says so (I5). The
// desired replicas of a member that split are never outside the zone it came from. If the owner
// is already in the right half, both rankings have the same owner.
//
// How members come to agree. A member's signed descriptor says how deep it split
// (Member.ZoneDepth). A member splits when its own count is above Max. It also splits from
// three quarters of Max on, as soon as a quarter of the zone has split. So Views that differ by
// less than a quarter lead all members to the same result, and a few liars change nothing. A
// member stays in the list of the undivided zone until the other members of its half have
// split, too.
//
// Hysteresis: a split needs 3R members in each half, and a zone merges below 2R. After a merge
// the zone splits again only when a half has grown by R.
type ZoneRule struct {
	Max      int // members above which a zone splits; 0: there is always one zone
	Replicas int // replicas that a slice should have
}

// The proportions of the rule.
const (
	splitKeeps  = 3 // times R members in each half, else no split
	followKeeps = 2 // times R, for a member that follows others into a split
	mergeBelow  = 2 // times R members: fewer cannot survive two deaths
)

// Splits reports whether a zone splits that has low and high members in its halves. ahead of
// them say that they have already split.
func (r ZoneRule) Splits(low, high, ahead int) bool {
	if r.Max <= 0 {
		return false
	}
	n, least := low+high, min(low, high)
	if n > r.Max && least >= splitKeeps*r.Replicas {
		return true
	}
	return 4*n > 3*r.Max && 4*ahead >= n && least >= followKeeps*r.Replicas
}

// Merges reports whether a zone with this many members, which came from a split, must merge
// with its other half.
func (r ZoneRule) Merges(members int) bool {
	return r.Max > 0 && members < mergeBelow*r.Replicas
}

// Next returns the depth that self should have according to v. self is now in its hash zone of
// the given depth. The result is the same depth, one more or one less. most is the greatest
// depth, the charter's SliceBits.
func (r ZoneRule) Next(self string, depth, most int, v View) int {
	zone := ZoneOfPeer(self, depth)
	lowZone, _ := zone.Halves()
	var low, high, ahead int
	for _, m := range v.Members() {
		place := PlaceOf(m.ID)
		if HashZoneAt(place, depth) != zone {
			continue
		}
		if m.ZoneDepth > depth {
			ahead++
		}
		if HashZoneAt(place, depth+1) == lowZone {
			low++
		} else {
			high++
		}
	}
	switch {
	case depth < most && r.Splits(low, high, ahead):
		return depth + 1
	case depth > 0 && r.Merges(low+high):
		return depth - 1
	}
	return depth
}

// SetDepth restricts the replicas of every hash slice to the members of its zone of that depth.
// Depth 0, the initial depth of a Table, allows all members. SetDepth returns the slices whose
// replicas changed, in order. An owner in the slice's zone stays its owner: ranking fewer
// members keeps their order.
func (t *Table) SetDepth(depth int) []Slice {
	if depth == t.depth {
		return nil
	}
	t.depth = depth
	var changed []Slice
	before := make([]replica, t.replicas)
	for i, s := range t.slices {
		n := copy(before, t.ranking(i))
		t.rerank(i)
		if !sameReplicas(t.ranking(i), before[:n]) {
			changed = append(changed, s)
		}
	}
	return changed
}

// outside reports whether r belongs to another zone than slice i.
func (t *Table) outside(r *rival, i int) bool {
	return t.depth > 0 && t.slices[i].IsHash() && !HashZoneAt(r.spot, t.depth).Has(t.slices[i])
}
