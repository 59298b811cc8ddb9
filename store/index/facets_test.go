package index

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Search by place, period and verdict. Match must apply the same rules to a single record, as an
// export uses it.
func TestFacets(t *testing.T) {
	s := newStore(t)
	ix := openIndex(t, filepath.Join(t.TempDir(), "index"), s)
	day := func(from, to string) store.Interval { return store.Interval{Start: from, End: to} }
	war := page("a.test", 1, "farol", "farol")
	war.Period = []store.Interval{day("1914-07-28", "1918-11-11"), day("1939-09-01", "1945-09-02")}
	war.Place = &store.Place{Name: "Évora", Country: "PT", Lat: 38.57, Lon: -7.91}
	old := page("b.test", 1, "farol", "farol")
	old.Period = []store.Interval{day("-0044-03-15", "-0044-03-15"), day("made up", "1999-01-01"),
		day("1999-01-02", "1999-01-01")}
	old.Place = &store.Place{Name: "São Paulo", Country: "BR", Lat: -23.55, Lon: -46.63}
	old.Verdict = &store.Verdict{Verdict: "out"}
	bare := page("c.test", 1, "farol", "farol")
	bare.Place = &store.Place{Name: "nowhere", Country: "XX", Lat: 900, Lon: 2}
	rs := []store.Record{war, old, bare}
	commit(t, s, rs...)
	flush(t, ix)
	short := func(r store.Record) string { return strings.TrimPrefix(string(r.Key), "web:https://") }
	lisbon := partition.Point{Lat: 38.72, Lon: -9.14}
	for name, tt := range map[string]struct {
		q    Facets
		want []string
	}{
		"nothing asked": {Facets{}, []string{"a.test", "b.test", "c.test"}},
		"last day": {Facets{Scope: []store.Interval{day("1918-11-11", "1918-11-30")}},
			[]string{"a.test"}},
		"between": {Facets{Scope: []store.Interval{day("1918-11-12", "1939-08-31")}}, nil},
		"one of two scopes": {Facets{Scope: []store.Interval{day("1800-01-01", "1800-12-31"),
			day("1944-01-01", "1944-01-01")}}, []string{"a.test"}},
		"before year 0": {Facets{Scope: []store.Interval{day("-0100-01-01", "-0001-12-31")}},
			[]string{"b.test"}},
		"made up is not indexed":  {Facets{Scope: []store.Interval{day("1998-01-01", "1999-12-31")}}, nil},
		"country":                 {Facets{Place: "PT"}, []string{"a.test"}},
		"town without its accent": {Facets{Place: "evora"}, []string{"a.test"}},
		"two words":               {Facets{Place: "sao  PAULO"}, []string{"b.test"}},
		"part of a name":          {Facets{Place: "paulo"}, nil},
		"no name":                 {Facets{Place: "?!"}, nil},
		"near":                    {Facets{Near: &Near{lisbon, 120}}, []string{"a.test"}},
		"not near enough":         {Facets{Near: &Near{lisbon, 100}}, nil},
		"half the earth":          {Facets{Near: &Near{lisbon, 20_038}}, []string{"a.test", "b.test"}},
		"verdict":                 {Facets{Verdict: "out"}, []string{"b.test"}},
		"both":                    {Facets{Verdict: "out", Place: "PT"}, nil},
	} {
		var want, alone []string
		for _, r := range rs {
			if tt.q.Match(&r) {
				alone = append(alone, short(r))
			}
			if slices.Contains(tt.want, r.Key.Host()) {
				want = append(want, short(r))
			}
		}
		if got := find(t, ix, Query{Text: "farol", Facets: tt.q}); !slices.Equal(got, want) {
			t.Errorf("%s: found %v, want %v", name, got, want)
		}
		if !slices.Equal(alone, want) {
			t.Errorf("%s: one by one %v, want %v", name, alone, want)
		}
	}
	if _, err := ix.Search(t.Context(), Query{Facets: Facets{Scope: []store.Interval{day("x", "y")}}},
		nil); !errors.Is(err, ErrQuery) {
		t.Errorf("a scope that is none: %v", err)
	}
}

// A document counts for its most specific known language, until its language changes.
func TestLanguages(t *testing.T) {
	s := newStore(t)
	ix := openIndex(t, filepath.Join(t.TempDir(), "index"), s)
	var rs []store.Record
	for i, lang := range []string{"pt-PT", "pt-PT", "pt-BR", "pt", "en", ""} {
		r := page(fmt.Sprintf("%c.test", 'a'+i), 1, "farol", "farol")
		r.Lang = lang
		rs = append(rs, r)
	}
	count := func(want map[string]int64) {
		t.Helper()
		flush(t, ix)
		if got, err := ix.Languages(); err != nil || !maps.Equal(got, want) {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	}
	commit(t, s, rs...)
	count(map[string]int64{"pt-pt": 2, "pt-br": 1, "pt": 1, "en": 1})
	rs[1].Lang, rs[2].Lang = "pt", "en"
	rs[1].FetchedAt, rs[2].FetchedAt = rs[1].FetchedAt.Add(time.Hour), rs[2].FetchedAt.Add(time.Hour)
	commit(t, s, rs[1], rs[2])
	count(map[string]int64{"pt-pt": 1, "pt": 2, "en": 2})
}
