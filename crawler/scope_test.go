package crawler

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/judge/period"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// chronicle is a home page whose paragraphs are about several times, each with links.
func chronicle() *store.Record {
	link := func(path, anchor string) store.Link {
		return store.Link{Key: partition.Key("web:http://h.example/" + path), Anchor: anchor}
	}
	return &store.Record{V: store.RecordVersion, Key: "web:http://h.example/", Kind: "page", Status: 200,
		Text: "Crónica da vila\nEm 1880 veio a fábrica e com ela o bairro.\nEm 1943 o farol apagou-se e o porto fechou.\nNos nossos dias há muito para ver.\nO arquivo tem fotografias.",
		Links: []store.Link{link("a-fabrica", "fábrica"), link("b-bairro", "bairro"), link("c-farol", "farol"),
			link("d-porto", "porto"), link("e-arquivo", "arquivo"),
			link("f", "a guerra de 1939 a 1945")}}
}

// Links near a text about the wanted time, or with it in their anchor, come before others. Long
// texts and many links are no error.
func TestScopedLinks(t *testing.T) {
	scope, err := period.ParseScope("1939..1945")
	if err != nil {
		t.Fatal(err)
	}
	got, err := scoped(scope, chronicle())
	if err != nil {
		t.Fatal(err)
	}
	of := func(path string) int {
		p, ok := got[partition.Key("web:http://h.example/"+path)]
		if !ok || p < 0 || p > scopedSpan {
			t.Fatalf("%s: %d %t", path, p, ok)
		}
		return p
	}
	for _, near := range []string{"c-farol", "d-porto"} {
		for _, far := range []string{"a-fabrica", "b-bairro"} {
			if of(near) >= of(far) {
				t.Errorf("%s %d is not before %s %d", near, of(near), far, of(far))
			}
		}
	}
	if of("f") >= of("a-fabrica") {
		t.Errorf("an anchor in scope %d, a link among other times %d", of("f"), of("a-fabrica"))
	}
	if _, err := scoped(scope, &store.Record{Text: strings.Repeat("ã", maxScoped),
		Links: make([]store.Link, 2*maxAnchors)}); err != nil {
		t.Error(err)
	}
}

// reader answers every page with the chronicle, and notes the order.
type reader struct {
	mu   sync.Mutex
	seen []string
}

func (*reader) Name() string               { return "reader" }
func (*reader) Handles(partition.Key) bool { return true }

func (r *reader) Fetch(ctx context.Context, t fetch.Task) (fetch.Result, error) {
	if err := t.Gate(ctx); err != nil {
		return fetch.Result{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, strings.TrimPrefix(string(t.Due.Key), "web:http://h.example/"))
	rec := chronicle()
	rec.Key, rec.FetchedAt = t.Due.Key, t.Now
	return fetch.Result{Site: t.Site, Next: store.Next{State: store.StateDone}, Reqs: 1, Record: rec, Links: rec.Links},
		nil
}

// The scope changes the order of fetches, and leaves out nothing.
func TestScopeOrdersTheCrawl(t *testing.T) {
	for name, want := range map[string]string{"1939..1945": "cde", "1870..1890": "ab"} {
		scope, err := period.ParseScope(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := db.Create("d",
			store.Options{FS: vfs.NewMem(), Charter: partition.DefaultCharter("test", "12D3KooWfounder")})
		if err != nil {
			t.Fatal(err)
		}
		src := &reader{}
		cr, err := New(Options{Store: s, Sources: []Source{src}, Delay: time.Millisecond, Scope: scope})
		if err != nil {
			t.Fatal(err)
		}
		home := partition.Key("web:http://h.example/")
		if _, err := s.Queue.Admit([]store.Admission{{Key: home, Seed: true}}, time.Now()); err != nil {
			t.Fatal(err)
		}
		cr.SetSlices([]partition.Slice{s.SliceOf(home)})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- cr.Run(ctx) }()
		count := func() int {
			src.mu.Lock()
			defer src.mu.Unlock()
			return len(src.seen)
		}
		for deadline := time.Now().Add(20 * time.Second); count() < 7; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("scope %s: fetched %v only", name, src.seen)
			}
		}
		cancel()
		<-done
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		first := ""
		for _, path := range src.seen[1 : 1+len(want)] {
			first += path[:1]
		}
		for _, c := range want {
			if !strings.ContainsRune(first, c) {
				t.Errorf("scope %s: fetched %v, want %q first", name, src.seen, want)
				break
			}
		}
	}
}
