package partition

import (
	"crypto/sha256"
	"fmt"
	"github.com/golang/geo/s2"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawMembers draws members, also with values out of range and with equal IDs.
func drawMembers(t *rapid.T) []Member {
	var ms []Member
	for range rapid.IntRange(0, 12).Draw(t, "members") {
		m := Member{ID: fmt.Sprint("peer", rapid.IntRange(0, 15).Draw(t, "id")),
			Capacity: rapid.IntRange(-1, 18).Draw(t, "capacity"), LoadStep: rapid.IntRange(-1, 18).Draw(t, "step")}
		if rapid.Bool().Draw(t, "located") {
			m.Location = &Point{rapid.Float64Range(-91, 91).Draw(t, "lat"),
				rapid.Float64Range(-181, 181).Draw(t, "lon")}
		}
		ms = append(ms, m)
	}
	return ms
}

// mixedSlices returns some slices of both kinds.
func mixedSlices() []Slice {
	all := Charter{SliceBits: 6}.Slices()
	for f := range uint64(6) {
		for q := range uint64(16) {
			all = append(all, Slice(f<<61|q<<57|1<<56))
		}
	}
	return all
}

// replicasOf returns the replicas of all slices.
func replicasOf(t *Table) map[Slice][]string {
	out := map[Slice][]string{}
	for _, s := range t.Slices() {
		out[s] = t.Replicas(s)
	}
	return out
}

// After any path of updates, a Table equals the one made from scratch, and Update reports
// exactly the slices that changed.
func TestTableIncremental(t *testing.T) {
	all := mixedSlices()
	rapid.Check(t, func(t *rapid.T) {
		table := NewTableOf(all, rapid.IntRange(1, 7).Draw(t, "replicas"))
		for range rapid.IntRange(1, 6).Draw(t, "updates") {
			before := replicasOf(table)
			v := NewView(drawMembers(t))
			changed := table.Update(v)
			fresh := NewTableOf(all, table.replicas)
			fresh.Update(v)
			for _, s := range all {
				if got, want := table.Replicas(s), fresh.Replicas(s); !slices.Equal(got, want) {
					t.Fatalf("replicas of %v: %v, from scratch %v", s, got, want)
				}
				if slices.Contains(changed, s) == slices.Equal(before[s], table.Replicas(s)) {
					t.Fatalf("%v: before %v, now %v, reported %v", s, before[s], table.Replicas(s),
						slices.Contains(changed, s))
				}
			}
		}
	})
}

// someMembers returns n members with equal weight.
func someMembers(n int) []Member {
	ms := make([]Member, n)
	for i := range ms {
		ms[i] = Member{ID: fmt.Sprintf("12D3KooW%06d", i), Capacity: 1}
	}
	return ms
}

// tableOf returns a Table with these members.
func tableOf(c Charter, ms []Member) *Table {
	t := NewTable(c)
	t.Update(NewView(ms))
	return t
}

// A Table without members has no replicas. The first member changes every slice.
func TestTableEmpty(t *testing.T) {
	c := DefaultCharter("x", "y")
	table := NewTable(c)
	s := c.Slices()[5]
	if table.Replicas(s) != nil || table.Owner(s) != "" || table.Owned("a") != nil || table.Kept("a") != nil {
		t.Error("an empty table has replicas")
	}
	if changed := table.Update(View{}); changed != nil {
		t.Errorf("%d slices changed by nothing", len(changed))
	}
	if changed := table.Update(NewView(someMembers(1))); len(changed) != 4096 {
		t.Errorf("the first member changed %d slices", len(changed))
	}
	if table.Replicas(Slice(1)) != nil || table.Owner(c.Slices()[0]+1) != "" {
		t.Error("slices that are not the table's have replicas")
	}
	if changed := table.Update(View{}); len(changed) != 4096 || table.Owner(s) != "" {
		t.Errorf("the last member's leave changed %d slices", len(changed))
	}
}

// The order of the members does not matter, nor do their addresses and program versions.
func TestTableOrder(t *testing.T) {
	c := DefaultCharter("x", "y")
	c.SliceBits = 6
	rapid.Check(t, func(t *rapid.T) {
		ms := NewView(drawMembers(t)).Members()
		want := replicasOf(tableOf(c, ms))
		shuffled := rapid.Permutation(ms).Draw(t, "order")
		for i := range shuffled {
			shuffled[i].Addrs, shuffled[i].Version = []string{"/ip4/127.0.0.1/tcp/1"}, "v2"
		}
		got := tableOf(c, shuffled)
		for s, ids := range want {
			if !slices.Equal(ids, got.Replicas(s)) || len(ids) != min(len(ms), c.Replicas) {
				t.Fatalf("%v: %v and %v of %d members", s, ids, got.Replicas(s), len(ms))
			}
			for i, id := range ids {
				others := slices.Delete(slices.Clone(ids), i, i+1)
				if got.Ranks(s, id, append(others, id)) != (i == 0) || got.Ranks(s, ids[0], others) ||
					got.Ranks(s, ids[0], append(others, "nobody")) {
					t.Fatalf("%v is ranked otherwise than %v", s, ids)
				}
			}
			if len(ids) > 0 && !slices.Contains(got.Owned(ids[0]), s) || len(ids) > 1 &&
				!slices.Contains(got.Kept(ids[1]), s) {
				t.Fatalf("%v is not listed with its replicas %v", s, ids)
			}
		}
	})
}

// When one member leaves, only its own slices change: the other replicas move up and keep their
// order. A join inserts the new member and does not reorder the others.
func TestTableLeave(t *testing.T) {
	c := DefaultCharter("x", "y")
	ms := someMembers(40)
	table := tableOf(c, ms)
	before := replicasOf(table)
	for leaver := range 5 {
		id := ms[leaver*7].ID
		owned, kept := table.Owned(id), table.Kept(id)
		changed := table.Update(NewView(slices.Delete(slices.Clone(ms), leaver*7, leaver*7+1)))
		if !slices.Equal(changed, kept) {
			t.Errorf("%d slices changed when the replica of %d left", len(changed), len(kept))
		}
		for s, old := range before {
			rest := slices.DeleteFunc(slices.Clone(old), func(k string) bool { return k == id })
			if now := table.Replicas(s); !slices.Equal(now[:len(rest)], rest) || slices.Contains(now, id) {
				t.Fatalf("%v: %v, then %v without %s", s, old, now, id)
			}
		}
		if changed := table.Update(NewView(ms)); !slices.Equal(changed, kept) || !slices.Equal(table.Owned(id), owned) {
			t.Errorf("back again, %d slices changed of %d", len(changed), len(kept))
		}
	}
}

// chi returns chi-square of the owners against shares by weight.
func chi(c Charter, table *Table, ms []Member) float64 {
	total := 0.0
	for _, m := range ms {
		total += float64(baseWeight(m))
	}
	x := 0.0
	for _, m := range ms {
		want := float64(len(c.Slices())) * float64(baseWeight(m)) / total
		d := float64(len(table.Owned(m.ID))) - want
		x += d * d / want
	}
	return x
}

// Shares follow capacity and load step. With 31 degrees of freedom chi-square is above 61.1
// once in a thousand.
func TestTableShares(t *testing.T) {
	c := DefaultCharter("x", "y")
	c.SliceBits = 14
	for name, change := range map[string]func(i int, m *Member){
		"equal":    func(int, *Member) {},
		"capacity": func(i int, m *Member) { m.Capacity = 1 + i%MaxCapacity },
		"clamped":  func(i int, m *Member) { m.Capacity = []int{-5, 0, 1 << 30, 100}[i%4] },
		"load":     func(i int, m *Member) { m.Capacity, m.LoadStep = 16, i%7 },
	} {
		ms := someMembers(32)
		for i := range ms {
			change(i, &ms[i])
		}
		if x := chi(c, tableOf(c, ms), ms); x > 61.1 {
			t.Errorf("%s: chi-square %.1f", name, x)
		} else {
			t.Logf("%s: chi-square %.1f", name, x)
		}
	}
}

// Two load steps halve a member's share, and only the slices that it gives up move.
func TestTableLoadStep(t *testing.T) {
	c := DefaultCharter("x", "y")
	c.SliceBits = 14
	ms := someMembers(16)
	table := tableOf(c, ms)
	before := replicasOf(table)
	full := len(table.Owned(ms[3].ID))
	ms[3].LoadStep = 2
	table.Update(NewView(ms))
	if half := len(table.Owned(ms[3].ID)); half < full*2/5 || half > full*3/5 {
		t.Errorf("owned %d slices, %d at half the weight", full, half)
	}
	for s, old := range before {
		if now := table.Owner(s); now != old[0] && old[0] != ms[3].ID {
			t.Fatalf("%v went from %s to %s", s, old[0], now)
		}
	}
}

// The replicas of a slice are part of the profile: these values never change.
func TestTableGolden(t *testing.T) {
	c := DefaultCharter("x", "y")
	ms := someMembers(7)
	ms[2].Capacity, ms[4].LoadStep = 5, 3
	for i := range ms {
		ms[i].Location = &Point{Lat: float64(i*17 - 60), Lon: float64(i*41 - 150)}
	}
	all := append(c.Slices(), mixedSlices()...)
	table := NewTableOf(all, 3)
	table.Update(NewView(ms))
	var text []byte
	for _, s := range table.Slices() {
		text = fmt.Appendln(text, s, table.Replicas(s))
	}
	if got, want := fmt.Sprintf("%x", sha256.Sum256(text)),
		"57be30a893877ae72cad9cc59a775a1443aa65a048d76f56022beaecae2b28fa"; got != want {
		t.Errorf("table %s, want %s", got, want)
	}
}

// In geo slices near members own the cells; elsewhere location does not count.
func TestTableGeo(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	place := func() s2.LatLng {
		return s2.LatLngFromDegrees(30+r.Float64()*30, -10+r.Float64()*40)
	}
	var cells []Slice
	for range 2000 {
		cells = append(cells, Slice(s2.CellIDFromLatLng(place()).Parent(7)))
	}
	ms := someMembers(64)
	at := map[string]s2.LatLng{}
	for i := range ms {
		p := place()
		at[ms[i].ID] = p
		ms[i].Location = &Point{p.Lat.Degrees(), p.Lng.Degrees()}
	}
	table := NewTableOf(cells, 3)
	table.Update(NewView(ms))
	var near, far []float64
	for i, s := range table.Slices() {
		centre := s2.CellID(s).LatLng()
		near = append(near, at[table.Owner(s)].Distance(centre).Radians()*6371)
		far = append(far, at[ms[i%len(ms)].ID].Distance(centre).Radians()*6371)
	}
	slices.Sort(near)
	slices.Sort(far)
	if n, f := near[len(near)/2], far[len(far)/2]; n > f/3 {
		t.Errorf("median distance to the owner %.0f km, to anyone %.0f km", n, f)
	} else {
		t.Logf("median distance to the owner %.0f km, to anyone %.0f km", n, f)
	}
	before := replicasOf(table)
	table.Update(NewView(ms[1:]))
	for s, old := range before {
		if !slices.Contains(old, ms[0].ID) && !slices.Equal(old, table.Replicas(s)) {
			t.Fatalf("%v moved though its replicas stayed", s)
		}
	}
}

// The integer weight equals the formula of the design.
func TestGeoWeight(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 10_000 {
		a := s2.LatLngFromDegrees(r.Float64()*180-90, r.Float64()*360-180)
		cell := s2.CellIDFromLatLng(s2.LatLngFromDegrees(r.Float64()*180-90, r.Float64()*360-180)).Parent(7)
		if r.IntN(2) == 0 {
			cell = s2.CellIDFromLatLng(s2.LatLngFromDegrees(a.Lat.Degrees()*0.99,
				a.Lng.Degrees()+r.Float64())).Parent(7)
		}
		w := baseWeight(Member{Capacity: 1 + r.IntN(16), LoadStep: r.IntN(17)})
		got := geoWeight(w, pointVector(Point{a.Lat.Degrees(), a.Lng.Degrees()}), cellCentre(Slice(cell)))
		chord := s2.PointFromLatLng(a).Sub(cell.Point().Vector).Norm() * 6371.0088
		want := float64(w) * (1 << 27) / math.Pow(1+chord*chord/250000, 2)
		if math.Abs(float64(got)/want-1) > 2e-3 {
			t.Fatalf("weight %d at %.0f km is %d, want %.0f", w, chord, got, want)
		}
	}
	if near, none := geoWeight(1<<16, vector{unit, 0, 0}, vector{unit, 0, 0}),
		geoWeight(1<<16, vector{}, vector{unit, 0, 0}); none >= near/1000 {
		t.Errorf("no place weighs %d, the place itself %d", none, near)
	}
}

func BenchmarkTable(b *testing.B) {
	c := DefaultCharter("x", "y")
	for _, n := range []int{10, 1000, 10_000} {
		ms := someMembers(n + 1)
		all, but := NewView(ms), NewView(ms[1:])
		var scratch time.Duration
		b.Run(fmt.Sprintf("scratch/%d", n), func(b *testing.B) {
			start := time.Now()
			for range b.N {
				NewTable(c).Update(all)
			}
			scratch = time.Since(start) / time.Duration(b.N)
		})
		b.Run(fmt.Sprintf("join+leave/%d", n), func(b *testing.B) {
			table := NewTable(c)
			table.Update(all)
			b.ReportAllocs()
			b.ResetTimer()
			start := time.Now()
			for range b.N {
				table.Update(but)
				table.Update(all)
			}
			b.ReportMetric(float64(scratch)/(float64(time.Since(start))/float64(2*b.N)), "scratch/update")
		})
	}
}
