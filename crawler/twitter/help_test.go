package twitter

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/crawler/crawltest/storytest"
	"github.com/echo-node/echo-node/crawler/crawltest/twittertest"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition/racetest"
)

func TestMain(m *testing.M) { racetest.Main(m, "10") }

type (
	world = twittertest.Options
	lies  = twittertest.Lies
)

// place is a world, a client of it, and the client's calls.
type place struct {
	t     rapid.TB
	w     *twittertest.World
	c     *Client
	clock *storytest.Clock
	asked []service.Call
}

// visit creates a world, thirty days old.
func visit(t rapid.TB, o world, more ...func(*Options)) *place {
	t.Helper()
	p := &place{t: t, clock: storytest.NewClock(time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC))}
	o.Clock, o.Tokens = p.clock.Now, []string{"s3cret"}
	var err error
	if p.w, err = twittertest.New(o); err != nil {
		t.Fatal(err)
	}
	token, err := service.NewCredential("app", "s3cret")
	if err != nil {
		t.Fatal(err)
	}
	rt := p.w.RoundTripper(netip.MustParseAddr("127.0.0.1"))
	opts := Options{Base: "https://api.x.test", Credential: token, Now: p.clock.Now,
		Do: func(ctx context.Context, call service.Call) (*fetch.Response, error) {
			p.asked = append(p.asked, call)
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, call.Request.URL, nil)
			if err != nil {
				return nil, err
			}
			for k, v := range call.Request.Header {
				req.Header.Set(k, v)
			}
			resp, err := rt.RoundTrip(req)
			if err != nil {
				return nil, err
			}
			defer resp.Body.Close() //nolint:errcheck // in memory
			body, err := io.ReadAll(resp.Body)
			cut := ""
			if int64(len(body)) > call.Request.MaxBody {
				body, cut = body[:call.Request.MaxBody], "body"
			}
			return &fetch.Response{Status: resp.StatusCode, Header: resp.Header, Body: body, Truncated: cut}, err
		}}
	for _, change := range more {
		change(&opts)
	}
	if p.c, err = New(opts); err != nil {
		t.Fatal(err)
	}
	return p
}

// read reads a feed until one reading is Done.
func (p *place) read(f Feed, m service.Mark, how service.Reading) (posts []Post, next service.Mark, tl *Timeline) {
	p.t.Helper()
	tl, err := p.c.Timeline(f, m, how)
	if err != nil {
		p.t.Fatal(err)
	}
	for rounds := 0; !tl.Done(); rounds++ {
		b, err := tl.Next(context.Background())
		if err != nil && !tl.Done() || rounds > 10_000 {
			p.t.Fatalf("after %d pages: %v", rounds, err)
		}
		posts = append(posts, b.Posts...)
	}
	return posts, tl.Mark(), tl
}

// list reads a complete list, or stops at a permanent fault.
func (p *place) list(who Profile, side service.Side, lim service.Limits) (ids []string, l service.Listing) {
	p.t.Helper()
	e, err := p.c.Edges(who, side, lim)
	if err != nil {
		p.t.Fatal(err)
	}
	for rounds, faults := 0, 0; !e.Done() && faults < 3 && rounds < 1000; rounds++ {
		page, err := e.Next(context.Background())
		if err != nil {
			faults++
		}
		for _, q := range page {
			ids = append(ids, q.ID)
		}
		if again, err := p.c.ResumeEdges(e.Checkpoint(), lim); err != nil || again.Listing() != e.Listing() {
			p.t.Fatalf("%+v %v", e.Listing(), err)
		}
	}
	return ids, e.Listing()
}

func idsOf(posts []Post) []string {
	out := make([]string, len(posts))
	for i, p := range posts {
		out[i] = p.ID
	}
	return out
}

func same(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// The client reads the exact truth, in both spellings, also if the API refuses the first one:
// users, posts, edges, and the reasons for missing ones.
func TestTheWholeTruthIsRead(t *testing.T) {
	ctx := context.Background()
	for i, spelling := range []Spelling{Tweet, PostS, Tweet} {
		o := world{Seed: 7, People: 45, Lies: lies{MaxLimit: 30, Posts: i > 0, OnlyPosts: i > 0}}
		if racetest.Enabled {
			o.Start = time.Date(2026, 1, 24, 0, 0, 0, 0, time.UTC)
		}
		p := visit(t, o, func(o *Options) { o.Spelling = spelling })
		if err := p.w.Suspend(p.w.Users()[20]); err != nil {
			t.Fatal(err)
		}
		truth := p.w.Truth()
		all := append(p.w.IDs(), "99")
		found, absent, err := p.c.Users(ctx, all)
		if err != nil || len(found)+len(absent) != len(all) {
			t.Fatal(err, len(found), len(absent))
		}
		suspended := 0
		for _, a := range absent {
			if a.Word != service.Gone || a.Suspended != truth.Accounts[a.ID].Suspended || a.Said == "" {
				t.Errorf("%+v", a)
			}
			if _, err := p.c.User(ctx, a.ID); service.WordOf(err) != service.Gone ||
				(a.ID != "99") != strings.Contains(err.Error(), "suspended") {
				t.Errorf("%s: %v", a.ID, err)
			}
			if a.Suspended {
				suspended++
			}
		}
		posts, edges, edited, protected := 0, 0, 0, 0
		for _, who := range found {
			want := truth.Accounts[who.ID]
			if who.Acct != want.User || who.Name != want.Name || who.Note != want.Bio || who.Location != want.Place ||
				who.Protected != want.Protected ||
				who.Followers != int64(len(want.Followers)) || who.Following != int64(len(want.Following)) ||
				who.Posts != int64(len(want.Posts)) || len(who.Raw) == 0 {
				t.Errorf("profile %+v\nwant %+v", who, want)
			}
			if key, err := who.Key(); err != nil || string(key) != "twitter:"+who.ID {
				t.Errorf("key of %s: %s %v", who.ID, key, err)
			}
			if want.Protected {
				_, _, tl := p.read(PostsOf(who.ID), service.Mark{}, service.Reading{})
				if _, l := p.list(who, service.Followers, service.Limits{}); l.Why != service.Closed ||
					tl.Listing().Why != service.Closed {
					t.Errorf("protected: %+v, %+v", l, tl.Listing())
				}
				protected++
				continue
			}
			for side, list := range map[service.Side][]string{service.Followers: want.Followers,
				service.Following: want.Following} {
				if got, l := p.list(who, side, service.Limits{}); !slices.Equal(got, list) || !l.Complete {
					t.Errorf("%s of %s: %d, want %d; %+v", side, who.ID, len(got), len(list), l)
				}
				edges += len(list)
			}
			got, mark, tl := p.read(PostsOf(who.ID), service.Mark{}, service.Reading{Claimed: who.Posts})
			if !slices.Equal(idsOf(got), want.Posts) || !tl.Listing().Complete {
				t.Errorf("posts of %s: %d, want %d; %+v", who.ID, len(got), len(want.Posts), tl.Listing())
			}
			for _, q := range got {
				p.samePost(q, truth.Posts[q.ID])
				if q.Edited() {
					edited++
				}
			}
			if again, _, tl := p.read(PostsOf(who.ID), mark, service.Reading{}); len(again) != 0 ||
				tl.Listing().Pages != 1 {
				t.Errorf("posts of %s, read again: %d in %d pages", who.ID, len(again), tl.Listing().Pages)
			}
			posts += len(got)
		}
		if posts < 100 || edges < 50 || edited == 0 || suspended == 0 || protected == 0 {
			t.Errorf("a poor world: %d posts, %d edges, %d edited, %d suspended, %d protected", posts, edges, edited,
				suspended, protected)
		}
		names, gone, err := p.c.UsersByName(ctx, []string{"@" + found[0].Acct, "Nobody"})
		if err != nil || len(names) != 1 || names[0].ID != found[0].ID || len(gone) != 1 || gone[0].ID != "nobody" ||
			gone[0].Word != service.Gone {
			t.Errorf("by name: %+v %+v %v", names, gone, err)
		}
	}
}

func (p *place) samePost(got Post, want twittertest.Post) {
	p.t.Helper()
	boost := ""
	var mentions, links []string
	if got.Boost != nil {
		boost = got.Boost.ID
	}
	for _, m := range got.Mentions {
		mentions = append(mentions, m.ID)
	}
	for _, l := range got.Links {
		links = append(links, l.Key.URL())
	}
	if got.Author.ID != want.By || got.Author.Acct == "" || got.Lang != want.Lang || boost != want.Boost ||
		got.ReplyTo != want.Reply || !slices.Equal(got.Versions, want.Versions) || want.Boost == "" &&
		got.Text != want.Text ||
		!slices.Equal(got.Tags, want.Tags) || !slices.Equal(mentions, want.Mentions) ||
		!slices.Equal(links, want.Links) || len(got.Raw) == 0 || got.Boost != nil && got.Boost.Text == "" {
		p.t.Errorf("post %+v\nwant %+v", got, want)
	}
}
