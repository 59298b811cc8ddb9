package node_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/nodetest"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// site serves pages on a loopback address of its own.
func site(t *testing.T, host string, pages map[string]string) (home partition.Key) {
	t.Helper()
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Skipf("no loopback address %s: %v", host, err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, page)
	}))
	_ = srv.Listener.Close() // the listener that is replaced
	srv.Listener = l
	srv.Start()
	t.Cleanup(srv.Close)
	home, err = partition.ParseKey("http://" + l.Addr().String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	return home
}

func keysOf(hits []api.Hit) (out []string) {
	for _, h := range hits {
		out = append(out, h.Key.Host())
	}
	slices.Sort(out)
	return out
}

// Three peers crawl pages of three sites. Each of them finds each page by its language, its place
// and the time that it describes. Each of them folds the copy that another peer crawled.
func TestJudgedPagesAreFound(t *testing.T) {
	const told = `Em 1905 a vila tinha um farol novo, e quem lá vivia ainda se lembrava de 14 de agosto de 1899, o dia em que o primeiro barco a vapor
 encostou ao cais. O faroleiro está a escrever as suas memórias, e a autarquia pediu-lhe que as lesse na biblioteca.`
	english := `The lighthouse keeper of the town wrote his memoirs in the 1950s, and the city council has asked him to read from them in the public
 library next week. Everybody is invited, and there will be tea and cake for all of the visitors who come.`
	page := func(head, text string) string {
		return "<html><head><title>Farol</title>" + head + "</head><body><p>" + text + "</p></body></html>"
	}
	s := nodetest.New(t, nodetest.Options{World: crawltest.Options{Seed: 3, Sites: 1, Pages: 1}})
	for range 3 {
		s.Add()
	}
	s.Settle(3)
	first := site(t, "127.77.201.1",
		map[string]string{"/": page(`<meta name="geo.placename" content="Aveiro, Portugal">`, told)})
	second := site(t, "127.77.201.2",
		map[string]string{"/": page("", strings.Replace(told, "farol novo", "farol antigo", 1))})
	third := site(t, "127.77.201.3",
		map[string]string{"/": page(`<meta name="geo.position" content="51.5;-0.12">`, english)})
	for _, a := range seedAll(t, s.Peers[0], first, second, third) {
		if a.Answer != "admitted" {
			t.Fatalf("%+v", a)
		}
	}
	s.WaitIdle()
	for _, p := range s.Peers {
		if err := p.FlushIndex(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.Until("status tells the languages", time.Minute, func() (bool, string) { // it counts every few seconds
		known := int64(0)
		for _, p := range s.Peers {
			known += p.Status().Languages["pt-pt"]
		}
		return known >= 2, fmt.Sprintf("%d documents in pt-PT", known)
	})
	one, two, three := first.Host(), second.Host(), third.Host()
	for name, tt := range map[string]struct {
		q    api.Query
		want []string
	}{
		"language":         {api.Query{Lang: "pt-PT"}, []string{one, two}},
		"its base":         {api.Query{Lang: "pt"}, []string{one, two}},
		"another":          {api.Query{Lang: "en", Site: string(third.Site())}, []string{three}},
		"a year":           {api.Query{Facets: api.Facets{Scope: "1905"}}, []string{one, two}},
		"a day":            {api.Query{Facets: api.Facets{Scope: "1899-08-14"}}, []string{one, two}},
		"the day after":    {api.Query{Facets: api.Facets{Scope: "1899-08-15..1904"}}, nil},
		"a decade":         {api.Query{Facets: api.Facets{Scope: "1950..1959"}}, []string{three}},
		"country":          {api.Query{Facets: api.Facets{Place: "PT"}}, []string{one}},
		"near a name":      {api.Query{Facets: api.Facets{Near: "Porto", Radius: 80}}, []string{one}},
		"not so near":      {api.Query{Facets: api.Facets{Near: "Porto", Radius: 20}}, nil},
		"near coordinates": {api.Query{Facets: api.Facets{Near: "51.4,0.1", Radius: 50}}, []string{three}},
		"both":             {api.Query{Facets: api.Facets{Place: "aveiro", Scope: "190X"}}, []string{one}},
		"no verdict":       {api.Query{Facets: api.Facets{Verdict: "in"}}, nil},
	} {
		tt.q.Unfold, tt.q.Limit = true, 50
		for _, p := range s.Peers {
			a, err := p.Search().Query(t.Context(), tt.q)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got := slices.DeleteFunc(keysOf(a.Hits),
				func(h string) bool { return !strings.HasPrefix(h, "127.77.201.") })
			if !slices.Equal(got, tt.want) || a.Coverage.SlicesAnswered != a.Coverage.SlicesTotal {
				t.Errorf("%s: %s finds %v, want %v; %+v", name, p.Name, got, tt.want, a.Coverage)
			}
		}
		var out []string
		if _, err := s.Peers[1].Node.Search().Export(t.Context(),
			api.Export{Lang: tt.q.Lang, Site: tt.q.Site, Facets: tt.q.Facets}, func(r store.Record, _ string) error {
				if strings.HasPrefix(r.Key.Host(), "127.77.201.") {
					out = append(out, r.Key.Host())
				}
				return nil
			}); err != nil {
			t.Fatal(err)
		}
		if slices.Sort(out); !slices.Equal(out, tt.want) {
			t.Errorf("%s: exported %v, want %v", name, out, tt.want)
		}
	}
	for _, p := range s.Peers {
		a, err := p.Search().Query(t.Context(), api.Query{Q: "faroleiro"})
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Hits) != 1 || len(a.Hits[0].Copies) != 1 || a.Hits[0].Copies[0].Key == a.Hits[0].Key ||
			a.Cursor != "" || a.Total != 2 {
			t.Errorf("%s: %+v", p.Name, a)
		}
	}
	if _, err := s.Peers[0].Search().Query(t.Context(), api.Query{Facets: api.Facets{Near: "xyzzyplugh"}}); err == nil {
		t.Error("near a place that there is not: no error")
	}
}

func seedAll(t *testing.T, p *nodetest.Peer, keys ...partition.Key) []api.SeedAnswer {
	t.Helper()
	a, err := p.API().Seed(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
