package bluesky

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/crawler/crawltest/blueskytest"
	"github.com/echo-node/echo-node/crawler/crawltest/storytest"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition/racetest"
)

func TestMain(m *testing.M) { racetest.Main(m, "10") }

type (
	world = blueskytest.Options
	lies  = blueskytest.Lies
)

var home = netip.MustParseAddr("127.0.0.1")

// place is a network, clients of its AppView and its PDS, and their calls.
type place struct {
	t         rapid.TB
	w         *blueskytest.World
	view, pds *Client
	clock     *storytest.Clock
	asked     []service.Call
}

// visit creates a network, thirty days old.
func visit(t rapid.TB, o world) *place {
	t.Helper()
	p := &place{t: t, clock: storytest.NewClock(time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC))}
	o.Clock = p.clock.Now
	var err error
	if p.w, err = blueskytest.New(o); err != nil {
		t.Fatal(err)
	}
	p.view, p.pds = p.client("https://view.b.test"), p.client("https://pds.b.test")
	return p
}

func (p *place) client(base string, more ...func(*Options)) *Client {
	p.t.Helper()
	rt := p.w.RoundTripper(home)
	opts := Options{Base: base, Now: p.clock.Now, MaxBody: 2 << 20,
		Do: func(ctx context.Context, call service.Call) (*fetch.Response, error) {
			p.asked = append(p.asked, call)
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, call.Request.URL, nil)
			if err != nil {
				return nil, err
			}
			resp, err := rt.RoundTrip(req)
			if err != nil {
				return nil, err
			}
			defer resp.Body.Close() //nolint:errcheck // in memory
			body, err := io.ReadAll(io.LimitReader(resp.Body, call.Request.MaxBody))
			cut := ""
			if int64(len(body)) == call.Request.MaxBody {
				cut = "body"
			}
			return &fetch.Response{Status: resp.StatusCode, Header: resp.Header, Body: body, Truncated: cut}, err
		}}
	for _, change := range more {
		change(&opts)
	}
	c, err := New(opts)
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

func (p *place) profile(id string) Profile {
	p.t.Helper()
	who, err := p.view.Profile(context.Background(), id)
	if err != nil {
		p.t.Fatal(err)
	}
	return who
}

// read reads a feed until one reading is Done.
func (p *place) read(c *Client, f Feed, m service.Mark, how service.Reading) (posts, again []Post, next service.Mark,
	tl *Timeline) {
	p.t.Helper()
	tl, err := c.Timeline(f, m, how)
	if err != nil {
		p.t.Fatal(err)
	}
	for rounds := 0; !tl.Done(); rounds++ {
		b, err := tl.Next(context.Background())
		if err != nil && !tl.Done() || rounds > 10_000 {
			p.t.Fatalf("after %d pages: %v", rounds, err)
		}
		posts, again = append(posts, b.Posts...), append(again, b.Again...)
		if _, err := service.DecodeMark(tl.Mark().Encode()); err != nil {
			p.t.Fatal(err)
		}
	}
	return posts, again, tl.Mark(), tl
}

// drain reads a complete list, or stops at a permanent fault.
func drain[T any](t rapid.TB, next func(context.Context) ([]T, error), done func() bool,
	id func(T) string) (ids []string) {
	t.Helper()
	for rounds, faults := 0, 0; !done(); rounds++ {
		page, err := next(context.Background())
		if err != nil {
			faults++
		}
		if rounds > 10_000 || faults > 3 {
			return ids
		}
		for _, x := range page {
			ids = append(ids, id(x))
		}
	}
	return ids
}

func ids(posts []Post) []string {
	out := make([]string, len(posts))
	for i, p := range posts {
		out[i] = p.ID
	}
	return out
}

func same(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
