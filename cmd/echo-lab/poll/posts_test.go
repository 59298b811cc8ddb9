package poll

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/echo-node/echo-node/cmd/echo-lab/policy"
)

func newPosts(t *testing.T, o PostsOptions) *Posts {
	t.Helper()
	p, err := NewPosts(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// An account with posts that look-ups did not show is read by a timeline call, and then has no
// debt.
func TestPostsReadsWhatLookupsDidNotShow(t *testing.T) {
	p, now := newPosts(t, PostsOptions{}), start
	old := now.Add(-time.Hour)
	for i := range 150 {
		p.Put(fmt.Sprint(i), old, now)
	}
	seen := map[string]bool{}
	look := func() []string {
		now = now.Add(2 * time.Minute)
		names, timeline := p.Next(now)
		if timeline || len(names) == 0 || len(names) > 100 {
			t.Fatalf("call of %v, timeline %v", names, timeline)
		}
		return names
	}
	for len(seen) < 150 {
		for _, name := range look() {
			if seen[name] && len(seen) < 100 {
				t.Errorf("%s looked up before others were once", name)
			}
			seen[name] = true
			p.Looked(name, 500, old, now)
		}
	}
	now = now.Add(2 * time.Minute)
	p.Looked("7", 509, now.Add(-time.Second), now)
	now = now.Add(2 * time.Minute)
	names, timeline := p.Next(now)
	if !timeline || len(names) != 1 || names[0] != "7" {
		t.Fatalf("call of %v, timeline %v; want the timeline of 7", names, timeline)
	}
	p.Read("7", []time.Time{now.Add(-2 * time.Minute), now.Add(-3 * time.Minute)}, now)
	now = now.Add(2 * time.Minute)
	if names, timeline := p.Next(now); timeline {
		t.Errorf("timeline of %v though nothing is owed", names)
	}
}

// A counter that falls (posts were deleted) is no debt. After a full page the counter is
// unknown, and lost posts do not become a debt.
func TestPostsCounters(t *testing.T) {
	p, now := newPosts(t, PostsOptions{Page: 5}), start
	p.Put("a", now.Add(-time.Hour), now)
	p.Looked("a", 100, now, now)
	p.Looked("a", 90, now, now.Add(time.Hour))
	if d := p.known["a"].debt; d != 0 {
		t.Errorf("debt %d after deletes", d)
	}
	now = now.Add(2 * time.Hour)
	p.Looked("a", 110, now, now)
	if d := p.known["a"].debt; d != 19 {
		t.Errorf("debt %d, want 20 posts but the last", d)
	}
	now = now.Add(time.Hour)
	var page []time.Time
	for k := range 5 {
		page = append(page, now.Add(-time.Duration(k)*time.Second))
	}
	p.Read("a", page, now)
	p.Looked("a", 500, now, now.Add(time.Hour))
	if d := p.known["a"].debt; d != 0 {
		t.Errorf("debt %d of posts that nobody can have", d)
	}
	p.Looked("a", 501, now.Add(90*time.Minute), now.Add(2*time.Hour))
	if d := p.known["a"].debt; d != 0 {
		t.Errorf("debt %d of one post, which the look-up brought", d)
	}
	// wrong counters, and a clock of the year 9999
	for _, total := range []int64{math.MaxInt64, math.MinInt64, math.MaxInt64} {
		now = now.Add(time.Hour)
		p.Looked("a", total, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), now)
	}
	if s := p.known["a"]; s.debt > 2*10*5 || s.latest > nanos(now) {
		t.Errorf("%+v", s)
	}
}

// The value of reading k posts is the price at which waiting for the next one is no longer
// cheaper. The smallest k whose value reaches a price is the best threshold for it.
func TestPostsReadWorthIsTheBestThreshold(t *testing.T) {
	p := newPosts(t, PostsOptions{Page: 1 << 20})
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		rate, price := math.Exp(rng.Float64()*8-4), math.Exp(rng.Float64()*8-4)
		s := &postsState{lost: policy.Gamma{Shape: rate, Days: 1}}
		for s.debt = 1; p.readWorth(s) < price; s.debt++ {
		}
		cost := func(k float64) float64 { return (k*(k-1)/(2*rate) + price) / (k / rate) }
		best := cost(float64(s.debt))
		for k := 1; k < 2*s.debt+10; k++ {
			if cost(float64(k)) < best*(1-1e-9) {
				t.Fatalf("rate %g, price %g: %d costs %g a day, %d costs %g", rate, price, s.debt, best, k,
					cost(float64(k)))
			}
		}
	}
}

// For any responses: a call is for known accounts, each once, none before Floor has passed
// since its last call. Every account is looked up, and the price stays a number.
func TestPostsInvariants(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 9))
		p, now := newPosts(t, PostsOptions{Batch: 10, Page: 20, Floor: 5 * time.Minute}), start
		asked, totals := map[string]time.Time{}, map[string]int64{}
		const n = 60
		for i := range n {
			name := fmt.Sprint(i)
			p.Put(name, now.Add(-time.Duration(rng.IntN(1000))*time.Hour), now)
			totals[name] = rng.Int64N(1000)
		}
		p.Drop("3")
		p.Put("4", time.Time{}, now)
		for range 3000 {
			now = now.Add(time.Duration(rng.IntN(120)) * time.Second)
			names, timeline := p.Next(now)
			if len(names) > 10 || timeline && len(names) != 1 {
				t.Fatalf("call of %v, timeline %v", names, timeline)
			}
			once := map[string]bool{}
			for _, name := range names {
				if once[name] || name == "3" || now.Sub(asked[name]) < 5*time.Minute {
					t.Fatalf("seed %d: %s twice, dropped, or %s after its last call", seed, name, now.Sub(asked[name]))
				}
				once[name], asked[name] = true, now
				fresh := rng.Int64N(30) * rng.Int64N(2)
				totals[name] += fresh - rng.Int64N(3)
				switch latest := now.Add(-time.Duration(rng.IntN(300)) * time.Second); {
				case rng.IntN(20) == 0:
					p.Failed(name, now)
				case timeline:
					var posts []time.Time
					for k := range min(fresh, 20) {
						posts = append(posts, latest.Add(-time.Duration(k)*time.Minute))
					}
					p.Read(name, posts, now)
				default:
					p.Looked(name, totals[name], latest, now)
				}
			}
		}
		if len(asked) != n-1 || math.IsNaN(p.Price()) || math.IsInf(p.Price(), 0) {
			t.Errorf("seed %d: %d of %d asked for, price %g", seed, len(asked), n-1, p.Price())
		}
		if most := 5 * n; len(p.looks.all) > most || len(p.reads.all) > most {
			t.Errorf("seed %d: orders of %d and %d for %d accounts", seed, len(p.looks.all), len(p.reads.all), n)
		}
	}
}

func TestPostsRefuses(t *testing.T) {
	for _, o := range []PostsOptions{{Batch: -1}, {Page: -1}, {Floor: -1}, {Keep: -1}} {
		if _, err := NewPosts(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}
