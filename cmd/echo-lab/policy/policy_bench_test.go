package policy

import (
	"bytes"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/schedule"
)

// frontier has a million items as a peer stores them: the stored history of each, and a queue
// of what is due. Decoding and encoding are part of a decision's cost.
type frontier struct {
	stored [][]byte
	plans  []float64
	due    dues
}

type dueItem struct {
	at   int64
	item int32
}

type dues []dueItem

func (d dues) Len() int           { return len(d) }
func (d dues) Less(i, j int) bool { return d[i].at < d[j].at }
func (d dues) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *dues) Push(x any)        { *d = append(*d, x.(dueItem)) }
func (d *dues) Pop() any          { x := (*d)[len(*d)-1]; *d = (*d)[:len(*d)-1]; return x }

func newFrontier(n int, rng *rand.Rand) *frontier {
	f := &frontier{stored: make([][]byte, n), plans: make([]float64, n), due: make(dues, n)}
	for i := range f.stored {
		h := new(schedule.History)
		now := 0.0
		rate := 1 / (1 + 200*rng.Float64())
		for range 1 + rng.IntN(24) {
			gap := 1 + rng.Float64()*30
			now += gap
			o := schedule.Unchanged
			if rng.Float64() < rate*gap {
				o = schedule.Changed
			}
			h.Add(schedule.Event{At: at(now), Outcome: o})
		}
		f.stored[i] = h.Append(nil)
		f.due[i] = dueItem{h.Last().Unix() + int64(rng.Float64()*30*86400), int32(i)}
	}
	heap.Init(&f.due)
	return f
}

// grown returns a frontier of n items that repeats the histories of f, each due at its own
// time.
func (f *frontier) grown(n int) *frontier {
	rng := rand.New(rand.NewPCG(2, 2))
	g := &frontier{stored: make([][]byte, n), plans: make([]float64, n), due: make(dues, n)}
	for i := range g.stored {
		like := int(f.due[i%len(f.due)].item)
		g.stored[i] = bytes.Clone(f.stored[like])
		g.due[i] = dueItem{f.due[i%len(f.due)].at + rng.Int64N(30*86400), int32(i)}
	}
	heap.Init(&g.due)
	return g
}

// visit takes the item due first, records the result of the visit and plans the next.
func (f *frontier) visit(p Policy, b *Budget, m *schedule.Meter, h *schedule.History, changed bool) error {
	top := f.due[0]
	if err := h.Decode(f.stored[top.item]); err != nil {
		return err
	}
	now := time.Unix(top.at, 0)
	e := schedule.Event{At: now}
	if changed {
		e.Outcome = schedule.Changed
	}
	h.Add(e)
	f.stored[top.item] = h.Append(f.stored[top.item][:0])
	d := Decide(p, item(h), b, now).Decision
	m.Planned(schedule.Decision{Tau: f.plans[top.item]}, d)
	f.plans[top.item] = d.Tau
	f.due[0].at = d.At.Unix()
	heap.Fix(&f.due, 0)
	return nil
}

// BenchmarkFrontier measures one decision of a frontier, pop to push, at 10,000 and a million
// items. Except for the queue, the cost must not grow with the number of items.
func BenchmarkFrontier(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		for _, p := range []Policy{Uniform, Default} {
			b.Run(fmt.Sprintf("%s/items=%d", p, n), func(b *testing.B) {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				rng := rand.New(rand.NewPCG(1, 1))
				f := newFrontier(n, rng)
				runtime.GC()
				runtime.ReadMemStats(&after)
				even := budget(15)
				even.Price = even.FairPrice(p, 0)
				m, h := schedule.NewMeter(even.Price), new(schedule.History)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if err := f.visit(p, even, m, h, i%5 == 0); err != nil {
						b.Fatal(err)
					}
				}
				stored := 0
				for _, s := range f.stored {
					stored += len(s)
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
				b.ReportMetric(float64(stored)/float64(n), "stored-B/item")
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "heap-B/item")
			})
		}
	}
}

// BenchmarkFrontierRatio measures the same in one run, a visit of each policy in turn on
// frontiers of n items. It compares the cost of the default with uniform, and a decision with
// one among 100,000. Run it with at most 100,000 visits (-benchtime 100000x): with more, the
// histories of the smallest grow. The largest takes 3 GB and is left out with -short.
func BenchmarkFrontierRatio(b *testing.B) {
	few := map[Policy]float64{}
	for _, n := range []int{100_000, 1_000_000, 10_000_000} {
		if n > 1_000_000 && testing.Short() {
			continue
		}
		b.Run(fmt.Sprintf("items=%d", n), func(b *testing.B) {
			policies := []Policy{Uniform, Default}
			fs, budgets, meters := map[Policy]*frontier{}, map[Policy]*Budget{}, map[Policy]*schedule.Meter{}
			for _, p := range policies {
				fs[p] = newFrontier(10_000, rand.New(rand.NewPCG(1, 1))).grown(n)
				budgets[p] = budget(15)
				budgets[p].Price = budgets[p].FairPrice(p, 0)
				meters[p] = schedule.NewMeter(budgets[p].Price)
			}
			runtime.GC()
			const part = 1000 // visits of one policy before the other's turn
			took, made, h := map[Policy]time.Duration{}, 0, new(schedule.History)
			for i := 0; b.Loop(); i++ {
				if i%part != 0 {
					continue
				}
				for _, p := range policies {
					begun := time.Now()
					for j := range part {
						if err := fs[p].visit(p, budgets[p], meters[p], h, j%5 == 0); err != nil {
							b.Fatal(err)
						}
					}
					took[p] += time.Since(begun)
				}
				made += part
			}
			each := map[Policy]float64{}
			for _, p := range policies {
				each[p] = float64(took[p].Nanoseconds()) / float64(made)
				if n == 100_000 {
					few[p] = each[p]
				}
				b.ReportMetric(1e9/each[p], string(p)+"/s")
				b.ReportMetric(each[p]/few[p], string(p)+"-of-100k")
				stored := 0
				for _, s := range fs[p].stored {
					stored += len(s)
				}
				b.ReportMetric(float64(stored)/float64(n), string(p)+"-B/item")
			}
			b.ReportMetric(each[Default]/each[Uniform], "cost-of-uniform")
		})
	}
}

// BenchmarkDecide measures only the decision on a history of 24 visits.
func BenchmarkDecide(b *testing.B) {
	h := new(schedule.History)
	for i := range 24 {
		o := schedule.Unchanged
		if i%5 == 0 {
			o = schedule.Changed
		}
		h.Add(schedule.Event{At: at(float64(i * 9)), Outcome: o})
	}
	even := budget(15)
	for _, p := range All() {
		even.Price = even.FairPrice(p, 0)
		b.Run(string(p), func(b *testing.B) {
			it := item(h)
			it.Weight = 1
			b.ReportAllocs()
			for b.Loop() {
				Decide(p, it, even, h.Last())
			}
		})
	}
}
