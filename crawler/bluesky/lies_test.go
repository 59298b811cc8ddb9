package bluesky

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/budget"
	"github.com/echo-node/echo-node/crawler/crawltest/blueskytest"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
)

// With any wrong behaviour of the server, reading a list ends, with the Word for the reason.
// Complete and incomplete lists are distinguished.
func TestListsOfServersThatLie(t *testing.T) {
	for _, c := range []struct {
		name  string
		lies  lies
		lim   service.Limits
		why   service.Word
		whole bool // all true items were delivered, possibly with others
		most  int  // pages
	}{
		{name: "none", lies: lies{MaxLimit: 10}, whole: true, most: 10},
		{name: "nulls", lies: lies{MaxLimit: 10, Nulls: true}, whole: true, most: 10},
		{name: "garbage between", lies: lies{MaxLimit: 10, Garbage: true}, whole: true, most: 10},
		{name: "handles that lead nowhere", lies: lies{InvalidHandles: true}, whole: true, most: 1},
		{name: "cursor repeats", lies: lies{MaxLimit: 10, RepeatsCursor: true}, why: service.CursorRepeats, most: 3},
		{name: "cursors in a ring", lies: lies{MaxLimit: 10, Ring: 3}, why: service.CursorRepeats, most: 8},
		{name: "no end, the same page", lies: lies{MaxLimit: 10, Endless: true}, whole: true, most: 7},
		{name: "no end, and claims more", lies: lies{MaxLimit: 10, Endless: true, CountsTimes: 2},
			why: service.CursorRepeats, whole: true, most: 8},
		{name: "no end, empty pages", lies: lies{MaxLimit: 10, EmptyTail: true}, why: service.EmptyPages, whole: true,
			most: 14},
		{name: "no end, drawn by lot", lies: lies{Shuffles: true, CountsTimes: 2}, why: service.NothingNew, most: 200},
		{name: "no cursor", lies: lies{MaxLimit: 10, NoCursor: true}, why: service.FewerThanClaim, most: 1},
		{name: "empty, claims many", lies: lies{EmptyLists: true}, why: service.EmptyButClaims, most: 1},
		{name: "claims double", lies: lies{CountsTimes: 2}, why: service.FewerThanClaim, whole: true, most: 2},
		{name: "claims half", lies: lies{CountsTimes: 0.5}, why: service.MoreThanClaim, whole: true, most: 2},
		{name: "another's", lies: lies{WrongSubject: true}, why: service.Misshapen},
		{name: "an object", lies: lies{Object: true}, why: service.Misshapen},
		{name: "HTML with 200", lies: lies{HTML200: true}, why: service.NotJSON},
		{name: "half the JSON", lies: lies{Truncated: true}, why: service.NotJSON},
		{name: "longer than the cap", lies: lies{Huge: 3 << 20}, why: service.Cut},
		{name: "moved", lies: lies{Redirect: "https://other.test"}, why: service.Moved},
		{name: "down", lies: lies{Down: 503}, why: service.Down},
		{name: "page limit", lies: lies{MaxLimit: 10}, lim: service.Limits{Pages: 2}, why: service.MaxPages, most: 2},
		{name: "item limit", lies: lies{MaxLimit: 10}, lim: service.Limits{Items: 15}, why: service.MaxItems, most: 2},
	} {
		p := visit(t, world{Seed: 3, People: 60, Quiet: true, Rate: -1, Lies: lies{CountsTimes: c.lies.CountsTimes}})
		who := p.profile(p.w.IDs()[0])
		truth := p.w.Truth().Accounts[who.ID].Followers
		if len(truth) < 30 {
			t.Fatalf("only %d followers", len(truth))
		}
		p.w.Lie(func(l *lies) { *l = c.lies })
		before := p.w.Report().Requests
		e, err := p.view.Edges(who, service.Followers, "", c.lim)
		if err != nil {
			t.Fatal(err)
		}
		got := drain(t, func(ctx context.Context) ([]Profile, error) {
			if again, err := p.view.ResumeEdges(e.Checkpoint(), "", c.lim); err != nil ||
				again.Listing() != e.Listing() {
				t.Errorf("%s: %v", c.name, err)
			}
			return e.Next(ctx)
		}, e.Done, func(q Profile) string { return q.ID })
		l, asked := e.Listing(), p.w.Report().Requests-before
		if l.Why != c.why || l.Complete != (c.why == "") || c.most > 0 && asked > c.most || asked > 200 {
			t.Errorf("%s: %+v after %d requests, want %q", c.name, l, asked, c.why)
		}
		if c.whole && !same(got, truth) || len(slices.Compact(slices.Sorted(slices.Values(got)))) != len(got) {
			t.Errorf("%s: %d of %d followers, or one twice", c.name, len(got), len(truth))
		}
		for _, id := range got {
			if !slices.Contains(truth, id) {
				t.Errorf("%s: %s does not follow", c.name, id)
			}
		}
	}
}

// Tests the Word of each fault of one request.
func TestFaults(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		lies   lies
		word   service.Word
		status int
		again  bool
	}{
		{lies{HTML200: true}, service.NotJSON, 200, true},
		{lies{Truncated: true}, service.NotJSON, 200, true},
		{lies{Huge: 3 << 20}, service.Cut, 200, false},
		{lies{Down: 500}, service.Down, 500, true},
		{lies{Down: 503}, service.Down, 503, true},
		{lies{Redirect: "https://b.test/x"}, service.Moved, 301, false},
		{lies{WrongOne: true}, service.Misshapen, 0, true},
	} {
		p := visit(t, world{Seed: 1, People: 20})
		id := p.w.IDs()[2]
		p.w.Lie(func(l *lies) { *l = c.lies })
		_, err := p.view.Profile(ctx, id)
		f, ok := err.(*service.Fault)
		if !ok || f.Word != c.word || f.Status != c.status || f.Again() != c.again || f.Op != "profile" ||
			c.lies.Down == 503 && f.Retry != 30*time.Second {
			t.Errorf("%+v: %v", c.lies, err)
		}
	}
	p := visit(t, world{Seed: 1, People: 20})
	nobody := "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa"
	for name, err := range map[string]error{
		"profile": second(p.view.Profile(ctx, nobody)), "repo": second(p.pds.Repo(ctx, nobody)),
		"document": second(p.view.Document(ctx, nobody)),
		"handle":   second(p.view.Resolve(ctx, "nobody.b.test")),
		"record":   second(p.pds.Record(ctx, "at://"+p.w.IDs()[0]+"/"+Posts+"/nothing")),
	} {
		if service.WordOf(err) != service.Gone {
			t.Errorf("%s of nobody: %v", name, err)
		}
	}
	for _, bad := range []string{"", "ana", "did:plc:short", "did:key:z6Mk", "did:web:", "did:web:a/b", "did:web:u@h",
		"did:web:h%2Fx", "a b.c", "-", ".a.b", "a..b"} {
		if _, err := p.view.Profile(ctx, bad); err == nil || service.WordOf(err) != "" {
			t.Errorf("profile %q: %v", bad, err)
		}
		if _, err := p.view.Document(ctx, bad); err == nil || service.WordOf(err) != "" {
			t.Errorf("document %q: %v", bad, err)
		}
	}
	if _, _, err := p.view.Profiles(ctx, make([]string, BatchSize+1)); err == nil || service.WordOf(err) != "" {
		t.Errorf("too many: %v", err)
	}
	p.w.Lie(func(l *lies) { l.NoRecords = true })
	if _, _, _, tl := p.read(p.pds, RecordsOf(p.w.IDs()[0], Posts), service.Mark{},
		service.Reading{}); tl.Listing().Why != service.Unsupported {
		t.Errorf("no listRecords: %+v", tl.Listing())
	}
}

func second[T any](_ T, err error) error { return err }

// Search is sometimes closed; at other times only its second page is.
func TestSearch(t *testing.T) {
	p := visit(t, world{Seed: 5, People: 20, Quiet: true, Rate: -1})
	ana := p.w.IDs()[0]
	for range 150 {
		p.clock.Add(time.Second)
		if _, err := p.w.Post(p.acct(ana), "o comboio", "portugal"); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []Feed{Search("comboio"), Tagged("#portugal")} {
		got, _, _, tl := p.read(p.view, f, service.Mark{}, service.Reading{})
		if !slices.Equal(ids(got), p.w.Truth().Accounts[ana].Posts) || !tl.Listing().Complete {
			t.Errorf("%s: %d, %+v", f.op, len(got), tl.Listing())
		}
	}
	p.w.Lie(func(l *lies) { l.SearchPaging = true })
	if got, _, _, tl := p.read(p.view, Search("comboio"), service.Mark{}, service.Reading{}); len(got) != 100 ||
		tl.Listing().Why != service.Closed {
		t.Errorf("no second page: %d, %+v", len(got), tl.Listing())
	}
	p.w.Lie(func(l *lies) { l.SearchClosed = true })
	if got, _, _, tl := p.read(p.view, Search("comboio"), service.Mark{}, service.Reading{}); len(got) != 0 ||
		tl.Listing().Why != service.Closed {
		t.Errorf("closed: %d, %+v", len(got), tl.Listing())
	}
	who := p.w.Handle(ana)
	if found, err := p.view.SearchActors(context.Background(), who); err != nil || len(found) != 1 ||
		found[0].ID != ana {
		t.Errorf("%+v %v", found, err)
	}
}

// The PDS sends its limit and refuses calls over it; the same page arrives after the reset. With a
// budget, which reads these headers, nothing is refused.
func TestLimitsAreTold(t *testing.T) {
	for _, budgeted := range []bool{false, true} {
		p := visit(t, world{Seed: 3, People: 60, Quiet: true, Rate: -1,
			Limits: []blueskytest.Limit{{Name: "global", Max: 3, Window: 5 * time.Minute, All: true, Rolling: true}},
			Lies:   lies{MaxLimit: 2}})
		ana := p.w.IDs()[0]
		for id, a := range p.w.Truth().Accounts {
			if len(a.Following) > len(p.w.Truth().Accounts[ana].Following) {
				ana = id
			}
		}
		book, err := budget.New("pds.b.test", budget.Options{})
		if err != nil {
			t.Fatal(err)
		}
		table, ok := budget.Default("bluesky-pds")
		if err := book.Add("", table, p.clock.Now()); err != nil || !ok {
			t.Fatal(ok, err)
		}
		pds := p.pds
		if budgeted {
			pds = p.client("https://pds.b.test", func(o *Options) {
				send := o.Do
				o.Do = func(ctx context.Context, call service.Call) (*fetch.Response, error) {
					ticket, err := book.Reserve(p.clock.Now(), "read", budget.Ask{})
					if err != nil {
						return nil, err
					}
					resp, err := send(ctx, call)
					if err != nil {
						return nil, err
					}
					return resp, book.Settle(p.clock.Now(), ticket,
						budget.Answer{Status: resp.Status, Header: resp.Header})
				}
			})
		}
		e, err := pds.FollowRecords(ana, -1, service.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		waits := 0
		for !e.Done() && waits < 100 {
			page, err := e.Next(context.Background())
			var wait *budget.WaitError
			var f *service.Fault
			switch {
			case errors.As(err, &wait) && service.WordOf(err) == service.Unreachable:
				p.clock.Add(wait.At.Sub(p.clock.Now()))
				waits++
			case errors.As(err, &f):
				if a := p.asked[len(p.asked)-1]; f.Word != service.Limited || f.Status != 429 || f.Retry <= 0 ||
					f.Retry > 5*time.Minute+time.Second || a.Class != ClassRecords || a.Auth {
					t.Fatalf("%v: %+v %+v", err, f, a)
				}
				p.clock.Add(f.Retry)
				waits++
			case err != nil:
				t.Fatal(err)
			}
			for _, f := range page {
				got = append(got, f.ID)
			}
		}
		refused := waits
		if budgeted {
			refused = 0
			if at := slices.IndexFunc(book.Status(p.clock.Now()).Buckets,
				func(b budget.BucketStatus) bool { return b.Limit == 3 && b.By == budget.ByHeaders }); at < 0 {
				t.Errorf("the limit was not read: %+v", book.Status(p.clock.Now()))
			}
		}
		if !same(got, p.w.Truth().Accounts[ana].Following) || waits == 0 || refused != p.w.Report().Refused {
			t.Errorf("budget %v: %d of %d, %d waits, refused %d", budgeted, len(got),
				len(p.w.Truth().Accounts[ana].Following), waits, p.w.Report().Refused)
		}
	}
}
