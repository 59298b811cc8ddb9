package social

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/echo-node/echo-node/cmd/echo-lab/contest"
	"github.com/echo-node/echo-node/partition/racetest"
)

// The whole contest at a small size. B brings the six classes to the paper's share. At B every
// row of the default is above theirs and the paper's. More budget and more peers fetch more,
// and no policy exceeds the limit. No call is over the allowance, and the allowance is used.
func TestContest(t *testing.T) {
	racetest.Skip(t)
	r, err := Measure(t.Context(), Options{Accounts: 1000, Seeds: 1, Aim: 0.752, Within: 0.01,
		Times: []float64{0.25, 1, 2}, Peers: []int{1, 4}, Share: 0.25})
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(r.Baseline.Coverage-0.752) > 0.01 {
		t.Errorf("six classes at B: %g", r.Baseline.Coverage)
	}
	for _, fault := range r.Faults() {
		t.Error(fault)
	}
	for i, row := range r.Rows {
		if six := r.Baseline.Rows[i]; row.Coverage < six.Coverage || row.Mean < six.Mean ||
			row.Accounts != six.Accounts {
			t.Errorf("row %s: %+v, six classes %+v", row.Gap, row, six)
		}
	}
	if r.Coverage < 0.99 {
		t.Errorf("default at B: %g", r.Coverage)
	}
	if want := (1 - r.Coverage) / (1 - r.Baseline.Coverage); math.Abs(r.Missed-want) > 1e-9 || r.Missed > MostMissed ||
		r.MissedHalf != 0 {
		t.Errorf("missed %g ± %g of what the six classes missed, want %g", r.Missed, r.MissedHalf, want)
	}
	for i, x := range r.Budgets[1:] {
		if x.Coverage < r.Budgets[i].Coverage {
			t.Errorf("%g B: %g, with less %g", x.Times, x.Coverage, r.Budgets[i].Coverage)
		}
	}
	for i, x := range r.Shared[2:] {
		if one := r.Shared[i]; x.Coverage < one.Coverage+0.02 || x.Policy != one.Policy || x.Peers != 4 {
			t.Errorf("%s by %d: %g, by %d: %g", x.Policy, x.Peers, x.Coverage, one.Peers, one.Coverage)
		}
	}
	all := append(append([]Result{r.Result, r.Baseline}, r.Budgets...), r.Shared...)
	for _, x := range all {
		if x.Used < 0.99 || x.Used > 1.001 || x.OverLimit != 0 || x.Calls > math.Ceil(x.Budget*(warm+counted)) {
			t.Errorf("%s at %g B: used %g, %g calls, %d over", x.Policy, x.Times, x.Used, x.Calls, x.OverLimit)
		}
	}
}

// The world has the rows of the table: the same share of accounts in each, and the same number
// of posts each if the window is long enough to hold two of them.
func TestWorldIsTheTable(t *testing.T) {
	c, err := Draw(12000, 3)
	if err != nil {
		t.Fatal(err)
	}
	p := Play{Policy: SixClasses, Budget: 1, Peers: 1, world: c, had: make([][]int32, len(c.posts))}
	for i := range p.had {
		p.had[i] = make([]int32, len(c.posts[i]))
	}
	var drawn [contest.EchoRows + 1]float64
	for _, row := range c.rows {
		drawn[row]++
	}
	r := p.Judge()
	for i, paper := range Paper() {
		want := 0.4 * 12000 * float64(paper.Users) / 2665
		if math.Abs(drawn[i]-want) > 4*math.Sqrt(want) {
			t.Errorf("row %s: %g accounts, want %.0f", paper.Gap, drawn[i], want)
		}
		each, printed := r.Rows[i].Posts/r.Rows[i].Accounts, float64(paper.Posted)/float64(paper.Users)
		if i < 8 && math.Abs(each/printed-1) > 0.15 {
			t.Errorf("row %s: %.1f posts each, the table has %.1f", paper.Gap, each, printed)
		}
		if r.Rows[i].Coverage != 0 {
			t.Errorf("row %s: %g without a call", paper.Gap, r.Rows[i].Coverage)
		}
	}
}

// byHand returns two accounts: 150 and 50 posts on the tenth counted day.
func byHand() *Community {
	c := &Community{start: 0, end: (warm + counted) * perDay, names: []string{"a", "b"},
		index: map[string]int32{"a": 0, "b": 1}, rows: []int{1, 4}}
	for _, n := range []int{150, 50} {
		var posts []int64
		for k := range n {
			posts = append(posts, 13*perDay+int64(k)*60)
		}
		c.posts = append(c.posts, posts)
	}
	return c
}

// The limit by hand. With one call: 150 of the 200 posts. With two: all, because the other 50
// are fewer than 100 look-ups. Posts after the last call: none.
func TestLimit(t *testing.T) {
	c := byHand()
	for _, tt := range []struct{ days, want float64 }{{30, 0.75}, {14, 1}, {100, 0}} {
		p := Play{Budget: 1 / tt.days, Peers: 1, world: c, servers: make([]*server, 1), had: make([][]int32, 2)}
		if got := p.Limit(); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("a call in %g days: limit %g, want %g", tt.days, got, tt.want)
		}
	}
}

// The server: a look-up has only the last post, and a timeline the newest 200. Calls over the
// allowance are counted in each window.
func TestServer(t *testing.T) {
	c := byHand()
	c.posts[0] = append(c.posts[0], make([]int64, 100)...)
	for k := range 100 {
		c.posts[0][150+k] = 14*perDay + int64(k)
	}
	s := &server{c: c, had: [][]int32{make([]int32, 250), make([]int32, 50)}, next: make([]int32, 2),
		read: make([]int32, 2), allowed: 2}
	had := func() (n int) {
		for _, h := range s.had[0] {
			if h != 0 {
				n++
			}
		}
		return n
	}
	if total, latest := s.lookup(0, 13*perDay+90); total != 2 || latest.Unix() != 13*perDay+60 || had() != 1 {
		t.Errorf("looked up %d, %v, had %d", total, latest, had())
	}
	if posts := s.timeline(0, 20*perDay); len(posts) != page || posts[0].Unix() != 14*perDay+99 || had() != page+1 {
		t.Errorf("timeline of %d, had %d", len(posts), had())
	}
	for _, at := range []int64{0, 1, 2, 899, 900, 901} {
		s.call(at)
	}
	if s.calls != 6 || s.overLimit != 2 {
		t.Errorf("%d calls, %d over", s.calls, s.overLimit)
	}
}

// Equal seeds give equal figures, whatever runs in parallel.
func TestDeterministic(t *testing.T) {
	racetest.Skip(t)
	o := Options{Accounts: 500, Seeds: 2, Aim: 0.6, Within: 0.03, Peers: []int{3}, Share: 0.5}
	one, err := Measure(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	two, err := Measure(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(one, two) || one.Half <= 0 {
		t.Errorf("%+v\n%+v", one.Result, two.Result)
	}
}

// Missed posts are compared for each seed. More than half of what the six classes miss is a
// fault, and so is exactly half when the interval reaches beyond it.
func TestMissed(t *testing.T) {
	all := make([]Row, contest.EchoRows)
	for i := range all {
		all[i].Coverage = 1
	}
	six := []Result{{Coverage: 0.75}, {Coverage: 0.8}}
	for _, tt := range []struct {
		ours  []Result
		want  float64
		fault bool
	}{
		{[]Result{{Coverage: 0.995}, {Coverage: 0.996}}, 0.02, false},
		// 0.4 and 0.5: the interval is ±0.64
		{[]Result{{Coverage: 0.9}, {Coverage: 0.9}}, 0.45, true},
		{[]Result{{Coverage: 0.8}, {Coverage: 0.84}}, 0.8, true},
	} {
		r := Report{Result: Result{Rows: all}}
		r.missed(six, tt.ours)
		if math.Abs(r.Missed-tt.want) > 1e-9 || (len(r.Faults()) > 0) != tt.fault {
			t.Errorf("missed %g ± %g, want %g; faults %v", r.Missed, r.MissedHalf, tt.want, r.Faults())
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, o := range []Options{{}, {Accounts: 1000, Seeds: 1, Aim: 2, Within: 0.01},
		{Accounts: 1000, Seeds: 1, Aim: 0.7, Within: 0.01, Times: []float64{0}},
		{Accounts: 1000, Seeds: 1, Aim: 0.7, Within: 0.01, Peers: []int{0}, Share: 0.5}} {
		if _, err := Measure(t.Context(), o); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
