package main

import (
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest"
)

// A kill explains one repeated fetch per site, of a page fetched just before it, and nothing
// else.
func TestAKillExplainsWhatWasInFlight(t *testing.T) {
	killed := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	fetched := func(url string, before, again time.Duration) crawltest.Repeat {
		return crawltest.Repeat{URL: url, Before: killed.Add(before), Again: killed.Add(again)}
	}
	for name, c := range map[string]struct {
		repeats []crawltest.Repeat
		want    int64
	}{
		"none":      {nil, 0},
		"in flight": {[]crawltest.Repeat{fetched("http://a.test/1", -time.Second, 8*time.Second)}, 1},
		"on its way at the kill": {[]crawltest.Repeat{fetched("http://a.test/1", 100*time.Millisecond,
			8*time.Second)}, 1},
		"one of each site": {[]crawltest.Repeat{fetched("http://a.test/1", -time.Second, 8*time.Second),
			fetched("http://b.test/1", -time.Second, 8*time.Second)}, 2},
		"two of a site": {[]crawltest.Repeat{fetched("http://a.test/1", -time.Second, 8*time.Second),
			fetched("http://a.test/2", -time.Second, 9*time.Second)}, 1},
		"fetched long before": {[]crawltest.Repeat{fetched("http://a.test/1", -4*time.Second, 8*time.Second)},
			0},
		"again before the kill": {[]crawltest.Repeat{fetched("http://a.test/1", -2*time.Second, -time.Second)}, 0},
		"a third time": {[]crawltest.Repeat{fetched("http://a.test/1", -time.Second, 8*time.Second),
			fetched("http://a.test/1", 8*time.Second, 12*time.Second)}, 1},
		"first fetched after a kill": {[]crawltest.Repeat{fetched("http://a.test/1", time.Second, 8*time.Second)}, 0},
	} {
		if got := (Answer{Report: crawltest.Report{Repeats: c.repeats}}).inFlight(killed,
			3*time.Second); got != c.want {
			t.Errorf("%s: %d explained, want %d", name, got, c.want)
		}
	}
	if !(Answer{Missing: 1}).wrong(false) || (Answer{}).wrong(false) || !(Answer{}).wrong(true) {
		t.Error("a missing page, nothing, and a repeat without cause are not told apart")
	}
}

// The longest pause is one that ends after the given time, and only its part after that time
// counts.
func TestThePauseSinceATime(t *testing.T) {
	at := func(seconds int) time.Time { return time.Date(2026, 3, 2, 8, 0, seconds, 0, time.UTC) }
	a := Answer{Report: crawltest.Report{Pauses: []crawltest.Pause{{From: at(0), To: at(9)}, {From: at(10), To: at(17)},
		{From: at(20), To: at(23)}}}}
	for since, want := range map[int]time.Duration{0: 9 * time.Second, 8: 7 * time.Second, 15: 3 * time.Second,
		16: 3 * time.Second, 22: time.Second, 30: 0} {
		if got := a.pause(at(since)); got != want {
			t.Errorf("after %d s: %v, want %v", since, got, want)
		}
	}
}
