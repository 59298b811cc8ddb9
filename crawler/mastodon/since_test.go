package mastodon

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/crawler/service"
)

// Over many readings while people post, no post is missed and none is read twice. This holds for
// any treatment of since_id, min_id, max_id and limit, and for right and wrong claims about it. If
// a feed cannot be read completely, the reading says so. This is the complete contract of a Mark.
func TestNothingIsMissedAndNothingReadTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := lies{
			IgnoresSince: rapid.Bool().Draw(t, "ignores since"), IgnoresMin: rapid.Bool().Draw(t, "ignores min"),
			IgnoresMax:   rapid.IntRange(0, 5).Draw(t, "ignores max") == 0,
			IgnoresLimit: rapid.IntRange(0, 5).Draw(t, "ignores limit") == 0,
			MinIsSince:   rapid.Bool().Draw(t, "min is since"), Ascending: rapid.Bool().Draw(t, "ascending"),
			PinsFirst: rapid.IntRange(0, 3).Draw(t, "pins") == 0, NoLink: rapid.Bool().Draw(t, "no link"),
			MaxLimit:  rapid.SampledFrom([]int{0, 0, 20}).Draw(t, "most"),
			NumberIDs: rapid.Bool().Draw(t, "numbers"),
		}
		said := Paging{}
		// with the correct result, or without one, so that the reading finds out
		if rapid.Bool().Draw(t, "probed") {
			said = truthOf(l)
		} else if !l.MinIsSince && rapid.IntRange(0, 3).Draw(t, "said wrong") == 0 {
			said = Paging{Min: service.Obeyed, Since: service.Obeyed, Max: service.Obeyed}
		}
		p := &place{}
		fail := func(format string, args ...any) {
			t.Fatalf("%+v, said %+v: %s", l, said,
				fmt.Sprintf(format, args...))
		}
		p.onto(t, world{Seed: rapid.Uint64Range(1, 1000).Draw(t, "seed"), People: 4, Remote: -1, Quiet: true, Rate: -1,
			Lies: l})
		ana := p.w.Users()[0]
		who, err := p.c.Lookup(context.Background(), ana)
		if err != nil {
			fail("%v", err)
		}
		write := func(n int) {
			for range n {
				p.clock.add(time.Second)
				if _, err := p.w.Post(ana, "olá"); err != nil {
					fail("%v", err)
				}
			}
		}
		write(rapid.IntRange(0, 60).Draw(t, "at first"))
		seen, gaps, m := map[string]int{}, 0, service.Mark{}
		polls := rapid.IntRange(1, 4).Draw(t, "polls")
		for poll := range polls {
			last := poll == polls-1
			tl, err := p.c.Timeline(PostsOf(who.ID), m, Reading{Paging: said})
			if err != nil {
				fail("%v", err)
			}
			for pages := 0; !tl.Done(); pages++ {
				b, err := tl.Next(context.Background())
				if err != nil || pages > 100 {
					fail("poll %d, page %d: %v", poll, pages, err)
				}
				for _, post := range b.Posts {
					seen[post.ID]++
				}
				if !last { // people post while the pages are read
					write(rapid.IntRange(0, 3).Draw(t, "meanwhile"))
				}
				// between two pages
				if m = tl.Mark(); !tl.Done() && rapid.IntRange(0, 4).Draw(t, "killed") == 0 {
					if m, err = service.DecodeMark(m.Encode()); err != nil {
						fail("%v", err)
					}
					if tl, err = p.c.Timeline(PostsOf(who.ID), m, Reading{Paging: said}); err != nil {
						fail("%v", err)
					}
				}
			}
			if why := tl.Listing().Why; why != "" {
				if !l.IgnoresMax {
					fail("poll %d: %+v", poll, tl.Listing())
				}
				gaps++
			}
			if !last {
				write(rapid.SampledFrom([]int{0, 1, 2, 19, 20, 21, 39, 40, 41, 45, 75, 130}).Draw(t, "between"))
			}
		}
		truth := p.w.Truth()
		missed := 0
		for _, id := range truth.Accounts[ana].Posts {
			if seen[id] == 0 {
				missed++
			}
		}
		for id, n := range seen {
			if _, is := truth.Posts[id]; !is || n > 1 {
				fail("%s was read %d times", id, n)
			}
		}
		// A server may return pages shorter than half of the limit. Then a reading ends early, the
		// next one continues, and the last one may leave some posts.
		if missed > 0 && gaps == 0 && !laterReadings(t, p, who, m, said, seen) {
			fail("%d of %d missed, and no reading said so", missed, len(truth.Accounts[ana].Posts))
		}
	})
}

// laterReadings reports whether three more readings, while nobody posts, find the remaining posts.
func laterReadings(t *rapid.T, p *place, who Profile, m service.Mark, said Paging, seen map[string]int) bool {
	for range 3 {
		tl, err := p.c.Timeline(PostsOf(who.ID), m, Reading{Paging: said})
		if err != nil {
			t.Fatal(err)
		}
		for !tl.Done() {
			b, err := tl.Next(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			for _, post := range b.Posts {
				seen[post.ID]++
			}
		}
		m = tl.Mark()
	}
	for id := range p.w.Truth().Posts {
		if seen[id] != 1 {
			return false
		}
	}
	return true
}

// truthOf returns the correct result of a probe of a server with these lies.
func truthOf(l lies) (p Paging) {
	p = Paging{Limit: service.Obeyed, Min: service.Obeyed, Since: service.Obeyed, Max: service.Obeyed}
	if l.IgnoresLimit {
		p.Limit = service.Ignored
	}
	if l.IgnoresSince {
		p.Since = service.Ignored
	}
	switch {
	case l.IgnoresMin:
		p.Min = service.Ignored
	case l.MinIsSince && !l.IgnoresLimit: // the newest of all posts are then the next ones
		p.Min = service.Newest
	}
	if l.IgnoresMax {
		p.Max = service.Ignored
	}
	return p
}

// A post that a timeline of many people shows late, with an older id than the posts read, is found.
// The limit is Overlap posts.
func TestWhatIsShownLateIsFound(t *testing.T) {
	for _, overlap := range []int{-1, 5} {
		p := visit(t, world{Seed: 9, People: 30, Quiet: true, Rate: 20,
			Start: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC), Lies: lies{Late: 30 * time.Second}})
		_, m, _ := p.read(Public(false), service.Mark{}, Reading{Back: 40})
		seen := map[string]int{}
		for range people(120) {
			p.clock.add(2 * time.Minute)
			var posts []Post
			posts, m, _ = p.read(Public(false), m, Reading{Overlap: overlap, Paging: Paging{Min: service.Obeyed}})
			for _, post := range posts {
				seen[post.ID]++
			}
		}
		p.clock.add(time.Minute)
		posts, _, _ := p.read(Public(false), m, Reading{Overlap: overlap, Paging: Paging{Min: service.Obeyed}})
		for _, post := range posts {
			seen[post.ID]++
		}
		truth, missed := p.w.Truth(), 0
		for _, id := range truth.Public {
			if truth.Posts[id].Created.After(time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC)) && seen[id] == 0 {
				missed++
			}
		}
		for id, n := range seen {
			if n > 1 {
				t.Errorf("overlap %d: %s read %d times", overlap, id, n)
			}
		}
		t.Logf("overlap %d: %d read, %d missed", overlap, len(seen), missed)
		if overlap > 0 && missed > 0 || overlap < 0 && missed == 0 {
			t.Errorf("overlap %d: %d missed of %d", overlap, missed, len(seen))
		}
	}
}

// After fifty deletions, also of the newest posts read, all new posts are still found.
func TestTheLastSeenPostsAreDeleted(t *testing.T) {
	for _, said := range []Paging{{}, {Min: service.Obeyed}, {Min: service.Ignored}} {
		p := visit(t, world{Seed: 9, People: 3, Remote: -1, Quiet: true, Rate: -1,
			Lies: lies{IgnoresMin: said.Min == service.Ignored}})
		ana := p.w.Users()[0]
		who := p.lookup(ana)
		write := func(n int) (ids []string) {
			for range n {
				p.clock.add(time.Minute)
				id, err := p.w.Post(ana, "olá")
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, id)
			}
			return ids
		}
		old := write(120)
		_, m, _ := p.read(PostsOf(who.ID), service.Mark{}, Reading{})
		for _, id := range old[40:] {
			if err := p.w.Delete(id); err != nil {
				t.Fatal(err)
			}
		}
		fresh := write(70)
		got, _, tl := p.read(PostsOf(who.ID), m, Reading{Paging: said})
		if !same(idsOf(got), fresh) || !tl.Listing().Complete || tl.Listing().Pages > 4 {
			t.Errorf("%+v: %d of %d new posts, %+v", said, len(got), len(fresh), tl.Listing())
		}
	}
}

// A reading that finds nothing new costs one request, and a first reading stops at Back.
func TestWhatReadingsCost(t *testing.T) {
	p := visit(t, world{Seed: 9, People: 3, Remote: -1, Quiet: true, Rate: -1})
	ana := p.w.Users()[0]
	who := p.lookup(ana)
	for range 150 {
		p.clock.add(time.Minute)
		if _, err := p.w.Post(ana, "olá"); err != nil {
			t.Fatal(err)
		}
	}
	got, m, tl := p.read(PostsOf(who.ID), service.Mark{}, Reading{Back: 60})
	if l := tl.Listing(); len(got) != 80 || l.Why != service.FarEnough || l.Pages != 2 {
		t.Errorf("back 60: %d posts, %+v", len(got), l)
	}
	for _, said := range []Paging{{}, {Min: service.Obeyed}, {Min: service.Ignored},
		{Min: service.Newest, Since: service.Obeyed}} {
		before := p.w.Report().Requests
		if got, _, tl := p.read(PostsOf(who.ID), m, Reading{Paging: said}); len(got) != 0 || !tl.Listing().Complete {
			t.Errorf("%+v: %d posts, %+v", said, len(got), tl.Listing())
		}
		if n := p.w.Report().Requests - before; n != 1 {
			t.Errorf("%+v: %d requests", said, n)
		}
	}
	p.w.Lie(func(l *lies) { l.Down = http.StatusInternalServerError })
	tl, err := p.c.Timeline(PostsOf(who.ID), m, Reading{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tl.Next(context.Background()); service.WordOf(err) != service.Down || tl.Done() ||
		!slices.Equal(tl.Mark().Recent, m.Recent) {
		t.Errorf("down: %v %+v", err, tl.Listing())
	}
}

// onto is visit without a testing.T of its own.
func (p *place) onto(t rapid.TB, o world) {
	p.clock = &clock{now: time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC)}
	o.Clock = p.clock.Now
	var err error
	if p.w, p.c, err = direct(o, p.clock); err != nil {
		t.Fatal(err)
	}
}
