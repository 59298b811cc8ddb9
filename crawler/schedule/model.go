package schedule

import (
	"errors"
	"fmt"
	"math"
)

// The grid has Rates change rates, each twice the previous one, from one change in 22 years to 250
// a day. Because the rates double, one exponential is enough for all. The probability of no change
// at the next rate is the square of the present one.
const (
	Rates    = 22
	slowest  = 1.0 / (22 * 365) // changes per day
	minGap   = 1.0 / 86400 / 10 // days; shorter gaps give no more information
	longest  = 20 * 365.0       // days; the longest wait for a revisit
	tinyMass = 1e-12
)

// Belief is the estimate of one item's rate of change: a weight for each rate of the grid, with sum
// 1.
type Belief [Rates]float64

// Model is what is known about the changes of a population: the prior. Fit learns it from
// histories. A new item is judged by it alone. Each item has a rate, which jumps with probability
// Drift per day to another rate from Prior. Bursts and quiet periods are such jumps. (Forward
// filtering of a hidden Markov model.)
type Model struct {
	Prior Belief
	// Start is the belief for an item found after Epoch, in unix seconds. By then the crawl has
	// found all existing items, so later ones are new, and new pages are busier than old ones.
	// Other items, or all if Epoch is 0, start with Prior.
	Start Belief
	Epoch int64
	Drift float64 // jumps per day, 0 = a rate stays forever
	// Counted says that histories count posts exactly (by a profile's counter, or with pages long
	// enough), not only whether there were any.
	Counted bool
}

// firstDrift is the drift before any was observed, in jumps a day: a rate lasts about eight years.
// With one jump a year, an item without changes for years still had half the belief of a new one,
// and was visited that often. On the uploads of Debian the estimate of Cho and Garcia-Molina was
// then fresher. If the rates of a population do jump, the histories show it, and Fit doubles the
// drift each time.
const firstDrift = 1.0 / 3000

// NewModel returns the prior without any observation: most pages change less than weekly, some
// hardly ever, some all the time.
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

// rate returns the j-th rate of the grid, in changes per day.
func rate(j int) float64 { return slowest * float64(uint64(1)<<j) }

// Validate returns one error that joins every fault of a model from another source.
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

// Believe returns the belief about an item with history h, right after its last visit.
func (m *Model) Believe(h *History) Belief {
	b, _ := m.filter(h, MaxRuns)
	return b
}

// filter also returns the log likelihood of the visits, for Fit. It uses at most looks gaps.
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

// count multiplies the belief by the likelihood of n posts in days. That is more evidence than that
// there were some. Posts come in clusters, so the Poisson count is softened: n posts count as √n
// independent ones in the same time.
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

// drift applies the passing of time: with probability 1−e^(−Drift·days) the rate was drawn again.
func (m *Model) drift(b *Belief, days float64) {
	if m.Drift == 0 {
		return
	}
	keep := math.Exp(-m.Drift * days)
	for j := range b {
		b[j] = keep*b[j] + (1-keep)*m.Prior[j]
	}
}

// see multiplies the belief by the likelihood of n visits, gap days apart, of which x found a
// change. It returns the log of their probability.
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
	if sum < 1e-280 { // no rate explains the visits: use an even belief instead of dividing by zero
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

// Mean returns the expected number of changes per day.
func (b *Belief) Mean() float64 {
	mean := 0.0
	for j, w := range b {
		mean += w * rate(j)
	}
	return mean
}

// Survive returns the probability that nothing changes in days.
func (b *Belief) Survive(days float64) float64 {
	q := math.Exp(-slowest * days)
	p := 0.0
	for _, w := range b {
		p += w * q
		q *= q
	}
	return p
}

// fitDoubt is the weight of NewModel's prior in a fitted one. A prior fitted to steady rates is too
// certain where pages change in bursts, as real pages do. Without this, it costs up to 0.3 points
// of freshness on histories of pages, and gains nothing on steady populations.
const fitDoubt = 0.5

// Fit learns a model from a sample of histories, starting from m. It finds the prior by
// expectation-maximisation, and the drift by the likelihood of a few values around the present one.
// The cost is about 10 passes over the sample per drift; a few hundred histories are enough. It is
// pure: the same sample gives the same model.
func (m Model) Fit(sample []*History) Model {
	if len(sample) == 0 {
		return m
	}
	best, bestLik := m, math.Inf(-1)
	drifts := []float64{m.Drift / 2, m.Drift, m.Drift * 2}
	if m.Counted { // clusters of posts look like drift; Recency models them
		drifts = drifts[1:2]
	}
	for _, drift := range drifts {
		c := m
		c.Drift = min(max(drift, 1.0/3650), 6)
		lik := 0.0
		for range 8 {
			c.Prior, lik = c.expect(sample)
		}
		// Without clear evidence the drift stays as it is.
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

// fitStart returns the belief of the first visits of items found after Epoch.
func (m Model) fitStart(sample []*History) Belief {
	const looks, lend, trust = 2, 0.1, 20.0 // trust: weight of Prior, in histories
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

// expect is one step of the fit: the mean belief over the sample, smoothed over neighbouring rates,
// with a little of every rate kept. This is the EMS algorithm of Silverman and others, JRSS B
// 52(2), 1990. Without smoothing, a few visits per item give a prior of spikes.
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
	// spread: weight of an even prior, in histories; lend: share for each neighbour
	const spread, lend = 2.0, 0.05
	n := float64(len(sample)) + spread
	var out Belief
	for j := range sum {
		lo, hi := max(0, j-1), min(Rates-1, j+1)
		out[j] = ((1-2*lend)*sum[j] + lend*sum[lo] + lend*sum[hi] + spread/Rates) / n
	}
	return out, total
}
