package geo

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/golang/geo/s2"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/geo/atlas"
	"github.com/echo-node/echo-node/partition/racetest"
)

// world draws points by population.
type world struct {
	g      *Gazetteer
	places []atlas.Place
	sums   []int // of the populations up to and including the place
	rand   *rand.Rand
}

// newWorld returns a world of the located towns of g.
func newWorld(g *Gazetteer, seed uint64) *world {
	w := &world{g: g, rand: rand.New(rand.NewPCG(seed, 1))}
	total := 0
	for i := range g.table.Len() {
		if p := g.table.Place(i); p.Located && p.Rank >= atlas.Capital {
			total += p.Population
			w.places = append(w.places, p)
			w.sums = append(w.sums, total)
		}
	}
	return w
}

// drawIndex draws the index of a place, weighted by population.
func (w *world) drawIndex() int {
	i, _ := slices.BinarySearch(w.sums, w.rand.IntN(w.sums[len(w.sums)-1])+1)
	return i
}

// draw draws the location of a place, weighted by population.
func (w *world) draw() partition.Point {
	p := w.places[w.drawIndex()]
	return partition.Point{Lat: p.Lat, Lon: p.Lon}
}

// km returns the distance of two points on the sphere.
func km(a, b partition.Point) float64 {
	return 6371 * s2.LatLngFromDegrees(a.Lat, a.Lon).Distance(s2.LatLngFromDegrees(b.Lat, b.Lon)).Radians()
}

// median sorts x and returns its median.
func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// 64 peers and 6,000 sites, both placed by population. Once the load steps have settled, no
// peer has twice the mean. In the same run a site is ten times nearer to its owner than to its
// owner by plain hash. The distance is at most three times that to the nearest peer. When a
// member leaves, only its slices move.
func TestLocality(t *testing.T) {
	g := open(t)
	seeds := uint64(3)
	if racetest.Small(t) {
		seeds = 1
	}
	for seed := range seeds {
		w := newWorld(g, seed)
		c := partition.DefaultCharter("geo", "founder")
		c.Mode, c.CellLevel, c.Gazetteer = partition.ModeGeo, CellLevel, g.Digest()
		all, err := c.AllSlices(g.Slices(CellLevel))
		if err != nil {
			t.Fatal(err)
		}
		members, at := w.peers(64)
		sites := make([]partition.Point, 6_000)
		slice := make([]partition.Slice, len(sites))
		for i := range sites {
			sites[i] = w.draw()
			slice[i] = SliceAt(all, sites[i], CellLevel)
		}
		table := partition.NewTableOf(all, 3)
		peak, rounds := settle(t, table, members, slice)
		var owned, hashed, nearest []float64
		for i, p := range sites {
			registrar := table.Owner(c.Slice(partition.Key(fmt.Sprintf("web:https://site%d.example/", i))))
			owned = append(owned, km(p, at[table.Owner(slice[i])]))
			hashed = append(hashed, km(p, at[registrar]))
			nearest = append(nearest, w.nearest(p, at))
		}
		o, h, n := median(owned), median(hashed), median(nearest)
		t.Logf("seed %d: peak load %.2f of the mean after %d rounds; median %.0f km to the owner, %.0f km by hash, %.0f km to the nearest peer", seed, peak, rounds, o, h, n)
		if peak >= 2 || o > h/10 || o > 3*n {
			t.Errorf("seed %d: peak load %.2f, %.0f km to the owner, %.0f by hash, %.0f to the nearest", seed, peak, o,
				h, n)
		}
		for _, leaver := range []int{5, 40} {
			leaveMoves(t, table, members, leaver)
		}
	}
}

// peers returns members placed by population, and their places.
func (w *world) peers(n int) ([]partition.Member, map[string]partition.Point) {
	members, at := make([]partition.Member, n), map[string]partition.Point{}
	for i := range members {
		p := w.draw()
		members[i] = partition.Member{ID: fmt.Sprintf("peer%02d", i), Capacity: 1, Location: &p}
		at[members[i].ID] = p
	}
	return members, at
}

// nearest returns the distance in km to the nearest of the points at.
func (w *world) nearest(p partition.Point, at map[string]partition.Point) float64 {
	least := math.Inf(1)
	for _, q := range at {
		least = min(least, km(p, q))
	}
	return least
}

// leaveMoves checks that a leave changes only the leaving member's slices, and that the other
// replicas keep their order there: only the leaving member gives up slices. Then the member
// comes back.
func leaveMoves(t *testing.T, table *partition.Table, members []partition.Member, leaver int) {
	t.Helper()
	id := members[leaver].ID
	before := map[partition.Slice][]string{}
	for _, s := range table.Slices() {
		before[s] = table.Replicas(s)
	}
	kept, owned := table.Kept(id), table.Owned(id)
	changed := table.Update(partition.NewView(slices.Delete(slices.Clone(members), leaver, leaver+1)))
	if len(owned) == 0 || !slices.Equal(changed, kept) {
		t.Errorf("the leave of %s changed %d slices, it kept %d and owned %d", id, len(changed), len(kept), len(owned))
	}
	moved := 0
	for s, old := range before {
		rest := slices.DeleteFunc(slices.Clone(old), func(k string) bool { return k == id })
		now := table.Replicas(s)
		if !slices.Equal(now[:len(rest)], rest) {
			t.Fatalf("%v: replicas %v, then %v without %s", s, old, now, id)
		}
		if now[0] != old[0] {
			moved++
		}
	}
	if moved != len(owned) {
		t.Errorf("%d slices have another owner after the leave of %s, it owned %d", moved, id, len(owned))
	}
	table.Update(partition.NewView(members))
}

// settle runs each peer's own load step controller until none changes any more. The load of a
// peer is its share of the entries in slice, and all peers are busy. settle returns the largest
// load as a multiple of the mean, and how many rounds of LoadPatience it took.
func settle(t *testing.T, table *partition.Table, members []partition.Member, slice []partition.Slice) (peak float64,
	rounds int) {
	t.Helper()
	mean := float64(len(slice)) / float64(len(members))
	steps := make([]partition.LoadSteps, len(members))
	now := time.Unix(1e9, 0)
	for rounds = 0; rounds < 60; rounds++ {
		table.Update(partition.NewView(members))
		load := map[string]int{}
		for _, s := range slice {
			load[table.Owner(s)]++
		}
		peak = 0
		calm := true
		for i := range members {
			share := float64(load[members[i].ID]) / mean
			peak = max(peak, share)
			x := partition.Load{Share: share, Behind: share > 1}
			steps[i].Next(now, x)
			step := steps[i].Next(now.Add(partition.LoadPatience), x)
			calm = calm && step == members[i].LoadStep
			members[i].LoadStep = step
		}
		if calm {
			return peak, rounds
		}
		now = now.Add(partition.LoadPatience + time.Second)
	}
	t.Errorf("the load steps have not settled after %d rounds", rounds)
	return peak, rounds
}
