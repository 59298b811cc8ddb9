package schedule

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The closed forms equal their integrals.
func TestValueIsTheIntegral(t *testing.T) {
	m := NewModel()
	b := m.Believe(story("ucuuccuuu", 7))
	const steps = 200_000
	for _, tau := range []float64{0.5, 10, 300} {
		var fresh, age, a, mean float64
		ds := tau / steps
		ages := make([]float64, steps)
		for i := range steps {
			p := b.Survive((float64(i) + 0.5) * ds)
			fresh += (p - b.Survive(tau)) * ds
			a += (1 - p) * ds
			ages[i] = a
			mean += a * ds / tau
		}
		for i := range ages {
			age += (a - ages[i]) * ds
		}
		if got := (Value{}).At(&b, tau, 1); math.Abs(got/fresh-1) > 1e-3 {
			t.Errorf("τ %g: freshness %g, integral %g", tau, got, fresh)
		}
		if got := (Value{Age: 1}).At(&b, tau, 1) - (Value{}).At(&b, tau, 1); math.Abs(got/age-1) > 1e-3 {
			t.Errorf("τ %g: age %g, integral %g", tau, got, age)
		}
		if got := b.age(tau); math.Abs(got/mean-1) > 1e-3 {
			t.Errorf("τ %g: mean age %g, integral %g", tau, got, mean)
		}
	}
}

// The worth of a visit never falls with time, and due finds the time when it reaches the price.
func TestValueRises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b Belief
		for j := range b {
			b[j] = rapid.Float64Range(0, 1).Draw(t, "w")
		}
		b[0] += 1e-3
		s := sum(b)
		for j := range b {
			b[j] /= s
		}
		v := Value{Age: rapid.Float64Range(0, 2).Draw(t, "age"), Weight: 2}
		x := rapid.Float64Range(1e-5, 3000).Draw(t, "tau")
		page := rapid.IntRange(1, 200).Draw(t, "page")
		line := Timeline{Page: page}
		if v.At(&b, x, 10) > v.At(&b, x*1.3, 10)*(1+1e-9) || line.At(&b, x, 0) > line.At(&b, x*1.3, 0)+1e-9 {
			t.Fatal("worth falls with time")
		}
		price := v.At(&b, x, 10)
		if due := v.due(&b, price, 10); due < x/1.03 && v.At(&b, due*1.02, 10) < price {
			t.Fatalf("due at %g before the price is met at %g", due, x)
		}
	})
}

// Missed posts: Page · P(N > Page) is −d/d(1/τ) of E(N−Page)⁺/τ.
func TestTimelineIsTheDerivative(t *testing.T) {
	const lambda = 1.7
	for _, page := range []int{1, 5, 40} {
		rateOfLoss := func(f float64) float64 {
			x := lambda / f
			lost, p, below := 0.0, math.Exp(-x), 0.0
			for n := 0; n < page+400; n++ {
				if n > page {
					lost += float64(n-page) * p
				}
				below += p
				p *= x / float64(n+1)
			}
			return f * lost
		}
		for _, tau := range []float64{float64(page) / 2, float64(page), 2 * float64(page)} {
			f, d := 1/tau, 1e-5
			want := -(rateOfLoss(f+d) - rateOfLoss(f-d)) / (2 * d)
			got := float64(page) * over(lambda*tau, float64(page))
			if math.Abs(got-want) > 0.02*float64(page) {
				t.Errorf("page %d, τ %g: %g, derivative %g", page, tau, got, want)
			}
		}
	}
}

// Posts soon after another one are expected only after they were seen often.
func TestRecency(t *testing.T) {
	var r Recency
	if r.Extra(0, 10) != 0 {
		t.Error("knows something from nothing")
	}
	for range 200 { // posts come within five minutes of another one, or not at all
		r.Learn(0, 3.0/1440, 1, 1)
		r.Learn(1.0/24, 1.0/24, 1, 0)
	}
	soon, late := r.Extra(0, 5.0/1440), r.Extra(1.0/24, 5.0/1440)
	if soon < 0.5 || late != 0 {
		t.Errorf("extra posts %g soon, %g late", soon, late)
	}
	if r.Extra(0, 1) < soon {
		t.Error("more time, fewer posts")
	}
	if s := story("ucuu", 2).Silence(); s != 4 {
		t.Errorf("silent for %g days, want 4", s)
	}
}
