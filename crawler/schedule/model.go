package schedule

import (
	"errors"
	"fmt"
	"math"
)

// The grid of change rates: Rates of them, each twice the one before, from one
// change in 22 years to 250 a day. Doubling lets one exponential serve all: the
// chance of no change at the next rate is the square of this one's.
const (
	Rates    = 22
	slowest  = 1.0 / (22 * 365) // changes per day
	minGap   = 1.0 / 86400 / 10 // days; shorter gaps say nothing more
	longest  = 20 * 365.0       // days; the latest a revisit is put off
	tinyMass = 1e-12
)

// Belief is what is thought of one item's rate of change: a weight for each rate
// of the grid, summing to 1.
type Belief [Rates]float64

// Model is what is known of how items of a population change: the prior. It is
// learned from histories by Fit and is all that a new item is judged by.
// Each item has a rate, which jumps at Drift to another drawn from Prior: bursts
// and dormant times are such jumps. (Forward filtering of a hidden Markov model.)
type Model struct {
	Prior Belief
	// Start is what is thought of an item met after Epoch, in unix seconds, when
	// the crawl had been through what there was: what is met then is new, and new
	// pages are busier than old ones. Items met before, or all if Epoch is 0, begin
	// with Prior.
	Start Belief
	Epoch int64
	Drift float64 // jumps per day, 0 = a rate stays for ever
	// Counted says that histories count posts (a profile's counter, or pages long
	// enough), not only whether there were any.
	Counted bool
}

// firstDrift is the drift believed in before any was seen, in jumps a day: a rate holds for
// eight years. At one jump a year, what had not changed for years was still thought to be half new, and
// looked at as often as that: on the uploads of Debian the estimate of Cho and Garcia-Molina was
// fresher. A population whose rates do jump shows it, and Fit doubles the drift each time.
const firstDrift = 1.0 / 3000

// NewModel is the prior of one who has seen nothing: most pages change less than
// weekly, some hardly ever, some all the time.
func NewModel() Model {
	m := Model{Drift: firstDrift}
	sum := 0.0
	for j := range m.Prior {
		x := math.Log(rate(j)*60) / 3 // centred on one change in two months
		m.Prior[j] = math.Exp(-x*x/2) + 0.02
		sum += m.Prior[j]
	}
	for j := range m.Prior {
		m.Prior[j] /= sum
	}
	m.Start = m.Prior
	return m
}

// rate is the j-th rate of the grid, in changes per day.
func rate(j int) float64 { return slowest * float64(uint64(1)<<j) }

// Validate reports every fault of a model that came from elsewhere.
func (m *Model) Validate() error {
	var faults []error
	for name, b := range map[string]*Belief{"prior": &m.Prior, "start": &m.Start} {
		sum := 0.0
		for j, w := range b {
			if !(w >= 0 && w <= 1) {
				faults = append(faults, fmt.Errorf("%s: weight %d is %g", name, j, w))
			}
			sum += w
		}
		if !(math.Abs(sum-1) <= 1e-6) {
			faults = append(faults, fmt.Errorf("%s: weights sum to %g", name, sum))
		}
	}
	if !(m.Drift >= 0 && m.Drift <= 100) {
		faults = append(faults, fmt.Errorf("drift %g a day", m.Drift))
	}
	if len(faults) > 0 {
		return fmt.Errorf("schedule: model: %w", errors.Join(faults...))
	}
	return nil
}

// Believe is the belief about an item with history h, right after its last visit.
func (m *Model) Believe(h *History) Belief {
	b, _ := m.filter(h, MaxRuns)
	return b
}

// filter also gives the log likelihood of what was seen, for Fit.
// Only the first looks are taken in.
func (m *Model) filter(h *History, looks int) (b Belief, logLik float64) {
	b = m.Prior
	if m.Epoch > 0 && h.first > m.Epoch {
		b = m.Start
	}
	for g := range h.Gaps {
		if looks--; looks < 0 {
			break
		}
		days := g.Span.Hours() / 24
		m.drift(&b, days)
		if m.Counted && g.Posts > 0 {
			logLik += b.count(days, g.Posts)
			continue
		}
		logLik += b.see(days/float64(g.Visits), g.Visits, g.Changes)
	}
	return b, logLik
}

// count multiplies in n posts in days, which is more than that there were some. A
// Poisson count is softened: posts come in flurries, so n of them are the evidence
// of √n, of one cause, in the same time.
func (b *Belief) count(days float64, n int) float64 {
	days = max(days, minGap)
	sum, top := 0.0, math.Inf(-1)
	var logs Belief
	k := math.Sqrt(float64(n)) / float64(n)
	for j, w := range b {
		x := rate(j) * days
		logs[j] = math.Log(w) + k*(float64(n)*math.Log(x)-x)
		top = max(top, logs[j])
	}
	for j := range b {
		b[j] = math.Exp(logs[j] - top)
		sum += b[j]
	}
	for j := range b {
		b[j] = max(b[j]/sum, tinyMass)
	}
	return math.Log(sum) + top
}

// drift lets time pass: with chance 1−e^(−Drift·days) the rate was drawn anew.
func (m *Model) drift(b *Belief, days float64) {
	if m.Drift == 0 {
		return
	}
	keep := math.Exp(-m.Drift * days)
	for j := range b {
		b[j] = keep*b[j] + (1-keep)*m.Prior[j]
	}
}

// see multiplies in n visits, gap days apart, of which x found a change, and
// returns the log of their probability.
func (b *Belief) see(gap float64, n, x int) float64 {
	gap = max(gap, minGap)
	q := math.Exp(-slowest * gap)
	sum := 0.0
	for j := range b {
		switch {
		case n == 1 && x == 0:
			b[j] *= q
		case n == 1:
			b[j] *= 1 - q
		default:
			b[j] *= math.Exp(float64(n-x)*math.Log(q+1e-300) + float64(x)*math.Log(1-q+1e-300))
		}
		sum += b[j]
		q *= q
	}
	if sum < 1e-280 { // seen what no rate explains: know nothing rather than divide by zero
		for j := range b {
			b[j] = 1.0 / Rates
		}
		return -644
	}
	for j := range b {
		b[j] = max(b[j]/sum, tinyMass)
	}
	return math.Log(sum)
}

// Mean is the expected number of changes per day.
func (b *Belief) Mean() float64 {
	mean := 0.0
	for j, w := range b {
		mean += w * rate(j)
	}
	return mean
}

// Survive is the chance that nothing changes in days.
func (b *Belief) Survive(days float64) float64 {
	q := math.Exp(-slowest * days)
	p := 0.0
	for _, w := range b {
		p += w * q
		q *= q
	}
	return p
}

// fitDoubt is the weight that stays with the prior of one who has seen nothing. A
// prior fitted to rates that are steady is too sure where pages change in bursts, as
// real ones do: without this it costs up to 0.3 points of freshness on histories of
// pages, and gains no more on steady populations.
const fitDoubt = 0.5

// Fit learns a model from a sample of histories, starting from m: the prior by
// expectation-maximisation, the drift by the likelihood of a few values around
// the present one. The cost is that of about 10 passes over the sample; a few
// hundred histories suffice. It is pure: the same sample gives the same model.
func (m Model) Fit(sample []*History) Model {
	if len(sample) == 0 {
		return m
	}
	best, bestLik := m, math.Inf(-1)
	drifts := []float64{m.Drift / 2, m.Drift, m.Drift * 2}
	if m.Counted { // sittings look like drift: Recency holds them
		drifts = drifts[1:2]
	}
	for _, drift := range drifts {
		c := m
		c.Drift = min(max(drift, 1.0/3650), 6)
		lik := 0.0
		for range 8 {
			c.Prior, lik = c.expect(sample)
		}
		// Without evidence a drift stays what it is.
		if drift != m.Drift {
			lik -= 3
		}
		if lik > bestLik {
			best, bestLik = c, lik
		}
	}
	if !m.Counted {
		naive := NewModel()
		for j := range naive.Prior {
			best.Prior[j] = (1-fitDoubt)*best.Prior[j] + fitDoubt*naive.Prior[j]
		}
	}
	best.Start = best.fitStart(sample)
	return best
}

// fitStart is what items met after Epoch turned out to be in their first looks.
func (m Model) fitStart(sample []*History) Belief {
	const looks, lend, trust = 2, 0.1, 20.0 // trust: histories' worth of Prior
	recent := make([]*History, 0, len(sample))
	for _, h := range sample {
		if m.Epoch > 0 && h.first > m.Epoch {
			recent = append(recent, h)
		}
	}
	m.Start = m.Prior
	for range 4 {
		var sum Belief
		for _, h := range recent {
			b, _ := m.filter(h, looks)
			for j := range sum {
				sum[j] += b[j]
			}
		}
		for j := range sum {
			lo, hi := max(0, j-1), min(Rates-1, j+1)
			near := (1-2*lend)*sum[j] + lend*sum[lo] + lend*sum[hi]
			m.Start[j] = (near + trust*m.Prior[j]) / (float64(len(recent)) + trust)
		}
	}
	return m.Start
}

// expect is one step: the mean belief over the sample, smoothed over neighbouring
// rates (the EMS algorithm of Silverman and others, JRSS B 52(2), 1990: without it
// a few visits each make a prior of spikes), with a little of every rate kept.
func (m *Model) expect(sample []*History) (Belief, float64) {
	var sum Belief
	total := 0.0
	for _, h := range sample {
		b, lik := m.filter(h, MaxRuns)
		total += lik
		for j := range sum {
			sum[j] += b[j]
		}
	}
	const spread, lend = 2.0, 0.05 // histories' worth of an even spread; share lent to each neighbour
	n := float64(len(sample)) + spread
	var out Belief
	for j := range sum {
		lo, hi := max(0, j-1), min(Rates-1, j+1)
		out[j] = ((1-2*lend)*sum[j] + lend*sum[lo] + lend*sum[hi] + spread/Rates) / n
	}
	return out, total
}
