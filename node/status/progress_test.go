package status

import (
	"testing"
	"time"
)

// The rate is the mean of the last minute, and the time left follows from it.
func TestProgressOfTheLastMinute(t *testing.T) {
	start := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	var p progress
	if got := p.of(start, 0, 0, 0); got.Done != 0 || got.Rate != 0 || got.Left != 0 {
		t.Errorf("of nothing: %+v", got)
	}
	fetches := int64(0)
	for s := 0; s < 600; s += 5 { // ten a second, then one a second in the last two minutes
		at := start.Add(time.Duration(s) * time.Second)
		p.note(at, fetches)
		if s < 480 {
			fetches += 50
		} else {
			fetches += 5
		}
	}
	at := start.Add(600 * time.Second)
	if got := p.of(at, 6000, 1500, fetches); got.Done != 0.75 || got.Rate != 1 || got.Left != 1500 {
		t.Errorf("after ten minutes: %+v, want 0.75 done, 1 a second, 1500 s left", got)
	}
	if len(p.samples) > int(progressSpan/progressEvery)+1 {
		t.Errorf("%d samples are kept", len(p.samples))
	}
	if got := p.of(at, 6000, 1500, p.samples[0].fetches); got.Rate != 0 || got.Left != 0 {
		t.Errorf("where nothing is fetched: %+v", got)
	}
}
