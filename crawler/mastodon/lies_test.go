package mastodon

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/service"
)

type (
	world = mastodontest.Options
	lies  = mastodontest.Lies
)

// star returns the most followed account of a world, and its truth.
func (p *place) star() (Profile, mastodontest.Account) {
	p.t.Helper()
	acct := p.w.Users()[0]
	return p.lookup(acct), p.w.Truth().Accounts[acct]
}

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
		{name: "foreign host in the link", lies: lies{MaxLimit: 10, ForeignLink: true}, whole: true, most: 10},
		{name: "number ids", lies: lies{MaxLimit: 10, NumberIDs: true}, whole: true, most: 10},
		{name: "nulls", lies: lies{MaxLimit: 10, Nulls: true}, whole: true, most: 10},
		{name: "full accts", lies: lies{MaxLimit: 10, FullAccts: true}, whole: true, most: 10},
		{name: "garbage between", lies: lies{MaxLimit: 10, Garbage: true}, whole: true, most: 10},
		{name: "cursor repeats", lies: lies{MaxLimit: 10, RepeatsCursor: true}, why: service.CursorRepeats, most: 3},
		{name: "cursors in a ring", lies: lies{MaxLimit: 10, Ring: 3}, why: service.CursorRepeats, most: 8},
		{name: "no end, the same page", lies: lies{MaxLimit: 10, Endless: true}, whole: true, most: 6},
		{name: "no end, and claims more", lies: lies{MaxLimit: 10, Endless: true, CountsTimes: 2},
			why: service.CursorRepeats, whole: true, most: 7},
		{name: "no end, empty pages", lies: lies{MaxLimit: 10, EmptyTail: true}, why: service.EmptyPages, whole: true,
			most: 14},
		{name: "no end, drawn by lot", lies: lies{Shuffles: true, CountsTimes: 2}, why: service.NothingNew, most: 200},
		{name: "no link", lies: lies{MaxLimit: 10, NoLink: true}, why: service.FewerThanClaim, most: 1},
		{name: "empty, claims many", lies: lies{EmptyLists: true}, why: service.EmptyButClaims, most: 1},
		{name: "hidden", lies: lies{HidesLists: true}, why: service.Hidden, most: 1},
		{name: "claims double", lies: lies{CountsTimes: 2}, why: service.FewerThanClaim, whole: true, most: 2},
		{name: "claims half", lies: lies{CountsTimes: 0.5}, why: service.MoreThanClaim, whole: true, most: 2},
		{name: "an object", lies: lies{Object: true}, why: service.Misshapen},
		{name: "HTML with 200", lies: lies{HTML200: true}, why: service.NotJSON},
		{name: "half the JSON", lies: lies{Truncated: true}, why: service.NotJSON},
		{name: "longer than the cap", lies: lies{Huge: 600 << 10}, why: service.Cut},
		{name: "closed", lies: lies{ClosedAPI: true}, why: service.NeedsToken},
		{name: "moved", lies: lies{Redirect: "https://other.test"}, why: service.Moved},
		{name: "down", lies: lies{Down: 503}, why: service.Down},
		{name: "page limit", lies: lies{MaxLimit: 10}, lim: service.Limits{Pages: 2}, why: service.MaxPages, most: 2},
		{name: "item limit", lies: lies{MaxLimit: 10}, lim: service.Limits{Items: 15}, why: service.MaxItems, most: 2},
	} {
		p := visit(t, world{Seed: 3, People: 60, Quiet: true, Rate: -1})
		who, truth := p.star()
		if len(truth.Followers) < 30 {
			t.Fatalf("only %d followers", len(truth.Followers))
		}
		p.w.Lie(func(l *lies) { *l = c.lies })
		if c.lies.CountsTimes != 0 || c.lies.HidesLists || c.lies.Nulls || c.lies.FullAccts {
			who = p.lookup(truth.Acct)
		}
		before := p.w.Report().Requests
		e, err := p.c.Edges(who, service.Followers, "", c.lim)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for n := 0; !e.Done() && n < 1000; n++ {
			page, err := e.Next(context.Background())
			for _, q := range page {
				got = append(got, q.Acct)
			}
			if err != nil {
				break
			}
		}
		l := e.Listing()
		asked := p.w.Report().Requests - before
		if l.Why != c.why || l.Complete != (c.why == "") || c.most > 0 && asked > c.most || asked > 200 {
			t.Errorf("%s: %+v after %d requests, want %q", c.name, l, asked, c.why)
		}
		if c.whole && !same(got, truth.Followers) ||
			len(slices.Compact(slices.Sorted(slices.Values(got)))) != len(got) {
			t.Errorf("%s: %d of %d followers, or one twice", c.name, len(got), len(truth.Followers))
		}
		for _, acct := range got {
			if !slices.Contains(truth.Followers, acct) {
				t.Errorf("%s: %s does not follow", c.name, acct)
			}
		}
	}
}

// snac returns the list of the token's owner for every account. A probe detects this, and from then
// on no list of that side is read.
func TestAnothersListIsNotBelieved(t *testing.T) {
	token, err := service.NewCredential("ana", "s3cret")
	if err != nil {
		t.Fatal(err)
	}
	p := visit(t, world{Seed: 3, People: 60, Quiet: true, Tokens: map[string]string{"s3cret": "reader"}},
		func(o *Options) { o.Credential = token })
	reader, star := p.w.Users()[1], p.w.Users()[0]
	p = visit(t, world{Seed: 3, People: 60, Quiet: true, Tokens: map[string]string{"s3cret": user(reader)},
		Lies: lies{OwnLists: true, EmptyLists: true}}, func(o *Options) { o.Credential = token })
	s, err := p.c.Probe(context.Background(), star)
	if err != nil || s.Lists != service.NotTheirs {
		t.Fatalf("%+v %v", s, err)
	}
	e, err := p.c.Edges(p.lookup(star), service.Following, s.Lists, service.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Next(context.Background()); err != nil || !e.Done() || e.Listing().Why != service.NotTheirs {
		t.Errorf("%+v %v", e.Listing(), err)
	}
}

// A remote account's list is only the part that the server knows.
func TestListsOfRemoteAccounts(t *testing.T) {
	p := visit(t, world{Seed: 3, People: 60, Quiet: true, Rate: -1, Lies: lies{CountsTimes: 3}})
	for acct, truth := range p.w.Truth().Accounts {
		if truth.Local || len(truth.Followers) == 0 {
			continue
		}
		if _, l := p.list(p.lookup(acct), service.Followers, service.Limits{}); l.Complete ||
			l.Why != service.KnownPartOnly {
			t.Errorf("%s: %+v", acct, l)
		}
	}
}

// A list resumes from a checkpoint at any page, also after a fault, and nothing is lost.
func TestListsGoOnFromACheckpoint(t *testing.T) {
	p := visit(t, world{Seed: 3, People: 60, Quiet: true, Rate: -1, Lies: lies{MaxLimit: 7}})
	who, truth := p.star()
	e, err := p.c.Edges(who, service.Followers, "", service.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for !e.Done() {
		p.w.Lie(func(l *lies) { l.Down = http.StatusBadGateway })
		if _, err := e.Next(context.Background()); service.WordOf(err) != service.Down || e.Done() ||
			e.Listing().Why != service.Down {
			t.Fatalf("while down: %v %+v", err, e.Listing())
		}
		p.w.Lie(func(l *lies) { l.Down = 0 })
		page, err := e.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range page {
			got = append(got, q.Acct)
		}
		if e, err = p.c.ResumeEdges(e.Checkpoint(), "", service.Limits{}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, truth.Followers) || !e.Listing().Complete {
		t.Errorf("%d of %d: %+v", len(got), len(truth.Followers), e.Listing())
	}
	for _, bad := range []string{"", "{}", `{"v":2,"id":"1","side":"followers"}`, `{"v":1,"id":"","side":"followers"}`,
		`{"v":1,"id":"1","side":"x"}`, `{"v":1,"id":"1","side":"followers","trail":{"pages":-1}}`} {
		if _, err := p.c.ResumeEdges(service.Checkpoint(bad), "", service.Limits{}); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

// Tests the Word of each fault of one request.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		lies    lies
		word    service.Word
		status  int
		fromAPI bool
		again   bool
	}{
		{lies{HTML200: true}, service.NotJSON, 200, false, true},
		{lies{Truncated: true}, service.NotJSON, 200, false, true},
		{lies{Huge: 600 << 10}, service.Cut, 200, false, false},
		{lies{Down: 500}, service.Down, 500, false, true},
		{lies{Down: 503}, service.Down, 503, false, true},
		{lies{ClosedAPI: true}, service.NeedsToken, 401, true, false},
		{lies{Redirect: "https://b.test/x"}, service.Moved, 301, false, false},
		{lies{WrongOne: true}, service.Misshapen, 0, true, true},
	} {
		p := visit(t, world{Seed: 1, People: 20})
		acct := p.w.Users()[2]
		p.w.Lie(func(l *lies) { *l = c.lies })
		_, err := p.c.Lookup(context.Background(), acct)
		f, ok := err.(*service.Fault)
		if !ok || f.Word != c.word || f.Status != c.status || f.FromAPI != c.fromAPI || f.Again() != c.again ||
			f.Op != "lookup" {
			t.Errorf("%+v: %v", c.lies, err)
			continue
		}
		if c.lies.Down == 503 && f.Retry != 30*time.Second || c.word == service.Moved && f.To != "https://b.test/x" {
			t.Errorf("%+v: retry %v, to %q", c.lies, f.Retry, f.To)
		}
	}
	p := visit(t, world{Seed: 1, People: 20})
	if _, err := p.c.Lookup(context.Background(), "nobody@m.test"); service.WordOf(err) != service.Gone ||
		!err.(*service.Fault).FromAPI {
		t.Errorf("nobody: %v", err)
	}
	if _, err := p.c.Account(context.Background(), "12"); service.WordOf(err) != service.Gone {
		t.Errorf("no such id: %v", err)
	}
	p.w.Lie(func(l *lies) { l.HTML404 = true })
	if _, err := p.c.Post(context.Background(), "12"); service.WordOf(err) != service.Gone ||
		err.(*service.Fault).FromAPI {
		t.Errorf("a page that says 404: %v", err)
	}
	for _, bad := range []string{"", "@", "a b", "a@b@c", "a/b"} {
		if _, err := p.c.Lookup(context.Background(), bad); err == nil || service.WordOf(err) != "" {
			t.Errorf("lookup %q: %v", bad, err)
		}
	}
}

// Deletes, edits, suspensions and moves are detected, as far as REST shows them.
func TestWhatChangesIsSeen(t *testing.T) {
	p := visit(t, world{Seed: 5, People: 20, Quiet: true})
	ctx := context.Background()
	ana, rui := p.w.Users()[0], p.w.Users()[1]
	var ids []string
	for _, text := range []string{"um", "dois", "três", "quatro"} {
		id, err := p.w.Post(ana, text, "tag1")
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
		p.clock.add(time.Minute)
	}
	who := p.lookup(ana)
	_, mark, _ := p.read(PostsOf(who.ID), service.Mark{}, Reading{})
	if err := p.w.Edit(ids[3], "quatro, emendado"); err != nil {
		t.Fatal(err)
	}
	if err := p.w.Delete(ids[2]); err != nil {
		t.Fatal(err)
	}
	tl, err := p.c.Timeline(PostsOf(who.ID), mark, Reading{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := tl.Next(ctx)
	if err != nil || !tl.Done() || len(b.Posts) != 0 || len(b.Again) != 4 || b.Again[0].ID != ids[3] ||
		b.Again[0].Text != "quatro, emendado" || b.Again[0].Edited.IsZero() {
		t.Errorf("read again: %+v %v", b, err)
	}
	if absent := tl.Absent(); !slices.Equal(absent, ids[2:3]) {
		t.Errorf("absent %v, want %v", absent, ids[2:3])
	}
	if _, err := p.c.Post(ctx, ids[2]); service.WordOf(err) != service.Gone {
		t.Errorf("a deleted post: %v", err)
	}
	if h, err := p.c.History(ctx, ids[3]); err != nil || len(h) != 2 || h[0].Text != "quatro #tag1" ||
		h[1].Text != "quatro, emendado" {
		t.Errorf("history: %+v %v", h, err)
	}
	found, absent, err := p.c.PostsByID(ctx, ids)
	if err != nil || !slices.Equal(idsOf(found), []string{ids[0], ids[1], ids[3]}) || !slices.Equal(absent, ids[2:3]) {
		t.Errorf("by id: %v, absent %v, %v", idsOf(found), absent, err)
	}
	if err := p.w.Move(ana, rui); err != nil {
		t.Fatal(err)
	}
	if err := p.w.Suspend(rui); err != nil {
		t.Fatal(err)
	}
	people, absent, err := p.c.Accounts(ctx, []string{who.ID, "404", p.lookup(rui).ID})
	if err != nil || len(people) != 2 || people[0].Moved == nil || people[0].Moved.Acct != rui ||
		!people[1].Suspended || !slices.Equal(absent, []string{"404"}) {
		t.Errorf("accounts: %+v, absent %v, %v", people, absent, err)
	}
	for _, status := range []int{404, 405} {
		p.w.Lie(func(l *lies) { l.NoBatch = status })
		if _, _, err := p.c.Accounts(ctx, ids); service.WordOf(err) != service.Unsupported {
			t.Errorf("no batch, %d: %v", status, err)
		}
	}
	if _, _, err := p.c.Accounts(ctx, make([]string, BatchSize+1)); err == nil || service.WordOf(err) != "" {
		t.Errorf("too many ids: %v", err)
	}
}

// At snac an edit gives a post another id. The post is read as new, and recognized by its URI.
func TestEditsThatRename(t *testing.T) {
	p := visit(t, world{Seed: 5, People: 20, Quiet: true, Rate: -1,
		Lies: lies{EditRenames: true, IgnoresMin: true, IgnoresMax: true}})
	ana := p.w.Users()[0]
	who := p.lookup(ana)
	id, err := p.w.Post(ana, "um")
	if err != nil {
		t.Fatal(err)
	}
	before, m, _ := p.read(PostsOf(who.ID), service.Mark{}, Reading{})
	if err := p.w.Edit(id, "um, emendado"); err != nil {
		t.Fatal(err)
	}
	after, m, tl := p.read(PostsOf(who.ID), m, Reading{})
	if len(before) != 1 || len(after) != 1 || after[0].ID == id || after[0].URI != before[0].URI ||
		after[0].Edited.IsZero() || !slices.Equal(tl.Absent(), []string{id}) {
		t.Errorf("%+v, then %+v, absent %v", before, after, tl.Absent())
	}
	if again, _, _ := p.read(PostsOf(who.ID), m, Reading{}); len(again) != 0 {
		t.Errorf("and again: %+v", again)
	}
	if post, err := p.c.Post(context.Background(), id); err != nil || post.URI != before[0].URI ||
		post.Text != "um, emendado" {
		t.Errorf("by its first id: %+v %v", post, err)
	}
}

func TestSearch(t *testing.T) {
	p := visit(t, world{Seed: 5, People: 20})
	who := p.w.Users()[3]
	f, err := p.c.Search(context.Background(), SearchProfiles, user(who), 0)
	if err != nil || !slices.ContainsFunc(f.Profiles, func(q Profile) bool { return q.Acct == who }) {
		t.Errorf("%+v %v", f, err)
	}
	if f, err = p.c.Search(context.Background(), SearchTags, "port", 0); err != nil ||
		!slices.Equal(f.Tags, []string{"portugal"}) {
		t.Errorf("%+v %v", f, err)
	}
	p.w.Lie(func(l *lies) { l.NoSearch = true })
	if _, err := p.c.Search(context.Background(), SearchPosts, "x", 20); service.WordOf(err) != service.NeedsToken {
		t.Errorf("%v", err)
	}
}
