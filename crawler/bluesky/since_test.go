package bluesky

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/crawler/service"
)

// Over many readings while people post, edit and delete, no post is missed and none is read twice.
// This holds for AppView and PDS, for any treatment of cursors, limits and order, and for crashes
// at any time. If a feed cannot be read completely, the reading says so. This is the complete
// contract of a Mark.
func TestNothingIsMissedAndNothingReadTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		atPDS := rapid.Bool().Draw(t, "at the PDS")
		l := lies{
			MaxLimit:       rapid.SampledFrom([]int{0, 0, 2, 3, 5, 20}).Draw(t, "most"),
			IgnoresReverse: rapid.IntRange(0, 3).Draw(t, "ignores reverse") == 0,
			IgnoresCursor:  rapid.IntRange(0, 5).Draw(t, "ignores cursor") == 0,
			EndsWithCursor: rapid.Bool().Draw(t, "ends with a cursor"),
			PinsFirst:      rapid.IntRange(0, 3).Draw(t, "pins") == 0,
			NoCursor:       rapid.IntRange(0, 5).Draw(t, "no cursor") == 0, Nulls: rapid.Bool().Draw(t, "nulls"),
			Garbage: rapid.IntRange(0, 3).Draw(t, "garbage") == 0,
		}
		how := service.Reading{Overlap: rapid.SampledFrom([]int{0, 0, -1, 1, 20}).Draw(t, "overlap")}
		fail := func(format string, args ...any) {
			t.Fatalf("at the PDS %t, %+v: %s", atPDS, l, fmt.Sprintf(format, args...))
		}
		p := visit(t, world{Seed: rapid.Uint64Range(1, 1000).Draw(t, "seed"), People: 4, Quiet: true, Rate: -1,
			Lies: l})
		ana := p.w.IDs()[0]
		c, feed := p.view, PostsOf(ana)
		if atPDS {
			c, feed = p.pds, RecordsOf(ana, Posts)
		}
		write := func(n int) {
			for range n {
				p.clock.Add(time.Second)
				if _, err := p.w.Post(p.acct(ana), "olá"); err != nil {
					fail("%v", err)
				}
			}
		}
		write(rapid.IntRange(0, 130).Draw(t, "at first"))
		seen, gaps, m := map[string]int{}, 0, service.Mark{}
		deleted := map[string]bool{}
		polls := rapid.IntRange(1, 4).Draw(t, "polls")
		for poll := range polls {
			last := poll == polls-1
			tl, err := c.Timeline(feed, m, how)
			if err != nil {
				fail("%v", err)
			}
			for pages := 0; !tl.Done(); pages++ {
				b, err := tl.Next(context.Background())
				if err != nil || pages > 400 {
					fail("poll %d, page %d: %v", poll, pages, err)
				}
				for _, post := range b.Posts {
					seen[post.ID]++
				}
				if !last && pages < 40 { // people post while the pages are read
					write(rapid.IntRange(0, 2).Draw(t, "meanwhile"))
				}
				// between two pages
				if m = tl.Mark(); !tl.Done() && rapid.IntRange(0, 4).Draw(t, "killed") == 0 {
					if m, err = service.DecodeMark(m.Encode()); err != nil {
						fail("%v", err)
					}
					if tl, err = c.Timeline(feed, m, how); err != nil {
						fail("%v", err)
					}
				}
			}
			if why := tl.Listing().Why; why != "" {
				if !l.NoCursor && !l.IgnoresCursor {
					fail("poll %d: %+v", poll, tl.Listing())
				}
				gaps++
			}
			if !last {
				if rapid.IntRange(0, 2).Draw(t, "deletes") == 0 {
					for _, id := range p.w.Truth().Accounts[ana].Records[:min(len(p.w.Truth().Accounts[ana].Records),
						rapid.IntRange(0, 70).Draw(t, "deleted"))] {
						deleted[id] = true
						if err := p.w.Delete(id); err != nil {
							fail("%v", err)
						}
					}
				}
				write(rapid.SampledFrom([]int{0, 1, 2, 19, 20, 21, 99, 100, 101, 130}).Draw(t, "between"))
			}
		}
		missed := []string{}
		for _, id := range p.w.Truth().Accounts[ana].Records {
			if seen[id] == 0 {
				missed = append(missed, id)
			}
		}
		for id, n := range seen {
			if n > 1 || !strings.HasPrefix(id, "at://"+ana+"/") {
				fail("%s was read %d times", id, n)
			}
		}
		// Without a cursor, a server with short pages looks like one that has no more posts.
		if len(missed) > 0 && gaps == 0 && !(l.NoCursor && l.MaxLimit > 0) {
			fail("%d missed, and no reading said so: %v", len(missed), missed)
		}
	})
}

// A pinned post was read before and is the first of the page. The server sends no cursor, and the
// page ends above the posts read before. The pinned post must not hide this gap.
func TestAPinHidesNoGap(t *testing.T) {
	p := visit(t, world{Seed: 1, People: 4, Quiet: true, Rate: -1, Lies: lies{PinsFirst: true, NoCursor: true}})
	ana := p.w.IDs()[0]
	write := func(n int) {
		for range n {
			p.clock.Add(time.Second)
			if _, err := p.w.Post(p.acct(ana), "olá"); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(1)
	_, _, m, _ := p.read(p.view, PostsOf(ana), service.Mark{}, service.Reading{})
	write(101)
	posts, _, _, tl := p.read(p.view, PostsOf(ana), m, service.Reading{})
	if why := tl.Listing().Why; len(posts) != 100 || why != service.NoCursor {
		t.Errorf("%d posts, %q", len(posts), why)
	}
}

// A post that an AppView shows late is found if it is at most one page late and younger than the
// remembered posts.
func TestWhatIsShownLateIsFound(t *testing.T) {
	p := visit(t, world{Seed: 9, People: 6, Quiet: true, Rate: 20, Start: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC),
		Lies: lies{Late: 30 * time.Second}})
	for _, id := range p.w.IDs()[:3] {
		seen := map[string]int{}
		_, _, m, _ := p.read(p.view, PostsOf(id), service.Mark{}, service.Reading{})
		from := p.clock.Now()
		for range 60 {
			p.clock.Add(20 * time.Minute)
			var posts []Post
			posts, _, m, _ = p.read(p.view, PostsOf(id), m, service.Reading{})
			for _, q := range posts {
				seen[q.ID]++
			}
		}
		truth := p.w.Truth()
		for _, at := range truth.Accounts[id].Posts {
			if truth.Posts[at].Created.After(from) && seen[at] != 1 {
				t.Errorf("%s, %+v: read %d times", id, truth.Posts[at], seen[at])
			}
		}
	}
}

// A first reading with Back stops there, and the next one continues upward.
func TestWhatReadingsCost(t *testing.T) {
	p := visit(t, world{Seed: 9, People: 3, Quiet: true, Rate: -1, Lies: lies{EndsWithCursor: true}})
	ana := p.w.IDs()[0]
	write := func(n int) (made []string) {
		for range n {
			p.clock.Add(time.Minute)
			id, err := p.w.Post(p.acct(ana), "olá")
			if err != nil {
				t.Fatal(err)
			}
			made = append(made, id)
		}
		return made
	}
	write(250)
	for _, c := range []struct {
		*Client
		Feed
	}{{p.pds, RecordsOf(ana, Posts)}, {p.view, PostsOf(ana)}} {
		got, _, m, tl := p.read(c.Client, c.Feed, service.Mark{}, service.Reading{Back: 60})
		if l := tl.Listing(); len(got) != 100 || l.Why != service.FarEnough || l.Pages != 1 {
			t.Errorf("%s: back 60: %d posts, %+v", c.op, len(got), l)
		}
		before := p.w.Report().Requests
		if got, _, m, tl = p.read(c.Client, c.Feed, m, service.Reading{}); len(got) != 0 || !tl.Listing().Complete {
			t.Errorf("%s: nothing new: %d posts, %+v", c.op, len(got), tl.Listing())
		}
		if n := p.w.Report().Requests - before; n > 2 {
			t.Errorf("%s: nothing new: %d requests", c.op, n)
		}
		made := write(3)
		if got, _, _, tl = p.read(c.Client, c.Feed, m, service.Reading{}); !same(ids(got), made) ||
			!tl.Listing().Complete {
			t.Errorf("%s: three new: %v, %+v", c.op, ids(got), tl.Listing())
		}
	}
	// If the AppView no longer accepts a walk's cursor, the walk restarts and misses nothing.
	tl, err := p.view.Timeline(PostsOf(ana), service.Mark{}, service.Reading{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := tl.Next(context.Background())
	if err != nil || tl.Done() {
		t.Fatal(err)
	}
	p.w.Lie(func(l *lies) { l.RefusesCursor = true })
	if _, err := tl.Next(context.Background()); service.WordOf(err) != service.Down || tl.Done() {
		t.Fatalf("%v %+v", err, tl.Listing())
	}
	p.w.Lie(func(l *lies) { l.RefusesCursor = false })
	m, err := tl.Mark().Anew()
	if err != nil {
		t.Fatal(err)
	}
	all, _, _, _ := p.read(p.view, PostsOf(ana), m, service.Reading{})
	if want := p.w.Truth().Accounts[ana].Posts; !slices.Equal(ids(all), want) || len(b.Posts) != 100 {
		t.Errorf("%d of %d", len(all), len(want))
	}
}

// A PDS returns pages shorter than the part that is read again. The reading continues, because
// pages without new posts do not end it.
func TestShortPagesAreReadOn(t *testing.T) {
	p := visit(t, world{Seed: 9, People: 3, Quiet: true, Rate: -1, Lies: lies{MaxLimit: 3}})
	ana := p.w.IDs()[0]
	write := func(n int) {
		for range n {
			p.clock.Add(time.Minute)
			if _, err := p.w.Post(p.acct(ana), "olá"); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(50)
	_, _, m, _ := p.read(p.pds, RecordsOf(ana, Posts), service.Mark{}, service.Reading{Overlap: 30})
	write(100)
	if got, _, _, tl := p.read(p.pds, RecordsOf(ana, Posts), m, service.Reading{Overlap: 30}); len(got) != 100 ||
		!tl.Listing().Complete {
		t.Errorf("%d of 100, %+v", len(got), tl.Listing())
	}
}
