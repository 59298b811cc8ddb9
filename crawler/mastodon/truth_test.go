package mastodon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition/racetest"
)

// since is the start of the story in tests; the race detector gets a shorter story.
func since() time.Time {
	if racetest.Enabled {
		return time.Date(2026, 1, 16, 0, 0, 0, 0, time.UTC)
	}
	return time.Time{}
}

// people is the number of people in the world of a test.
func people(n int) int {
	if racetest.Enabled {
		return n / 3
	}
	return n
}

// From a server that follows Mastodon's documents the client reads the exact truth, with any kind
// of ids: profiles, posts, edges, tags, versions.
func TestTheWholeTruthIsRead(t *testing.T) {
	for _, ids := range []mastodontest.IDs{mastodontest.Snowflakes, mastodontest.ULIDs, mastodontest.Hashes} {
		if racetest.Enabled && ids != mastodontest.Hashes {
			continue
		}
		p := visit(t, mastodontest.Options{Seed: 7, People: people(45), IDs: ids, Start: since(),
			Lies: mastodontest.Lies{MaxLimit: 7 + int(ids)*16}})
		truth := p.w.Truth()
		posts, edges, edited, tags := 0, 0, 0, map[string]bool{}
		for acct, want := range truth.Accounts {
			who := p.lookup(acct)
			p.sameProfile(who, want)
			for side, list := range map[service.Side][]string{service.Followers: want.Followers,
				service.Following: want.Following} {
				got, l := p.list(who, side, service.Limits{})
				if !slices.Equal(got, list) || !l.Complete || l.Seen != int64(len(list)) {
					t.Errorf("%s of %s: %d %v, want %d %v; %+v", side, acct, len(got), got, len(list), list, l)
				}
				edges += len(got)
			}
			got, mark, tl := p.read(PostsOf(who.ID), service.Mark{}, Reading{})
			if !slices.Equal(idsOf(got), want.Posts) || !tl.Listing().Complete {
				t.Errorf("posts of %s: %d, want %d; %+v", acct, len(got), len(want.Posts), tl.Listing())
			}
			for _, post := range got {
				p.samePost(post, truth.Posts[post.ID])
				for _, tag := range post.Tags {
					tags[tag] = true
				}
				if !post.Edited.IsZero() {
					edited++
					p.sameHistory(post, truth.Posts[post.ID])
				}
			}
			posts += len(got)
			if again, _, tl := p.read(PostsOf(who.ID), mark,
				Reading{Paging: Paging{Min: service.Obeyed}}); len(again) != 0 || tl.Listing().Pages != 1 &&
				len(got) > 0 {
				t.Errorf("posts of %s: read again: %d posts in %d pages", acct, len(again), tl.Listing().Pages)
			}
		}
		public, _, tl := p.read(Public(false), service.Mark{}, Reading{})
		if !slices.Equal(idsOf(public), truth.Public) || !tl.Listing().Complete {
			t.Errorf("public: %d, want %d", len(public), len(truth.Public))
		}
		for tag := range tags {
			if got, _, _ := p.read(Tagged(tag, false), service.Mark{}, Reading{}); !slices.Equal(idsOf(got),
				p.w.Tagged(tag)) {
				t.Errorf("tag %s: %d posts, want %d", tag, len(got), len(p.w.Tagged(tag)))
			}
		}
		if posts < 10*people(45) || edges < 2*people(45) || edited < 1 || len(tags) < 10 {
			t.Errorf("a poor world: %d posts, %d edges, %d edited, %d tags", posts, edges, edited, len(tags))
		}
		t.Logf("ids %d: %d accounts, %d posts, %d edges, %d edited, %d tags in %d requests", ids, len(truth.Accounts),
			posts, edges, edited, len(tags), p.w.Report().Requests)
	}
}

func (p *place) sameProfile(got Profile, want mastodontest.Account) {
	p.t.Helper()
	outs := fmt.Sprint(got.OptOuts)
	moved := ""
	if got.Moved != nil {
		moved = got.Moved.Acct
	}
	switch {
	case got.ID != want.ID, got.Acct != want.Acct, got.Local != want.Local, got.Bot != want.Bot,
		got.Locked != want.Locked, got.Suspended != want.Suspended, moved != want.Moved,
		got.Followers != int64(len(want.Followers)), got.Following != int64(len(want.Following)),
		got.Posts != int64(len(want.Posts)),
		!want.Suspended && (got.Name != want.Name || got.Note != want.Bio || len(got.Fields) != 1 ||
			got.Fields[0].Name != want.Fields[0][0] || got.Fields[0].Value != want.Fields[0][1]),
		(got.NoIndex == service.Yes) != want.NoIndex, (got.Indexable == service.Yes) != want.Indexable,
		(got.Discoverable == service.Yes) != want.Discoverable,
		got.Created.After(want.Created) || want.Created.Sub(got.Created) >= 24*time.Hour, len(got.Raw) == 0,
		strings.Contains(outs, string(OptNoBotTag)) != (strings.Contains(want.Bio, "#NoBot") && !want.Suspended),
		strings.Contains(outs, string(OptNotIndexable)) == want.Indexable:
		p.t.Errorf("profile %+v\nwant %+v", got, want)
	}
	if key, err := got.Key(); err != nil || string(key) != "mastodon:"+strings.ToLower(want.Acct) {
		p.t.Errorf("key of %s: %s %v", want.Acct, key, err)
	}
}

func (p *place) samePost(got Post, want mastodontest.Post) {
	p.t.Helper()
	boost := ""
	if got.Boost != nil {
		boost = got.Boost.ID
	}
	var links []string
	for _, l := range got.Links {
		links = append(links, l.Key.URL())
	}
	if got.Author.Acct != want.By || got.Text != want.Text || got.Lang != want.Lang ||
		!got.Created.Equal(want.Created.Truncate(time.Millisecond)) ||
		!got.Edited.Equal(want.Edited.Truncate(time.Millisecond)) ||
		got.ReplyTo != want.Reply || boost != want.Boost || !slices.Equal(got.Tags, want.Tags) ||
		!slices.Equal(mentioned(got), want.Mentions) || len(want.Versions) == 1 &&
		!slices.Equal(links, want.Links) || len(got.Raw) == 0 {
		p.t.Errorf("post %+v\nwant %+v", got, want)
	}
}

func (p *place) sameHistory(got Post, want mastodontest.Post) {
	p.t.Helper()
	versions, err := p.c.History(context.Background(), got.ID)
	var texts []string
	for _, v := range versions {
		texts = append(texts, v.Text)
	}
	if err != nil || !slices.Equal(texts, want.Versions) {
		p.t.Errorf("history of %s: %q %v, want %q", got.ID, texts, err, want.Versions)
	}
}
