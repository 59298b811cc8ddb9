package schedule

import "math"

// Value is the worth of a visit, given the belief about the item.
//
// With q = e^(−λτ), τ days after the last visit, and the belief's mean over λ:
//
//	freshness  ∫₀^τ p(s) − p(τ) ds = (1 − (1+λτ) q) / λ            days
//	age        ∫₀^τ a(τ) − a(s) ds = τ²/2 + τq/λ − (1−q)/λ²          days²
//
// where p is the probability that the copy is good and a = ∫(1−p) its expected age. Both are
// −d/d(1/τ) of the mean loss of an item visited every τ. So visiting each item when its value
// reaches one common price minimises the sum of losses (Cho and Garcia-Molina 2003, section 4, for
// freshness; the age term is the same algebra). Freshness alone saturates at 1/λ: an item that
// changes too fast is worth little at any time and is never due at a high price. Age has no such
// limit.
type Value struct {
	// Age is the cost of a day of age in freshness, for each mean interval between visits (see
	// Budget.Interval). 0 is freshness alone.
	Age float64
	// Weight multiplies the worth of the item. 0 means 1.
	Weight float64
}

// At returns the worth of a visit tau days after the last. interval is the mean number of days
// between visits of an item under the whole budget.
func (v Value) At(b *Belief, tau, interval float64) float64 {
	var fresh, age float64
	x := slowest * tau // λτ of the present rate
	q := math.Exp(-x)
	for j, w := range b {
		f, a := x*x/2, x*x*x/6 // the series, because 1−q loses precision here
		if x > 1e-3 {
			f = 1 - (1+x)*q
			a = x*x/2 + x*q - (1 - q)
		}
		r := w / rate(j)
		fresh += r * f
		age += r / rate(j) * a
		q *= q
		x += x
	}
	weight := v.Weight
	if weight == 0 {
		weight = 1
	}
	return weight * (fresh + v.Age/interval*age)
}

// age returns the mean age in days of the copy of an item visited every tau days.
func (b *Belief) age(tau float64) float64 {
	x := slowest * tau
	q := math.Exp(-x)
	sum := 0.0
	for _, w := range b {
		a := x / 6 // the series, times τ
		if x > 1e-3 {
			a = 0.5 - 1/x + (1-q)/(x*x)
		}
		sum += w * a
		q *= q
		x += x
	}
	return tau * sum
}

// due returns the first time in days since the last visit when the value reaches price. The value
// never falls with time, so due uses bisection in the logarithm.
func (v Value) due(b *Belief, price, interval float64) float64 {
	return Solve(price, func(tau float64) float64 { return v.At(b, tau, interval) })
}

// Solve returns the least tau at which the rising function reaches price, between a tenth of a
// second and 20 years, to 1 %.
func Solve(price float64, value func(float64) float64) float64 {
	lo, hi := math.Log(minGap), math.Log(longest)
	if !(value(longest) >= price) {
		return longest
	}
	for hi-lo > 0.01 {
		mid := (lo + hi) / 2
		if value(math.Exp(mid)) >= price {
			hi = mid
		} else {
			lo = mid
		}
	}
	return math.Exp(hi)
}

// Timeline is the worth of a visit to a timeline with Page posts per page. The loss is the number
// of missed posts. With N posts in τ days the loss of one cycle is D(τ) = E (N−Page)⁺. −d/d(1/τ) of
// D(τ)/τ is τD′ − D = Page · P(N > Page).
type Timeline struct {
	Page   int     // posts per page, at least 1
	Weight float64 // 0 means 1
}

// At returns the worth in posts of a visit tau days after the last. extra is the number of posts
// expected in that time above the account's own rate (Recency).
func (t Timeline) At(b *Belief, tau, extra float64) float64 {
	page := float64(max(1, t.Page))
	sum := 0.0
	for j, w := range b {
		sum += w * over(rate(j)*tau+extra, page)
	}
	if t.Weight != 0 {
		page *= t.Weight
	}
	return page * sum
}

// over returns the probability that a Poisson variable of mean x exceeds page. It is exact for page
// 1, and otherwise the cube root of Wilson and Hilferty (Biometrika 1931).
func over(x, page float64) float64 {
	if page == 1 {
		if x < 1e-4 {
			return x * x / 2
		}
		return 1 - (1+x)*math.Exp(-x)
	}
	k := page + 1
	z := 3 * math.Sqrt(k) * (math.Cbrt(x/k) - 1 + 1/(9*k))
	return math.Erfc(-z/math.Sqrt2) / 2
}
