package crawler

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler/schedule/change"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// proven is the state in a site's row after its sitemap told the truth for some time.
func proven() []byte {
	t := trusts{}
	*t.of(store.HintSitemap) = change.Trust{NewRight: 20, OldRight: 40, OldWrong: 1}
	return t.encode()
}

// listing is a site with a sitemap. changed returns the edition of a page at a time. says returns
// the date of the page in the sitemap; zero = none.
func listing(t *testing.T, f *fakeSource, pages int, changed func(page int, now time.Time) int64,
	says func(page int, now time.Time) time.Time) (list partition.Key, all []partition.Key) {
	list = key(t, "https://news.example.org/sitemap.xml")
	for i := range pages {
		all = append(all, key(t, fmt.Sprintf("https://news.example.org/p%d", i)))
	}
	f.reply = func(task Task, n int) (Result, error) {
		r := f.page(task)
		if task.Due.Key != list {
			for i, k := range all {
				if k == task.Due.Key {
					r.Record.Text = "edition " + strings.Repeat("x", int(changed(i, task.Now)%50))
				}
			}
			r.Record.Digest = "sha256:" + r.Record.Text
			return r, nil
		}
		for i, k := range all {
			l := store.Link{Key: k, Rel: "sitemap"}
			if at := says(i, task.Now); !at.IsZero() {
				l.Modified = &at
			}
			r.Record.Links = append(r.Record.Links, l)
		}
		r.Links, r.Record.Digest = r.Record.Links, fmt.Sprint("sha256:", n)
		return r, nil
	}
	return list, all
}

// An entry of a sitemap makes the next visit to the page sooner, as far as such entries were right
// before. A date in the future, or before the last visit, changes nothing.
func TestHintMovesTheNextVisit(t *testing.T) {
	for name, c := range map[string]struct {
		says   func(now time.Time) time.Time
		trust  []byte
		sooner bool
	}{
		"trusted":     {func(now time.Time) time.Time { return now.Add(-time.Minute) }, proven(), true},
		"unknown":     {func(now time.Time) time.Time { return now.Add(-time.Minute) }, nil, false},
		"garbage":     {func(now time.Time) time.Time { return now.Add(-time.Minute) }, []byte("garbage"), false},
		"the future":  {func(now time.Time) time.Time { return now.Add(time.Minute) }, proven(), false},
		"long before": {func(now time.Time) time.Time { return now.Add(-1000 * time.Hour) }, proven(), false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, f := memStore(t), newFake()
			defer s.Close()
			list, all := listing(t, f, 40, func(int, time.Time) int64 { return 0 },
				func(_ int, now time.Time) time.Time { return c.says(now) })
			const interval = 10 * time.Hour
			// due after the hint
			pages := slices.DeleteFunc(slices.Clone(all), func(k partition.Key) bool { return phase(k) < 0.6 })[:5]
			admit(t, s, pages...)
			crawl(t, s, f, Options{Revisit: interval, Delay: 2 * time.Second}, time.Minute)
			before, err := s.Queue.DueOf(pages[0])
			if err != nil {
				t.Fatal(err)
			}
			st, err := s.Queue.Site(list.Site())
			if err != nil {
				t.Fatal(err)
			}
			st.Hints = c.trust
			if err := s.Queue.PutSite(st); err != nil {
				t.Fatal(err)
			}
			time.Sleep(interval / 2)
			admit(t, s, list)
			cr := crawl(t, s, f, Options{Revisit: interval, Delay: 2 * time.Second}, 3*time.Second)
			after, err := s.Queue.DueOf(pages[0])
			if err != nil {
				t.Fatal(err)
			}
			if sooner := after.At.Before(before.At.Add(-time.Minute)); sooner != c.sooner {
				t.Errorf("%s: due at %s, before that at %s", name, after.At, before.At)
			}
			why, err := cr.Why(after)
			if err != nil || strings.HasPrefix(why, "its sitemap says that it changed ") != c.sooner ||
				!strings.Contains(why, "changes every ") {
				t.Errorf("%s: %q, %v", name, why, err)
			}
			if heard := cr.Stats().Hints[hintReceived]; (heard == 5) != (c.trust == nil || c.sooner ||
				name == "garbage") || heard > 5 {
				t.Errorf("%s: %d heard", name, heard)
			}
			f.check(t, 2*time.Second)
		})
	}
}

// A sitemap that told the truth now claims that everything changes all the time. Its own pages show
// that this is false. It gains neither pace nor more than an equal share for all pages.
func TestHostileSitemap(t *testing.T) {
	const pages, interval, delay = 20, 10 * time.Minute, 2 * time.Second
	visits := func(lies bool) (n int, st Stats, trust trusts) {
		synctest.Test(t, func(t *testing.T) {
			s, f := memStore(t), newFake()
			defer s.Close()
			list, all := listing(t, f, pages, func(i int, now time.Time) int64 {
				return now.Unix() / int64((time.Duration(1+i) * 20 * time.Minute).Seconds())
			}, func(_ int, now time.Time) time.Time {
				if !lies {
					return time.Time{}
				}
				return now.Add(-time.Second)
			})
			site := store.Site{Site: list.Site(), Slice: s.SliceOf(list)}
			if lies {
				site.Hints = proven()
			}
			if err := s.Queue.PutSite(site); err != nil {
				t.Fatal(err)
			}
			admit(t, s, append(all, list)...)
			st = crawl(t, s, f, Options{Revisit: interval, Delay: delay}, 2*time.Hour).Stats()
			for _, k := range append(all, list) {
				n += f.count(k)
			}
			f.check(t, delay)
			row, err := s.Queue.Site(list.Site())
			if err != nil {
				t.Fatal(err)
			}
			trust = decodeTrusts(row.Hints)
		})
		return n, st, trust
	}
	honest, _, _ := visits(false)
	hostile, st, trust := visits(true)
	t.Logf("%d visits without hints, %d with lies: %v, %+v", honest, hostile, st.Hints, trust[0])
	if float64(hostile) > 1.25*float64(honest) {
		t.Errorf("a site that lies is visited %d times, one that says nothing %d times", hostile, honest)
	}
	if st.Hints[hintFollowed] == 0 || st.Hints[hintWrong] == 0 {
		t.Errorf("%v: it was never believed", st.Hints)
	}
	if r := trust.of(store.HintSitemap).Ratio(true); r >= leastRatio {
		t.Errorf("it is still believed, %.1f: %+v", r, trust)
	}
}

// Hints make no more visits of a site sooner than an equal share for all its pages allows.
func TestHintsKeepTheSitesShare(t *testing.T) {
	const interval = time.Hour
	s := &sitePrice{items: 10}
	now, taken := time.Unix(1e9, 0), 0
	for range 5 * 60 { // five intervals, with five requests each minute
		for range 5 {
			if s.sooner(now, interval) {
				taken++
			}
		}
		now = now.Add(time.Minute)
	}
	if taken < 50 || taken > 60 {
		t.Errorf("%d visits were brought forward in five intervals, of a site of 10 items", taken)
	}
	if (*sitePrice)(nil).sooner(now, interval) {
		t.Error("a site of which nothing is counted has a share")
	}
}

// If Last-Modified was right before, it says when a change was.
func TestLastModifiedDatesAChange(t *testing.T) {
	r := newRevisits(time.Hour, 1, time.Unix(0, 0), newLessons())
	begin := time.Unix(1e9, 0)
	history := func(trusted bool) plan {
		var p plan
		var tr trusts
		if trusted {
			*tr.of(store.HintHeader) = change.Trust{NewRight: 20, OldRight: 20}
		}
		r.learned(&p, &tr, finding{}, begin)
		r.learned(&p, &tr, finding{outcome: 1, modified: begin.Add(time.Hour)}, begin.Add(10*time.Hour))
		if got := tr.of(store.HintHeader).NewRight; (got == 21) != trusted || got == 0 {
			t.Errorf("learned %d", got)
		}
		return p
	}
	plain, dated := history(false), history(true)
	if n, x := plain.history.Totals(); n != 1 || x != 1 {
		t.Errorf("untrusted: %d looks, %d changes", n, x)
	}
	if runs := dated.history.Runs(); len(runs) != 3 || runs[1].Span != time.Hour || runs[1].Changes != 1 ||
		runs[2].Span != 9*time.Hour || runs[2].Changes != 0 {
		t.Errorf("trusted: %+v", runs)
	}
}

// The state in a site's row is read and written unchanged, or it counts as nothing.
func FuzzTrusts(f *testing.F) {
	f.Add(proven())
	f.Add([]byte{trustsVersion})
	f.Fuzz(func(t *testing.T, b []byte) {
		tr := decodeTrusts(b)
		if again := tr.encode(); tr != decodeTrusts(again) || len(again) > store.MaxHints || tr != (trusts{}) &&
			!bytes.Equal(again, b) {
			t.Errorf("%x became %x", b, again)
		}
		if share := tr.told(sentKinds); !(share >= 0 && share < 1) {
			t.Errorf("%x tells of %g of all changes", b, share)
		}
	})
}
