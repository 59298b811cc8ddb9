package node_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/nodetest"
	"github.com/echo-node/echo-node/node/search"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
)

func smallWorld() crawltest.Options {
	return crawltest.Options{Seed: 7, Sites: 24, Pages: 6, Words: 40}
}

// checkWorld compares what the world saw with the expected result.
func checkWorld(t *testing.T, s *nodetest.Swarm, twiceAllowed int) {
	t.Helper()
	expected := s.World.Expected(s.World.Seeds())
	d, r := s.World.Compare(expected), s.World.Report()
	if len(d.Missing)+len(d.Extra) > 0 {
		t.Errorf("missing %d %v, extra %d %v", len(d.Missing), head(d.Missing), len(d.Extra), head(d.Extra))
	}
	if len(d.Twice) > twiceAllowed {
		t.Errorf("%d pages fetched twice (%d allowed): %v", len(d.Twice), twiceAllowed, head(d.Twice))
	}
	if r.RobotsViolations+r.Forbidden+r.BeforeRobots > 0 {
		t.Errorf("robots violations %d, private addresses %d %v, pages before robots.txt %d", r.RobotsViolations,
			r.Forbidden, r.ForbiddenFirst, r.BeforeRobots)
	}
	if r.MaxAtOnce > 1 {
		t.Errorf("%d requests at once to one site", r.MaxAtOnce)
	}
}

func head(s []string) []string { return s[:min(len(s), 5)] }

// ranked queries p for every word of the world and returns the ranked keys.
func ranked(t *testing.T, s *nodetest.Swarm, p *nodetest.Peer) map[string][]string {
	t.Helper()
	for _, x := range s.Peers {
		if x.Node == nil {
			continue
		}
		if err := x.FlushIndex(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	out := map[string][]string{}
	for _, w := range s.World.Words() {
		a, err := p.Search().Query(t.Context(), api.Query{Q: w, Limit: search.MaxHits, Unfold: true})
		if err != nil {
			t.Fatal(err)
		}
		if a.Coverage.SlicesAnswered != a.Coverage.SlicesTotal || len(a.Coverage.Missing) > 0 {
			t.Errorf("query %q: %+v", w, a.Coverage)
		}
		for _, h := range a.Hits {
			out[w] = append(out[w], string(h.Key))
		}
		want := s.World.Matching(w, s.World.Expected(s.World.Seeds()))
		if len(out[w]) != len(want) || len(want) == 0 {
			t.Errorf("query %q: %d hits, %d are true", w, len(out[w]), len(want))
		}
	}
	return out
}

// One peer and five peers crawl the same set of the same world, and each of the five ranks like the
// one.
func TestSwarmCrawlsAsOnePeer(t *testing.T) {
	alone := nodetest.New(t, nodetest.Options{World: smallWorld()})
	one := alone.Add()
	alone.Settle(1)
	alone.Seed()
	alone.WaitIdle()
	checkWorld(t, alone, 0)
	want, stopped := ranked(t, alone, one), siteStops(t, alone)

	swarm := nodetest.New(t, nodetest.Options{World: smallWorld()})
	for range 5 {
		swarm.Add()
	}
	swarm.Settle(5)
	swarm.Seed()
	swarm.WaitIdle()
	checkWorld(t, swarm, 0)
	var out, in int64
	var without []string
	for _, p := range swarm.Peers {
		st := p.Status()
		if st.Fetched == 0 {
			without = append(without, p.Name)
		}
		out, in = out+st.LinksOut, in+st.LinksIn
	}
	// Identities are random. One given peer has none of 24 sites once in 200 runs; two peers have
	// none once in 20,000.
	if len(without) > 1 {
		t.Errorf("%v fetched nothing", without)
	}
	if out == 0 || in < out { // more when a response got lost and the link was sent again
		t.Errorf("links handed out %d, received %d", out, in)
	}
	if len(want) == 0 {
		t.Fatal("the words of the world match nothing")
	}
	if d := cmp.Diff(stopped, siteStops(t, swarm)); d != "" {
		t.Errorf("other stops than with one peer:\n%s", d)
	}
	for _, p := range []*nodetest.Peer{swarm.Peers[0], swarm.Peers[4]} {
		if d := cmp.Diff(withoutPort(want), withoutPort(ranked(t, swarm, p))); d != "" {
			t.Errorf("%s ranks otherwise than one peer alone:\n%s", p.Name, d)
		}
	}
}

// onePageASite checks that a lost peer alone had at most one page of each site. It fetches a second
// page of a site only after other replicas have the first.
func onePageASite(t *testing.T, s *nodetest.Swarm) {
	t.Helper()
	if second := s.World.Compare(s.World.Expected(s.World.Seeds())).SecondOfASite(); len(second) > 0 {
		t.Errorf("a second page of a site was fetched twice: %v", second)
	}
}

// siteStops returns what stopped at each site. It asks a different peer for each site.
func siteStops(t *testing.T, s *nodetest.Swarm) (out []map[string]int64) {
	t.Helper()
	for i := range s.World.Sites() {
		k, err := partition.ParseKey(s.World.Home(i))
		if err != nil {
			t.Fatal(err)
		}
		shown, err := s.Peers[i%len(s.Peers)].API().Show(t.Context(), k)
		if err != nil || shown.Site == nil || shown.Site.Fetched == 0 {
			t.Fatalf("%s: %v, %+v", k, err, shown)
		}
		out = append(out, shown.Site.Stops)
	}
	if out[5]["robots"] != 2 { // two pages that robots.txt disallows and the home page links
		t.Errorf("site 5: %v", out[5])
	}
	return out
}

// withoutPort makes the keys of two worlds comparable, because their ports differ.
func withoutPort(ranked map[string][]string) map[string][]string {
	port := regexp.MustCompile(`:\d+/`)
	out := map[string][]string{}
	for w, keys := range ranked {
		for _, k := range keys {
			out[w] = append(out[w], port.ReplaceAllString(k, "/"))
		}
	}
	return out
}

// sliceBits returns the charter's default, which gives 4,096 slices, or a value for 1,024.
func sliceBits(small bool) int {
	if small {
		return 10
	}
	return 12
}

// A peer that dies during the crawl is replaced by its fellow replicas. Every slice is answered for
// at once and crawled again after the lease, and the crawl ends without the peer. When it comes
// back, it takes its place again.
func TestDeadPeerIsReplaced(t *testing.T) {
	s := nodetest.New(t, nodetest.Options{World: smallWorld(),
		Node: node.Options{Delay: 50 * time.Millisecond, SliceBits: sliceBits(racetest.Small(t))}})
	for range 3 {
		s.Add()
	}
	s.Settle(3)
	s.Seed()
	victim := s.Peers[2]
	s.Until("the victim fetches", 5*time.Minute, func() (bool, string) { return victim.Status().Fetched > 3, "" })
	if err := victim.Stop(); err != nil {
		t.Fatal(err)
	}
	died := time.Now()
	s.Until("it is missed", 3*time.Minute, func() (bool, string) {
		return s.Peers[0].Status().Peers == 2 && s.Peers[1].Status().Peers == 2, ""
	})
	a, err := s.Peers[0].Search().Query(t.Context(), api.Query{Q: s.World.Words()[0]})
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Coverage.Missing) != 0 || a.Coverage.SlicesAnswered != a.Coverage.SlicesTotal {
		t.Errorf("coverage while it is away: %+v", a.Coverage)
	}
	s.Until("the others act in all slices", 3*time.Minute, func() (bool, string) {
		n := s.Peers[0].Status().Slices + s.Peers[1].Status().Slices
		return n == a.Coverage.SlicesTotal, fmt.Sprintf("%d of %d", n, a.Coverage.SlicesTotal)
	})
	t.Logf("taken over %s after the death", time.Since(died).Round(10*time.Millisecond))
	s.WaitIdle()
	checkWorld(t, s, s.World.Sites())
	onePageASite(t, s)
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	s.Settle(3)
	checkWorld(t, s, s.World.Sites())
	onePageASite(t, s)
	ranked(t, s, victim)
	if st := victim.Status(); st.Slices == 0 {
		t.Error("it did not get its slices back")
	}
}

// TestI8QueriesFollowTheOwner: only the owner of a slice has it in its index. The answers are
// complete and the same when the owner has just died, after another has taken over, and after it is
// back.
func TestI8QueriesFollowTheOwner(t *testing.T) {
	s := nodetest.New(t, nodetest.Options{World: smallWorld(),
		Node: node.Options{SliceBits: sliceBits(racetest.Small(t))}})
	for range 3 {
		s.Add()
	}
	s.Settle(3)
	s.Seed()
	s.WaitIdle()
	want := ranked(t, s, s.Peers[0])
	same := func(when string, p *nodetest.Peer) {
		t.Helper()
		if d := cmp.Diff(want, ranked(t, s, p)); d != "" {
			t.Errorf("%s, %s answers otherwise:\n%s", when, p.Name, d)
		}
	}
	victim := s.Peers[2]
	total := s.Peers[0].Status().Slices + s.Peers[1].Status().Slices + victim.Status().Slices
	if err := victim.Stop(); err != nil {
		t.Fatal(err)
	}
	s.Until("it is missed", 30*time.Second, func() (bool, string) {
		n := max(s.Peers[0].Status().Peers, s.Peers[1].Status().Peers)
		return n == 2, fmt.Sprint(n)
	})
	same("while nobody owns them", s.Peers[0])
	s.Until("the others act in all slices", 30*time.Second, func() (bool, string) {
		n := s.Peers[0].Status().Slices + s.Peers[1].Status().Slices
		return n == total, fmt.Sprintf("%d of %d", n, total)
	})
	same("after the take-over", s.Peers[1])
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	s.Settle(3)
	same("when it is back", victim)
	same("when it is back", s.Peers[1])
}

// Peers that join during a crawl take slices over with their rows (I4). Nothing is lost, and
// nothing is fetched twice.
func TestI4JoinDuringTheCrawl(t *testing.T) {
	s := nodetest.New(t, nodetest.Options{World: smallWorld(), Node: node.Options{Delay: 20 * time.Millisecond}})
	first := s.Add()
	s.Settle(1)
	s.Seed()
	s.Until("the first fetches", 5*time.Minute, func() (bool, string) { return first.Status().Fetched > 10, "" })
	s.Add()
	s.Add()
	s.Settle(3)
	s.WaitIdle()
	checkWorld(t, s, 0)
	ranked(t, s, s.Peers[2])
	for _, p := range s.Peers[1:] {
		if st := p.Status(); st.Records == 0 || st.Slices == 0 {
			t.Errorf("%s holds %d records in %d slices", p.Name, st.Records, st.Slices)
		}
	}
}
