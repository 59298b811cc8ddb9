package contest

import "sort"

// Result is what one policy did in one world.
type Result struct {
	Freshness float64 // mean share of items whose copy is good
	Weighted  float64 // the same, by importance
	AgeDays   float64 // mean age, days since the first change not yet seen (0 = good)
	Visits    int
	Hits      int      // visits that found a change
	Changes   int      // changes that happened
	Missed    int      // states or posts that no visit can see any more
	Days      []Day    // of the whole run, including what is not measured
	Groups    [4]Group // by true class
}

// Day is one day of a run, over all items.
type Day struct {
	Freshness, AgeDays float64
	Visits, Hits       float64
}

// Group is the part of one class.
type Group struct {
	Items, Visits, Hits int
	Freshness, AgeDays  float64
}

// ChangeRate returns the share of visits that found a change.
func (r *Result) ChangeRate() float64 { return ratio(float64(r.Hits), float64(r.Visits)) }

// The cost of a visit in bytes: the request and a response without a body (304). A change adds
// 12 KB, the mean page of Brewington and Cybenko (WWW9, 2000).
const (
	askBytes  = 500
	bodyBytes = 12_000
)

// Traffic returns the bytes of visits with conditional requests, of which hits found a change.
func Traffic(visits, hits float64) float64 { return askBytes*visits + bodyBytes*hits }

// VisitsPerChange returns the cost of one change that was found.
func (r *Result) VisitsPerChange() float64 { return ratio(float64(r.Visits), float64(r.Hits)) }

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// tally adds up what happened to items between visits, from the time since on.
type tally struct {
	w            *World
	since        int64
	next         []int     // per item: index of its first change not yet seen
	last         []int64   // per item: last visit
	fresh, age   []float64 // per item, seconds and seconds²
	visits, hits []int32
	missed, seen int
	days         []float64 // fresh seconds by day
	alive        []float64 // seconds lived by day
	ages         []float64 // seconds² by day
	looks        [2][]int  // visits, and those that found a change, by day
}

func newTally(w *World, since int64) *tally {
	n := len(w.Things)
	days := int((w.To-w.From)/secondsPerDay) + 1
	t := &tally{w: w, since: since, next: make([]int, n), last: make([]int64, n),
		fresh: make([]float64, n), age: make([]float64, n), visits: make([]int32, n), hits: make([]int32, n),
		days: make([]float64, days), alive: make([]float64, days), ages: make([]float64, days),
		looks: [2][]int{make([]int, days), make([]int, days)}}
	for i := range w.Things {
		t.last[i] = w.Things[i].Born
	}
	return t
}

// visit accounts for item i up to now and returns how many changes it finds. count is false at
// the end of the world, when there is no visit.
func (t *tally) visit(i int, now int64, count bool) int {
	th := &t.w.Things[i]
	from := t.last[i]
	rest := th.Changes[t.next[i]:]
	k := sort.Search(len(rest), func(j int) bool { return rest[j] > now })
	stale := now
	if k > 0 {
		stale = rest[0]
	}
	t.fresh[i] += float64(max(0, stale-max(from, t.since)))
	t.spread(t.days, from, stale, func(a, b int64) float64 { return float64(b - a) })
	t.spread(t.alive, from, now, func(a, b int64) float64 { return float64(b - a) })
	t.spread(t.ages, stale, now,
		func(a, b int64) float64 { return float64(b-a) * (float64(a-stale) + float64(b-stale)) / 2 })
	if a := max(stale, t.since); now > a {
		x, y := float64(now-stale), float64(a-stale)
		t.age[i] += (x*x - y*y) / 2
	}
	if now >= t.since && k > 0 {
		late := sort.Search(k, func(j int) bool { return rest[j] >= t.since })
		t.missed += min(k-late, max(0, k-t.w.Page)) // at the end too: what is overwritten is lost
		t.seen += k - late
	}
	if count {
		day := min(int((now-t.w.From)/secondsPerDay), len(t.days)-1)
		t.looks[0][day]++
		if k > 0 {
			t.looks[1][day]++
		}
		t.last[i] = now
		t.next[i] += k
		if now >= t.since {
			t.visits[i]++
			if k > 0 {
				t.hits[i]++
			}
		}
	}
	return k
}

// spread adds to each day its part of the amount in [from, to). The parts add up to the whole.
func (t *tally) spread(days []float64, from, to int64, amount func(from, to int64) float64) {
	for from < to {
		d := (from - t.w.From) / secondsPerDay
		end := min(to, t.w.From+(d+1)*secondsPerDay)
		if int(d) < len(days) {
			days[d] += amount(from, end)
		}
		from = end
	}
}

// result computes the result at the end of the world.
func (t *tally) result() Result {
	r := Result{Missed: t.missed}
	var fresh, age, life, weighted, weights float64
	var lives [4]float64
	for i := range t.w.Things {
		th := &t.w.Things[i]
		t.visit(i, t.w.To, false)
		lived := float64(t.w.To - max(th.Born, t.since))
		if lived <= 0 {
			continue
		}
		fresh, age, life = fresh+t.fresh[i], age+t.age[i], life+lived
		weighted, weights = weighted+th.Weight*t.fresh[i], weights+th.Weight*lived
		r.Visits += int(t.visits[i])
		r.Hits += int(t.hits[i])
		g := &r.Groups[th.Class]
		g.Items++
		g.Visits += int(t.visits[i])
		g.Hits += int(t.hits[i])
		g.Freshness += t.fresh[i]
		g.AgeDays += t.age[i]
		lives[th.Class] += lived
	}
	r.Changes, r.Missed = t.seen, t.missed
	r.Freshness, r.Weighted, r.AgeDays = ratio(fresh, life), ratio(weighted, weights), ratio(age, life)/secondsPerDay
	for c := range r.Groups {
		r.Groups[c].Freshness = ratio(r.Groups[c].Freshness, lives[c])
		r.Groups[c].AgeDays = ratio(r.Groups[c].AgeDays, lives[c]) / secondsPerDay
	}
	for d := range t.days {
		r.Days = append(r.Days, Day{ratio(t.days[d], t.alive[d]), ratio(t.ages[d], t.alive[d]) / secondsPerDay,
			float64(t.looks[0][d]), float64(t.looks[1][d])})
	}
	return r
}
