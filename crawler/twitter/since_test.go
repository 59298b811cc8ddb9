package twitter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/crawler/budget"
	"github.com/echo-node/echo-node/crawler/crawltest/storytest"
	"github.com/echo-node/echo-node/crawler/crawltest/twittertest"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
)

// Over many readings while people post, no post is missed and none is read twice. This holds for
// any treatment of since_id and tokens, and for crashes at any time. If a feed cannot be read
// completely, the reading says so.
func TestNothingIsMissedAndNothingReadTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := func(n int, what string) bool { return rapid.IntRange(0, n).Draw(t, what) == 0 }
		l := lies{MaxLimit: rapid.SampledFrom([]int{0, 0, 1, 7, 20}).Draw(t, "most"),
			IgnoresSince: one(2, "ignores since"), NoToken: one(5, "no token"), EmptyFirst: one(3, "empty first"),
			RepeatsToken: one(3, "repeats"), RefusesToken: one(3, "refuses"), Posts: one(1, "spelling"),
			Garbage: one(3, "garbage")}
		if l.RefusesToken {
			l.EmptyFirst = false // otherwise nothing could be fetched at all
		}
		fail := func(format string, args ...any) { t.Fatalf("%+v: %s", l, fmt.Sprintf(format, args...)) }
		p := visit(t, world{Seed: rapid.Uint64Range(1, 1000).Draw(t, "seed"), People: 4, Quiet: true, Rate: -1,
			Lies: l})
		truth := p.w.Truth()
		ana := p.w.IDs()[slices.IndexFunc(p.w.IDs(), func(id string) bool { return !truth.Accounts[id].Protected })]
		write := func(n int) {
			for range n {
				p.clock.Add(time.Second)
				if _, err := p.w.Post(truth.Accounts[ana].User, "olá"); err != nil {
					fail("%v", err)
				}
			}
		}
		write(rapid.IntRange(0, 250).Draw(t, "at first"))
		seen, gaps, m := map[string]int{}, 0, service.Mark{}
		polls := rapid.IntRange(1, 4).Draw(t, "polls")
		for poll := range polls {
			tl, err := p.c.Timeline(PostsOf(ana), m, service.Reading{})
			if err != nil {
				fail("%v", err)
			}
			for pages := 0; !tl.Done(); pages++ {
				b, err := tl.Next(context.Background())
				if err != nil && !tl.Done() || pages > 1000 {
					fail("poll %d, page %d: %v", poll, pages, err)
				}
				for _, post := range b.Posts {
					seen[post.ID]++
				}
				if poll < polls-1 && pages < 40 { // people post while the pages are read
					write(rapid.IntRange(0, 2).Draw(t, "meanwhile"))
				}
				if m = tl.Mark(); !tl.Done() && one(4, "killed") { // between two pages
					if m, err = service.DecodeMark(m.Encode()); err != nil {
						fail("%v", err)
					}
					if tl, err = p.c.Timeline(PostsOf(ana), m, service.Reading{}); err != nil {
						fail("%v", err)
					}
				}
			}
			if tl.Listing().Why != "" {
				gaps++
			}
			if poll < polls-1 {
				write(rapid.SampledFrom([]int{0, 1, 2, 19, 20, 21, 99, 100, 101, 130}).Draw(t, "between"))
			}
		}
		missed := 0
		for _, id := range p.w.Truth().Accounts[ana].Posts {
			if seen[id] == 0 {
				missed++
			}
		}
		for id, n := range seen {
			if n > 1 {
				fail("%s was read %d times", id, n)
			}
		}
		// Without a token, an API with short pages looks like one that has no more posts.
		if cut := l.NoToken && l.MaxLimit > 0; !cut && (missed > 0 || gaps > 0) {
			fail("%d missed in %d readings that said so", missed, gaps)
		}
	})
}

// A user has more posts than are shown, a search reaches a week back, and edits are new posts.
func TestWhatIsShown(t *testing.T) {
	p := visit(t, world{Seed: 5, People: 10, Quiet: true, Rate: -1})
	truth := p.w.Truth()
	i := slices.IndexFunc(p.w.IDs(), func(id string) bool { return !truth.Accounts[id].Protected })
	ana := p.w.IDs()[i]
	var made []string
	for range 3300 {
		p.clock.Add(time.Minute)
		id, err := p.w.Post(truth.Accounts[ana].User, "o comboio")
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, id)
	}
	got, m, tl := p.read(PostsOf(ana), service.Mark{}, service.Reading{Claimed: 3300})
	if l := tl.Listing(); len(got) != 3200 || l.Why != service.ShowsNoMore || l.Pages != 32 {
		t.Errorf("%d posts, %+v", len(got), l)
	}
	found, sm, tl := p.read(Search("comboio"), service.Mark{}, service.Reading{})
	if len(found) != 3300 || !tl.Listing().Complete {
		t.Errorf("search: %d, %+v", len(found), tl.Listing())
	}
	p.clock.Add(10 * time.Minute)
	if err := p.w.Edit(made[3299], "o comboio das nove"); err != nil {
		t.Fatal(err)
	}
	if err := p.w.Delete(made[3298]); err != nil {
		t.Fatal(err)
	}
	for _, f := range []Feed{PostsOf(ana), Search("comboio")} {
		mark := m
		if f.query != "" {
			mark = sm
		}
		got, _, tl = p.read(f, mark, service.Reading{})
		if len(got) != 1 || got[0].Text != "o comboio das nove" ||
			!slices.Equal(got[0].Versions, []string{made[3299], got[0].ID}) || !got[0].Edited() {
			t.Errorf("%s: %+v, %+v", f.op, got, tl.Listing())
		}
		if absent := tl.Absent(); !same(absent, made[3298:]) {
			t.Errorf("%s: absent %v, want %v", f.op, absent, made[3298:])
		}
	}
	p.clock.Add(9 * 24 * time.Hour)
	if got, _, tl = p.read(Search("comboio"), sm, service.Reading{}); len(got) != 0 || !tl.Listing().Complete {
		t.Errorf("a search that is old: %d, %+v", len(got), tl.Listing())
	}
	posts, absent, err := p.c.PostsByID(context.Background(), []string{made[0], made[3298], "99"})
	if err != nil || !slices.Equal(idsOf(posts), made[:1]) || len(absent) != 2 || absent[0].ID != made[3298] ||
		absent[0].Word != service.Gone {
		t.Errorf("by id: %v %+v %v", idsOf(posts), absent, err)
	}
	p.w.Lie(func(l *lies) { l.SaysNothing = true })
	if _, absent, err = p.c.PostsByID(context.Background(), []string{made[0], made[3298]}); err != nil ||
		len(absent) != 1 || absent[0].Said != "" {
		t.Errorf("without a word: %+v %v", absent, err)
	}
}

// With any wrong behaviour of the API, reading a list ends, with the Word for the reason.
func TestListsOfAPIsThatLie(t *testing.T) {
	for _, c := range []struct {
		lies  lies
		lim   service.Limits
		why   service.Word
		whole bool
	}{
		{lies: lies{MaxLimit: 10}, whole: true},
		{lies: lies{MaxLimit: 10, Garbage: true}, whole: true},
		{lies: lies{MaxLimit: 10, RepeatsToken: true}, why: service.CursorRepeats},
		{lies: lies{MaxLimit: 10, Ring: 3}, why: service.CursorRepeats},
		{lies: lies{MaxLimit: 10, Endless: true}, whole: true},
		{lies: lies{MaxLimit: 10, EmptyTail: true}, why: service.EmptyPages},
		{lies: lies{Shuffles: true, CountsTimes: 2}, why: service.NothingNew},
		{lies: lies{MaxLimit: 10, NoToken: true}, why: service.FewerThanClaim},
		{lies: lies{EmptyLists: true}, why: service.EmptyButClaims},
		{lies: lies{CountsTimes: 2}, why: service.FewerThanClaim, whole: true},
		{lies: lies{Object: true}, why: service.Misshapen},
		{lies: lies{HTML200: true}, why: service.NotJSON},
		{lies: lies{Truncated: true}, why: service.NotJSON},
		{lies: lies{Huge: 5 << 20}, why: service.Cut},
		{lies: lies{Redirect: "https://other.test"}, why: service.Moved},
		{lies: lies{Down: 503}, why: service.Down},
		{lies: lies{OnlyPosts: true, MaxLimit: 10}, whole: true},
		{lies: lies{MaxLimit: 10}, lim: service.Limits{Pages: 2}, why: service.MaxPages},
	} {
		p := visit(t, world{Seed: 3, People: 60, Quiet: true, Rate: -1, Lies: lies{CountsTimes: c.lies.CountsTimes}})
		truth := p.w.Truth()
		ids := p.w.IDs()
		id := ids[slices.IndexFunc(ids, func(id string) bool { return !truth.Accounts[id].Protected })]
		who, err := p.c.User(context.Background(), id)
		if err != nil || len(truth.Accounts[id].Followers) < 20 {
			t.Fatal(err, len(truth.Accounts[id].Followers))
		}
		p.w.Lie(func(l *lies) { *l = c.lies })
		got, l := p.list(who, service.Followers, c.lim)
		if l.Why != c.why || l.Complete != (c.why == "") || p.w.Report().Requests > 200 {
			t.Errorf("%+v: %+v, want %q", c.lies, l, c.why)
		}
		if c.whole && !same(got, truth.Accounts[id].Followers) ||
			len(slices.Compact(slices.Sorted(slices.Values(got)))) != len(got) {
			t.Errorf("%+v: %d of %d followers, or one twice", c.lies, len(got), len(truth.Accounts[id].Followers))
		}
	}
}

// The limits of each class are exact and separate. There is no wait for a spent monthly budget.
func TestLimitsOfClasses(t *testing.T) {
	ctx := context.Background()
	p := visit(t, world{Seed: 3, People: 10, Limits: twittertest.XLimits()})
	id := p.w.IDs()[:1]
	for n := range 301 {
		_, _, err := p.c.Users(ctx, id)
		if a := p.asked[len(p.asked)-1]; (n == 300) != (service.WordOf(err) == service.Limited) ||
			(n < 300) != (err == nil) || a.Class != ClassUsers || !a.Auth || a.Paging {
			t.Fatalf("%d: %v", n, err)
		}
	}
	if _, _, err := p.c.PostsByID(ctx, id); err != nil {
		t.Errorf("another class: %v", err)
	}
	p.clock.Add(15 * time.Minute)
	if _, _, err := p.c.Users(ctx, id); err != nil {
		t.Errorf("after the reset: %v", err)
	}
	p = visit(t, world{Seed: 3, People: 10, Money: 5})
	if _, _, err := p.c.Users(ctx, p.w.IDs()); err != nil {
		t.Fatal(err)
	}
	_, _, err := p.c.Users(ctx, id)
	if f, ok := err.(*service.Fault); !ok || f.Word != service.Spent || f.Code != "usage-capped" || f.Again() {
		t.Errorf("spent: %v", err)
	}
	p = visit(t, world{}, func(o *Options) { o.Credential = service.Credential{} })
	if _, _, err := p.c.Users(ctx, id); service.WordOf(err) != service.NeedsToken {
		t.Errorf("no token: %v", err)
	}
	for _, bad := range [][]string{nil, {"x"}, {"01"}, {"-1"}, {"99999999999999999999"}, make([]string, BatchSize+1)} {
		if _, _, err := p.c.Users(ctx, bad); err == nil || service.WordOf(err) != "" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A budget reads a limit that is only in the API's headers, and keeps to it: nothing is refused.
func TestLimitsAreTold(t *testing.T) {
	book, err := budget.New("api.x.test", budget.Options{Limits: map[string]int64{"usd/day": 1e9, "usd/users": 1e9}})
	if err != nil {
		t.Fatal(err)
	}
	var p *place
	p = visit(t, world{Seed: 3, People: 10,
		Limits: []storytest.Limit{{Name: "users", Max: 7, Window: 15 * time.Minute, Auth: true, Class: "users",
			Rolling: true}}}, func(o *Options) {
		send := o.Do
		o.Do = func(ctx context.Context, call service.Call) (*fetch.Response, error) {
			ticket, err := book.Reserve(p.clock.Now(), string(call.Class), budget.Ask{Items: 1})
			if err != nil {
				return nil, err
			}
			resp, err := send(ctx, call)
			if err != nil {
				return nil, err
			}
			return resp, book.Settle(p.clock.Now(), ticket, budget.Answer{Status: resp.Status, Header: resp.Header,
				Items: 1})
		}
	})
	table, ok := budget.Default("x-app")
	if err := book.Add("app", table, p.clock.Now()); err != nil || !ok {
		t.Fatal(ok, err)
	}
	had, waits := 0, 0
	for had+waits < 40 {
		_, _, err := p.c.Users(context.Background(), p.w.IDs()[:1])
		var wait *budget.WaitError
		switch {
		case errors.As(err, &wait) && !wait.At.IsZero() && service.WordOf(err) == service.Unreachable:
			p.clock.Add(wait.At.Sub(p.clock.Now()))
			waits++
		case err != nil:
			t.Fatal(err)
		default:
			had++
		}
	}
	read := slices.ContainsFunc(book.Status(p.clock.Now()).Buckets, func(b budget.BucketStatus) bool {
		return b.Name == "users/15m" && b.Limit == 7 && b.By == budget.ByHeaders
	})
	if !read || had < 30 || waits < 4 || p.w.Report().Refused != 0 {
		t.Errorf("%d had, %d waits, refused %d: %+v", had, waits, p.w.Report().Refused, book.Status(p.clock.Now()))
	}
}
