package schedule

import (
	"fmt"
	"time"
)

// Rhythm is how busy each hour of the week is (UTC, from Monday 00:00), with mean 1. It converts
// time to busy time. In busy time a process with a daily and weekly rhythm is steady. Estimate and
// plan in busy time, then convert back. The zero value has no rhythm.
type Rhythm struct {
	until [weekHours + 1]float64 // busy hours from Monday 00:00 to hour i; [168] = 168
	set   bool
}

const weekHours = 168

// floor is the smallest share of an hour, as part of the mean. An hour without any event so far is
// rare, not impossible.
const floor = 0.05

// NewRhythm learns from counts by hour of the week: the number of posts or changes, by their own
// dates. prior is the weight of an even week, in events: with few events the rhythm stays flat.
// Negative counts are an error.
func NewRhythm(counts [weekHours]float64, prior float64) (Rhythm, error) {
	if prior <= 0 {
		prior = weekHours
	}
	var shares [weekHours]float64
	total := 0.0
	for i, c := range counts {
		if c < 0 {
			return Rhythm{}, fmt.Errorf("schedule: rhythm: hour %d counts %g", i, c)
		}
		// Smooth over neighbours: the edges of an hour are not sharp.
		c = 0.5*c + 0.25*max(0, counts[(i+1)%weekHours]) + 0.25*max(0, counts[(i+weekHours-1)%weekHours])
		shares[i] = c + prior/weekHours
		total += shares[i]
	}
	r := Rhythm{set: true}
	sum := 0.0
	for i := range shares {
		shares[i] = max(floor, shares[i]*weekHours/total)
		sum += shares[i]
	}
	for i := range shares {
		r.until[i+1] = r.until[i] + shares[i]*weekHours/sum
	}
	return r, nil
}

// HourOfWeek returns t's hour from Monday 00:00 UTC, 0 to 167.
func HourOfWeek(t time.Time) int {
	t = t.UTC()
	return (int(t.Weekday())+6)%7*24 + t.Hour()
}

const week = 7 * day

// Busy returns the busy time between two moments; negative if b is before a.
func (r *Rhythm) Busy(a, b time.Time) time.Duration {
	if !r.set {
		return b.Sub(a)
	}
	return r.position(b) - r.position(a)
}

// After returns the moment when busy time d has passed since a.
func (r *Rhythm) After(a time.Time, d time.Duration) time.Time {
	if !r.set {
		return a.Add(d)
	}
	target := r.position(a) + d
	weeks := target / week
	rest := target - weeks*week
	if rest < 0 {
		weeks, rest = weeks-1, rest+week
	}
	lo, hi := 0, weekHours
	for lo+1 < hi {
		if mid := (lo + hi) / 2; r.until[mid] <= rest.Hours() {
			lo = mid
		} else {
			hi = mid
		}
	}
	part := (rest.Hours() - r.until[lo]) / (r.until[lo+1] - r.until[lo])
	return monday().Add(weeks*week + time.Duration((float64(lo)+part)*float64(time.Hour)))
}

// position returns the busy time from a fixed Monday to t.
func (r *Rhythm) position(t time.Time) time.Duration {
	since := t.Sub(monday())
	weeks := since / week
	rest := since - weeks*week
	if rest < 0 {
		weeks, rest = weeks-1, rest+week
	}
	hour := min(int(rest/time.Hour), weekHours-1)
	part := (rest - time.Duration(hour)*time.Hour).Hours()
	busy := r.until[hour] + part*(r.until[hour+1]-r.until[hour])
	return weeks*week + time.Duration(busy*float64(time.Hour))
}

// monday returns the Monday from which positions count.
func monday() time.Time { return time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC) }
