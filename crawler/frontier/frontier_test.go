package frontier

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/partition"
)

// For every order of events: a site has one fetch at a time and none is early. All rows come out
// once. The windows hold at most MaxRows, plus one window per site.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const maxRows, window = 20, 4
		p := &play{f: New(Options{Window: window, MaxRows: maxRows}), now: epoch,
			inFlight: map[partition.Site]*storeRow{}, steps: map[partition.Site]Step{}}
		allowed := map[partition.Site]time.Time{}
		added, seen := 0, map[partition.Key]int{}
		slow := rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second, time.Hour})
		step := func() {
			st := p.f.Next(p.now)
			switch st.Act {
			case Read:
				if st.Limit > window {
					t.Fatalf("read of %d rows", st.Limit)
				}
				rows, later, more := p.read(st)
				p.f.Fill(st, rows, later, more)
			case Fetch:
				if p.inFlight[st.Site] != nil {
					t.Fatalf("%s in flight twice", st.Site)
				}
				if p.now.Before(allowed[st.Site]) {
					t.Fatalf("%s asked %v early", st.Site, allowed[st.Site].Sub(p.now))
				}
				r := p.row(st.Row.Key)
				if r == nil || r.slice != st.Slice || r.site != st.Site {
					t.Fatalf("fetch of %s in %v, which is not due", st.Row.Key, st.Slice)
				}
				p.inFlight[st.Site], p.steps[st.Site] = r, st
			default:
				if !st.At.IsZero() && !st.At.After(p.now) {
					t.Fatalf("wait till %v, which is now", st.At)
				}
			}
		}
		finish := func(s partition.Site, again bool, quiet time.Duration) {
			r := p.inFlight[s]
			delete(p.inFlight, s)
			allowed[s] = p.now.Add(quiet)
			if again {
				p.f.Done(p.steps[s], allowed[s], time.Time{}, &Row{Key: r.key, Priority: r.priority})
				return
			}
			p.drop(r)
			seen[r.key]++
			p.f.Done(p.steps[s], allowed[s], time.Time{}, nil)
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				s := partition.Site(fmt.Sprint("s", rapid.IntRange(0, 9).Draw(t, "site")))
				r := &storeRow{slice: partition.Slice(rapid.IntRange(0, 2).Draw(t, "slice")), site: s,
					key:      partition.Key(fmt.Sprint("k", added)),
					priority: rapid.IntRange(0, 255).Draw(t, "priority"), at: p.now.Add(slow.Draw(t, "in"))}
				added++
				p.rows = append(p.rows, r)
				p.f.Wake(r.slice, s, time.Time{}, r.at)
			},
			"advance": func(t *rapid.T) { p.now = p.now.Add(slow.Draw(t, "time")) },
			"next":    func(*rapid.T) { step() },
			"done": func(t *rapid.T) {
				for s := range p.inFlight {
					finish(s, rapid.Bool().Draw(t, "again"), slow.Draw(t, "quiet"))
					return
				}
			},
			"": func(t *rapid.T) {
				if n := p.f.Rows(); n < 0 || n > maxRows+window*len(p.f.sites) || p.f.Flying() != len(p.inFlight) {
					t.Fatalf("%d rows, %d flying of %d", n, p.f.Flying(), len(p.inFlight))
				}
			},
		})
		for range 20 * (added + 10) { // then all rows come out
			step()
			for s := range p.inFlight {
				finish(s, false, time.Second)
			}
			p.now = p.now.Add(10 * time.Minute)
		}
		if len(seen) != added || p.f.Rows() != 0 || p.f.Sites() != 0 {
			t.Fatalf("%d of %d rows came out; %d rows, %d sites left", len(seen), added, p.f.Rows(), p.f.Sites())
		}
		for k, n := range seen {
			if n != 1 {
				t.Fatalf("%s came out %d times", k, n)
			}
		}
	})
}

// BenchmarkPop measures the memory per site, and whether a pop costs more with more sites.
func BenchmarkPop(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 200_000} {
		b.Run(fmt.Sprint(n, "sites"), func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			f := New(Options{})
			for i := range n {
				f.Wake(1, partition.Site(fmt.Sprintf("web:www.site-%06d.example", i)), epoch, time.Time{})
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			now := epoch
			b.ResetTimer()
			for pops := 0; pops < b.N; {
				switch st := f.Next(now); st.Act {
				case Read:
					rows := make([]Row, st.Limit)
					for i := range rows {
						rows[i].Key = "web:https://www.site.example/some/path/or/other"
					}
					f.Fill(st, rows, time.Time{}, true)
				case Fetch:
					f.Done(st, now.Add(time.Second), time.Time{}, nil)
					now = now.Add(time.Second / time.Duration(n)) // the rate that the sites allow
					pops++
				default:
					now = st.At
				}
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "B/site")
			runtime.KeepAlive(f)
		})
	}
}
