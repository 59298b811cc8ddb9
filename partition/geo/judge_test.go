package geo

import (
	"encoding/json"
	"math"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/partition"
)

var sharedJudge = sync.OnceValues(func() (*Judge, error) {
	g, err := shared()
	if err != nil {
		return nil, err
	}
	return NewJudge(g, CellLevel), nil
})

// judge returns one Judge for all tests: it is immutable.
func judge(t testing.TB) *Judge {
	t.Helper()
	j, err := sharedJudge()
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// Each kind of evidence, alone and together, and what a placed unit needs to move.
func TestPlace(t *testing.T) {
	j := judge(t)
	cell := func(lat, lon float64) partition.Slice { return j.At(partition.Point{Lat: lat, Lon: lon}) }
	lisbon, porto, paris, berlin := cell(38.72, -9.14), cell(41.15, -8.61), cell(48.86, 2.35), cell(52.52, 13.41)
	prose := "O tempo hoje.\nLisboa\nUma frase qualquer sem nada.\nLisboa\nLisboa"
	for name, c := range map[string]struct {
		f       Facts
		slice   partition.Slice // 0 with a country: spread
		country string
	}{
		"nothing":                     {Facts{Unit: "web:a.com", Host: "a.com"}, 0, ""},
		"a generic domain":            {Facts{Host: "a.io"}, 0, ""},
		"a country's domain":          {Facts{Unit: "web:a.pt", Host: "a.pt"}, 0, "PT"},
		"a language alone":            {Facts{Unit: "web:a.com", Language: "da"}, 0, ""},
		"domain and language":         {Facts{Unit: "web:a.dk", Host: "a.dk", Language: "da"}, 0, "DK"},
		"a domain against a language": {Facts{Unit: "web:a.pt", Host: "a.pt", Language: "pt-BR"}, 0, "PT"},
		"British":                     {Facts{Unit: "web:a.co.uk", Host: "a.co.uk"}, 0, "GB"},
		"declared":                    {Facts{Host: "a.com", Declared: []string{"Lisboa, Portugal"}}, lisbon, "PT"},
		"declared by coordinates":     {Facts{Host: "a.com", Declared: []string{"48.8566, 2.3522"}}, paris, "FR"},
		"declared against the domain": {Facts{Host: "a.pt", Declared: []string{"Paris, France"}}, paris, "FR"},
		"declared, ambiguous":         {Facts{Host: "a.com", Declared: []string{"Springfield"}}, 0, ""},
		"two declared, far apart": {Facts{Unit: "web:a.pt", Host: "a.pt",
			Declared: []string{"Lisboa", "Porto, Portugal"}}, 0, "PT"},
		"a city's domain":      {Facts{Host: "a.berlin"}, berlin, "DE"},
		"one name in a text":   {Facts{Unit: "web:a.com", Host: "a.com", Text: "Lisboa"}, 0, ""},
		"many names in a text": {Facts{Host: "a.pt", Text: prose}, lisbon, "PT"},
		"who links to it": {Facts{Host: "a.com", Linkers: map[partition.Slice]int{porto: 20, paris: 2}},
			porto, "PT"},
		"few link to it":               {Facts{Host: "a.com", Linkers: map[partition.Slice]int{porto: 2}}, 0, ""},
		"a zone alone tells a country": {Facts{Unit: "web:a.pt", Host: "a.pt", TimeZone: "Europe/Lisbon"}, 0, "PT"},
		"placed, nothing new":          {Facts{Host: "a.com", Now: porto}, porto, "PT"},
		"placed, a country's domain":   {Facts{Host: "a.pt", Now: porto}, porto, "PT"},
		"placed, a little better": {Facts{Host: "a.pt", Now: porto,
			Linkers: map[partition.Slice]int{porto: 10, lisbon: 12}}, porto, "PT"},
		"placed, clearly better": {Facts{Host: "a.pt", Now: porto, Declared: []string{"Lisboa"}}, lisbon, "PT"},
		"placed, now abroad": {Facts{Host: "a.pt", Now: porto, Declared: []string{"Paris, France"}}, porto,
			"PT"},
		"placed, now clearly abroad": {Facts{Host: "a.pt", Now: porto,
			Declared: []string{"Paris, France", "48.8566, 2.3522"}}, paris, "FR"},
	} {
		got := j.Place(c.f)
		if got.Country != c.country {
			t.Errorf("%s: %q, want %q: %+v", name, got.Country, c.country, got)
			continue
		}
		switch {
		case c.slice != 0 && got.Slice != c.slice:
			t.Errorf("%s: %v (%s), want %v: %+v", name, got.Slice, got.Place, c.slice, got.Evidence)
		case c.slice == 0 && c.country == "" && got.Slice != 0:
			t.Errorf("%s: %v, want unknown: %+v", name, got.Slice, got.Evidence)
		case c.slice == 0 && c.country != "" && (!got.Spread || j.cellOf[got.Slice] == "" || !j.Has(got.Slice)):
			t.Errorf("%s: %v, want a cell of %s", name, got.Slice, c.country)
		}
	}
}

// The cells drawn within a country follow its population.
func TestSpread(t *testing.T) {
	j := judge(t)
	n := map[partition.Slice]int{}
	for i := range 2000 {
		u := partition.Unit("web:site" + strings.Repeat("x",
			i%7) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676)) + ".pt")
		n[j.Place(Facts{Unit: u, Host: "x.pt"}).Slice]++
	}
	lisbon := n[j.At(partition.Point{Lat: 38.72, Lon: -9.14})]
	if len(n) < 20 || lisbon < 200 || lisbon > 1200 {
		t.Errorf("%d cells, %d of 2000 in Lisbon", len(n), lisbon)
	}
}

// checkJudgement checks what must hold for any Facts.
func checkJudgement(t interface{ Fatalf(string, ...any) }, j *Judge, f Facts) {
	got := j.Place(f)
	if got.Slice != 0 && !j.Has(got.Slice) && got.Slice != f.Now {
		t.Fatalf("%+v is placed in %v, which is no slice", f, got.Slice)
	}
	if f.Now != 0 && got.Slice == 0 {
		t.Fatalf("%+v is un-placed", f)
	}
	if got.Confidence < 0 || got.Confidence > 1 || math.IsNaN(got.Confidence) ||
		len(got.Evidence) > MaxDeclared+MaxSpans+MaxLinkers+4 {
		t.Fatalf("%+v: %+v", f, got)
	}
	for _, e := range got.Evidence {
		if e.Kind == "" || e.Country == "" || len(e.Text) > maxShown+3 || e.Weight < 0 || e.Weight > 4 {
			t.Fatalf("%+v: evidence %+v", f, e)
		}
	}
	if _, err := json.Marshal(got); err != nil {
		t.Fatalf("%+v: %v", f, err)
	}
	if f.Now = got.Slice; f.Now != 0 {
		if again := j.Place(f); again.Slice != got.Slice {
			t.Fatalf("%+v: to %v, and with the same evidence on to %v", f, got.Slice, again.Slice)
		}
	}
}

// For any facts the result is a slice of the swarm or none, with shown evidence. The same facts
// do not move a unit that they have placed.
func TestPlaceProperties(t *testing.T) {
	j := judge(t)
	texts := rapid.SampledFrom([]string{"", "Lisboa", "Porto, Portugal", "Paris", "Lagos", "38.7,-9.1", "-40.1,-120.2",
		"Santa Cruz", "\xff\x00", "Springfield", strings.Repeat("a. Lisboa. ", 50), "🇧🇷", "Europe/Lisbon"})
	cells := rapid.SampledFrom([]partition.Slice{0, 3, j.Slices()[10], j.Slices()[9000],
		j.At(partition.Point{Lat: 38.7, Lon: -9.1}), j.At(partition.Point{Lat: -40, Lon: -120})})
	rapid.Check(t, func(t *rapid.T) {
		f := Facts{Unit: partition.Unit(texts.Draw(t, "unit")),
			Host: rapid.SampledFrom([]string{"", ".", "a.", "a.pt", "pt", "a.io", "a.berlin", "a.zz"}).Draw(t,
				"host"),
			Declared: rapid.SliceOfN(texts, 0, 20).Draw(t, "declared"),
			Language: rapid.SampledFrom([]string{"", "pt", "pt-PT", "da", "-", "x-"}).Draw(t, "language"),
			TimeZone: texts.Draw(t, "zone"), Title: texts.Draw(t, "title"), Text: texts.Draw(t, "text"),
			Now: rapid.SampledFrom([]partition.Slice{0, j.Slices()[9000],
				j.At(partition.Point{Lat: 41.15, Lon: -8.61})}).Draw(t, "now"),
			Linkers: rapid.MapOfN(cells, rapid.IntRange(-1, 30), 0, 4).Draw(t, "linkers")}
		checkJudgement(t, j, f)
	})
}

func FuzzPlace(f *testing.F) {
	f.Add("web:a.pt", "a.pt", "Lisboa", "pt-PT", "Porto", "Lisboa. Porto.")
	j := judge(f)
	f.Fuzz(func(t *testing.T, unit, host, declared, language, title, text string) {
		checkJudgement(t, j, Facts{Unit: partition.Unit(unit), Host: host, Declared: []string{declared, title},
			Language: language, Title: title, Text: text})
	})
}

func BenchmarkPlace(b *testing.B) {
	j := judge(b)
	f := Facts{Unit: "web:a.pt", Host: "a.pt", Declared: []string{"Lisboa"}, Language: "pt", Title: "Notícias do Porto",
		Text: strings.Repeat("Uma frase qualquer de um texto que fala de Lisboa e do Porto.\n", 30)}
	b.ReportAllocs()
	for range b.N {
		j.Place(f)
	}
}
