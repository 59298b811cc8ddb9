package node_test

import (
	"slices"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/nodetest"
	"github.com/echo-node/echo-node/partition"
)

// The sites of a dead peer are fetched again when its leases have run out and their delay is over.
// That holds although another peer falls silent just then. It delays only the slices that need its
// vote.
func TestTakeoverBesideASilentReplica(t *testing.T) {
	const (
		silence = 4 * time.Second // after the death; campaigns begin before the membership notices
		soon    = 8 * time.Second // a 5 s lease, a 1 s delay, two ballots that wait for the silent
	)
	visits := &crawltest.Visits{}
	world := crawltest.Options{Seed: 5, Sites: 48, Pages: 40, Words: 20, Gap: time.Second, Seen: visits.Add}
	nodetest.RunSim(t, nodetest.SimOptions{Seed: 3, World: world, Node: node.Options{Delay: time.Second}, SliceBits: 6},
		func(s *nodetest.Sim) {
			for range 6 {
				s.Add()
			}
			s.Settle(time.Minute)
			s.Seed()
			time.Sleep(10 * time.Second)
			dead, silent := s.Peers[4], s.Peers[5]
			waits := map[int]time.Duration{} // sites of the dead that do not need the silent
			others := 0
			for site := range s.World.Sites() {
				k, err := partition.ParseKey(s.World.Home(site))
				if err != nil {
					t.Fatal(err)
				}
				o, err := s.Peers[0].Node().API().Owner(t.Context(), k)
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case o.Replicas[0] != dead.ID:
				case slices.Contains(o.Replicas, silent.ID):
					others++
				default:
					waits[site] = 0
				}
			}
			if len(waits) == 0 || others == 0 {
				t.Fatalf("%d sites need not wait, %d need: another seed", len(waits), others)
			}
			died := time.Now()
			s.Crash(dead)
			time.Sleep(silence)
			s.Lag(silent, time.Minute)
			time.Sleep(2*soon - silence)
			s.Lag(silent, 0)
			for _, v := range visits.Sorted() {
				if wait, ours := waits[v.Site]; ours && wait == 0 && v.At.After(died) {
					waits[v.Site] = v.At.Sub(died)
				}
			}
			for site, wait := range waits {
				if t.Logf("site %d is asked again after %s", site, wait); wait == 0 || wait > soon {
					t.Errorf("site %d is asked again after %s, want at most %s", site, wait, soon)
				}
			}
		})
}
