package bluesky

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/blueskytest"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition/racetest"
)

// since is the start of the story in tests; the race detector gets a shorter story.
func since() time.Time {
	if racetest.Enabled {
		return time.Date(2026, 1, 26, 0, 0, 0, 0, time.UTC)
	}
	return time.Time{}
}

// The client reads the exact truth of a network: identities, profiles, and posts and edges from
// both the AppView and the PDS.
func TestTheWholeTruthIsRead(t *testing.T) {
	ctx := context.Background()
	p := visit(t, world{Seed: 7, People: 45, Start: since(), Lies: lies{MaxLimit: 30}})
	if err := p.w.Suspend(p.w.Users()[20]); err != nil {
		t.Fatal(err)
	}
	truth := p.w.Truth()
	posts, edges, gone, changed, all := 0, 0, 0, 0, p.w.IDs()
	for batch := range slices.Chunk(all, BatchSize) {
		found, absent, err := p.view.Profiles(ctx, batch)
		if err != nil || len(found)+len(absent) != len(batch) {
			t.Fatal(err, len(found), len(absent))
		}
		for _, id := range absent {
			if _, err := p.view.Profile(ctx, id); !truth.Accounts[id].Suspended ||
				service.WordOf(err) != service.Gone || err.(*service.Fault).Code != "AccountTakedown" {
				t.Errorf("%s is absent: %v", id, err)
			}
			if _, err := p.pds.Record(ctx, "at://"+id+"/"+Posts+"/x"); service.WordOf(err) != service.Gone {
				t.Errorf("%s is absent: %v", id, err)
			}
			gone++
		}
		for _, who := range found {
			want := truth.Accounts[who.ID]
			p.sameProfile(who, want)
			p.sameIdentity(who, want)
			for side, list1 := range map[service.Side][]string{service.Followers: want.Followers,
				service.Following: want.Following} {
				e, err := p.view.Edges(who, side, "", service.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				if got := drain(t, e.Next, e.Done, func(q Profile) string { return q.ID }); !slices.Equal(got, list1) ||
					!e.Listing().Complete {
					t.Errorf("%s of %s: %d, want %d; %+v", side, who.ID, len(got), len(list1), e.Listing())
				}
				edges += len(list1)
			}
			f, err := p.pds.FollowRecords(who.ID, who.Following, service.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if got := drain(t, f.Next, f.Done, func(q Follow) string { return q.ID }); !slices.Equal(got,
				want.Following) || !f.Listing().Complete {
				t.Errorf("follow records of %s: %d, want %d; %+v", who.ID, len(got), len(want.Following), f.Listing())
			}
			shown, _, mark, tl := p.read(p.view, PostsOf(who.ID), service.Mark{}, service.Reading{Claimed: who.Posts})
			if !slices.Equal(ids(shown), want.Posts) || !tl.Listing().Complete {
				t.Errorf("feed of %s: %d, want %d; %+v", who.ID, len(shown), len(want.Posts), tl.Listing())
			}
			for _, q := range shown {
				p.samePost(q, truth.Posts[q.ID], false)
			}
			if again, _, _, tl := p.read(p.view, PostsOf(who.ID), mark, service.Reading{}); len(again) != 0 ||
				tl.Listing().Pages > 1 {
				t.Errorf("feed of %s, read again: %d posts in %d pages", who.ID, len(again), tl.Listing().Pages)
			}
			for collection, want := range map[string][]string{Posts: want.Records, Reposts: want.Reposts} {
				got, _, mark, tl := p.read(p.pds, RecordsOf(who.ID, collection), service.Mark{}, service.Reading{})
				if !same(ids(got), want) || !tl.Listing().Complete {
					t.Errorf("%s of %s: %d, want %d; %+v", collection, who.ID, len(got), len(want), tl.Listing())
				}
				for _, q := range got {
					p.samePost(q, truth.Posts[q.ID], true)
					if truth.Posts[q.ID].Text != truth.Posts[q.ID].ShownText {
						changed++
					}
				}
				before := p.w.Report().Requests
				if again, _, _, _ := p.read(p.pds, RecordsOf(who.ID, collection), mark,
					service.Reading{}); len(again) != 0 || len(want) > 6 && p.w.Report().Requests-before != 1 {
					t.Errorf("%s of %s, read again: %d in %d calls", collection, who.ID, len(again),
						p.w.Report().Requests-before)
				}
			}
			posts += len(shown)
		}
	}
	if posts < 100 || edges < 100 || gone == 0 || changed == 0 {
		t.Errorf("a poor world: %d posts, %d edges, %d gone, %d changed", posts, edges, gone, changed)
	}
	t.Logf("%d posts, %d edges, %d gone, %d changed in %d requests", posts, edges, gone, changed, p.w.Report().Requests)
}

func (p *place) sameProfile(got Profile, want blueskytest.Account) {
	p.t.Helper()
	if got.Acct != want.Handle || got.Name != want.Name || got.Note != want.Bio ||
		got.Followers != int64(len(want.Followers)) || got.Following != int64(len(want.Following)) ||
		got.NoUnauthenticated != want.NoUnauthenticated ||
		!got.Created.Equal(want.Created.Truncate(time.Millisecond)) || len(got.Raw) == 0 {
		p.t.Errorf("profile %+v\nwant %+v", got, want)
	}
	if key, err := got.Key(); err != nil || string(key) != "bluesky:"+want.ID {
		p.t.Errorf("key of %s: %s %v", want.ID, key, err)
	}
}

func (p *place) sameIdentity(who Profile, want blueskytest.Account) {
	p.t.Helper()
	ctx := context.Background()
	if id, err := p.view.Resolve(ctx, who.Acct); err != nil || id != want.ID {
		p.t.Errorf("resolve %s: %s %v, want %s", who.Acct, id, err, want.ID)
	}
	base, _, err := DocumentAddress(want.ID, "https://plc.b.test")
	if err != nil || strings.HasPrefix(want.ID, "did:web:") == (base == "https://plc.b.test") {
		p.t.Fatalf("%s: %s %v", want.ID, base, err)
	}
	if doc, err := p.client(base).Document(ctx, want.ID); err != nil || doc.Handle() != want.Handle ||
		doc.PDS != "https://pds.b.test" {
		p.t.Errorf("document of %s: %+v %v", want.ID, doc, err)
	}
	if repo, err := p.pds.Repo(ctx, want.ID); err != nil || !repo.Active {
		p.t.Errorf("repo of %s: %+v %v", want.ID, repo, err)
	}
}

// samePost compares a post with the truth, as a record or as the AppView shows it.
func (p *place) samePost(got Post, want blueskytest.Post, record bool) {
	p.t.Helper()
	boost, text, links, mentions := "", want.ShownText, []string(nil), []string(nil)
	if record {
		text = want.Text
	}
	if got.Boost != nil {
		boost = got.Boost.ID
	}
	for _, l := range got.Links {
		links = append(links, l.Key.URL())
	}
	for _, m := range got.Mentions {
		mentions = append(mentions, m.ID)
	}
	if got.Author.ID != want.By || boost != want.Boost || !got.Created.Equal(want.Created.Truncate(time.Millisecond)) ||
		record && got.CID != want.CID ||
		want.Boost == "" && (got.Text != text || !slices.Equal(got.Langs, []string{want.Lang}) ||
			got.ReplyTo != want.Reply || !slices.Equal(got.Tags, want.Tags) || !slices.Equal(mentions, want.Mentions) ||
			!slices.Equal(links, want.Links) || len(got.Raw) == 0) {
		p.t.Errorf("post %+v\nwant %+v", got, want)
	}
}

// Deletes and edits are detected at the PDS; the AppView drops deleted posts.
func TestWhatChangesIsSeen(t *testing.T) {
	ctx := context.Background()
	p := visit(t, world{Seed: 5, People: 10, Quiet: true, Rate: -1})
	ana := p.w.IDs()[0]
	var made []string
	for _, said := range []string{"um", "dois", "três", "quatro"} {
		id, err := p.w.Post(p.acct(ana), said)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, id)
		p.clock.Add(time.Minute)
	}
	rev, err := p.pds.Repo(ctx, ana)
	if err != nil {
		t.Fatal(err)
	}
	_, _, mark, _ := p.read(p.pds, RecordsOf(ana, Posts), service.Mark{}, service.Reading{})
	if now, err := p.pds.Repo(ctx, ana); err != nil || now != rev {
		t.Errorf("nothing happened: %+v %v, before %+v", now, err, rev)
	}
	if err := p.w.Edit(made[3], "quatro, emendado"); err != nil {
		t.Fatal(err)
	}
	if err := p.w.Delete(made[2]); err != nil {
		t.Fatal(err)
	}
	if now, err := p.pds.Repo(ctx, ana); err != nil || now == rev {
		t.Errorf("something happened: %+v %v", now, err)
	}
	tl, err := p.pds.Timeline(RecordsOf(ana, Posts), mark, service.Reading{})
	if err != nil {
		t.Fatal(err)
	}
	var again []Post
	changed := 0
	for !tl.Done() {
		b, err := tl.Next(ctx)
		if err != nil || len(b.Posts) > 0 {
			t.Fatalf("%+v %v", b, err)
		}
		again = append(again, b.Again...)
		changed += len(b.Changed)
	}
	if !same(ids(again), []string{made[1], made[3]}) && !same(ids(again), []string{made[0], made[1], made[3]}) ||
		changed != 1 || !slices.Equal(tl.Absent(), []string{made[2][strings.LastIndexByte(made[2], '/')+1:]}) {
		t.Errorf("again %v, %d changed, absent %v", ids(again), changed, tl.Absent())
	}
	if _, err := p.pds.Record(ctx, made[2]); service.WordOf(err) != service.Gone ||
		err.(*service.Fault).Code != "RecordNotFound" {
		t.Errorf("a deleted record: %v", err)
	}
	if q, err := p.pds.Record(ctx, made[3]); err != nil || q.Text != "quatro, emendado" {
		t.Errorf("a changed record: %+v %v", q, err)
	}
	found, absent, err := p.view.PostsByURI(ctx, made)
	if err != nil || !slices.Equal(ids(found), []string{made[0], made[1], made[3]}) ||
		!slices.Equal(absent, made[2:3]) || found[2].Text != "quatro" {
		t.Errorf("by address: %v, absent %v, %v", ids(found), absent, err)
	}
	if err := p.w.Suspend(p.acct(ana)); err != nil {
		t.Fatal(err)
	}
	if repo, err := p.pds.Repo(ctx, ana); err != nil || repo.Active || repo.Status != "takendown" {
		t.Errorf("%+v %v", repo, err)
	}
	if _, _, _, tl := p.read(p.pds, RecordsOf(ana, Posts), mark, service.Reading{}); tl.Listing().Why != service.Gone {
		t.Errorf("%+v", tl.Listing())
	}
}

// acct returns the name of an account in storytest.
func (p *place) acct(id string) string {
	user, _, _ := strings.Cut(p.w.Handle(id), ".")
	return user
}
