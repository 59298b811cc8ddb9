package node_test

import (
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/nodetest"
)

func smallWorld() crawltest.Options {
	return crawltest.Options{Seed: 7, Sites: 24, Pages: 6, Words: 40}
}

// checkWorld compares what the world saw with what is true of it.
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
		t.Errorf("robots violations %d, private addresses %d %v, pages before robots.txt %d", r.RobotsViolations, r.Forbidden, r.ForbiddenFirst, r.BeforeRobots)
	}
	if r.MaxAtOnce > 1 {
		t.Errorf("%d requests at once to one site", r.MaxAtOnce)
	}
}

func head(s []string) []string { return s[:min(len(s), 5)] }

// ranked asks p for every word of the world and gives the ranked keys.
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
		a, err := p.Query(t.Context(), api.Query{Q: w, Limit: node.MaxQueryHits})
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

// One peer and five crawl the same world to the same set, and any of the five
// ranks as the one does.
func TestSwarmCrawlsAsOnePeer(t *testing.T) {
	alone := nodetest.New(t, nodetest.Options{World: smallWorld()})
	one := alone.Add()
	alone.Settle(1)
	alone.Seed()
	alone.WaitIdle()
	checkWorld(t, alone, 0)
	want := ranked(t, alone, one)

	swarm := nodetest.New(t, nodetest.Options{World: smallWorld()})
	for range 5 {
		swarm.Add()
	}
	swarm.Settle(5)
	swarm.Seed()
	swarm.WaitIdle()
	checkWorld(t, swarm, 0)
	var out, in int64
	for _, p := range swarm.Peers {
		st := p.Status()
		if st.Fetched == 0 {
			t.Errorf("%s fetched nothing", p.Name)
		}
		out, in = out+st.LinksOut, in+st.LinksIn
	}
	if out == 0 || in < out { // more when an answer got lost and the link was sent again
		t.Errorf("links handed out %d, received %d", out, in)
	}
	if len(want) == 0 {
		t.Fatal("the words of the world match nothing")
	}
	for _, p := range []*nodetest.Peer{swarm.Peers[0], swarm.Peers[4]} {
		if d := cmp.Diff(withoutPort(want), withoutPort(ranked(t, swarm, p))); d != "" {
			t.Errorf("%s ranks otherwise than one peer alone:\n%s", p.Name, d)
		}
	}
}

// withoutPort makes the keys of two worlds comparable: their ports differ.
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

// A peer that goes away in the middle keeps its slices, is named missing, and
// continues where it was.
func TestRestartLosesNothing(t *testing.T) {
	s := nodetest.New(t, nodetest.Options{World: smallWorld(), Node: node.Options{Delay: 20 * time.Millisecond}})
	for range 3 {
		s.Add()
	}
	s.Settle(3)
	s.Seed()
	victim := s.Peers[2]
	s.Until("the victim fetches", time.Minute, func() (bool, string) { return victim.Status().Fetched > 3, "" })
	before := victim.Status()
	slices := before.Slices
	if err := victim.Stop(); err != nil {
		t.Fatal(err)
	}
	s.Until("it is missed", 30*time.Second, func() (bool, string) { return s.Peers[0].Status().Peers == 2, "" })
	a, err := s.Peers[0].Query(t.Context(), api.Query{Q: s.World.Words()[0]})
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Coverage.Missing) != 1 || a.Coverage.Missing[0].Slices != slices || a.Coverage.SlicesAnswered != a.Coverage.SlicesTotal-slices {
		t.Errorf("coverage while it is away: %+v, it has %d slices", a.Coverage, slices)
	}
	if s.Peers[0].Status().Slices+s.Peers[1].Status().Slices+slices != a.Coverage.SlicesTotal {
		t.Error("its slices moved")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := s.Peers[0].WaitIdle(ctx, 200*time.Millisecond); err == nil {
		t.Error("the swarm was called idle without it")
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	s.Settle(3)
	s.WaitIdle()
	checkWorld(t, s, before.Fetching+2) // what was in flight, and what began between Status and Stop
	ranked(t, s, s.Peers[1])
}

// Peers that join in the middle of a crawl take slices over with what is in
// them (I4): nothing is lost, nothing is fetched twice.
func TestI4JoinDuringTheCrawl(t *testing.T) {
	s := nodetest.New(t, nodetest.Options{World: smallWorld(), Node: node.Options{Delay: 20 * time.Millisecond}})
	first := s.Add()
	s.Settle(1)
	s.Seed()
	s.Until("the first fetches", time.Minute, func() (bool, string) { return first.Status().Fetched > 10, "" })
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
