package search

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"

	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// keepPages puts pages with the given text, each of another length, into n's store and index.
func keepPages(t *testing.T, n *fixture, pages int, text string) {
	t.Helper()
	for i := range pages {
		k := mustKey(t, fmt.Sprintf("http://host%d.example:8080/%d", i%7, i))
		admit(t, n, k)
		rec := &store.Record{V: store.RecordVersion, Key: k, Kind: "page", URL: k.URL(), FetchedAt: time.Now(),
			Source: "web", Status: 200,
			Text: fmt.Sprintf("%s %d", text+strings.Repeat(" mar", i%40), i)}
		if err := n.store.Commit(store.Commit{Key: k, Now: time.Now(), Record: rec,
			Next: store.Next{State: store.StateDone}}); err != nil {
			t.Fatal(err)
		}
	}
	n.indexed(t)
}

// The pages of a query continue as long as there are hits: each once, in the order of the scores.
func TestPagesToTheEnd(t *testing.T) {
	n := newFixture(t)
	const pages = 2*MaxHits + 321
	keepPages(t, n, pages, "sardinha assada")
	for _, unfold := range []bool{false, true} {
		q := api.Query{Q: "sardinha", Limit: 700, Unfold: unfold}
		seen := map[partition.Key]bool{}
		last := api.Hit{Score: 1e9}
		for answers := 1; ; answers++ {
			a, err := n.Query(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if a.Total != pages {
				t.Fatalf("%d hits in all, want %d", a.Total, pages)
			}
			for _, h := range a.Hits {
				if !(afterward{last.Score, last.Key, last.Post}).before(h) {
					t.Fatalf("%s with %v follows %s with %v", h.Key, h.Score, last.Key, last.Score)
				}
				last = h
				for _, k := range append([]partition.Key{h.Key}, keysOf(h.Copies)...) {
					if seen[k] && unfold {
						t.Fatalf("%s twice", k)
					}
					seen[k] = true
				}
			}
			if q.Cursor = a.Cursor; q.Cursor == "" {
				break
			}
			if answers > 20 {
				t.Fatal("no end")
			}
		}
		if len(seen) != pages {
			t.Errorf("unfold %v: %d of %d pages", unfold, len(seen), pages)
		}
	}
}

func keysOf(copies []api.Copy) (out []partition.Key) {
	for _, c := range copies {
		out = append(out, c.Key)
	}
	return out
}

// A peer whose version ignores the place after which a page begins returns its best hits again.
// These are refused, and its slices are reported as missing.
func TestPageOfAPeerThatKnowsNone(t *testing.T) {
	n := newFixture(t)
	k := mustKey(t, "http://host.example/")
	sl := n.store.SliceOf(k)
	s := n.newRanking(&wire.Query{Q: "x", After: &wire.Place{Score: 1, Key: string(k)}})
	asked := question{peer: "p", slices: []partition.Slice{sl}}
	hit := &wire.Hit{Key: string(k), Slice: call.SliceOn(sl), Score: 2}
	if err := s.takeHits(asked, &wire.QueryAnswer{Hits: []*wire.Hit{hit}}); err == nil ||
		!strings.Contains(err.Error(), "version") {
		t.Errorf("an earlier hit: %v", err)
	}
	hit.Score = 0.5
	if err := s.takeHits(asked, &wire.QueryAnswer{Hits: []*wire.Hit{hit}}); err != nil {
		t.Error(err)
	}
}

// A site is given by its host, its host and port, or a URL of it.
func TestSitesOfAQuery(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a.example": "web:a.example", "A.Example": "web:a.example", "web:a.example": "web:a.example",
		"a.example:8080":            "web:a.example:8080",
		"http://a.example:8080/x?y": "web:a.example:8080", "https://a.example/": "web:a.example",
		"a.example:443": "web:a.example", "a.example:80": "web:a.example",
		"web:127.0.0.1:8080": "web:127.0.0.1:8080", "[::1]:90": "web:[::1]:90",
		"bücher.example":     "web:xn--bcher-kva.example",
		"mastodon:a.example": "mastodon:a.example", "twitter:": "twitter:", "no host": "web:no host",
	} {
		if got := siteText(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	n := newFixture(t)
	keepPages(t, n, 21, "sardinha")
	for site, want := range map[string]int{"host1.example:8080": 3, "host1.example": 3,
		"http://host1.example:8080/1": 3, "host1.example:8081": 0, "host9.example": 0} {
		a, err := n.Query(t.Context(), api.Query{Q: "sardinha", Site: site, Limit: 50, Unfold: true})
		if err != nil || len(a.Hits) != want {
			t.Errorf("query of site %s: %d hits, want %d, %v", site, len(a.Hits), want, err)
		}
		var exported int
		if _, err := n.Export(t.Context(), api.Export{Site: site},
			func(store.Record, string) error { exported++; return nil }); err != nil || exported != want {
			t.Errorf("export of site %s: %d records, want %d, %v", site, exported, want, err)
		}
	}
}

// An answer says which parts of the query were not understood.
func TestQuerySaysWhatItDoesNotKnow(t *testing.T) {
	n := newFixture(t)
	keepPages(t, n, 1, "sardinha")
	a, err := n.Query(t.Context(), api.Query{Q: "sardinh* site:host1.example"})
	if err != nil || len(a.Notes) != 2 ||
		!slices.ContainsFunc(a.Notes, func(s string) bool { return strings.Contains(s, "--site") }) {
		t.Errorf("%q, %v", a.Notes, err)
	}
	if a, err = n.Query(t.Context(), api.Query{Q: "sardinha"}); err != nil || a.Notes != nil || len(a.Hits) != 1 {
		t.Errorf("%+v, %v", a, err)
	}
}

// A peer that is slower than the deadline is named in the answer and is not waited for.
func TestQueryKeepsItsDeadline(t *testing.T) {
	const deadline = 100 * time.Millisecond
	held, asked := make(chan struct{}), make(chan struct{})
	n := newFixture(t)
	n.call = func(context.Context, string, *wire.Request) (*wire.Response, error) {
		close(asked)
		<-held // ignores the context
		return nil, errors.New("too late")
	}
	other := strangeID(t)
	s := n.newRanking(&wire.Query{Q: "x"})
	s.assign = map[string][]partition.Slice{other: n.slices[:1]}
	begun := time.Now()
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.round(t.Context(), true, begun.Add(deadline))
	}()
	select {
	case <-over:
	case <-time.After(100 * deadline):
		t.Error("a call that does not end is waited for")
	}
	<-asked
	if c := s.coverage(); t.Failed() || len(c.Missing) != 1 ||
		c.Missing[0] != (api.Missing{Peer: other, Reason: "did not answer in time", Slices: 1}) {
		t.Errorf("missing: %+v", c.Missing)
	}
	close(held)
}

// The caller sets how long the query waits for other peers.
func TestWhoAsksSetsTheDeadline(t *testing.T) {
	held := make(chan struct{})
	defer close(held)
	other := strangeID(t)
	n := newFixture(t)
	n.o.Timeout = time.Hour
	n.call = func(context.Context, string, *wire.Request) (*wire.Response, error) {
		<-held
		return nil, errors.New("too late")
	}
	enter(n, other)
	give(t, n, n.slices[0], other)
	a, err := n.Query(t.Context(), api.Query{Q: "x", Timeout: 200 * time.Millisecond})
	if err != nil || len(a.Coverage.Missing) == 0 ||
		a.Coverage.Missing[0] != (api.Missing{Peer: other, Reason: "did not answer in time", Slices: 1}) {
		t.Errorf("%+v %v", a.Coverage, err)
	}
	if a.TookMS < 100 { // half of it for the statistics
		t.Errorf("%.0f ms: others were not waited for", a.TookMS)
	}
}

// An answer says in words what is missing and why.
func TestQuerySaysWhatIsMissing(t *testing.T) {
	n := newFixture(t)
	other := strangeID(t)
	ctx, cancel := context.WithCancel(t.Context())
	for err, want := range map[error]string{
		fmt.Errorf("dial: %w", dht.ErrNoPeer):                                         "cannot be reached",
		fmt.Errorf("%w: Application error 0x0", errBroken):                            "its connection broke",
		&call.Refusal{Code: wire.Refusal_CODE_BUSY, Reason: "too many calls at once"}: "too many calls at once",
	} {
		if got := n.Reason(ctx, other, err); !strings.Contains(got, want) || strings.Contains(got, "0x0") {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
	cancel()
	if got := n.Reason(ctx, other, errBroken); got != "did not answer in time" {
		t.Errorf("after the deadline: %q", got)
	}
	// What this peer has only needs to be read, even if the other replicas are gone.
	if got := n.whyMissing(n.id, n.slices[:2]); len(got) != 1 ||
		got[0] != (api.Missing{Peer: n.id, Reason: "being read into its index", Slices: 2}) {
		t.Errorf("its own: %+v", got)
	}
}

// strangeID returns the id of a peer that no other peer knows.
func strangeID(t *testing.T) string {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return dht.PeerID(key)
}
