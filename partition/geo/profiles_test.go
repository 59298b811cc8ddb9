package geo

import (
	"math"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// profile is a line of testdata/profiles*.tsv.
type profile struct{ text, country, admin1 string }

// readProfiles reads a list; a text may be in it only once.
func readProfiles(t *testing.T, name string) (out []profile) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "# ") {
			continue
		}
		cols := strings.Split(line, "\t")
		if len(cols) != 3 || seen[cols[0]] {
			t.Fatalf("%s: %q is no line of three, or a second one", name, line)
		}
		seen[cols[0]] = true
		out = append(out, profile{cols[0], cols[1], cols[2]})
	}
	return out
}

// The lists of profile locations. In each list at least 95 % must be in the right first
// division. At most 2 % may be in a wrong division or country rather than unknown. The hold-out
// list was written after the rules and names were finished.
func TestProfiles(t *testing.T) {
	g := open(t)
	for _, list := range []struct {
		name  string
		lines int
	}{{"testdata/profiles.tsv", 300}, {"testdata/profiles-holdout.tsv", 200}} {
		profiles := readProfiles(t, list.name)
		if len(profiles) < list.lines {
			t.Errorf("%s: %d lines, want %d", list.name, len(profiles), list.lines)
		}
		var n tally
		for _, p := range profiles {
			n.add(judgeProfile(t, g, p))
		}
		n.report(t, list.name)
	}
}

// judgeProfile counts one line. If the result is only a country, and the text names a place in
// it, that counts as unknown, not as wrong. If the text names none, the country is wrong.
func judgeProfile(t *testing.T, g *Gazetteer, p profile) (n tally) {
	country, admin1 := "-", "-"
	r := g.Resolve(p.text, Hints{})
	if r.Place != nil {
		country = r.Place.Country
		if r.Place.Admin1 != "" {
			admin1 = r.Place.Admin1
		}
	}
	if p.admin1 == "-" {
		n.none++
	} else {
		n.named++
	}
	switch {
	case country == p.country && admin1 == p.admin1 && p.admin1 == "-":
		n.rightNone++
	case country == p.country && admin1 == p.admin1:
		n.right++
	case country == "-" || country == p.country && admin1 == "-":
		if p.admin1 != "-" {
			n.unknown++
		}
		t.Logf("unknown %q: want %s %s, candidates %v", p.text, p.country, p.admin1, r.Candidates)
	default:
		n.wrong++
		t.Logf("wrong %q: got %s %s (%s, %.2f), want %s %s", p.text, country, admin1, r.Place.Name, r.Confidence,
			p.country, p.admin1)
	}
	return n
}

// plain is idempotent on any input, and returns valid UTF-8.
func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "Lisboa": "Lisboa", "𝓛𝓲𝓼𝓫𝓸𝓪": "Lisboa", "ʟɪꜱʙᴏᴀ": "lisboa", "ⓛⓘⓢⓑⓞⓐ": "lisboa", "🅻🅸🆂🅱🅾🅰": "LISBOA",
		"ＰＯＲＴＯ": "PORTO", "ᴸᶦˢᵇᵒᵃ": "Lisboa",
		"E\u0301vora": "Évora", "Lis\u200bboa\ufe0f": "Lisboa", "Porto\xff": "Porto ",
		"d´Arcos d’Arcos": "d'Arcos d'Arcos", "🇵🇹": "🇵🇹", "Porto™": "Porto ",
	} {
		if got := plain(in); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(),
			rapid.StringOf(rapid.SampledFrom([]rune("aé\u0301\u0327´ᴀʟᶦ🅰Ａ𝓐ﬁ™ª\u200d\ufe0f\U000E0062🇵")))).Draw(t,
			"text")
		if once := plain(s); plain(once) != once || !utf8.ValidString(once) {
			t.Fatalf("plain(%q) = %q, again %q", s, once, plain(once))
		}
	})
}

// For any text, plain is idempotent and returns valid UTF-8.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{"Lisboa", "ʟɪꜱʙᴏᴀ", "\u1ea5\u0301", "\u0344\u1da6", "a\xf0\x9f\x87\xb5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if once := plain(s); plain(once) != once || !utf8.ValidString(once) {
			t.Fatalf("plain(%q) = %q, again %q", s, once, plain(once))
		}
	})
}

// Coordinates as people and programs write them, and numbers that are no coordinates.
func TestFindCoordinates(t *testing.T) {
	for in, want := range map[string][2]float64{
		"iPhone: 38.7369,-9.1427": {38.7369, -9.1427}, "ÜT: 41.15, -8.61": {41.15, -8.61},
		"38.72 N, 9.14 W": {38.72, -9.14}, "38.72° N 9.14° O": {38.72, -9.14},
		"38°43'N 9°08'W": {38.71667, -9.13333}, "38º43'12\"N, 9º8'24\"W": {38.72, -9.14},
		"38,7223 -9,1393": {38.7223, -9.1393}, "Lat: 38.7 Lon: -9.1": {38.7, -9.1},
		"N 38° 43' W 9° 08'": {38.71667, -9.13333}, "23.55S 46.63W": {-23.55, -46.63}, "38.72;−9.14": {38.72, -9.14},
		"geo:38.75,-9.23": {38.75, -9.23}, "52.52 N 13.40 E": {52.52, 13.40},
	} {
		lat, lon, ok := findCoordinates(in)
		if !ok || math.Abs(lat-want[0]) > 1e-4 || math.Abs(lon-want[1]) > 1e-4 {
			t.Errorf("%q is %v, %v, %v, want %v", in, lat, lon, ok, want)
		}
	}
	for _, in := range []string{"", "1.5,2", "127.0.0.1", "91.5, 10.0", "10.5, 181.5", "38 N 9 W", "1,5 2,5",
		"1.2.3,4.5", "12,50 € 3,40", "24.12.2020,10.30", "S 23.5"} {
		if lat, lon, ok := findCoordinates(in); ok {
			t.Errorf("%q is %v, %v", in, lat, lon)
		}
	}
}

// A text longer than MaxText costs no more than a text of that length, whatever its content.
func TestLongTexts(t *testing.T) {
	g := open(t)
	for _, piece := range []string{"a ", "Santa ", "Lisboa, ", "S. ", "\ufdfa", "e\u0301", "🇵🇹", "ʟ", "1.5,", "🏴",
		"v. n. ", "de ", "\xff", "#A", "38°", "Leon,", "Santa Cruz "} {
		long := strings.Repeat(piece, 1<<20/len(piece))
		r := g.Resolve(long, Hints{})
		if cut := g.Resolve(long[:MaxText], Hints{}); cut.Confidence != r.Confidence ||
			len(r.Candidates) > MaxCandidates {
			t.Errorf("a megabyte of %q: %+v, its beginning %+v", piece, r, cut)
		}
		if spans, _ := g.spans(split(long)); len(spans) > 2*MaxNames {
			t.Errorf("a megabyte of %q has %d names", piece, len(spans))
		}
		if allocs := testing.AllocsPerRun(1, func() { g.Resolve(long, Hints{}) }); allocs > 100*MaxText {
			t.Errorf("a megabyte of %q takes %.0f allocations", piece, allocs)
		}
	}
}

// A time zone is weak evidence: it decides between places with one name, but does not override
// the text.
func TestZoneHints(t *testing.T) {
	g := open(t)
	for _, c := range []struct{ text, zone, country string }{
		{"Lagos", "Europe/Lisbon", ""}, {"Lagos", "Africa/Lagos", "NG"}, {"Valencia", "Europe/Madrid", "ES"},
		{"Lisboa", "America/Sao_Paulo", "PT"},
		{"Londres", "Europe/Lisbon", "GB"}, {"na lua", "Europe/Lisbon", ""}, {"Porto", "no/such zone", "PT"},
	} {
		country := ""
		if r := g.Resolve(c.text, Hints{TimeZone: c.zone}); r.Place != nil {
			country = r.Place.Country
		}
		if country != c.country {
			t.Errorf("%q in %s is in %q, want %q", c.text, c.zone, country, c.country)
		}
	}
}

// BenchmarkResolveWorst resolves a text of names that each belong to many towns.
func BenchmarkResolveWorst(b *testing.B) {
	g := open(b)
	text := strings.Repeat("Leon,", 1<<20)
	for range b.N {
		g.Resolve(text, Hints{})
	}
}
