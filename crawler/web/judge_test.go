package web

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/geo"
	"github.com/echo-node/echo-node/store"
)

func TestJudge(t *testing.T) {
	src, err := New(Options{Client: &fetch.Client{}})
	if err != nil {
		t.Fatal(err)
	}
	k, err := partition.ParseKey("https://www.terra.pt/a")
	if err != nil {
		t.Fatal(err)
	}
	published := time.Date(2010, 5, 6, 12, 0, 0, 0, time.UTC)
	day := func(from, to string) store.Interval { return store.Interval{Start: from, End: to} }
	for name, tt := range map[string]struct {
		rec    store.Record
		period []store.Interval
		place  string
		copies bool
	}{
		"nothing":              {rec: store.Record{}},
		"title alone, noindex": {rec: store.Record{Title: "1905"}},
		"without a date of writing": {rec: store.Record{Title: "Ontem", Text: "Foi ontem, e em 1905 também."},
			period: []store.Interval{day("1905-01-01", "1905-12-31")}},
		"with one": {rec: store.Record{Title: "Ontem", Text: "Foi ontem.", PublishedAt: &published},
			period: []store.Interval{day("2010-05-05", "2010-05-05")}},
		"long": {rec: store.Record{Text: strings.Repeat("o farol da vila foi pintado de branco. ",
			10)}, copies: true},
		"beyond what is looked at": {rec: store.Record{Text: strings.Repeat("à noite. ", maxDated/9) + "Em 1905."},
			copies: true},
		"town and country":       {rec: store.Record{Declared: []string{"Portugal", "Viseu"}}, place: "Viseu PT"},
		"coordinates first":      {rec: store.Record{Declared: []string{"Viseu", "41.15,-8.61"}}, place: "Porto PT"},
		"no such place":          {rec: store.Record{Declared: []string{"xyzzyplugh"}}},
		"the domain tells which": {rec: store.Record{Declared: []string{"Lagos"}}, place: "Lagos PT"},
	} {
		rec := tt.rec
		rec.Key = k
		if err := src.judge(&rec, rec.Text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		place := ""
		if rec.Place != nil {
			place = rec.Place.Name + " " + rec.Place.Country
		}
		if d := cmp.Diff(tt.period, rec.Period); d != "" || place != tt.place || (rec.Copies != "") != tt.copies {
			t.Errorf("%s: place %q, copies %q, period %s", name, place, rec.Copies, d)
		}
	}
	a, b := store.Record{Text: strings.Repeat("o farol da vila. ", 20)},
		store.Record{Text: strings.Repeat("O farol da vila! ", 20)}
	if err := errors.Join(src.judge(&a, a.Text), src.judge(&b, b.Text)); err != nil || a.Copies[:18] != b.Copies[:18] ||
		a.Copies == b.Copies {
		t.Errorf("the same words: %q and %q, %v", a.Copies, b.Copies, err)
	}
}

// A judge that fails or panics does not affect the other data of the page.
func TestJudgeFails(t *testing.T) {
	for name, open := range map[string]func() (*geo.Gazetteer, error){
		"error": func() (*geo.Gazetteer, error) { return nil, errors.New("no table") },
		"panic": func() (*geo.Gazetteer, error) { panic("no table") },
	} {
		src, err := New(Options{Client: &fetch.Client{}, Places: open})
		if err != nil {
			t.Fatal(err)
		}
		rec := store.Record{Title: "T", Text: "x", Declared: []string{"Viseu"}}
		if err := src.judge(&rec, rec.Text); err == nil || rec.Text != "x" || rec.Place != nil {
			t.Errorf("%s: %v, %+v", name, err, rec)
		}
	}
}

func FuzzJudge(f *testing.F) {
	src, err := New(Options{Client: &fetch.Client{}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("Em 1905", "14 de agosto de 1899, ontem, -0043", "Viseu")
	f.Add("", strings.Repeat("1905-1906 ", 400), "999,999")
	f.Fuzz(func(t *testing.T, title, text, declared string) {
		rec := store.Record{Title: strings.ToValidUTF8(title, ""), Text: strings.ToValidUTF8(text, ""),
			Declared: []string{declared}}
		if err := src.judge(&rec, rec.Text); err != nil {
			t.Fatal(err)
		}
		if len(rec.Period) > store.MaxPeriod {
			t.Fatalf("%d intervals", len(rec.Period))
		}
		for _, i := range rec.Period {
			if _, _, ok := i.Days(); !ok {
				t.Fatalf("%+v is no interval", i)
			}
		}
	})
}
