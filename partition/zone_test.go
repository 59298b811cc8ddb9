package partition

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawZone halves root a few times.
func drawZone(t *rapid.T, root Zone, most int) Zone {
	z := root
	for range rapid.IntRange(0, most).Draw(t, "depth") {
		low, high := z.Halves()
		if z = low; rapid.Bool().Draw(t, "high") {
			z = high
		}
	}
	return z
}

// drawSlice draws a hash slice of at least 12 bits, or a cell of level 7 to 12.
func drawSlice(t *rapid.T) Slice {
	if rapid.Bool().Draw(t, "hash") {
		return hashSlice(rapid.Uint64().Draw(t, "h"), rapid.IntRange(12, MaxSliceBits).Draw(t, "bits"))
	}
	face, level := rapid.Uint64Range(0, 5).Draw(t, "face"), rapid.IntRange(7, 12).Draw(t, "level")
	shift := 60 - 2*level
	return Slice(face<<61 | rapid.Uint64Range(0, 1<<60-1).Draw(t, "pos")>>shift<<shift<<1>>1&^(1<<61-1<<60) | 1<<shift)
}

// String and ParseZone are inverse. ParseZone refuses every other text.
func TestZoneText(t *testing.T) {
	for text, want := range map[string]Zone{
		"hash": HashZone, "earth": EarthZone, "hash/0": 0xd000000000000000, "hash/1": 0xf000000000000000,
		"hash/010": 0xd400000000000000, "earth/0": 0x4000000000000000, "earth/1": 0xa000000000000000,
		"earth/11": 0xb000000000000000,
	} {
		z, err := ParseZone(text)
		if err != nil || z != want || z.String() != text {
			t.Errorf("%s: %#x %s %v, want %#x", text, uint64(z), z, err, uint64(want))
		}
	}
	for _, text := range []string{"", "hash/", "hash/2", "hash/0/1", "sea", "hash/000000000000000000000", "earth/x"} {
		if z, err := ParseZone(text); err == nil {
			t.Errorf("%q is read as %s", text, z)
		}
	}
	for _, z := range []Zone{0, 1 << 62 * 3, 1} {
		if z.Valid() {
			t.Errorf("%#x is a zone", uint64(z))
		}
	}
}

// A zone's halves, parent and other half belong together.
func TestZoneTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		root := rapid.SampledFrom([]Zone{HashZone, EarthZone}).Draw(t, "root")
		z := drawZone(t, root, 19)
		low, high := z.Halves()
		back, err := ParseZone(z.String())
		switch {
		case !z.Valid() || err != nil || back != z:
			t.Fatalf("%s comes back as %s: %v", z, back, err)
		case low.Depth() != z.Depth()+1 || low.Parent() != z || high.Parent() != z || low.Other() != high ||
			high.Other() != low:
			t.Fatalf("%s has halves %s and %s", z, low, high)
		case !low.Inside(z) || !high.Inside(z) || z.Inside(low) || low.Overlaps(high) || !z.Overlaps(low) ||
			!z.Inside(root):
			t.Fatalf("%s, %s, %s are not inside each other as they should", z, low, high)
		}
	})
}

// After any halvings, every slice is in exactly one of the zones.
func TestEverySliceIsInOneZone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zones := []Zone{HashZone, EarthZone}
		for range rapid.IntRange(0, 30).Draw(t, "halvings") {
			i := rapid.IntRange(0, len(zones)-1).Draw(t, "which")
			if zones[i].Depth() < 10 {
				low, high := zones[i].Halves()
				zones = append(slices.Delete(zones, i, i+1), low, high)
			}
		}
		s := drawSlice(t)
		if !s.Valid() {
			t.Fatalf("drew %s", s)
		}
		in := 0
		for _, z := range zones {
			if z.Has(s) {
				in++
				if ZoneOfSlice(s, z.Depth()) != z {
					t.Fatalf("%s of %s is %s", s, z, ZoneOfSlice(s, z.Depth()))
				}
			}
		}
		if in != 1 {
			t.Fatalf("%s is in %d of %v", s, in, zones)
		}
	})
}

// zoneMembers returns n members with IDs that depend on seed.
func zoneMembers(n int, seed uint64) []Member {
	rng := rand.New(rand.NewPCG(seed, 1))
	out := make([]Member, n)
	for i := range out {
		out[i] = Member{ID: fmt.Sprintf("member %d %d", i, rng.Uint64()), Capacity: 1 + rng.IntN(4)}
	}
	return out
}

// A split moves a slice to no member outside the parent zone, and keeps an owner that is in the
// right half. Members that have split agree, whether they still see the whole zone or only
// their half.
func TestSplitMovesInsideTheParent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := DefaultCharter("x", "y")
		c.SliceBits, c.Replicas = 8, rapid.IntRange(1, 3).Draw(t, "R")
		all := NewView(zoneMembers(rapid.IntRange(1, 60).Draw(t, "members"), rapid.Uint64().Draw(t, "seed")))
		depth := rapid.IntRange(0, 4).Draw(t, "depth")
		before, after, half := NewTable(c), NewTable(c), NewTable(c)
		before.Update(all)
		before.SetDepth(depth)
		after.Update(all)
		after.SetDepth(depth + 1)
		zone := HashZoneAt(rapid.Uint64().Draw(t, "place"), depth+1)
		var own []Member
		for _, m := range all.Members() {
			if zone.HasPeer(m.ID) {
				own = append(own, m)
			}
		}
		half.SetDepth(depth + 1)
		half.Update(NewView(own))
		for _, s := range c.Slices() {
			for _, id := range after.Replicas(s) {
				if !ZoneOfSlice(s, depth+1).HasPeer(id) {
					t.Fatalf("%s is kept outside its zone", s)
				}
			}
			old := before.Owner(s)
			if old != "" && ZoneOfSlice(s, depth+1).HasPeer(old) && after.Owner(s) != old {
				t.Fatalf("%s moved although its owner is in the right half", s)
			}
			if zone.Has(s) && !slices.Equal(half.Replicas(s), after.Replicas(s)) {
				t.Fatalf("%s: %v by its half, %v by the whole", s, half.Replicas(s), after.Replicas(s))
			}
		}
	})
}

// SetDepth gives the same result before, after or between Updates.
func TestDepthDoesNotDependOnThePath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := DefaultCharter("x", "y")
		c.SliceBits = 6
		ms := zoneMembers(30, rapid.Uint64().Draw(t, "seed"))
		a, b := NewTable(c), NewTable(c)
		for range rapid.IntRange(0, 6).Draw(t, "steps") {
			a.SetDepth(rapid.IntRange(0, 3).Draw(t, "depth"))
			a.Update(NewView(ms[:rapid.IntRange(0, len(ms)).Draw(t, "n")]))
		}
		a.SetDepth(2)
		a.Update(NewView(ms))
		b.Update(NewView(ms))
		b.SetDepth(2)
		for _, s := range c.Slices() {
			if !slices.Equal(a.Replicas(s), b.Replicas(s)) {
				t.Fatalf("%s: %v and %v", s, a.Replicas(s), b.Replicas(s))
			}
		}
	})
}

// Members whose Views lack up to a tenth of the others decide one after the other. If any has
// split, in the end all have, and none splits twice. If the zone is small for all members, none
// splits.
func TestMembersAgreeOnASplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := ZoneRule{Max: 100, Replicas: 3}
		ms := zoneMembers(rapid.IntRange(60, 130).Draw(t, "members"), rapid.Uint64().Draw(t, "seed"))
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "views"), 2))
		misses := rng.Float64() * 0.1
		blind := make([]map[int]bool, len(ms))
		for i := range ms {
			blind[i] = map[int]bool{}
			for j := range ms {
				if j != i && rng.Float64() < misses {
					blind[i][j] = true
				}
			}
		}
		least := len(ms)
		split := 0
		for range 6 { // rounds: gossip tells every member about all members except those it misses
			for _, i := range rng.Perm(len(ms)) {
				if ms[i].ZoneDepth == 1 {
					continue // its zone is another one now; it waits for the others
				}
				var seen []Member
				for j, m := range ms {
					if !blind[i][j] {
						seen = append(seen, m)
					}
				}
				least = min(least, len(seen))
				if ms[i].ZoneDepth = rule.Next(ms[i].ID, 0, 12, NewView(seen)); ms[i].ZoneDepth == 1 {
					split++
				}
			}
		}
		if len(ms) <= rule.Max && split > 0 || least > rule.Max && split != len(ms) {
			t.Fatalf("%d of %d have split, the smallest View has %d", split, len(ms), least)
		}
		if 4*split >= len(ms)+len(ms)/8 && split != len(ms) {
			t.Fatalf("%d of %d have split and the others stay", split, len(ms))
		}
	})
}

// The limits at which a zone splits, follows a split, and merges.
func TestZoneRuleHysteresis(t *testing.T) {
	r := ZoneRule{Max: 400, Replicas: 3}
	for _, c := range []struct {
		low, high, ahead int
		want             bool
	}{
		{200, 200, 0, false}, {201, 200, 0, true}, {500, 8, 0, false}, {500, 9, 0, true},
		{160, 160, 80, true}, {160, 160, 79, false}, {150, 150, 300, false}, {300, 5, 300, false}, {300, 6, 300, true},
	} {
		if got := r.Splits(c.low, c.high, c.ahead); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
	if r.Merges(6) || !r.Merges(5) || (ZoneRule{Replicas: 3}).Merges(1) || (ZoneRule{}).Splits(1e6, 1e6, 1e6) {
		t.Error("merging")
	}
	// A merge never causes a new split: a half below 2R members is below 3R after it is joined
	// to any other half.
	for n := range 2 * r.Replicas {
		if r.Splits(n, 10_000, 0) {
			t.Errorf("a half of %d splits off again", n)
		}
	}
}

// A peer's place is the hash of the bytes of its id, and ZoneOfPeer finds the zone of that place.
func TestPlaceIsKademlias(t *testing.T) {
	// sha256 of the 38 bytes of the id, not of its text.
	const id = "12D3KooWGzxzKZYveHXtpG6AsrUJBcWxHBFS2HsEoGTxrMLvKXtf"
	if PlaceOf(id) == PlaceOf(id+"x") {
		t.Error("places")
	}
	if z := ZoneOfPeer(id, 3); !z.HasPeer(id) || z.Other().HasPeer(id) || !z.Parent().HasPeer(id) {
		t.Errorf("%s does not have its peer", z)
	}
}
