package social

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/echo-node/echo-node/cmd/echo-lab/contest"
)

// Options are the options of Measure.
type Options struct {
	Accounts int       // of the community, at least 500
	Seeds    int       // communities, from seed 1 on
	Aim      float64   // coverage of the six classes that defines B
	Within   float64   // required precision of that coverage
	Budget   float64   // B, calls per day, if it is known; 0 = it is searched
	Times    []float64 // of B: budgets with which the default policy plays; 1 is always included
	Peers    []int     // numbers of peers, each with Share of B, for both policies
	Share    float64
	Talk     io.Writer // progress; nil = none
}

// Limits of Options.
const (
	leastAccounts = 500
	mostAccounts  = 1_000_000
	mostTimes     = 16
	mostPeers     = 64
)

// Validate returns all errors at once.
func (o *Options) Validate() error {
	var faults []error
	if o.Accounts < leastAccounts || o.Accounts > mostAccounts || o.Seeds < 1 {
		faults = append(faults, fmt.Errorf("accounts %d (%d to %d), seeds %d", o.Accounts, leastAccounts, mostAccounts,
			o.Seeds))
	}
	if !(o.Budget >= 0 && o.Budget <= 1e9) {
		faults = append(faults, fmt.Errorf("budget %g", o.Budget))
	}
	if !(o.Aim > 0.1 && o.Aim < 0.95) || !(o.Within > 0 && o.Within < 0.1) {
		faults = append(faults, fmt.Errorf("aim %g (0.1 to 0.95), within %g (0 to 0.1)", o.Aim, o.Within))
	}
	for _, t := range o.Times {
		if !(t >= 1.0/64 && t <= mostTimes) {
			faults = append(faults, fmt.Errorf("%g times B (1/64 to %d)", t, mostTimes))
		}
	}
	for _, n := range o.Peers {
		if n < 1 || n > mostPeers || !(o.Share >= 1.0/64 && o.Share <= 1) {
			faults = append(faults, fmt.Errorf("%d peers (1 to %d) with %g of B each (1/64 to 1)", n, mostPeers,
				o.Share))
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("social: %w: %w", ErrOptions, errors.Join(faults...))
	}
	return nil
}

// ErrOptions is wrapped by the errors of Options.Validate. ErrNoBudget is returned when no
// budget brings the six classes to the aim.
var (
	ErrOptions  = errors.New("options")
	ErrNoBudget = errors.New("no budget found")
)

// Report has all results: the default policy at B, and the six classes.
type Report struct {
	Accounts int `json:"accounts"`
	Seeds    int `json:"seeds"`
	Result
	Baseline Result   `json:"baseline"`
	Budgets  []Result `json:"budgets"` // the default policy at Options.Times
	Shared   []Result `json:"shared"`  // both policies, by peers
	// Missed is how much the default missed at B for each post that the six classes missed in
	// the same community. MissedHalf is half of its 95 % interval, with several seeds.
	Missed     float64 `json:"missed_of_six_classes"`
	MissedHalf float64 `json:"missed_of_six_classes_half,omitempty"`

	aim, within float64
}

// MostMissed is the most that the default may miss at B for each post that the six classes
// miss.
const MostMissed = 0.5

// Faults returns what must not happen: a row at B that is not above the paper's, more missed
// than MostMissed, a call over the limit, or more than the limit allows.
func (r *Report) Faults() (faults []error) {
	if !(r.Missed+r.MissedHalf <= MostMissed) {
		faults = append(faults,
			fmt.Errorf("at B the default missed %.3f ± %.3f of what the six classes missed, more than %g", r.Missed,
				r.MissedHalf, MostMissed))
	}
	for i, p := range Paper() {
		if got := 100 * r.Rows[i].Coverage; got <= p.Coverage {
			faults = append(faults, fmt.Errorf("row %s: %.1f %%, the paper's is %.1f %%", p.Gap, got, p.Coverage))
		}
	}
	if got := r.Baseline.Coverage; math.Abs(got-r.aim) > r.within {
		faults = append(faults, fmt.Errorf("with B the six classes have %.4f of the posts, not %g", got, r.aim))
	}
	for _, x := range slices.Concat([]Result{r.Result, r.Baseline}, r.Budgets, r.Shared) {
		if x.OverLimit > 0 {
			faults = append(faults, fmt.Errorf("%s at %g B: %d calls over the limit", x.Policy, x.Times, x.OverLimit))
		}
		if x.Coverage > x.Limit {
			faults = append(faults, fmt.Errorf("%s at %g B: %.4f of the posts, the limit is %.4f", x.Policy, x.Times,
				x.Coverage, x.Limit))
		}
	}
	return faults
}

// missed compares what both policies missed, for each seed.
func (r *Report) missed(six, ours []Result) {
	ratios := make([]float64, len(six))
	for i := range six {
		ratios[i] = (1 - ours[i].Coverage) / max(1-six[i].Coverage, 1e-9)
	}
	m := contest.Mean(ratios)
	if r.Missed = m.Mean; len(ratios) > 1 {
		r.MissedHalf = m.Half
	}
}

// job is one play to be made for every seed.
type job struct {
	policy string
	times  float64 // of B, for each peer
	peers  int
}

// Measure finds B and plays everything.
func Measure(ctx context.Context, o Options) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Talk == nil {
		o.Talk = io.Discard
	}
	world, err := Draw(o.Accounts, 1)
	if err != nil {
		return nil, err
	}
	budget, found := o.Budget, map[job]Result{}
	if budget == 0 {
		var six Result
		if budget, six, err = find(ctx, world, o); err != nil {
			return nil, err
		}
		six.Times = 1
		found[job{SixClasses, 1, 1}] = six
	}
	jobs := []job{{SixClasses, 1, 1}, {Ours, 1, 1}}
	for _, t := range o.Times {
		jobs = append(jobs, job{Ours, t, 1})
	}
	for _, n := range o.Peers {
		jobs = append(jobs, job{SixClasses, o.Share, n}, job{Ours, o.Share, n})
	}
	results := make([][]Result, len(jobs))
	for seed := range o.Seeds {
		if seed > 0 {
			if world, err = Draw(o.Accounts, uint64(seed)+1); err != nil {
				return nil, err
			}
		}
		if err := playAll(ctx, world, budget, jobs, found, results, o.Talk); err != nil {
			return nil, err
		}
		found = nil
	}
	r := &Report{Accounts: o.Accounts, Seeds: o.Seeds, aim: o.Aim, within: o.Within, Baseline: mean(results[0]),
		Result: mean(results[1])}
	r.missed(results[0], results[1])
	for i := range jobs[2:] {
		if m := mean(results[2+i]); i < len(o.Times) {
			r.Budgets = append(r.Budgets, m)
		} else {
			r.Shared = append(r.Shared, m)
		}
	}
	return r, nil
}

// playAll plays the jobs in one world, as many at a time as there are processors. It plays
// equal jobs once, and jobs with known results not at all.
func playAll(ctx context.Context, world *Community, budget float64, jobs []job, found map[job]Result,
	results [][]Result, talk io.Writer) error {
	once := map[job]int{}
	for i, j := range jobs {
		if _, there := once[j]; !there {
			once[j] = i
		}
	}
	done, faults := make([]Result, len(jobs)), make([]error, len(jobs))
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	var talking sync.Mutex
	for i, j := range jobs {
		if r, there := found[j]; there {
			done[i] = r
			continue
		}
		if once[j] != i {
			continue
		}
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			p, err := Run(ctx, world, j.policy, budget*j.times, j.peers)
			if err != nil {
				faults[i] = err
				return
			}
			done[i] = p.Judge()
			done[i].Times = j.times * float64(j.peers)
			talking.Lock()
			defer talking.Unlock()
			fmt.Fprintf(talk, "%s, %g B by %d: %.4f of the posts, limit %.4f\n", j.policy, done[i].Times, j.peers,
				done[i].Coverage, done[i].Limit)
		})
	}
	wg.Wait()
	for i, j := range jobs {
		results[i] = append(results[i], done[once[j]])
	}
	return errors.Join(faults...)
}

// The parameters of the search for B.
const (
	smallWorld = 6000  // accounts: coverage depends on calls per account
	firstGuess = 0.29  // calls per day and account
	firstSlope = 0.17  // of coverage by the logarithm of the budget
	smallTries = 8     // in the small world
	wholeTries = 3     // in the whole one
	smallNear  = 0.004 // accurate enough there
)

// find returns B, in calls per day, and the result of the six classes with it. It uses secants
// in a small world, then corrects in the whole one.
func find(ctx context.Context, world *Community, o Options) (budget float64, six Result, err error) {
	small := world
	if o.Accounts > smallWorld {
		if small, err = Draw(smallWorld, 1); err != nil {
			return 0, six, err
		}
	}
	f := finder{aim: o.Aim, slope: firstSlope, x: math.Log(firstGuess)}
	for _, stage := range []struct {
		world *Community
		tries int
		near  float64
	}{{small, smallTries, min(smallNear, o.Within/2)}, {world, wholeTries, o.Within}} {
		n := float64(len(stage.world.posts))
		met := false
		for try := 0; try < stage.tries && !met; try++ {
			budget = math.Exp(f.x) * n
			p, err := Run(ctx, stage.world, SixClasses, budget, 1)
			if err != nil {
				return 0, six, err
			}
			six = p.Judge()
			got := six.Coverage
			fmt.Fprintf(o.Talk, "%.0f accounts, %.0f calls a day: the six classes have %.4f of the posts\n", n, budget,
				got)
			if met = math.Abs(got-o.Aim) <= stage.near; !met {
				f.next(got)
			}
		}
		if !met && stage.world == world {
			return 0, six, fmt.Errorf("social: %w: %g of the posts, within %g", ErrNoBudget, o.Aim, o.Within)
		}
		f.seen = false // another world
		if small == world && met {
			break
		}
	}
	return budget, six, nil
}

// finder searches along the logarithm of a budget.
type finder struct {
	aim, slope, x  float64
	lastX, lastGot float64
	seen           bool
}

// next moves x according to the result there.
func (f *finder) next(got float64) {
	if f.seen && f.x != f.lastX {
		f.slope = min(max((got-f.lastGot)/(f.x-f.lastX), 0.03), 0.5)
	}
	f.lastX, f.lastGot, f.seen = f.x, got, true
	f.x += min(max((f.aim-got)/f.slope, -1.5), 1.5)
}

// mean returns the mean of one job over seeds.
func mean(all []Result) Result {
	of := func(f func(*Result) float64) float64 {
		sum := 0.0
		for i := range all {
			sum += f(&all[i])
		}
		return sum / float64(len(all))
	}
	r := all[0]
	r.Rows = slices.Clone(r.Rows)
	r.Calls, r.Timelines = of(func(r *Result) float64 { return r.Calls }),
		of(func(r *Result) float64 { return r.Timelines })
	r.Coverage, r.Mean = of(func(r *Result) float64 { return r.Coverage }),
		of(func(r *Result) float64 { return r.Mean })
	r.Limit, r.Used = of(func(r *Result) float64 { return r.Limit }), of(func(r *Result) float64 { return r.Used })
	r.Median, r.P90 = of(func(r *Result) float64 { return r.Median }), of(func(r *Result) float64 { return r.P90 })
	for i := range r.Rows {
		row := &r.Rows[i]
		row.Accounts, row.Posts = of(func(r *Result) float64 { return r.Rows[i].Accounts }),
			of(func(r *Result) float64 { return r.Rows[i].Posts })
		row.Coverage, row.Mean = of(func(r *Result) float64 { return r.Rows[i].Coverage }),
			of(func(r *Result) float64 { return r.Rows[i].Mean })
	}
	r.OverLimit = 0
	var values []float64
	for i := range all {
		r.OverLimit += all[i].OverLimit
		values = append(values, all[i].Coverage)
	}
	if len(values) > 1 {
		r.Half = contest.Mean(values).Half
	}
	return r
}
