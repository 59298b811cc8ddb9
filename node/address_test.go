package node_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/nodetest"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
)

// sharedWorld has 50 domains on one public address.
func sharedWorld(v *crawltest.Visits) crawltest.Options {
	return crawltest.Options{Seed: 5, Sites: 50, Pages: 4, Words: 30, Seeds: 10, Names: true, Shared: 50,
		Prefix: "11.77", Plain: true, Think: 30 * time.Millisecond, Gap: time.Second, Seen: v.Add}
}

// gaps returns the smallest gap between the requests to an address, their duration and their
// number.
func gaps(v *crawltest.Visits) (smallest, took time.Duration, n int) {
	all := v.Sorted()
	for i := range all[min(1, len(all)):] {
		if gap := all[i+1].At.Sub(all[i].At); smallest == 0 || gap < smallest {
			smallest = max(gap, 1)
		}
	}
	return smallest, all[len(all)-1].At.Sub(all[0].At), len(all)
}

// An address that serves 50 domains has one pace, whichever of five peers crawl them. Taking host
// leases costs little of that pace.
func TestSharedAddress(t *testing.T) {
	racetest.OneProcessor(t)
	var v crawltest.Visits
	w := sharedWorld(&v)
	if racetest.Small(t) {
		w.Sites, w.Shared, w.Pages = 20, 20, 2
	}
	o := nodetest.SimOptions{World: w, Node: node.Options{Delay: time.Second, Contact: "test@example.org"},
		SliceBits: 6}
	nodetest.RunSim(t, o, func(s *nodetest.Sim) {
		for range 5 {
			s.Add()
		}
		s.Settle(time.Minute)
		time.Sleep(15 * time.Second) // no owner is new any more
		s.Seed()
		s.WaitIdle(s.Peers[0], 60*time.Minute)
		checkSim(t, s)
		peers := 0
		for _, p := range s.Peers {
			if st := p.Node().Status(); st.Requests > 0 {
				peers++
			}
		}
		smallest, took, n := gaps(&v)
		rate := float64(n-1) / took.Seconds()
		t.Logf("%d requests of %d peers in %s: %.3f a second, smallest gap %s", n, peers, took, rate, smallest)
		if smallest < time.Second || peers < 5 {
			t.Errorf("smallest gap %s, %d peers", smallest, peers)
		}
		if rate < 0.9 {
			t.Errorf("%.3f requests a second, of 1 allowed", rate)
		}
	})
}

// The owner of the address's Key dies during the crawl, and then a peer pauses. The gap holds, and
// the crawl completes.
func TestSharedAddressLosesItsOwner(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	var v crawltest.Visits
	o := nodetest.SimOptions{World: sharedWorld(&v),
		Node: node.Options{Delay: time.Second, Contact: "test@example.org"}, SliceBits: 6}
	nodetest.RunSim(t, o, func(s *nodetest.Sim) {
		for range 5 {
			s.Add()
		}
		s.Settle(time.Minute)
		s.Seed()
		ip, err := partition.ParseKey("ip:" + s.World.Addr(0).String())
		if err != nil {
			t.Fatal(err)
		}
		for round := range 3 {
			time.Sleep(40 * time.Second)
			up := s.Peers[slices.IndexFunc(s.Peers, func(p *nodetest.SimPeer) bool { return p.Node() != nil })]
			own, err := up.Node().API().Owner(t.Context(), ip)
			if err != nil {
				t.Fatal(err)
			}
			owner := s.Peers[slices.IndexFunc(s.Peers,
				func(p *nodetest.SimPeer) bool { return p.ID == own.Replicas[0] })]
			if round < 2 {
				s.Crash(owner)
				time.Sleep(20 * time.Second)
				s.Start(owner)
			} else {
				s.Pause(owner, 10*time.Second)
				time.Sleep(20 * time.Second)
				s.Resume(owner)
			}
		}
		s.WaitIdle(s.Peers[0], 60*time.Minute)
		checkSim(t, s)
		smallest, took, n := gaps(&v)
		t.Logf("%d requests in %s, smallest gap %s", n, took, smallest)
		if smallest < time.Second {
			t.Errorf("smallest gap %s", smallest)
		}
	})
}

// chaoticWorld has 40 domains on eight public addresses.
func chaoticWorld(v *crawltest.Visits) crawltest.Options {
	return crawltest.Options{Seed: 6, Sites: 40, Pages: 8, Words: 30, Names: true, Shared: 5, Prefix: "11.77",
		Think: 30 * time.Millisecond, Gap: time.Second, Seen: v.Add}
}

// With crashes, pauses, network cuts, slow and lost messages, and joins, the guarantees of host
// leases hold at every address, and the crawl completes.
func TestSharedAddressesInChaos(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	for seed := uint64(1); seed <= 2; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			var v crawltest.Visits
			o := nodetest.SimOptions{Seed: seed, World: chaoticWorld(&v),
				Node: node.Options{Delay: time.Second, Contact: "test@example.org"}}
			nodetest.RunSim(t, o, func(s *nodetest.Sim) {
				for range 5 {
					s.Add()
				}
				s.Settle(time.Minute)
				s.Seed()
				s.Rage(mostChaos())
				s.Settle(3 * time.Minute)
				s.WaitIdle(s.Peers[0], 60*time.Minute)
				checkSim(t, s)
				by := map[int]*crawltest.Visits{}
				for _, one := range v.Sorted() {
					at := one.Site / o.World.Shared
					if by[at] == nil {
						by[at] = &crawltest.Visits{}
					}
					by[at].Add(one)
				}
				for at, v := range by {
					smallest, took, n := gaps(v)
					t.Logf("address %d: %d requests in %s, smallest gap %s", at, n, took, smallest)
					if smallest < time.Second {
						t.Errorf("address %d: smallest gap %s", at, smallest)
					}
				}
			})
		})
	}
}

// Sites with an address each are crawled as fast as without host leases. Requests for leases are
// far fewer than fetches.
func TestAddressesOfTheirOwn(t *testing.T) {
	racetest.OneProcessor(t)
	var v crawltest.Visits
	w := chaoticWorld(&v)
	w.Shared, w.Sites, w.Pages, w.Plain = 1, 20, 24, true
	o := nodetest.SimOptions{World: w, Node: node.Options{Delay: time.Second, Contact: "test@example.org"},
		SliceBits: 6}
	nodetest.RunSim(t, o, func(s *nodetest.Sim) {
		for range 5 {
			s.Add()
		}
		s.Settle(time.Minute)
		time.Sleep(15 * time.Second)
		s.Seed()
		s.WaitIdle(s.Peers[0], 60*time.Minute)
		checkSim(t, s)
		_, took, n := gaps(&v)
		questions := 0.0
		for _, p := range s.Peers {
			for _, m := range p.Node().API().Metrics() {
				if m.Name == "echo_host_leases_asked_total" {
					questions += m.Value
				}
			}
		}
		t.Logf("%d requests in %s, %.0f questions", n, took, questions)
		// 25 requests to a site, each a second plus the response time apart
		if fair := 32 * time.Second; took > fair || questions > float64(n)/3 {
			t.Errorf("%d requests in %s, want %s; %.0f questions", n, took, fair, questions)
		}
	})
}

// The same in real time over real sockets: several domains on one loopback address, which has a
// pace because the operator sets one.
func TestSharedLoopbackAddress(t *testing.T) {
	racetest.Skip(t)
	if testing.Short() {
		t.Skip("some seconds")
	}
	var v crawltest.Visits
	w := crawltest.Options{Seed: 8, Sites: 20, Pages: 2, Words: 30, Seeds: 10, Names: true, Shared: 20, Plain: true,
		Seen: v.Add}
	s := nodetest.New(t, nodetest.Options{World: w,
		Node: node.Options{Delay: 200 * time.Millisecond, Hosts: crawltest.NewWorld(w).Hosts()}})
	for range 3 {
		s.Add()
	}
	s.Settle(3)
	s.Seed()
	s.WaitIdle()
	smallest, took, n := gaps(&v)
	rate := float64(n-1) / took.Seconds()
	t.Logf("%d requests in %s: %.2f a second, smallest gap %s", n, took, rate, smallest)
	if smallest < 200*time.Millisecond || !racetest.Enabled && rate < 0.5*5 { // the machine may be busy
		t.Errorf("smallest gap %s, %.2f requests a second", smallest, rate)
	}
	if d := s.World.Compare(s.World.Expected(s.World.Seeds())); len(d.Missing) > 0 {
		t.Errorf("missing %v", head(d.Missing))
	}
}
