package node_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/nodetest"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
)

func geoWorld() crawltest.Options {
	o := smallWorld()
	o.Places = []crawltest.Place{{Name: "Lisboa, Portugal", Lat: 38.72, Lon: -9.14},
		{Name: "Porto, Portugal", Lat: 41.15, Lon: -8.61},
		{Name: "São Paulo, Brasil", Lat: -23.55, Lon: -46.63}, {Name: "Tokyo, Japan", Lat: 35.68, Lon: 139.69}}
	return o
}

// export returns all records that p exports, in order, and how many of their cursors name a geo
// slice.
func export(t *testing.T, p *nodetest.Peer) (keys []string, geo int) {
	t.Helper()
	missing, err := p.Search().Export(t.Context(), api.Export{}, func(rec store.Record, cursor string) error {
		keys = append(keys, string(rec.Key))
		if strings.HasPrefix(cursor, "g/") {
			geo++
		}
		return nil
	})
	if err != nil || len(missing) > 0 {
		t.Fatalf("export: %v, missing %v", err, missing)
	}
	return keys, geo
}

// A swarm in geo mode crawls the same set as a swarm in hash mode, each page once and no site too
// early. Its peers answer queries in the same way. But the pages of a site are fetched by a peer
// near the site.
func TestGeoSwarm(t *testing.T) {
	hash := nodetest.New(t, nodetest.Options{World: geoWorld()})
	one := hash.Add()
	hash.Settle(1)
	hash.Seed()
	hash.WaitIdle()
	want := withoutPort(ranked(t, hash, one))

	swarm := nodetest.New(t,
		nodetest.Options{World: geoWorld(), Node: node.Options{Partition: partition.ModeGeo, SliceBits: 6,
			CellLevel: 4}})
	homes := []partition.Point{{Lat: 38.7, Lon: -9.1}, {Lat: -23.5, Lon: -46.6}, {Lat: 35.7, Lon: 139.7}}
	for i := range homes {
		swarm.AddAt(&homes[i])
	}
	swarm.Settle(3)
	swarm.Seed()
	swarm.WaitIdle()
	checkWorld(t, swarm, 0)
	for _, p := range swarm.Peers {
		if got := withoutPort(ranked(t, swarm, p)); !equalRanks(got, want) {
			t.Errorf("%s ranks otherwise than a hash swarm", p.Name)
		}
	}
	keys, inCells := export(t, swarm.Peers[0])
	seen := map[string]bool{}
	for _, k := range keys {
		if seen[k] {
			t.Errorf("%s is exported twice", k)
		}
		seen[k] = true
	}
	if other, _ := export(t, swarm.Peers[2]); strings.Join(other, "\n") != strings.Join(keys, "\n") {
		t.Error("two peers export differently")
	}
	near, far := 0, 0
	for s := range swarm.World.Sites() {
		place, _ := swarm.World.Place(s)
		for _, k := range keys {
			if !strings.HasPrefix(k, "web:"+swarm.World.Home(s)) {
				continue
			}
			shown, err := swarm.Peers[s%3].API().Show(t.Context(), partition.Key(k))
			if err != nil || shown.Record == nil {
				t.Fatalf("show %s: %+v, %v", k, shown, err)
			}
			if !strings.HasPrefix(shown.Slice, "g/") {
				continue // fetched by its registrar, before the site was placed
			}
			if len(shown.Placement) == 0 {
				t.Errorf("%s is in %s without evidence", k, shown.Slice)
			}
			if nearest(swarm, homes, place) == shown.Record.Peer {
				near++
			} else {
				far++
			}
		}
	}
	t.Logf("%d records, %d of them in cells; %d fetched by the nearest peer, %d by another", len(keys), inCells, near,
		far)
	if inCells < len(keys)/2 || near < 9*far {
		t.Errorf("%d of %d records are in cells; %d near, %d far", inCells, len(keys), near, far)
	}
}

func nearest(s *nodetest.Swarm, homes []partition.Point, p crawltest.Place) string {
	best, least := "", math.Inf(1)
	for i, h := range homes {
		dlon := math.Mod(math.Abs(h.Lon-p.Lon)+180, 360) - 180
		if d := math.Hypot(h.Lat-p.Lat, dlon); d < least {
			best, least = s.Peers[i].ID(), d
		}
	}
	return best
}

func equalRanks(a, b map[string][]string) bool {
	for w := range b {
		if strings.Join(a[w], " ") != strings.Join(b[w], " ") {
			return false
		}
	}
	return len(a) == len(b)
}

// Peers leave and stop during the crawl, and nothing that was placed is lost.
func TestGeoSwarmChurn(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	swarm := nodetest.New(t,
		nodetest.Options{World: geoWorld(), Node: node.Options{Partition: partition.ModeGeo, SliceBits: 6, CellLevel: 4,
			OrphanAfter: time.Minute, Delay: 20 * time.Millisecond}})
	for range 3 {
		swarm.Add()
	}
	swarm.Settle(3)
	swarm.Seed()
	// The owners of the four cities' cells are random. One of three peers has the pages of two
	// cities.
	var busy *nodetest.Peer
	swarm.Until("some of it is crawled", 5*time.Minute, func() (bool, string) {
		fetched := make([]int64, len(swarm.Peers))
		for i, p := range swarm.Peers {
			if fetched[i] = p.Status().Fetched; fetched[i] > 10 {
				busy = p
			}
		}
		return busy != nil, fmt.Sprintf("the peers have fetched %d", fetched)
	})
	if err := busy.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	swarm.Settle(3)
	swarm.WaitIdle()
	// The stopped peer alone may have had one page of each site, which is then fetched twice.
	checkWorld(t, swarm, swarm.World.Sites())
}
