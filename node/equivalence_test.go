package node_test

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/nodetest"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
)

// The number of seeds that TestEquivalence runs, or the only one.
var (
	seeds   = flag.Int("seeds", 60, "seeds of TestEquivalence; 1 of them under the race detector")
	oneSeed = flag.Uint64("seed", 0, "the one seed that TestEquivalence runs, 0 = -seeds of them")
)

// worlds is the number of different webs over which the seeds are spread.
const worlds = 4

// equivalenceWorld has about 1,500 Keys. Under the race detector a page costs twenty times as much,
// so it has about 300.
func equivalenceWorld(seed uint64) crawltest.Options {
	o := crawltest.Options{Seed: seed % worlds, Sites: 60, Pages: 22, Words: 50, Think: 30 * time.Millisecond,
		Gap: time.Second}
	if racetest.Enabled {
		o.Sites, o.Pages, o.Words = 24, 10, 30
	}
	return o
}

// mostChaos has every kind of fault at once, for most of a crawl.
func mostChaos() nodetest.Chaos {
	c := nodetest.Chaos{For: time.Minute, Crashes: true, Disks: true, Pauses: true, Cuts: true, Lags: true, Joins: 2,
		Lost: 0.02, Failed: 0.02, Twice: 0.02}
	if racetest.Enabled {
		c.For = 15 * time.Second
	}
	return c
}

// crawl lets peers crawl the world of seed during the faults of c, and checks what the world saw.
func crawl(t *testing.T, seed uint64, peers int, c nodetest.Chaos) (out nodetest.Crawl) {
	return crawlSim(t, nodetest.SimOptions{Seed: seed, World: equivalenceWorld(seed),
		Node: node.Options{Delay: time.Second, KeepBodies: true}}, peers, c)
}

// crawlGeo is crawl in geo mode: the sites are in four cities, the peers in three of them.
func crawlGeo(t *testing.T, seed uint64, peers int, c nodetest.Chaos) nodetest.Crawl {
	o := nodetest.SimOptions{Seed: seed, World: equivalenceWorld(seed),
		Node:      node.Options{Delay: time.Second, KeepBodies: true, Partition: partition.ModeGeo, CellLevel: 4},
		SliceBits: 6}
	o.World.Places = geoWorld().Places
	for _, p := range o.World.Places[1:] {
		o.Homes = append(o.Homes, partition.Point{Lat: p.Lat, Lon: p.Lon})
	}
	return crawlSim(t, o, peers, c)
}

func crawlSim(t *testing.T, o nodetest.SimOptions, peers int, c nodetest.Chaos) (out nodetest.Crawl) {
	begun := time.Now()
	var fake time.Duration
	nodetest.RunSim(t, o, func(s *nodetest.Sim) {
		start := time.Now()
		for range peers {
			s.Add()
		}
		s.Settle(time.Minute)
		s.Seed()
		s.Rage(c)
		s.Settle(3 * time.Minute)
		waitReleased(t, s, 30*time.Minute)
		fake = time.Since(start)
		out = s.Outcome()
		checkSim(t, s)
	})
	t.Logf("%s of fake time in %s", fake.Round(time.Millisecond), time.Since(begun).Round(time.Millisecond))
	return out
}

// waitReleased waits until the swarm is idle, releases the Keys in quarantine as a person would,
// and waits again. A crash while a page is judged, or before a majority knows that judging ended,
// counts against the page. Two such crashes put any page into quarantine (decision 0020), and a run
// has about twenty crashes.
func waitReleased(t *testing.T, s *nodetest.Sim, most time.Duration) {
	t.Helper()
	s.WaitIdle(s.Peers[s.Rand.IntN(len(s.Peers))], most)
	if n := s.Release(); n > 3 {
		t.Errorf("%d pages are in quarantine", n)
	} else if n > 0 {
		t.Logf("%d pages were in quarantine", n)
		s.WaitIdle(s.Peers[s.Rand.IntN(len(s.Peers))], most)
	}
}

// TestEquivalence is the proof of I1 to I8 together. A world is crawled by one peer, by five, and
// by five with faults. Any of those may crash, stall, join, be cut off, or get messages twice or
// never. Each crawl ends with the same records and the same answers, and no site gets requests too
// fast. The plan of a seed can be repeated, but the order in which goroutines run cannot.
func TestEquivalence(t *testing.T) {
	if testing.Short() {
		t.Skip("minutes")
	}
	racetest.OneProcessor(t)
	first, last := uint64(1), uint64(*seeds)
	if *oneSeed != 0 {
		first, last = *oneSeed, *oneSeed
	} else if racetest.Enabled {
		last = min(last, 1)
	}
	var alone [worlds]nodetest.Crawl
	var once [worlds]sync.Once
	for seed := first; seed <= last; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			w := seed % worlds
			once[w].Do(func() { alone[w] = crawl(t, seed, 1, nodetest.Chaos{}) })
			same := func(what string, got nodetest.Crawl) {
				t.Helper()
				for _, d := range alone[w].Differences(got) {
					t.Errorf("%s: %s", what, d)
				}
				if t.Failed() {
					fmt.Fprintf(os.Stderr, "repeat with: go test ./node -run 'TestEquivalence$' -seed %d -v\n", seed)
				}
			}
			if seed < first+worlds && !racetest.Enabled {
				same("five peers", crawl(t, seed, 5, nodetest.Chaos{}))
			}
			same("five peers and chaos", crawl(t, seed, 5, mostChaos()))
		})
	}
}

// TestGeoEquivalence is TestEquivalence in geo mode, for every twelfth seed. There the registrar
// knows a Key and a cell crawls it, and both may fail.
func TestGeoEquivalence(t *testing.T) {
	if testing.Short() || racetest.Enabled {
		t.Skip("minutes; with the race detector TestGeoSwarm and its like are run")
	}
	first, last := uint64(1), uint64(max(*seeds/12, 1))
	if *oneSeed != 0 {
		first, last = *oneSeed, *oneSeed
	}
	for seed := first; seed <= last; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			alone := crawlGeo(t, seed, 1, nodetest.Chaos{})
			for _, d := range alone.Differences(crawlGeo(t, seed, 5, mostChaos())) {
				t.Error(d)
			}
		})
	}
}
