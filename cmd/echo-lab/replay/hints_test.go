package replay

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/echo-node/echo-node/cmd/echo-lab/contest"
	"github.com/echo-node/echo-node/partition/racetest"
)

const warm = 0.4 // time to learn in

// play crawls a population with sitemaps of the kind hints, in fake time.
func play(t *testing.T, population string, hints Hints, seed uint64) (r Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		items := 400
		if racetest.Enabled {
			items = 100
		}
		w, err := contest.Populate(population, items, 60, rand.New(rand.NewPCG(seed, seed)))
		if err != nil {
			t.Fatal(err)
		}
		r = replayed(t, Options{World: w, Budget: 8, Warm: warm, Seeds: 2, Hints: hints})
	})
	return r
}

// At an equal budget, including sitemaps, true hints make the crawl fresher by at least three
// points. Compared with sitemaps without times, lies cost at most one and a half points. After
// a time of truth they cost at most four, until the crawler notices them.
func TestHintsMakeFresher(t *testing.T) {
	if racetest.Enabled {
		if r := play(t, "a", Truthful, 3); r.Hints["followed"] == 0 || r.Hints["right"] < 5*r.Hints["wrong"] {
			t.Errorf("%v", r.Hints)
		}
		return // the figures need no detector, which takes ten times as long
	}
	results := map[Hints]Result{}
	for _, h := range []Hints{Undated, Truthful, Lying, Betrayal} {
		r := play(t, "a", h, 3)
		t.Logf("%-9s freshness %.4f, age %.3f days, %.0f visits and %d sitemaps; hints %v, revisits %v", h,
			r.Crawler.Freshness, r.Crawler.AgeDays, r.Crawler.Visits, r.Lists, r.Hints, r.Found)
		results[h] = r
	}
	without := results[Undated]
	for h, least := range map[Hints]float64{Truthful: 3, Lying: -1.5, Betrayal: -4} {
		r := results[h]
		if gain := 100 * (r.Crawler.Freshness - without.Crawler.Freshness); !(gain >= least) {
			t.Errorf("%s: %+.2f points of freshness, want %+.1f at least", h, gain, least)
		}
		spent := func(r Result) float64 { return r.Crawler.Visits + (1-warm)*float64(r.Lists) }
		if spent(r) > 1.05*spent(without) {
			t.Errorf("%s: %.0f visits and sitemaps, without hints %.0f", h, spent(r), spent(without))
		}
	}
}
