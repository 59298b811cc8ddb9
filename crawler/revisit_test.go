package crawler

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler/schedule"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
)

// All pages together are visited as often as Options.Revisit says. Pages that change more often are
// visited more often, also after a restart.
func TestRevisitsKeepTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := memStore(t), newFake()
		defer s.Close()
		const pages, interval = 60, 4 * time.Minute // short, because the store's timers run ten times a second
		var still, busy []partition.Key
		for i := range pages {
			k := key(t, fmt.Sprintf("https://s%d.example%d.org/", i, i))
			if i%3 == 0 {
				busy = append(busy, k) // another text every eight minutes
			} else {
				still = append(still, k)
			}
		}
		text := func(k partition.Key, now time.Time) string {
			for _, b := range busy {
				if b == k {
					return fmt.Sprint("edition ", string(rune('a'+now.Unix()/480%26)))
				}
			}
			return "always this"
		}
		f.reply = func(task Task, n int) (Result, error) {
			r := f.page(task)
			r.Record.Text = text(task.Due.Key, task.Now)
			r.Record.Digest = "sha256:" + r.Record.Text + fmt.Sprint(n) // the bytes differ each time
			return r, nil
		}
		admit(t, s, append(still, busy...)...)
		visits := func(of []partition.Key) (n int) {
			for _, k := range of {
				n += f.count(k)
			}
			return n
		}
		span := 4 * time.Hour
		if racetest.Small(t) {
			span = time.Hour
		}
		crawl(t, s, f, Options{Revisit: interval}, span)
		c := crawl(t, s, f, Options{Revisit: interval}, span)
		budget := 2 * float64(span/interval) * pages
		if got := float64(visits(still) + visits(busy)); got < 0.7*budget || got > 1.2*budget {
			t.Errorf("%.0f visits, %.0f are asked for", got, budget)
		}
		each, other := float64(visits(busy))/float64(len(busy)), float64(visits(still))/float64(len(still))
		if each < 2*other {
			t.Errorf("a page that changes every eight minutes is seen %.0f times, one that never does %.0f times", each,
				other)
		}
		seen := c.Stats().Revisits
		if seen["changed"] == 0 || seen["unchanged"] == 0 || len(seen) != 2 {
			t.Errorf("revisits: %v", seen)
		}
	})
}

// The plans of a site's pages may need more visits than the site allows. Then there are fewer
// plans. Its visits are in time, go to pages that change, and take nothing from other sites.
func TestRevisitsOfASiteThatIsScarce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := memStore(t), newFake()
		defer s.Close()
		const pages, interval, delay = 120, 2 * time.Minute, 4 * time.Second // 30 visits in an interval
		var slow, others []partition.Key
		for i := range pages {
			slow = append(slow, key(t, fmt.Sprintf("https://slow.example.org/p%d", i)))
			others = append(others, key(t, fmt.Sprintf("https://s%d.example%d.org/", i, i)))
		}
		f.reply = func(task Task, n int) (Result, error) {
			r := f.page(task)
			r.Record.Text = "always this"
			if k := string(task.Due.Key); strings.HasSuffix(k, "0") {
				r.Record.Text = "edition " + string(rune('a'+task.Now.Unix()/600%26))
			}
			r.Record.Digest = "sha256:" + r.Record.Text
			return r, nil
		}
		admit(t, s, append(slow, others...)...)
		span := time.Hour
		crawl(t, s, f, Options{Revisit: interval, Delay: delay}, span)
		late, busy, still := 0, 0, 0
		for i, k := range slow {
			d, err := s.Queue.DueOf(k)
			if err != nil {
				t.Fatal(err)
			}
			if time.Since(d.At) > interval {
				late++
			}
			if i%10 == 0 {
				busy += f.count(k)
			} else {
				still += f.count(k)
			}
		}
		if late > pages/10 {
			t.Errorf("%d of %d pages of the slow site are more than %s late", late, pages, interval)
		}
		if most := int(span / delay); busy+still < 6*most/10 || busy+still > most+1 {
			t.Errorf("%d visits to the slow site, of %d that there could be", busy+still, most)
		}
		if each, other := float64(busy)/(pages/10), float64(still)/(pages*9/10); each < 1.5*other {
			t.Errorf("a page of the slow site that changes is seen %.1f times, one that does not %.1f times", each,
				other)
		}
		seen := 0
		for _, k := range others {
			seen += f.count(k)
		}
		if budget := pages * int(span/interval); seen < 7*budget/10 {
			t.Errorf("%d visits to all others, %d are asked for", seen, budget)
		}
	})
}

// The result of a visit decides when the next one is. A page that is gone or fails is visited later
// and later. A page that was never fetched is not visited again. A failure that is soon tried again
// changes nothing.
func TestRevisitsOfWhatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := memStore(t), newFake()
		defer s.Close()
		next := map[string]store.Next{"gone": {State: store.StateGone, Reason: "status 404"},
			"refused": {State: store.StateRefused, Reason: "status 403"}}
		keys := map[string]partition.Key{}
		for _, what := range []string{"gone", "refused", "never", "304", "moved"} {
			keys[what] = key(t, "https://"+what+".example.org/")
			admit(t, s, keys[what])
		}
		f.reply = func(task Task, n int) (Result, error) {
			r := f.page(task)
			switch k := task.Due.Key; {
			case k == keys["never"]:
				r.Record, r.Next = nil, next["gone"]
			case k == keys["304"] && n > 0:
				r.Record = nil
			case k == keys["moved"]:
				r.Record.Status, r.Record.Redirect = 301, keys["304"]
			case k == keys["gone"] && n > 0:
				r.Record, r.Next = nil, next["gone"]
			case k == keys["refused"] && n > 0:
				r.Record, r.Next = nil, next["refused"]
			}
			return r, nil
		}
		c := crawl(t, s, f, Options{Revisit: 10 * time.Minute}, 2*time.Hour)
		if n := f.count(keys["never"]); n != 1 {
			t.Errorf("what never was is asked for %d times", n)
		}
		for what, later := range map[string]time.Duration{"gone": 24 * time.Hour, "moved": 24 * time.Hour,
			"refused": time.Minute} {
			asked := f.askedAt(keys[what].Site())
			d, err := s.Queue.DueOf(keys[what])
			if err != nil || d.At.Before(asked[len(asked)-1].Add(later).Truncate(time.Second)) {
				t.Errorf("%s: asked for at %s and then not before %s, want %s later, %v", what, asked, d.At, later, err)
			}
		}
		for _, what := range []string{"gone", "refused"} {
			if _, err := s.Archive.Record(keys[what]); err != nil {
				t.Errorf("%s: the record of before: %v", what, err)
			}
		}
		for what, want := range map[string]string{"gone": "gone 1 times, again after ", "refused": "error ",
			"304": "changes every "} {
			d, err := s.Queue.DueOf(keys[what])
			why, fault := c.Why(d)
			if err != nil || fault != nil || !strings.HasPrefix(why, want) ||
				!strings.Contains(why, "; looked at again ") {
				t.Errorf("%s is due again because %q, want %q; %v, %v", what, why, want, err, fault)
			}
		}
		if d, err := s.Queue.DueOf(keys["never"]); err != nil {
			t.Error(err)
		} else if why, err := c.Why(d); why != "" || err != nil {
			t.Errorf("what never was is due again because %q, %v", why, err)
		}
		seen := c.Stats().Revisits
		for _, o := range []schedule.Outcome{schedule.Gone, schedule.Failed, schedule.Unchanged} {
			if seen[o.String()] == 0 {
				t.Errorf("no revisit that says %s: %v", o, seen)
			}
		}
	})
}

// Plans from another peer are read completely or not at all.
func FuzzPlan(f *testing.F) {
	p := plan{tau: 1, age: 0.5, even: 2}
	p.history.Add(schedule.Event{At: time.Unix(1e9, 0), Outcome: schedule.Changed})
	f.Add(p.encode())
	f.Add([]byte{planVersion})
	p.told, p.list, p.hint, p.moved = 1<<store.HintSitemap, store.HintFeed,
		store.Hint{Kind: store.HintSitemap, At: time.Unix(1e9+5, 0)}, true
	f.Add(p.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := decodePlan(b)
		if err != nil || len(b) == 0 {
			return
		}
		again, err := decodePlan(p.encode())
		if err != nil || !bytes.Equal(again.encode(), p.encode()) {
			t.Errorf("%x: %v", b, err)
		}
		next, err := newRevisits(time.Hour, 1, time.Unix(0, 0), newLessons()).plan(store.Due{History: b},
			store.Next{State: store.StateDone}, finding{outcome: schedule.Unchanged}, &store.Site{}, time.Second,
			time.Unix(2e9, 0))
		if err != nil || next.At.IsZero() || len(next.History) > store.MaxHistory {
			t.Errorf("%x: next %v with %d bytes, %v", b, next.At, len(next.History), err)
		}
	})
}
