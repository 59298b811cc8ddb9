package pace

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// At a site with a limited number of visits a day, prices cut the mean time until a post is fetched
// to seven tenths. Without prices, the visits are made in the order in which they fall due. The
// price falls again when there are enough calls. An outage does not raise it.
func TestPriceFollowsWhatThereIs(t *testing.T) {
	const n, most = 300, 48 * time.Hour
	r := rand.New(rand.NewPCG(1, 2))
	gaps, due, last := make([]time.Duration, n), make([]time.Time, n), make([]time.Time, n)
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	best := 0.0
	for i := range gaps {
		gaps[i] = time.Duration(math.Exp(3*r.NormFloat64()) * 24 * float64(time.Hour))
		gaps[i] = min(max(gaps[i], 10*time.Minute), 14*24*time.Hour)
		due[i], last[i] = start, start
		best += 1 / math.Sqrt(gaps[i].Hours()/24)
	}
	p := NewPrices(start.Add(-time.Hour))
	plan := func(gap time.Duration) time.Duration { return min(max(gap/4, time.Minute), most) }
	// run makes so many visits for so long, and returns the mean time, in days, until a post is
	// fetched.
	now := start
	run := func(each, long time.Duration) float64 {
		wait, posts := 0.0, 0.0
		for end, half := now.Add(long), now.Add(long/2); now.Before(end); now = now.Add(each) {
			i := 0
			for j := range due {
				if due[j].Before(due[i]) {
					i = j
				}
			}
			if due[i].After(now) {
				continue
			}
			if waited := now.Sub(last[i]); now.After(half) {
				wait, posts = wait+waited.Hours()*waited.Hours()/48/gaps[i].Hours(),
					posts+waited.Hours()/gaps[i].Hours()
			}
			p.Visited("s", gaps[i], plan(gaps[i]), now.Sub(last[i]), most, due[i])
			last[i], due[i] = now, now.Add(min(max(plan(gaps[i]), p.Wait("s", gaps[i])), most))
		}
		return wait / posts
	}
	rate := 0.0
	for _, g := range gaps {
		rate += 24 / g.Hours()
	}
	const each = 5 * time.Minute
	optimum := best * best / rate / 2 / (24 * float64(time.Hour) / float64(each))
	real := p
	// it learns nothing: all visits are late by the same time
	p = NewPrices(start.Add(1000 * 24 * time.Hour))
	without := run(each, 60*24*time.Hour)
	p = real
	// The optimum may visit an account less often than most allows, and sooner than its gap asks
	// for.
	if got := run(each, 60*24*time.Hour); got > 0.7*without || got > 1.25*optimum {
		t.Errorf("a post is had after %.4f days, without a price after %.4f; the best plan of that many visits has it after %.4f", got, without, optimum)
	}
	p.Failed("s", now) // all of them are two days late, for another reason
	before, until := p.Wait("s", 24*time.Hour), now.Add(48*time.Hour)
	for i := range gaps {
		p.Visited("s", gaps[i], plan(gaps[i]), until.Sub(last[i]), most, due[i])
	}
	if after := p.Wait("s", 24*time.Hour); after > before*11/10 {
		t.Errorf("after an outage who posts daily waits %s, before %s", after, before)
	}
	now = until
	run(time.Second, 40*24*time.Hour/10)
	if w := p.Wait("s", 24*time.Hour); w > 6*time.Hour {
		t.Errorf("with calls in plenty who posts daily waits %s", w)
	}
}
