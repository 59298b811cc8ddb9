package atlas

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Fold removes case, accents and punctuation, and is idempotent. Spell keeps the accents.
func TestFold(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "Évora": "evora", " Trás-os-Montes ": "tras os montes", "Paço d'Arcos": "paco d arcos",
		"S. João": "s joao",
		"Straße":  "strasse", "Łódź": "lodz", "Ærø": "aero", "E\u0301vora": "evora", "ＬＩＳＢＯＡ": "lisboa",
		"Lisboa 🇵🇹": "lisboa", "İzmir": "izmir",
	} {
		if got := Fold(in); got != want {
			t.Errorf("Fold(%q) = %q, want %q", in, got, want)
		}
	}
	if Spell("MAÇÃO") != "mação" || Spell("Mac\u0327a\u0303o") != "mação" {
		t.Errorf("Spell gives %q, %q", Spell("MAÇÃO"), Spell("Mac\u0327a\u0303o"))
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		if once := Fold(s); Fold(once) != once {
			t.Fatalf("Fold(%q) = %q, again %q", s, once, Fold(once))
		}
	})
}

// drawEntries draws entries that a table stores without a loss.
func drawEntries(t *rapid.T) []Entry {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Entry {
		e := Entry{Place: Place{
			Name:    rapid.StringN(1, 20, 60).Draw(t, "name"),
			Country: rapid.SampledFrom([]string{"PT", "BR"}).Draw(t, "country"),
			Admin1:  rapid.SampledFrom([]string{"", "Lisbon", "Porto"}).Draw(t, "admin1"),
			Admin2:  rapid.SampledFrom([]string{"", "Sintra"}).Draw(t, "admin2"),
			Rank:    Rank(rapid.IntRange(1, 8).Draw(t, "rank")),
			Located: rapid.Bool().Draw(t, "located"),
			// Two digits, as the table stores them.
			Population: rapid.IntRange(0, 99).Draw(t,
				"digits") * int(math.Pow10(rapid.IntRange(0, 6).Draw(t, "zeros"))),
		}}
		if e.Located {
			e.Lat = float64(rapid.IntRange(-90000, 90000).Draw(t, "lat")) / 1000
			e.Lon = float64(rapid.IntRange(-180000, 180000).Draw(t, "lon")) / 1000
		}
		e.Names = rapid.SliceOfN(rapid.StringN(0, 10, 40), 0, 3).Draw(t, "names")
		return e
	}), 0, 20).Draw(t, "entries")
}

// A table that is written and read again has the same places, and finds each by all its names.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := drawEntries(t)
		raw, err := encode(entries)
		if err != nil {
			t.Fatal(err)
		}
		table, err := Decode(raw)
		if err != nil || table.Len() != len(entries) {
			t.Fatalf("%d places, %v, want %d", table.Len(), err, len(entries))
		}
		for i, e := range entries {
			if got := table.Place(i); got != e.Place {
				t.Fatalf("place %d: %+v, want %+v", i, got, e.Place)
			}
			for n, name := range append([]string{e.Name}, e.Names...) {
				found := table.Find(name)
				at := slices.IndexFunc(found, func(m Match) bool { return m.Number == i })
				if at < 0 || (n == 0 && (found[at].Alias || !found[at].Spelled)) {
					t.Fatalf("%q finds %+v, want %d", name, found, i)
				}
			}
		}
	})
}

// Encode refuses a bad country code and a long name.
func TestEncodeRefuses(t *testing.T) {
	for _, e := range []Entry{{Place: Place{Name: "x", Country: "PRT"}},
		{Place: Place{Name: string(make([]byte, maxText+1)), Country: "PT"}}} {
		if err := Encode(&bytes.Buffer{}, []Entry{e}); err == nil {
			t.Errorf("%.20q in %q passes", e.Name, e.Country)
		}
	}
}

// Populations are rounded to two digits.
func TestPopulation(t *testing.T) {
	for in, want := range map[int]int{0: 0, 7: 7, 99: 99, 100: 100, 104: 100, 105: 110, 2253932: 2300000,
		1400000000: 1400000000} {
		if got := roundPopulation(in); got != want {
			t.Errorf("%d becomes %d, want %d", in, got, want)
		}
	}
}

// The embedded table passes the check that Open omits.
func TestEmbedded(t *testing.T) {
	table, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	if table.Len() < 90_000 || len(embedded) > 8<<20 {
		t.Errorf("%d places in %d bytes", table.Len(), len(embedded))
	}
	if err := table.check(); err != nil { // Open omits this check
		t.Fatal(err)
	}
	order := [2]string{}
	for i := range table.Len() {
		p, r := table.Place(i), table.Row(i)
		country, region := table.Region(r.Region)
		if at := [2]string{p.Country, p.Admin1}; at[0] < order[0] || (at[0] == order[0] && at[1] < order[1]) ||
			country != p.Country || region != p.Admin1 {
			t.Fatalf("place %d in %v after %v, region %s %s", i, at, order, country, region)
		} else {
			order = at
		}
		if r.Rank != p.Rank || r.Population != p.Population || (r.Cell != 0) != p.Located {
			t.Fatalf("place %d is %+v, its row %+v", i, p, r)
		}
	}
	places := map[string]bool{}
	for _, m := range table.Find("lisboa") {
		p := table.Place(m.Number)
		places[p.Country+" "+p.Admin1+" "+p.Name] = true
	}
	if !places["PT Lisbon Lisbon"] {
		t.Errorf("lisboa is %v", places)
	}
	for _, m := range table.Find("Mação") {
		if p := table.Place(m.Number); m.Spelled != (p.Name == "Mação") {
			t.Errorf("Mação finds %+v, %+v", m, p)
		}
	}
	if table.Find("no such place at all") != nil {
		t.Error("a place that is none")
	}
}

// A damaged table gives an error, never a panic and never a large allocation.
func TestDamaged(t *testing.T) {
	whole := []byte(embedded)
	for _, b := range [][]byte{nil, []byte("x"), whole[:headerSize-1], whole[:headerSize], whole[:1000],
		whole[:len(whole)-1]} {
		if _, err := Decode(b); err == nil || !errors.Is(err, ErrTable) {
			t.Errorf("%d bytes: %v", len(b), err)
		}
	}
	raw, err := encode([]Entry{evora})
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		bad := slices.Clone(raw)
		bad[i] ^= 0x81
		if _, err := Decode(bad); !errors.Is(err, ErrTable) {
			t.Errorf("byte %d changed: %v", i, err)
		}
	}
}

var evora = Entry{Place: Place{Name: "Évora", Country: "PT", Rank: Seat, Located: true, Lat: 38.567, Lon: -7.9},
	Names: []string{"Evora", "Ebora"}}

// The digest would hide the format from a fuzzer, so the input begins after it.
func FuzzDecode(f *testing.F) {
	raw, err := encode([]Entry{evora})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw[len(magic)+sha256.Size:])
	f.Fuzz(func(t *testing.T, data []byte) {
		sum := sha256.Sum256(data)
		table, err := Decode(slices.Concat([]byte(magic), sum[:], data))
		if err != nil {
			if !errors.Is(err, ErrTable) {
				t.Fatal(err)
			}
			return
		}
		for i := range table.Len() {
			if p := table.Place(i); math.Abs(p.Lat) > 90 || math.Abs(p.Lon) > 180 {
				t.Fatalf("%+v", p)
			}
			_ = table.Find(table.Place(i).Name)
		}
	})
}
