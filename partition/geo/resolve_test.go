package geo

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/golang/geo/s2"
	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/partition"
)

// shared is one Gazetteer for all tests: it is immutable.
var shared = sync.OnceValues(Open)

// open returns the shared Gazetteer.
func open(t testing.TB) *Gazetteer {
	t.Helper()
	g, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// tally counts the results over a list.
type tally struct{ right, wrong, unknown, named, rightNone, none int }

// add adds the counts of o.
func (n *tally) add(o tally) {
	n.right, n.wrong, n.unknown = n.right+o.right, n.wrong+o.wrong, n.unknown+o.unknown
	n.named, n.rightNone, n.none = n.named+o.named, n.rightNone+o.rightNone, n.none+o.none
}

// report logs the counts, and fails below 95 % right or above 2 % wrong.
func (n tally) report(t *testing.T, name string) {
	t.Helper()
	right, wrong := float64(n.right)/float64(n.named), float64(n.wrong)/float64(n.named+n.none)
	t.Logf("%s: %d of %d in the right division (%.1f %%), %d unknown; %d of %d without one left unknown; %d wrong (%.1f %%)",
		name, n.right, n.named, 100*right, n.unknown, n.rightNone, n.none, n.wrong, 100*wrong)
	if right < 0.95 || wrong > 0.02 {
		t.Errorf("%s: below the bar of 95 %% right and 2 %% wrong", name)
	}
}

// The lists of testdata. In each list at least 95 % must be in the right first division, and at
// most 2 % in a wrong one.
func TestLocations(t *testing.T) {
	g := open(t)
	lists, err := filepath.Glob("testdata/locations*.txt")
	if err != nil || len(lists) != 3 {
		t.Fatalf("lists %v, %v", lists, err)
	}
	var all tally
	for _, name := range lists {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		n := check(t, g, string(text))
		n.report(t, name)
		all.add(n)
	}
	if all.named < 500 {
		t.Errorf("only %d locations", all.named)
	}
	all.report(t, "all")
}

// check resolves each line of a list. A heading [X] names the division of the lines below, [-]
// none.
func check(t *testing.T, g *Gazetteer, text string) (n tally) {
	admin := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "" || line[0] == ';':
			continue
		case line[0] == '[':
			admin = strings.Trim(line, "[]")
			continue
		}
		r := g.Resolve(line, Hints{})
		got := "-"
		if r.Place != nil && r.Place.Admin1 != "" {
			got = r.Place.Admin1
		}
		switch {
		case admin == "-" && got == "-":
			n.rightNone++
		case got == admin:
			n.right++
		case got == "-":
			n.unknown++
			t.Logf("unknown %q: want %s", line, admin)
		default:
			n.wrong++
			t.Logf("wrong %q: got %s (%s, %.2f), want %s", line, got, r.Place.Name, r.Confidence, admin)
		}
		if admin == "-" {
			n.none++
		} else {
			n.named++
		}
	}
	return n
}

// The fields of a result, for names, flags, zones and hints.
func TestResolutionFields(t *testing.T) {
	g := open(t)
	for _, c := range []struct {
		text, name, country, admin1, admin2, evidence string
		hints                                         Hints
	}{
		{"Lisboa", "Lisbon", "PT", "Lisbon", "Lisbon", "name", Hints{}},
		{"Queluz, Sintra", "Queluz", "PT", "Lisbon", "Sintra", "name", Hints{}},
		{"Chelas", "Chelas", "PT", "Lisbon", "Lisbon", "name", Hints{}},
		{"🇵🇹", "Portugal", "PT", "", "", "flag", Hints{}},
		{"🇧🇷 Santos", "Santos", "BR", "São Paulo", "", "name", Hints{}},
		{"Europe/Lisbon", "Portugal", "PT", "", "", "zone", Hints{}},
		{"America/Sao_Paulo", "Brazil", "BR", "", "", "zone", Hints{}},
		{"Atlantic/Azores", "Azores", "PT", "Azores", "", "zone", Hints{}},
		{"Newark, NJ", "Newark", "US", "New Jersey", "", "name", Hints{}},
		{"Mação", "Mação", "PT", "Santarém", "Mação", "name", Hints{}},
		{"Lagos, Nigeria", "Lagos", "NG", "Lagos", "", "name", Hints{}},
		{"Lagos", "Lagos", "NG", "Lagos", "", "name", Hints{Country: "NG"}},
		{"Santa Cruz, Madeira", "Santa Cruz", "PT", "Madeira", "Santa Cruz", "name", Hints{}},
		{"Belém", "Belém", "BR", "Pará", "", "name", Hints{Language: "pt-BR"}},
		{"Bahia", "Bahia", "BR", "Bahia", "", "name", Hints{}},
		{"California", "California", "US", "California", "", "name", Hints{}},
		{"Paris, Texas", "Paris", "US", "Texas", "", "name", Hints{}},
		{"Lisbon, Ohio", "Lisbon", "US", "Ohio", "", "name", Hints{}},
		{"Santiago, Cabo Verde", "Cabo Verde", "CV", "", "", "name", Hints{}},
		{"Aveiro born, Lisbon based", "Lisbon", "PT", "Lisbon", "Lisbon", "name", Hints{}},
		{"Cuba", "Cuba", "CU", "", "", "name", Hints{}},
		{"Cuba, Alentejo", "Cuba", "PT", "Beja", "Cuba", "name", Hints{}},
	} {
		r := g.Resolve(c.text, c.hints)
		if r.Place == nil {
			t.Errorf("%q is unknown, candidates %+v", c.text, r.Candidates)
			continue
		}
		p := *r.Place
		if p.Name != c.name || p.Country != c.country || p.Admin1 != c.admin1 || p.Admin2 != c.admin2 ||
			r.Evidence != c.evidence {
			t.Errorf("%q: %+v by %s, want %+v", c.text, p, r.Evidence, c)
		}
	}
}

// A location with coordinates is at these coordinates. Points at sea, and other numbers, are no
// place.
func TestCoordinates(t *testing.T) {
	g := open(t)
	r := g.Resolve("ÜT: 41.1579,-8.6291", Hints{})
	if r.Place == nil || r.Place.Admin1 != "Porto" || r.Evidence != "coordinates" || r.Place.Lat != 41.1579 ||
		r.Place.Cell != "0d244" {
		t.Errorf("%+v, %+v", r, r.Place)
	}
	for _, text := range []string{"-40.0, -30.0", "91.5, 10.0", "10.5, 181.5", "127.0.0.1", "1.5,2"} {
		if r := g.Resolve(text, Hints{}); r.Place != nil {
			t.Errorf("%q is %+v", text, r.Place)
		}
	}
}

// A hint can decide what is unknown without it. Evidence in the text outweighs a hint.
func TestHints(t *testing.T) {
	g := open(t)
	if r := g.Resolve("Lagos", Hints{}); r.Place != nil || len(r.Candidates) < 2 {
		t.Errorf("Lagos alone is %+v", r)
	}
	for _, h := range []Hints{{Country: "PT", Language: "pt-PT"}, {Country: "PT", TimeZone: "Europe/Lisbon"}} {
		r := g.Resolve("Santa Cruz", h)
		if r.Place == nil || r.Place.Country != "PT" {
			t.Errorf("Santa Cruz with %+v is %+v", h, r)
		}
	}
	if r := g.Resolve("Santarém, Pará, Brasil", Hints{Country: "PT"}); r.Place == nil || r.Place.Country != "BR" {
		t.Errorf("Santarém in Pará is %+v", r.Place)
	}
}

// An unknown result has candidates, and none of them is certain.
func TestAmbiguous(t *testing.T) {
	r := open(t).Resolve("Salamanca", Hints{})
	if r.Place != nil || r.Confidence != 0 || len(r.Candidates) < 2 {
		t.Errorf("Salamanca is %+v", r)
	}
}

// The digest is the same for each Open.
func TestDigest(t *testing.T) {
	g := open(t)
	again, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	if d := g.Digest(); len(d) != 32 || d != again.Digest() {
		t.Errorf("digests %s, %s", d, again.Digest())
	}
}

// A faulty line of the tables is an error.
func TestTablesByHand(t *testing.T) {
	for _, bad := range []string{"x\ty\n", "x\tLisbon\tPT\tLisbon\tkind\n", "x\tNowhere\tPT\tLisbon\tnick\n"} {
		if err := new(Gazetteer).orEmpty(open(t)).readHand(bad); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
	if err := new(Gazetteer).orEmpty(open(t)).readWords("list: x\n"); err == nil {
		t.Error("an unknown list passes")
	}
}

// orEmpty returns a Gazetteer with o's places and without hand.tsv.
func (*Gazetteer) orEmpty(o *Gazetteer) *Gazetteer {
	return &Gazetteer{table: o.table, hand: map[string][]sense{}, words: map[string]wordKind{}, countries: o.countries}
}

// checkResolution checks what must hold for any text.
func checkResolution(t interface{ Fatalf(string, ...any) }, g *Gazetteer, text string, h Hints) {
	r := g.Resolve(text, h)
	sum := 0.0
	for i, c := range r.Candidates {
		sum += c.Confidence
		if c.Confidence < 0 || c.Place.Name == "" || len(c.Place.Country) != 2 {
			t.Fatalf("%q: candidate %d is %+v", text, i, c)
		}
	}
	if sum > 1.01 || len(r.Candidates) > MaxCandidates || r.Confidence < 0 || r.Confidence > 1 ||
		(r.Place == nil) != (r.Confidence == 0) {
		t.Fatalf("%q: %+v", text, r)
	}
	if p := r.Place; p != nil && (!utf8.ValidString(p.Name) || p.Lat < -90 || p.Lat > 90 || p.Lon < -180 ||
		p.Lon > 180) {
		t.Fatalf("%q: %+v", text, p)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	if again := g.Resolve(text, h); again.Confidence != r.Confidence || len(again.Candidates) != len(r.Candidates) {
		t.Fatalf("%q: %+v, then %+v", text, r, again)
	}
}

func TestResolveProperties(t *testing.T) {
	g := open(t)
	pieces := []string{"Lisboa", "Porto", "Santa Cruz", "em", "de", "natural", "vivo", ",", "/", " ", "-", "→", "🇵🇹",
		"🇧", "🏴", "S.", "PT", "RJ", "lua",
		"38.7,-9.1", "Europe/Lisbon", "é", "e\u0301", "\xff", "#", "\n", "Cuba", "Alentejo", "L I S B O A", "Portooooo",
		"Paris", "London", "tuga", "Gaia", "(", ")"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "pieces"),
			rapid.SampledFrom([]string{"", " "}).Draw(t, "between"))
		checkResolution(t, g, text,
			Hints{Country: rapid.SampledFrom([]string{"", "PT", "BR", "xx"}).Draw(t, "country")})
	})
}

func FuzzResolve(f *testing.F) {
	for _, s := range []string{"Lisboa, Portugal", "natural de Viseu, vivo em Lx", "🇵🇹🇧🇷", "38.7,-9.1", "Europe/Lisbon",
		strings.Repeat("a ", 400), "Atlantic/_"} {
		f.Add(s)
	}
	g := open(f)
	f.Fuzz(func(t *testing.T, text string) { checkResolution(t, g, text, Hints{}) })
}

// Slices has the cells of places, and the cells of level 4. The nearest member owns a cell.
func TestSlices(t *testing.T) {
	g := open(t)
	all := g.Slices(CellLevel)
	if !slices.IsSorted(all) || len(all) < 10_000 || len(all) > 25_000 {
		t.Fatalf("%d slices", len(all))
	}
	for _, s := range all {
		if !s.Valid() || s.IsHash() || !s2.CellID(s).IsValid() {
			t.Fatalf("slice %v", s)
		}
	}
	lisbon, ocean := partition.Point{Lat: 38.72, Lon: -9.14}, partition.Point{Lat: -40, Lon: -120}
	if s := SliceAt(all, lisbon, CellLevel); s2.CellID(s).Level() != CellLevel {
		t.Errorf("Lisbon is in %v", s)
	}
	s := SliceAt(all, ocean, CellLevel)
	if _, ok := slices.BinarySearch(all, s); !ok || s2.CellID(s).Level() != partition.ParentLevel {
		t.Errorf("the ocean is in %v", s)
	}
	table := partition.NewTableOf(all, 3)
	table.Update(partition.NewView([]partition.Member{{ID: "lisbon", Location: &lisbon},
		{ID: "ocean", Location: &ocean}}))
	if table.Owner(SliceAt(all, lisbon, CellLevel)) != "lisbon" || table.Owner(s) != "ocean" {
		t.Error("the near do not own")
	}
}

// The memory limits that the package documents.
func TestHeap(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	g, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	mib := float64(after.HeapAlloc-before.HeapAlloc) / (1 << 20)
	t.Logf("%.1f MiB for %d places", mib, g.table.Len())
	if mib > 6 {
		t.Errorf("%.1f MiB", mib)
	}
	runtime.KeepAlive(g)
}

func BenchmarkOpen(b *testing.B) {
	for range b.N {
		if _, err := Open(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	g := open(b)
	for _, text := range []string{"Lisboa", "Natural de Viseu, a viver em Lisboa 🇵🇹", "Onde o vento me levar"} {
		b.Run(strings.Fields(text)[0], func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				g.Resolve(text, Hints{})
			}
		})
	}
}
