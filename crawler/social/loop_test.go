package social_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler"
	"github.com/echo-node/echo-node/crawler/crawltest/blueskytest"
	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/crawltest/twittertest"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// moving is a clock that returns a later time at each call, as a real one does. The clock of a
// bubble stands still while there is work. Safe for concurrent use.
type moving struct {
	mu   sync.Mutex
	last time.Time
}

func (m *moving) now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last = m.last.Add(time.Microsecond); m.last.Before(time.Now()) {
		m.last = time.Now()
	}
	return m.last
}

// progress is a Source that checks each fetch: it must make a request, return posts, or name a time
// to wait for.
type progress struct {
	crawler.Source
	clock  *moving
	mu     sync.Mutex
	idle   map[partition.Key]int // number of fetches in a row without progress
	faults []string
}

// idleMost is how many fetches in a row may make no progress: stored data may lead from one
// decision to the next.
const idleMost = 3

func (p *progress) Fetch(ctx context.Context, t fetch.Task) (fetch.Result, error) {
	res, err := p.Source.Fetch(ctx, t)
	if err != nil {
		return res, err
	}
	now, k := p.clock.now(), t.Due.Key
	waits := res.Hold.After(now) || res.Site.NextAllowed.After(now) || !res.Again &&
		(res.Next.At.After(now) || res.Next.At.IsZero() && res.Next.State != store.StatePending)
	p.mu.Lock()
	if p.idle[k]++; waits || res.Reqs > 0 || len(res.Posts) > 0 {
		delete(p.idle, k)
	}
	lost := p.idle[k] > idleMost
	if lost && len(p.faults) < 10 {
		p.faults = append(p.faults, fmt.Sprintf("%s: %d fetches in a row got nowhere: again %t, hold %s, next %+v", k,
			p.idle[k], res.Again, res.Hold.Sub(now), res.Next))
	}
	p.mu.Unlock()
	if lost {
		time.Sleep(time.Minute) // otherwise the time would never move on
	}
	return res, nil
}

// watch makes p check the progress of its fetches.
func (p *peer) watch() *progress {
	w := &progress{clock: &moving{}, idle: map[partition.Key]int{}}
	p.o.Now = w.clock.now
	p.wrap = func(s crawler.Source) crawler.Source { w.Source = s; return w }
	return w
}

// A peer whose money, calls or pace are too small for its work waits. No fetch of any service
// neither asks nor waits, and what can be paid for is fetched. The clock moves on during a fetch.
func TestNoFetchGetsNowhere(t *testing.T) {
	x := func(cents int64, seed uint64, lists bool) func(*testing.T) (*peer, []partition.Key) {
		return func(t *testing.T) (*peer, []partition.Key) {
			w, p := birds(t, twittertest.Options{Seed: seed, People: 40, Quiet: true, Limits: twittertest.XLimits()},
				social.Options{Lists: lists}, 1)
			p.o.Tokens[0].Daily = cents * dollar / 100
			seeds := []partition.Key{"twitter:search/a"}
			names := w.Users()
			for _, n := range names[:2] {
				name, _, _ := strings.Cut(n, "@")
				seeds = append(seeds, partition.Key("twitter:@"+name))
			}
			for id, a := range w.Truth().Accounts {
				if a.User+"@x.test" == names[2] || a.User+"@x.test" == names[3] {
					seeds = append(seeds, xKey(id))
				}
			}
			return p, seeds
		}
	}
	m := func(limits []mastodontest.Limit, says mastodontest.Headers, software string) func(*testing.T) (*peer,
		[]partition.Key) {
		return func(t *testing.T) (*peer, []partition.Key) {
			w := world(t, mastodontest.Options{Seed: 3, People: 12, Remote: -1, Quiet: true, Says: says, Limits: limits,
				Software: software})
			return newPeer(t, w, social.Options{Lists: true}),
				append(accountKeys(t, w.Users()), "mastodon:m.test/public")
		}
	}
	tiny := []mastodontest.Limit{{Name: "all", Max: 7, Window: time.Hour, All: true, Rolling: true}}
	paging := []mastodontest.Limit{{Name: "anonymous", Max: 300, Window: 5 * time.Minute},
		{Name: "paging", Max: 3, Window: 15 * time.Minute, Paging: true}}
	cases := map[string]func(*testing.T) (*peer, []partition.Key){
		"mastodon tiny":    m(tiny, mastodontest.ISO, ""),
		"mastodon silent":  m(tiny, mastodontest.NoHeaders, ""),
		"mastodon paging":  m(paging, mastodontest.ISO, ""),
		"pleroma":          m(tiny, mastodontest.NoHeaders, "pleroma"),
		"bluesky":          func(t *testing.T) (*peer, []partition.Key) { return someSkies(t, 0) },
		"bluesky of seven": func(t *testing.T) (*peer, []partition.Key) { return someSkies(t, 7) },
	}
	for _, cents := range []int64{1, 5, 9, 20, 30, 55, 100} {
		for seed := range uint64(3) {
			cases[fmt.Sprintf("x %d cents %d", cents, seed)] = x(cents, seed, seed != 2)
		}
	}
	for name, made := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, seeds := made(t)
				w := p.watch()
				p.start()
				p.seed(seeds...)
				time.Sleep(50 * time.Hour)
				for _, f := range w.faults {
					t.Error(f)
				}
				p.end()
			})
		})
	}
}

func someSkies(t *testing.T, most int) (*peer, []partition.Key) {
	t.Helper()
	o := blueskytest.Options{Seed: 3, People: 12, Quiet: true}
	if most > 0 {
		o.Limits = []blueskytest.Limit{{Name: "all", Max: most, Window: 5 * time.Minute, All: true, Rolling: true}}
	}
	w, p := skies(t, o, social.Options{Lists: true})
	var seeds []partition.Key
	for did := range w.Truth().Accounts {
		seeds = append(seeds, blueskyKey(did))
	}
	return p, append(seeds, "bluesky:search/a")
}
