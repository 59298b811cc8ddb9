package geo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/golang/geo/s2"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/geo/atlas"
)

// world draws points where people live.
type world struct {
	points []partition.Point
	sums   []int // of the populations up to and with the point
	rand   *rand.Rand
}

func newWorld(g *Gazetteer, seed uint64) *world {
	w := &world{rand: rand.New(rand.NewPCG(seed, 1))}
	total := 0
	for i := range g.table.Len() {
		if p := g.table.Place(i); p.Located && p.Rank >= atlas.Capital {
			total += p.Population
			w.points = append(w.points, partition.Point{Lat: p.Lat, Lon: p.Lon})
			w.sums = append(w.sums, total)
		}
	}
	return w
}

func (w *world) draw() partition.Point {
	i, _ := slices.BinarySearch(w.sums, w.rand.IntN(w.sums[len(w.sums)-1])+1)
	return w.points[i]
}

func km(a, b partition.Point) float64 {
	return 6371 * s2.LatLngFromDegrees(a.Lat, a.Lon).Distance(s2.LatLngFromDegrees(b.Lat, b.Lon)).Radians()
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// 64 peers and 6,000 sites both placed by population: once the load steps have
// settled, no peer has twice the mean, a site is ten times nearer to its owner
// than by plain hash, and within three times the distance to the nearest peer;
// and a leave moves only the leaver's slices.
func TestLocality(t *testing.T) {
	g := open(t)
	all := g.Slices(CellLevel)
	for seed := range uint64(2) {
		w := newWorld(g, seed)
		members := make([]partition.Member, 64)
		at := map[string]partition.Point{}
		for i := range members {
			p := w.draw()
			members[i] = partition.Member{ID: fmt.Sprintf("peer%02d", i), Capacity: 1, Location: &p}
			at[members[i].ID] = p
		}
		sites := make([]partition.Point, 6_000)
		slice := make([]partition.Slice, len(sites))
		for i := range sites {
			sites[i] = w.draw()
			slice[i] = SliceAt(all, sites[i], CellLevel)
		}
		table := partition.NewTableOf(all, 3)
		peak, rounds := settle(table, members, slice)
		var owned, hashed, nearest []float64
		for i, p := range sites {
			owned = append(owned, km(p, at[table.Owner(slice[i])]))
			hashed = append(hashed, km(p, at[members[i%len(members)].ID]))
			least := km(p, at[members[0].ID])
			for _, q := range at {
				least = min(least, km(p, q))
			}
			nearest = append(nearest, least)
		}
		o, h, n := median(owned), median(hashed), median(nearest)
		t.Logf("seed %d: peak load %.2f of the mean after %d rounds; median %.0f km to the owner, %.0f km by hash, %.0f km to the nearest peer", seed, peak, rounds, o, h, n)
		if peak >= 2 || o > h/10 || o > 3*n {
			t.Errorf("seed %d: peak load %.2f, %.0f km to the owner, %.0f by hash, %.0f to the nearest", seed, peak, o, h, n)
		}
		kept := table.Kept(members[5].ID)
		if changed := table.Update(partition.NewView(slices.Delete(slices.Clone(members), 5, 6))); !slices.Equal(changed, kept) {
			t.Errorf("a leave changed %d slices, the leaver kept %d", len(changed), len(kept))
		}
	}
}

// settle moves load steps as peers do, one at a time each round, until nobody
// wants to; it returns the largest load as a multiple of the mean.
func settle(table *partition.Table, members []partition.Member, slice []partition.Slice) (peak float64, rounds int) {
	mean := float64(len(slice)) / float64(len(members))
	for rounds = 0; rounds < 40; rounds++ {
		table.Update(partition.NewView(members))
		load := map[string]int{}
		for _, s := range slice {
			load[table.Owner(s)]++
		}
		peak = 0
		calm := true
		for i := range members {
			x := float64(load[members[i].ID]) / mean
			peak = max(peak, x)
			switch m := &members[i]; {
			case x > 1.6 && m.LoadStep < partition.MaxLoadStep:
				m.LoadStep++
				calm = false
			case x < 0.5 && m.LoadStep > 0:
				m.LoadStep--
				calm = false
			}
		}
		if calm {
			break
		}
	}
	table.Update(partition.NewView(members)) // the last steps, when they never calmed
	return peak, rounds
}
