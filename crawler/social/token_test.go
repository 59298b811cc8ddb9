package social_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/crawltest/twittertest"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// lines is a log. Safe for concurrent use.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), what)
}

func credential(t *testing.T, token string) service.Credential {
	t.Helper()
	c, err := service.NewCredential("app", token)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A token that X rejects is named in the log, in the status and in the ledger, with the text of the
// server. What was not fetched because of it is fetched as soon as the peer has a valid token, not
// a day later.
func TestANewTokenWakesWhatWaitedForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := birds(t, twittertest.Options{Seed: 5, People: 40, Quiet: true}, social.Options{}, 40)
		var log lines
		p.o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		good := p.o.Tokens
		p.o.Tokens = []social.Token{{Service: "twitter", Credential: credential(t, "wr0ng"), Daily: 40 * dollar}}
		p.start()
		k := writer(w)
		name := partition.Key("twitter:@" + w.Truth().Accounts[nameOf(k)].User)
		p.seed(k, name, "twitter:search/a")
		time.Sleep(time.Hour)
		if g := p.gaps(k); len(g) != 1 || !strings.Contains(g[0].Reason, "needs-token") ||
			!strings.Contains(g[0].Reason, "Unauthorized") {
			t.Errorf("%+v", g)
		}
		if r := p.src.Rejected(); len(r) != 1 || r[0].Site != "twitter:" || r[0].Credential != "app" ||
			r[0].Said != "Unauthorized" {
			t.Errorf("%+v", r)
		}
		if log.count("a token is rejected") != 1 || log.count("wr0ng") > 0 {
			t.Errorf("%s", log.b.String())
		}
		p.end()

		before := w.Report().Requests
		p.start() // the same token: nothing is asked again
		time.Sleep(time.Hour)
		if n := w.Report().Requests - before; n > 0 {
			t.Errorf("%d requests with a token that was rejected", n)
		}
		p.end()

		p.o.Tokens = good
		p.start()
		time.Sleep(time.Minute)
		if len(p.written(k)) == 0 || len(p.src.Rejected()) > 0 {
			t.Errorf("%d posts with a good token, %+v", len(p.written(k)), p.src.Rejected())
		}
		for _, k := range []partition.Key{name, "twitter:search/a"} {
			if d, err := p.store.Queue.DueOf(k); err != nil || strings.Contains(d.Reason, "needs-token") {
				t.Errorf("%+v %v", d, err)
			}
		}
		p.end()
	})
}

// nameOf returns the id of an account of X.
func nameOf(k partition.Key) string { return strings.TrimPrefix(string(k), "twitter:") }

// total returns how many posts all of keys have.
func total(keys []partition.Key, of func(partition.Key) map[string]store.Record) (n int) {
	for _, k := range keys {
		n += len(of(k))
	}
	return n
}

// A server that shows nothing without a token is asked as soon as there is one.
func TestAFirstTokenWakesAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 3, People: 8, Remote: -1, Quiet: true,
			Tokens: map[string]string{"s3cret": ""}, Lies: mastodontest.Lies{ClosedAPI: true}})
		p := newPeer(t, w, social.Options{})
		p.start()
		keys := accountKeys(t, w.Users())
		p.seed(keys...)
		time.Sleep(time.Hour)
		had := func() int { return total(keys, p.written) }
		if n := had(); n > 0 {
			t.Errorf("%d posts without a token", n)
		}
		p.end()
		p.o.Tokens = []social.Token{{Server: "m.test", Credential: credential(t, "s3cret")}}
		p.start()
		time.Sleep(5 * time.Minute)
		if n := had(); n == 0 {
			t.Error("no posts with a token")
		}
		p.end()
	})
}

// An account that opts out of collection is not collected, however often a person has it visited
// again.
func TestWhoOptedOutIsNotReadWhenLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 3, People: 40, Remote: -1, Quiet: true})
		p := newPeer(t, w, social.Options{})
		p.start()
		var keys []partition.Key
		for acct, a := range w.Truth().Accounts {
			if wishes(a) && len(a.Posts) > 0 {
				keys = append(keys, accountKey(t, acct))
			}
		}
		if len(keys) == 0 {
			t.Fatal("nobody opts out")
		}
		p.seed(keys...)
		for range 3 {
			time.Sleep(time.Hour)
			for _, k := range keys {
				if n := len(p.posts(k)); n > 0 {
					t.Errorf("%d posts of %s, who opted out", n, k)
				}
				if err := p.store.Queue.Again(p.store.SliceOf(k), k, time.Now()); err != nil {
					t.Fatal(err)
				}
				p.crawler.Wake(p.store.SliceOf(k), k.Site())
			}
		}
		p.end()
	})
}

// If one of several tokens is invalid, the others do all the work, and no Key waits for it. It is
// tried again rarely.
func TestARejectedTokenHasNoShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 3, People: 12, Remote: -1, Quiet: true,
			Tokens: map[string]string{"g00d": ""}, Lies: mastodontest.Lies{ClosedAPI: true}})
		p := newPeer(t, w, social.Options{})
		for name, token := range map[string]string{"a": "wr0ng", "b": "g00d", "c": "wr0ng2"} {
			c, err := service.NewCredential(name, token)
			if err != nil {
				t.Fatal(err)
			}
			p.o.Tokens = append(p.o.Tokens, social.Token{Server: "m.test", Credential: c})
		}
		p.start()
		keys := accountKeys(t, w.Users())
		p.seed(keys...)
		hours := 6
		time.Sleep(time.Duration(hours) * time.Hour)
		for _, k := range keys {
			if g := p.gaps(k); slices.ContainsFunc(g,
				func(g store.Gap) bool { return strings.Contains(g.Reason, "needs-token") }) {
				t.Errorf("%s waits: %+v", k, g)
			}
		}
		calls := map[string]int64{}
		for _, s := range p.src.Budgets() {
			for _, c := range s.Counts {
				calls[c.Credential] += c.Calls
			}
		}
		if r := p.src.Rejected(); len(r) != 2 || calls["a"]+calls["c"] > int64(2*(hours+1)) ||
			calls["b"] < int64(len(keys)) {
			t.Errorf("%+v; calls %v", r, calls)
		}
		p.end()
	})
}

// The only token is invalid, and is removed for a server that needs none. What it prevented is
// fetched at once.
func TestRemovingABadTokenWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 3, People: 8, Remote: -1, Quiet: true,
			Tokens: map[string]string{"g00d": ""}})
		p := newPeer(t, w, social.Options{})
		p.o.Tokens = []social.Token{{Server: "m.test", Credential: credential(t, "wr0ng")}}
		p.start()
		keys := accountKeys(t, w.Users())
		p.seed(keys...)
		time.Sleep(time.Hour)
		had := func() int { return total(keys, p.posts) }
		if n := had(); n > 0 {
			t.Fatalf("%d posts with a bad token", n)
		}
		p.end()
		p.o.Tokens = nil
		p.start()
		time.Sleep(5 * time.Minute)
		if had() == 0 {
			t.Error("nothing was fetched without the bad token")
		}
		before := w.Report().Requests
		p.end()
		p.start() // once: not at each start
		time.Sleep(time.Minute)
		if n := w.Report().Requests - before; n > len(keys) {
			t.Errorf("%d requests after another start", n)
		}
		p.end()
	})
}
