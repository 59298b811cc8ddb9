package schedule

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// sum returns the sum of the weights.
func sum(b Belief) float64 {
	s := 0.0
	for _, w := range b {
		s += w
	}
	return s
}

// A belief with one rate and no drift is Poisson's law.
func TestBeliefOfOneRate(t *testing.T) {
	for j := range Rates {
		var b Belief
		b[j] = 1
		for _, days := range []float64{0.01, 1, 30, 400} {
			if got, want := b.Survive(days), math.Exp(-rate(j)*days); math.Abs(got-want) > 1e-9 {
				t.Fatalf("rate %g, %g days: %g, want %g", rate(j), days, got, want)
			}
		}
	}
}

// After 30 visits the mean belief is near the true rate.
func TestBeliefFindsTheRate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	m := NewModel()
	m.Drift = 0
	for _, truth := range []float64{0.005, 0.1, 2} {
		mean := 0.0
		for range 100 {
			h := new(History)
			now := 0.0
			for range 30 {
				e := Event{At: at(now)}
				gap := rng.ExpFloat64() / truth
				now += gap
				if rng.Float64() < -math.Expm1(-truth*gap) {
					e.Outcome = Changed
				}
				h.Add(e)
			}
			b := m.Believe(h)
			mean += math.Log(b.Mean()) / 100
		}
		if got := math.Exp(mean); got < truth/1.7 || got > truth*1.7 {
			t.Errorf("rate %g believed %g", truth, got)
		}
	}
}

// With any visits, a belief stays a distribution: years of one outcome, bursts of seconds, clocks
// set back.
func TestBeliefNeverBreaks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := NewModel()
		m.Counted = rapid.Bool().Draw(t, "counted")
		m.Drift = rapid.SampledFrom([]float64{0, 1e-3, 5}).Draw(t, "drift")
		h := new(History)
		now := t0.Unix()
		for range rapid.IntRange(0, 200).Draw(t, "visits") {
			now += rapid.SampledFrom([]int64{-100, 0, 1, 3600, 86400, 1e8}).Draw(t, "gap")
			h.Add(Event{At: unix(now), Outcome: Outcome(rapid.IntRange(0, 4).Draw(t, "outcome")),
				Posts: rapid.IntRange(0, 1e6).Draw(t, "posts")})
		}
		b := m.Believe(h)
		for _, w := range b {
			if !(w >= 0 && w <= 1) {
				t.Fatalf("weight %g", w)
			}
		}
		if s := sum(b); math.Abs(s-1) > 1e-6 {
			t.Fatalf("sums to %g", s)
		}
	})
}

// After a long time without visits, a belief is the prior again.
func TestDriftForgets(t *testing.T) {
	m := NewModel()
	m.Drift = 0.1
	b := m.Believe(story("ucccccccccc", 1))
	before := b.Mean()
	m.drift(&b, 1000)
	if math.Abs(b.Mean()-m.Prior.Mean()) > 1e-6*before {
		t.Errorf("after ten lifetimes the mean is %g, the prior's %g", b.Mean(), m.Prior.Mean())
	}
	// H5: if a page jumps from yearly to daily, the belief follows within ten visits.
	h := story("uuuuuuuuuuuuuuuuuuuu", 30)
	for i := range 10 {
		h.Add(Event{At: at(600 + float64(i)), Outcome: Changed})
		jumped := m.Believe(h)
		if p := 1 - jumped.Survive(1); p > 0.5 {
			t.Logf("believed after %d visits", i+1)
			return
		}
	}
	t.Error("the jump was not believed in ten visits")
}

// Fit recovers the mix of an unknown population.
func TestFit(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	var sample []*History
	for range 400 {
		truth := 1.0 / 2
		if rng.Float64() < 0.7 {
			truth = 1.0 / 365
		}
		h := new(History)
		for v := range 25 {
			e := Event{At: at(float64(v) * 4)}
			if v > 0 && rng.Float64() < -math.Expm1(-truth*4) {
				e.Outcome = Changed
			}
			h.Add(e)
		}
		sample = append(sample, h)
	}
	m := NewModel()
	for range 3 {
		m = m.Fit(sample)
	}
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	slow := func(m Model) (sum float64) {
		for j, w := range m.Prior {
			if rate(j) < 1.0/40 {
				sum += w
			}
		}
		return sum
	}
	if got, want := slow(m), (1-fitDoubt)*0.7+fitDoubt*slow(NewModel()); math.Abs(got-want) > 0.03 {
		t.Errorf("%.2f of the prior is slow, want %.2f: 0.70 of the population, and what is left of the prior before",
			got, want)
	}
	if again := NewModel().Fit(sample).Fit(sample).Fit(sample); again != m {
		t.Error("fitting twice gives two models")
	}
	if NewModel().Fit(nil) != NewModel() {
		t.Error("fitting nothing changed the model")
	}
}

// An item found after Epoch starts with the belief that fits new items.
func TestFitStart(t *testing.T) {
	m := NewModel()
	m.Epoch = at(50).Unix()
	var sample []*History
	for range 100 {
		sample = append(sample, story("uuuuuuuuuu", 20))
		young := new(History)
		for i, o := range []Outcome{Unchanged, Changed, Changed, Unchanged, Unchanged} {
			young.Add(Event{At: at(100 + 20*float64(i)), Outcome: o})
		}
		sample = append(sample, young)
	}
	m = m.Fit(sample)
	if m.Start.Mean() < 1.5*m.Prior.Mean() || m.Start.Survive(20) > m.Prior.Survive(20) {
		t.Errorf("new items change %g a day, all %g", m.Start.Mean(), m.Prior.Mean())
	}
	old, young := new(History), new(History)
	old.Add(Event{At: at(0)})
	young.Add(Event{At: at(60)})
	if a, b := m.Believe(old), m.Believe(young); a != m.Prior || b != m.Start {
		t.Error("an item begins with the wrong belief")
	}
}

// Validate finds each kind of fault.
func TestModelValidate(t *testing.T) {
	m := NewModel()
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Model){
		"drift":    func(m *Model) { m.Drift = -1 },
		"weight":   func(m *Model) { m.Prior[3] = math.NaN() },
		"sum":      func(m *Model) { m.Start[0] += 0.5 },
		"negative": func(m *Model) { m.Prior[0], m.Prior[1] = -0.1, m.Prior[1]+m.Prior[0]+0.1 },
	} {
		bad := m
		spoil(&bad)
		if bad.Validate() == nil {
			t.Errorf("%s: valid", name)
		}
	}
}
