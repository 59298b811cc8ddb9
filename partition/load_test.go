package partition

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// after gives l one Load per second for d and returns the step.
func after(l *LoadSteps, now *time.Time, d time.Duration, x Load) (step int) {
	for end := now.Add(d); now.Before(end); *now = now.Add(time.Second) {
		step = l.Next(*now, x)
	}
	return step
}

// A step changes only after its reason lasted for LoadPatience. A stop gives nearly all weight
// away, and its end restores it.
func TestLoadSteps(t *testing.T) {
	var l LoadSteps
	now := time.Unix(1e9, 0)
	for i, c := range []struct {
		for_ time.Duration
		load Load
		want int
	}{
		{10 * time.Minute, Load{Share: 1}, 0},
		{10 * time.Minute, Load{Share: 5}, 0},                 // much, but the peer keeps up
		{10 * time.Minute, Load{Share: 1.5, Behind: true}, 0}, // behind, like all peers
		{20 * time.Second, Load{Share: 2, Behind: true}, 0},
		{time.Second, Load{Share: 1}, 0}, // a break
		{20 * time.Second, Load{Share: 2, Behind: true}, 0},
		{12 * time.Second, Load{Share: 2, Behind: true}, 1},
		{28 * time.Second, Load{Share: 2, Behind: true}, 1},
		{time.Minute, Load{Share: 2, Behind: true}, 3},
		{time.Minute, Load{Share: math.NaN(), Behind: true}, 3},
		{time.Minute, Load{Share: math.Inf(1), Behind: true}, 4},
		{time.Minute, Load{Share: 0.6}, 4},
		{20 * time.Second, Load{Share: 1, Stopped: true}, 4},
		{20 * time.Second, Load{Share: 0.6}, 4},
		{40 * time.Second, Load{Share: 1, Stopped: true}, MaxLoadStep},
		{10 * time.Minute, Load{Share: 0, Stopped: true}, MaxLoadStep},
		{25 * time.Second, Load{Share: 0}, MaxLoadStep},
		{8 * time.Second, Load{Share: 0.6}, 4},
		{5 * time.Hour, Load{Share: 0.4}, 0},
		{5 * time.Hour, Load{Share: 3, Behind: true}, MaxLoadStep},
	} {
		if got := after(&l, &now, c.for_, c.load); got != c.want {
			t.Fatalf("line %d: step %d after %v of %+v, want %d", i, got, c.for_, c.load, c.want)
		}
	}
}

// A peer whose share follows its weight reaches a stable step from any start.
func TestLoadStepsSettle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l LoadSteps
		now := time.Unix(1e9, 0)
		full := rapid.Float64Range(0.01, 300).Draw(t, "share at step 0")
		first := rapid.IntRange(0, MaxLoadStep).Draw(t, "first")
		for l.step < first {
			after(&l, &now, time.Minute, Load{Share: 9, Behind: true})
		}
		moves, last := 0, l.step
		for range 40 * 60 {
			share := full * math.Pow(2, -float64(l.step)/2)
			if step := after(&l, &now, time.Second, Load{Share: share, Behind: share > 1}); step != last {
				moves, last = moves+1, step
			}
		}
		share := full * math.Pow(2, -float64(last)/2)
		if moves > MaxLoadStep || last < 0 || last > MaxLoadStep || share > LoadHigh && last < MaxLoadStep ||
			share < LoadLow && last > 0 {
			t.Fatalf("share %.2f: from step %d to %d in %d moves, share %.2f", full, first, last, moves, share)
		}
	})
}
