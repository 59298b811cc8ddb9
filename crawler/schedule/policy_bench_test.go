package schedule

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

// frontier is a million items as a peer keeps them: the stored history of each,
// and a queue of what is due. Decoding and encoding are part of a decision's cost.
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
		h := new(History)
		now := 0.0
		rate := 1 / (1 + 200*rng.Float64())
		for range 1 + rng.IntN(24) {
			gap := 1 + rng.Float64()*30
			now += gap
			o := Unchanged
			if rng.Float64() < rate*gap {
				o = Changed
			}
			h.Add(Event{At: at(now), Outcome: o})
		}
		f.stored[i] = h.Append(nil)
		f.due[i] = dueItem{h.Last().Unix() + int64(rng.Float64()*30*86400), int32(i)}
	}
	heap.Init(&f.due)
	return f
}

// visit takes the item due first, records what the visit found and plans the next.
func (f *frontier) visit(p Policy, b *Budget, m *Meter, h *History, changed bool) error {
	top := f.due[0]
	if err := h.Decode(f.stored[top.item]); err != nil {
		return err
	}
	now := time.Unix(top.at, 0)
	e := Event{At: now}
	if changed {
		e.Outcome = Changed
	}
	h.Add(e)
	f.stored[top.item] = h.Append(f.stored[top.item][:0])
	d := Decide(p, Item{History: h}, b, now)
	m.Planned(Decision{Tau: f.plans[top.item]}, d)
	f.plans[top.item] = d.Tau
	f.due[0].at = d.At.Unix()
	heap.Fix(&f.due, 0)
	return nil
}

// BenchmarkFrontier is one decision of a frontier, pop to push, at 10,000 and a
// million items: the cost must not grow with the number of items but for the queue.
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
				budget := &Budget{Interval: 15 * day, Model: NewModel()}
				budget.Price = budget.FairPrice(p, 0)
				m, h := NewMeter(budget.Price), new(History)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if err := f.visit(p, budget, m, h, i%5 == 0); err != nil {
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

// BenchmarkDecide is the bare decision on a history of 24 visits.
func BenchmarkDecide(b *testing.B) {
	h := new(History)
	for i := range 24 {
		o := Unchanged
		if i%5 == 0 {
			o = Changed
		}
		h.Add(Event{At: at(float64(i * 9)), Outcome: o})
	}
	budget := &Budget{Interval: 15 * day, Model: NewModel()}
	for _, p := range Policies() {
		budget.Price = budget.FairPrice(p, 0)
		b.Run(string(p), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Decide(p, Item{History: h, Weight: 1}, budget, h.Last())
			}
		})
	}
}
