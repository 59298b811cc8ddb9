package mastodon

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition/racetest"
)

func TestMain(m *testing.M) { racetest.Main(m, "10") }

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// clock is a clock that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// place is a world and a client of it.
type place struct {
	t     *testing.T
	w     *mastodontest.World
	c     *Client
	clock *clock
}

var home = netip.MustParseAddr("127.0.0.1")

// visit creates a world, thirty days old, and a client of it that uses a real fetch.Client.
func visit(t *testing.T, o mastodontest.Options, more ...func(*Options)) *place {
	t.Helper()
	p := &place{t: t, clock: &clock{now: time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC)}}
	if o.Clock == nil {
		o.Clock = p.clock.Now
	}
	var err error
	if p.w, err = mastodontest.New(o); err != nil {
		t.Fatal(err)
	}
	f, err := fetch.New(fetch.Options{Transport: p.w.RoundTripper(home), AddrDelay: -1,
		Hosts:    map[string]netip.Addr{"m.test": home},
		AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	opts := Options{Base: "https://m.test", Do: service.Through(f, nil), Now: p.clock.Now, MaxBody: 512 << 10}
	for _, change := range more {
		change(&opts)
	}
	if p.c, err = New(opts); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) lookup(acct string) Profile {
	p.t.Helper()
	who, err := p.c.Lookup(context.Background(), acct)
	if err != nil {
		p.t.Fatal(err)
	}
	return who
}

// list reads a complete list.
func (p *place) list(who Profile, side service.Side, lim service.Limits) (accts []string, l service.Listing) {
	p.t.Helper()
	e, err := p.c.Edges(who, side, "", lim)
	if err != nil {
		p.t.Fatal(err)
	}
	for rounds := 0; !e.Done(); rounds++ {
		page, err := e.Next(context.Background())
		if err != nil && !e.Done() || rounds > 10_000 {
			p.t.Fatalf("after %d pages: %v", rounds, err)
		}
		for _, q := range page {
			accts = append(accts, q.Acct)
		}
	}
	return accts, e.Listing()
}

// read reads a feed until one reading is Done.
func (p *place) read(f Feed, m service.Mark, how Reading) (posts []Post, next service.Mark, tl *Timeline) {
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
		// A mark can be encoded and decoded at any page.
		if _, err := service.DecodeMark(tl.Mark().Encode()); err != nil {
			p.t.Fatal(err)
		}
	}
	return posts, tl.Mark(), tl
}

func same(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

func mentioned(p Post) (out []string) {
	for _, m := range p.Mentions {
		out = append(out, m.Acct)
	}
	return out
}

// direct returns a world and a client that calls it without a fetch.Client.
func direct(o mastodontest.Options, c *clock) (*mastodontest.World, *Client, error) {
	w, err := mastodontest.New(o)
	if err != nil {
		return nil, nil, err
	}
	rt := w.RoundTripper(home)
	client, err := New(Options{Base: "https://m.test", Now: c.Now, MaxRaw: -1,
		Do: func(ctx context.Context, call service.Call) (*fetch.Response, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, call.Request.URL, nil)
			if err != nil {
				return nil, err
			}
			resp, err := rt.RoundTrip(req)
			if err != nil {
				return nil, err
			}
			defer resp.Body.Close() //nolint:errcheck // in memory
			body, err := io.ReadAll(resp.Body)
			return &fetch.Response{Status: resp.StatusCode, Header: resp.Header, Body: body}, err
		}})
	return w, client, err
}
