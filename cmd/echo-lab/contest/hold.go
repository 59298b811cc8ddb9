package contest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
)

// Contest describes a contest.
type Contest struct {
	// World makes the world of one seed. It is required, and several goroutines call it.
	World    func(seed uint64) (World, error)
	Policies []string // default: all
	Budget   float64  // visits per item per 30 days, > 0
	Seeds    int      // default 20
	Warm     float64  // as in Options
	AgePrice float64  // as in Options
	Workers  int      // default: the number of processors
}

// Entry has one policy's figures over the seeds.
type Entry struct {
	Policy     string
	Freshness  Figure
	Weighted   Figure
	AgeDays    Figure
	ChangeRate Figure
	PerChange  Figure // visits per change found
	Missed     Figure
	Lost       Figure // share of all changes that were missed
	Visits     Figure
	Bytes      Figure // see Traffic
	// Lead is this policy's freshness minus the default's on the same seed. Older is its age
	// minus uniform's. They are paired, so the differences between worlds cancel.
	Lead, Older Figure
	Days        []Day    // means
	Groups      [4]Group // of all seeds together
}

// Figure is a mean with the half width of its 95 % interval.
type Figure struct{ Mean, Half float64 }

// String returns the figure with its interval.
func (f Figure) String() string { return fmt.Sprintf("%.4f ±%.4f", f.Mean, f.Half) }

// Hold plays every policy through the same worlds, one per seed.
func Hold(c Contest) ([]Entry, error) {
	if c.World == nil {
		return nil, errors.New("contest: hold: no world")
	}
	if len(c.Policies) == 0 {
		c.Policies = Names()
	}
	if c.Seeds <= 0 {
		c.Seeds = 20
	}
	if c.Workers <= 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	results := make([][]Result, len(c.Policies))
	for p := range results {
		results[p] = make([]Result, c.Seeds)
	}
	faults := make([]error, c.Seeds)
	var wg sync.WaitGroup
	room := make(chan struct{}, c.Workers)
	for s := range c.Seeds {
		wg.Add(1)
		room <- struct{}{}
		go func() {
			defer func() { <-room; wg.Done() }()
			faults[s] = c.seed(uint64(s)+1, func(p int, r Result) { results[p][s] = r })
		}()
	}
	wg.Wait()
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return c.entries(results), nil
}

func (c *Contest) seed(seed uint64, put func(int, Result)) error {
	w, err := c.World(seed)
	if err != nil {
		return fmt.Errorf("contest: seed %d: %w", seed, err)
	}
	for p, name := range c.Policies {
		r, err := Run(&w, Options{Policy: name, Budget: c.Budget, Warm: c.Warm, AgePrice: c.AgePrice, Seed: seed})
		if err != nil {
			return err
		}
		put(p, r)
	}
	return nil
}

func (c *Contest) entries(results [][]Result) []Entry {
	reference := func(name string) []Result {
		for p, n := range c.Policies {
			if n == name {
				return results[p]
			}
		}
		return nil
	}
	first, even := reference("default"), reference("uniform")
	out := make([]Entry, len(c.Policies))
	for p, name := range c.Policies {
		rs := results[p]
		of := func(f func(*Result) float64) Figure { return figure(rs, nil, f) }
		fresh := func(r *Result) float64 { return r.Freshness }
		age := func(r *Result) float64 { return r.AgeDays }
		out[p] = Entry{
			Policy:     name,
			Freshness:  of(fresh),
			Weighted:   of(func(r *Result) float64 { return r.Weighted }),
			AgeDays:    of(age),
			ChangeRate: of((*Result).ChangeRate),
			PerChange:  of((*Result).VisitsPerChange),
			Missed:     of(func(r *Result) float64 { return float64(r.Missed) }),
			Lost:       of(func(r *Result) float64 { return ratio(float64(r.Missed), float64(r.Changes)) }),
			Visits:     of(func(r *Result) float64 { return float64(r.Visits) }),
			Bytes:      of(func(r *Result) float64 { return Traffic(float64(r.Visits), float64(r.Hits)) }),
			Lead:       figure(rs, first, fresh),
			Older:      figure(rs, even, age),
		}
		out[p].sum(rs)
	}
	return out
}

// sum adds the days and groups of all seeds.
func (e *Entry) sum(rs []Result) {
	for _, r := range rs {
		if e.Days == nil {
			e.Days = make([]Day, len(r.Days))
		}
		for d := range min(len(e.Days), len(r.Days)) {
			sum, x, n := &e.Days[d], r.Days[d], float64(len(rs))
			sum.Freshness, sum.AgeDays = sum.Freshness+x.Freshness/n, sum.AgeDays+x.AgeDays/n
			sum.Visits, sum.Hits = sum.Visits+x.Visits/n, sum.Hits+x.Hits/n
		}
		for c, g := range r.Groups {
			sum := &e.Groups[c]
			n := float64(sum.Items + g.Items)
			sum.Freshness = ratio(sum.Freshness*float64(sum.Items)+g.Freshness*float64(g.Items), n)
			sum.AgeDays = ratio(sum.AgeDays*float64(sum.Items)+g.AgeDays*float64(g.Items), n)
			sum.Items, sum.Visits, sum.Hits = sum.Items+g.Items, sum.Visits+g.Visits, sum.Hits+g.Hits
		}
	}
}

// figure returns the mean over seeds of f, or of its difference to the same seed of other, with
// Student's interval.
func figure(rs, other []Result, f func(*Result) float64) Figure {
	values := make([]float64, len(rs))
	for i := range rs {
		values[i] = f(&rs[i])
		if other != nil {
			values[i] -= f(&other[i])
		}
	}
	return Mean(values)
}

// Mean returns the mean of the seeds' values, with Student's 95 % interval: +Inf for one value.
func Mean(values []float64) Figure {
	n, mean := float64(len(values)), 0.0
	for _, v := range values {
		mean += v / n
	}
	if len(values) < 2 {
		return Figure{Mean: mean, Half: math.Inf(1)}
	}
	square := 0.0
	for _, v := range values {
		square += (v - mean) * (v - mean)
	}
	return Figure{mean, student(len(values)-1) * math.Sqrt(square/(n-1)/n)}
}

// student returns the 97.5 % point of Student's t for df degrees of freedom. It uses the
// expansion of Abramowitz and Stegun 26.7.5, which is within 0.5 % from 4 degrees on.
func student(df int) float64 {
	const z = 1.959964
	v := float64(df)
	z3, z5, z7 := z*z*z, z*z*z*z*z, z*z*z*z*z*z*z
	return z + (z3+z)/(4*v) + (5*z5+16*z3+3*z)/(96*v*v) + (3*z7+19*z5+17*z3-15*z)/(384*v*v*v)
}

// Sampled returns a World function that draws at most n items of base for each seed.
func Sampled(base World, n int) func(uint64) (World, error) {
	return func(seed uint64) (World, error) {
		rng := rand.New(rand.NewPCG(seed, 2))
		w := base.Sample(n, rng)
		return w, nil
	}
}

// Drawn returns a World function that draws a new population for each seed.
func Drawn(name string, n, days int) func(uint64) (World, error) {
	return func(seed uint64) (World, error) {
		return Populate(name, n, days, rand.New(rand.NewPCG(seed, 3)))
	}
}
