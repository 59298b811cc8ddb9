package replay

import (
	"math"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/cmd/echo-lab/contest"
	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
)

// replayed returns the result of a replay with the options o, in fake time and in memory.
func replayed(t *testing.T, o Options) Result {
	t.Helper()
	o.Speed, o.Store = 20_000, &store.Options{FS: vfs.NewMem(), Charter: partition.DefaultCharter("test", "founder")}
	o.Carry = func(h http.Handler) http.RoundTripper { return crawltest.Transport(h, netip.Addr{}) }
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func asFresh(t *testing.T, r Result) {
	t.Helper()
	t.Logf("%+v", r)
	if !(math.Abs(r.Points) <= 3) {
		t.Errorf("the crawler's freshness is %.4f, the simulator's %.4f", r.Crawler.Freshness, r.Simulator.Freshness)
	}
}

// The real crawler is as fresh as the simulator says, in fake time. The population has frequent
// and rare changes, and items that are born during the run.
func TestCrawlerIsAsFreshAsTheSimulator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		items := 400
		if racetest.Enabled {
			items = 200
		}
		w, err := contest.Populate("a", items, 30, rand.New(rand.NewPCG(3, 3)))
		if err != nil {
			t.Fatal(err)
		}
		for i := range w.Things[:items/10] { // later than all others
			th := &w.Things[i]
			th.Born = w.From + int64(i+1)*86400/2
			for len(th.Changes) > 0 && th.Changes[0] <= th.Born {
				th.Changes = th.Changes[1:]
			}
		}
		r := replayed(t, Options{World: w, Budget: 8, Warm: 0.2, Seeds: 5})
		asFresh(t, r)
		if r.Spent < 0.8 || r.Spent > 1.2 {
			t.Errorf("%.0f visits, the simulator made %.0f", r.Crawler.Visits, r.Simulator.Visits)
		}
		if r.Stale > 0 {
			t.Errorf("of %d items the store has another edition than was given last", r.Stale)
		}
		if r.Same == 0 || r.Found["changed"] == 0 || r.Found["unchanged"] <= int64(r.Same) {
			t.Errorf("%d answers 304; found: %v", r.Same, r.Found)
		}
	})
}

// If the world is only two mean intervals long, the crawler makes all its visits, too. Items
// found together at the start do not wait together.
func TestCrawlerSpendsASmallBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := contest.Populate("a", 300, 30, rand.New(rand.NewPCG(4, 3)))
		if err != nil {
			t.Fatal(err)
		}
		r := replayed(t, Options{World: w, Budget: 2, Warm: 0.2, Seeds: 5})
		asFresh(t, r)
		if r.Spent < 0.85 || r.Spent > 1.15 {
			t.Errorf("%.0f visits, the simulator made %.0f", r.Crawler.Visits, r.Simulator.Visits)
		}
	})
}

func TestOptions(t *testing.T) {
	if _, err := Run(t.Context(), Options{Budget: -1, Speed: 1}); err == nil {
		t.Error("no world and a negative budget are taken")
	}
}
