package poll

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/cmd/echo-lab/policy"
	"github.com/echo-node/echo-node/partition/racetest"
)

func TestMain(m *testing.M) { racetest.Main(m, "20") }

// oracle is the rule in the package comment, computed by looking at every account each time.
type oracle struct {
	all  map[string]*Entry
	turn *Turn
}

func (o *oracle) next(now time.Time) *Entry {
	var repeat, newest, oldest *Entry
	better := func(best **Entry, e *Entry, order int) {
		if *best == nil || order < 0 || order == 0 && e.Account < (*best).Account {
			*best = e
		}
	}
	or := func(e *Entry) *Entry {
		if e == nil {
			return &Entry{}
		}
		return e
	}
	for _, e := range o.all {
		switch {
		case e.Since.IsZero():
		case e.Repeat:
			better(&repeat, e, e.Polled.Compare(or(repeat).Polled))
		default:
			better(&newest, e, or(newest).Seen.Compare(e.Seen))
			better(&oldest, e, e.Seen.Compare(or(oldest).Seen))
		}
	}
	return o.turn.Next(now, repeat, newest, oldest)
}

// At least 10,000 events of sightings and polls. The queue chooses the same account as the
// rule, and the keys of rows in a store are in its order.
func TestListsKeepTheRule(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := Options{Paper: rapid.Bool().Draw(rt, "paper"), Fresh: time.Minute, Bound: 30 * time.Minute,
			Share: rapid.SampledFrom([]float64{0.1, 0.5, 1}).Draw(rt, "share")}
		l := lists(t, o)
		turn, err := NewTurn(o)
		if err != nil {
			rt.Fatal(err)
		}
		want := &oracle{map[string]*Entry{}, turn}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		people, polls := rapid.IntRange(3, 60).Draw(rt, "people"), rapid.IntRange(1, 9).Draw(rt, "polls")
		now := start
		for range 500 {
			now = now.Add(time.Duration(rng.IntN(3)) * 30 * time.Second) // ties
			if rng.IntN(10) >= polls {
				name := fmt.Sprint(rng.IntN(people))
				l.Seen(name, now)
				e := want.all[name]
				if e == nil {
					e = &Entry{Account: name}
					want.all[name] = e
				} else {
					e.Repeat = true
				}
				if e.Seen = now; e.Since.IsZero() {
					e.Since = now
				}
				continue
			}
			w := want.next(now)
			e, ok := l.Next(now)
			if ok != (w != nil) || ok && e != *w {
				rt.Fatalf("%+v, want %+v", e, w)
			}
			if ok {
				*w = Entry{Account: w.Account, Repeat: w.Repeat, Polled: now, Seen: w.Seen}
			}
		}
		n := 0
		l.Waiting(func(e Entry) {
			n++
			if *want.all[e.Account] != e {
				rt.Fatalf("%+v, want %+v", e, want.all[e.Account])
			}
		})
		if n != l.Len() {
			rt.Fatal(n, l.Len())
		}
	})
}

func TestSeenAgainBeforeItsPoll(t *testing.T) {
	l := lists(t, Options{})
	for i, name := range []string{"polled", "polled", "other", "new"} {
		l.Seen(name, start.Add(time.Duration(i)*time.Second))
		if i == 1 {
			if e, ok := l.Next(start); !ok || e.Account != "polled" || !e.Repeat {
				t.Fatalf("%+v", e)
			}
		}
	}
	l.Seen("polled", start.Add(5*time.Second))
	l.Seen("other", start.Add(6*time.Second)) // twice before it was polled: first of all
	for _, want := range []string{"other", "polled", "new"} {
		if e, ok := l.Next(start.Add(time.Minute)); !ok || e.Account != want {
			t.Errorf("%+v, want %s", e, want)
		}
	}
	if _, ok := l.Next(start); ok || l.Len() != 0 {
		t.Error("somebody is left")
	}
}

// There are always more newcomers and repeat users than calls. In the thesis's scheme a buried
// user stays buried. Here each gets its call within the bound in the package comment.
func TestNobodyStarves(t *testing.T) {
	for _, paper := range []bool{true, false} {
		l := lists(t, Options{Paper: paper, Bound: 24 * time.Hour})
		var worst time.Duration
		served, buried := 0, 200
		for i := range buried {
			l.Seen(fmt.Sprintf("first%03d", i), start)
		}
		days := 4
		for m := range days * 24 * 60 { // one call, one newcomer and one repeat user per minute
			now := start.Add(time.Duration(m) * time.Minute)
			l.Seen(fmt.Sprintf("new%d", m), now)
			l.Seen(fmt.Sprintf("regular%d", m%100), now)
			e, ok := l.Next(now)
			if !ok {
				t.Fatal("nobody")
			}
			if len(e.Account) == 8 && e.Account[:5] == "first" {
				served++
				worst = max(worst, now.Sub(start))
			}
		}
		t.Logf("paper %t: %d of %d served, the last after %s", paper, served, buried, worst)
		if bound := 24*time.Hour + time.Duration(buried)*16*time.Minute; !paper && (served < buried || worst > bound) ||
			paper && served > 1 {
			t.Errorf("paper %t: %d served, the last after %s, bound %s", paper, served, worst, bound)
		}
	}
}

func TestKeys(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var all []Entry
		for i := range rapid.IntRange(1, 20).Draw(rt, "n") {
			e := Entry{Account: fmt.Sprint("a", i), Repeat: rapid.Bool().Draw(rt, "repeat"), Since: start}
			at := time.Unix(rapid.Int64Range(1, 1e9).Draw(rt, "at"), 0)
			if !e.Repeat {
				e.Seen = at
			} else if rapid.Bool().Draw(rt, "polled") {
				e.Polled = at
			}
			all = append(all, e)
			back, err := ParseKey(e.Key(), start)
			if err != nil || !back.Seen.Equal(e.Seen) || !back.Polled.Equal(e.Polled) || back.Account != e.Account ||
				back.Repeat != e.Repeat {
				rt.Fatalf("%+v becomes %+v: %v", e, back, err)
			}
		}
		slices.SortFunc(all, func(a, b Entry) int { return bytes.Compare(a.Key(), b.Key()) })
		for i := 1; i < len(all); i++ {
			a, b := all[i-1], all[i]
			if !a.Repeat && b.Repeat || a.Repeat && b.Repeat && a.Polled.After(b.Polled) || !a.Repeat && !b.Repeat &&
				a.Seen.After(b.Seen) {
				rt.Fatalf("%+v before %+v", a, b)
			}
		}
	})
}

func FuzzParseKey(f *testing.F) {
	f.Add((&Entry{Account: "a", Repeat: true, Polled: start}).Key())
	f.Add((&Entry{Account: "b", Seen: start}).Key())
	f.Fuzz(func(t *testing.T, key []byte) {
		e, err := ParseKey(key, start)
		if err != nil {
			if !errors.Is(err, ErrKey) {
				t.Fatal(err)
			}
			return
		}
		if e.Repeat || e.Seen.UnixNano() > 0 {
			if again := e.Key(); !bytes.Equal(again, key) {
				t.Fatalf("%x becomes %x", key, again)
			}
		}
	})
}

func TestOptionsSayAllFaults(t *testing.T) {
	_, err := NewLists(Options{Fresh: -1, Share: 2})
	if err == nil || err.Error() != "poll: options: negative time: fresh -1ns, bound 0s\nshare 2" {
		t.Error(err)
	}
}

// Unseen first, then the oldest, ties by id, in batches; each once.
func TestProfiles(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var p Profiles
		at := map[string]time.Time{}
		for range rapid.IntRange(1, 300).Draw(rt, "puts") {
			id := fmt.Sprint(rapid.IntRange(0, 120).Draw(rt, "id"))
			stored := time.Time{}
			if s := rapid.IntRange(0, 9).Draw(rt, "stored"); s > 0 {
				stored = start.Add(time.Duration(s) * time.Hour)
			}
			p.Put(id, stored)
			at[id] = stored
		}
		var want []string
		for id := range at {
			want = append(want, id)
		}
		slices.SortFunc(want, func(a, b string) int {
			return cmp.Or(at[a].Compare(at[b]), cmp.Compare(a, b),
				bytes.Compare(ProfileKey(at[a], a), ProfileKey(at[b], b)))
		})
		var got []string
		for p.Len() > 0 {
			got = append(got, p.Next(100)...)
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("%v, want %v", got, want)
		}
	})
}

// TwitterEcho's draw. Shares halve from class to class, the account unchecked for the longest
// time comes first, frozen accounts only at night. A new post raises the priority, except at
// night or shortly after another post.
func TestEcho(t *testing.T) {
	noon, night := start.Add(12*time.Hour), start.Add(4*time.Hour)
	e, err := NewEcho(EchoOptions{})
	if err != nil {
		t.Fatal(err)
	}
	priorities := []uint8{100, 90, 70, 50, 30, 10}
	for c, p := range priorities {
		for i := range 1000 {
			e.Put(fmt.Sprintf("%d-%03d", c, i), policy.Memo{Priority: p}, start.Add(-time.Duration(i)*time.Minute),
				noon, noon)
		}
	}
	for i := range 100 {
		e.Put(fmt.Sprintf("f-%02d", i), policy.Memo{Priority: 100}, start, noon.AddDate(0, -2, 0), noon)
	}
	drawn := map[byte][]string{}
	for _, a := range e.Next(630, noon) {
		drawn[a[0]] = append(drawn[a[0]], a)
	}
	for c := range priorities {
		if n, want := len(drawn[byte('0'+c)]), 320>>c; n != want {
			t.Errorf("class %d: %d drawn, want %d", c, n, want)
		}
	}
	if got := drawn['0'][0]; got != "0-999" {
		t.Errorf("first of its class: %s", got)
	}
	if len(drawn['f']) > 0 {
		t.Error("the frozen by day")
	}
	if !slices.ContainsFunc(e.Next(100, night), func(a string) bool { return a[0] == 'f' }) {
		t.Error("not the frozen by night")
	}
	for _, tt := range []struct {
		at   time.Time
		post time.Time
		want uint8
	}{
		{noon, noon, 50}, {noon, noon.Add(time.Hour), 55}, {noon, noon.Add(time.Hour + time.Minute), 55},
		{night, noon.Add(3 * time.Hour), 55}, {noon, noon.Add(5 * time.Hour), 60},
	} {
		changed := tt.post != noon
		if m := e.Checked("3-999", tt.at, changed, tt.post); m.Priority != tt.want {
			t.Errorf("%+v: %d", tt, m.Priority)
		}
	}
}

func TestEchoLinks(t *testing.T) {
	e, err := NewEcho(EchoOptions{Links: true})
	if err != nil {
		t.Fatal(err)
	}
	for c, p := range []uint8{80, 40, 10} {
		for i := range 100 {
			e.Put(fmt.Sprintf("%d-%02d", c, i), policy.Memo{Priority: p}, time.Time{}, start, start)
		}
	}
	drawn := map[byte]int{}
	for _, a := range e.Next(70, start) {
		drawn[a[0]]++
	}
	if drawn['0'] != 40 || drawn['1'] != 20 || drawn['2'] != 10 {
		t.Error(drawn)
	}
	p := uint8(0)
	for range 30 {
		p = e.Checked("0-00", start, false, start).Priority
	}
	if p != 1 {
		t.Errorf("lowered to %d", p)
	}
	if p = e.Checked("0-00", start, true, start).Priority; p != 6 {
		t.Errorf("raised to %d", p)
	}
	if all := e.Next(1000, start); len(all) != 300-70+1 {
		t.Errorf("%d left", len(all))
	}
}
