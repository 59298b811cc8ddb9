package partition

// ZoneRule says when a zone splits into its halves and when it gives up, by
// what one member sees. It is pure, and it is no agreement: members decide one
// after the other, by Views that differ.
//
// What is safe while they disagree. A member that has split ranks the replicas
// of a slice among the members of the slice's half, one that has not ranks them
// among all; both are wishes. A slice changes hands only with its present
// replicas (I4), and who is asked for a slice that it does not own says so (I5).
// The wish of a member that split is never outside the zone it came from, and
// where the owner already is in the right half both wish the same.
//
// How they come to agree. A member says in its signed descriptor how deep it
// split (Member.ZoneDepth). It splits by its own count above Max, and from three
// quarters of Max as soon as a quarter of the zone has: so Views that differ by
// less than a quarter lead everybody to the same end, and a few liars lead
// nobody anywhere. It stays in the list of the undivided zone until those of its
// half have come along.
//
// Hysteresis: a split needs 3R members in each half, and a zone gives up below
// 2R; what joins after giving up splits again only when a half has grown by R.
type ZoneRule struct {
	Max      int // members above which a zone splits; 0: there is one zone for ever
	Replicas int // replicas a slice should have
}

// The rule's proportions.
const (
	splitKeeps  = 3 // times R members in each half, or no split
	followKeeps = 2 // times R, for who follows others into a split
	mergeBelow  = 2 // times R members: fewer cannot stand two deaths
)

// Splits says whether a zone splits that has so many members in its halves, of
// which ahead say that they have already.
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

// Merges says whether a zone of so many members, not being undivided, has to
// become one with its other half again.
func (r ZoneRule) Merges(members int) bool {
	return r.Max > 0 && members < mergeBelow*r.Replicas
}

// Next is the depth that self, now in its hash zone of the given depth, should
// be at by its View: the same, one more or one less. most is the greatest depth,
// the charter's SliceBits.
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

// SetDepth confines the replicas of every hash slice to the members of its zone
// of that depth; 0, where a Table begins, to all members. It returns the slices
// whose replicas changed, in order. An owner that belongs to the slice's zone
// stays its owner: ranking fewer members leaves their order as it was.
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

// outside says whether r belongs to another zone than slice i.
func (t *Table) outside(r *rival, i int) bool {
	return t.depth > 0 && t.slices[i].IsHash() && !HashZoneAt(r.spot, t.depth).Has(t.slices[i])
}
