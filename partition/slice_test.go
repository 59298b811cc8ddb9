package partition

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/golang/geo/s2"
	"pgregory.net/rapid"
)

// String and ParseSlice are inverse. ParseSlice refuses every other form.
func TestSliceText(t *testing.T) {
	for _, c := range []struct {
		slice Slice
		text  string
	}{
		{hashSlice(0x0a3<<52, 12), "h/0a3"},
		{hashSlice(0x0a3<<53, 11), "h/0a3:11"},
		{hashSlice(1<<63, 1), "h/1:1"},
		{hashSlice(0, 20), "h/00000"},
		{hashSlice(math.MaxUint64, 20), "h/fffff"},
		{Slice(s2.CellIDFromFace(0)), "g/1"},
		{Slice(s2.CellIDFromLatLng(s2.LatLngFromDegrees(38.72, -9.14)).Parent(7)), "g/0d194"},
	} {
		if got := c.slice.String(); got != c.text || !c.slice.Valid() {
			t.Errorf("%#x is %q, want %q", uint64(c.slice), got, c.text)
		}
		if got, err := ParseSlice(c.text); err != nil || got != c.slice {
			t.Errorf("ParseSlice(%q) = %v, %v", c.text, got, err)
		}
	}
	for _, text := range []string{"", "h", "h/", "h/0a3:12", "h/fff:11", "h/0A3", "h/0a3:011", "h/0a3:", "h/000000",
		"h/-1", "g/", "g/0", "g/10",
		"g/c", "g/2", "g/00000000000000001", "x/0000000000000000", "0a3"} {
		if got, err := ParseSlice(text); err == nil || !errors.Is(err, ErrSlice) {
			t.Errorf("ParseSlice(%q) = %v, %v, want ErrSlice", text, got, err)
		}
	}
	if Slice(0).Valid() || Slice(0).String() != "x/0000000000000000" || Slice(3<<62|1<<61).Valid() ||
		Slice(math.MaxUint64).Valid() {
		t.Error("invalid slices pass")
	}
}

// Valid, ParseSlice and the S2 library agree about any number.
func TestSliceProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Slice(rapid.Uint64().Draw(t, "slice"))
		if n := rapid.IntRange(0, MaxSliceBits).Draw(t, "bits"); n > 0 {
			s = hashSlice(uint64(s), n)
			if s.Bits() != n || !s.IsHash() {
				t.Fatalf("%v has %d bits, want %d", s, s.Bits(), n)
			}
		} else if level := rapid.IntRange(-1, 30).Draw(t, "level"); level >= 0 && s2.CellID(s|1).IsValid() {
			s = Slice(s2.CellID(s | 1).Parent(level))
		}
		if s>>62 != 3 && s.Valid() != s2.CellID(s).IsValid() {
			t.Fatalf("%#x: valid %v, S2 says %v", uint64(s), s.Valid(), s2.CellID(s).IsValid())
		}
		got, err := ParseSlice(s.String())
		if s.Valid() != (err == nil) || (s.Valid() && got != s) {
			t.Fatalf("ParseSlice(%q) = %v, %v", s, got, err)
		}
		if s.Valid() && s>>62 != 3 && "g/"+s2.CellID(s).ToToken() != s.String() {
			t.Fatalf("%v, S2 says %s", s, s2.CellID(s).ToToken())
		}
	})
}

// Each accepted text is the one that String writes.
func FuzzParseSlice(f *testing.F) {
	for _, s := range []string{"h/0a3", "h/0a3:11", "g/0d19", "x/0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := ParseSlice(text); err == nil && (s.String() != text || !s.Valid()) {
			t.Fatalf("ParseSlice(%q) = %v", text, s)
		}
	})
}

// The slice of a Key is part of the profile: these numbers never change.
func TestSliceGolden(t *testing.T) {
	c := DefaultCharter("x", "y")
	for _, g := range []struct {
		key  Key
		unit string
		text string
	}{
		{"web:https://www.example.com/a", "web example.com", "h/fc9"},
		{"web:http://127.0.0.1:8080/", "ip 127.0.0.1", "h/9f6"},
		{"mastodon:alice@localhost:42280", "site mastodon:localhost:42280 0", "h/d61"},
		{"bluesky:did:web:localhost%3A80/followers", "account bluesky:did:web:localhost%3A80", "h/1ae"},
		{"twitter:search/a%20b", "key twitter:search/a%20b", "h/e9d"},
	} {
		if unit, got := string(c.appendUnit(nil, g.key)), c.Slice(g.key); unit != g.unit || got.String() != g.text {
			t.Errorf("%s: unit %q, slice %v, want %q, %s", g.key, unit, got, g.unit, g.text)
		}
	}
}

// Keys that must be in one slice have one unit; others do not.
func TestUnits(t *testing.T) {
	c := DefaultCharter("x", "y")
	f4 := c
	f4.Fanout = map[string]int{"mastodon": 4, "bluesky": 4, "twitter": 4}
	for _, u := range []struct {
		charter Charter
		unit    string
		keys    []Key
	}{
		{c, "web example.co.uk", []Key{"web:http://example.co.uk/", "feed:https://a.b.example.co.uk:8080/x",
			"media:https://www.example.co.uk/y"}},
		{c, "web alice.github.io", []Key{"web:https://alice.github.io/", "web:https://x.alice.github.io/"}},
		{c, "web github.io", []Key{"web:https://github.io/"}},
		{c, "web localhost", []Key{"web:http://localhost/", "web:http://localhost:42280/x"}},
		{c, "web org", []Key{"web:http://org/"}},
		{c, "ip 192.0.2.1", []Key{"web:http://192.0.2.1/", "web:https://192.0.2.1:8443/", "ip:192.0.2.1",
			"web:http://[::ffff:c000:201]/"}},
		{c, "ip 2001:db8::1", []Key{"web:http://[2001:db8::1]:81/", "ip:2001:db8::1"}},
		{c, "site mastodon:h 0", []Key{"mastodon:a@h", "mastodon:b@h/followers", "mastodon:h/tag/x",
			"mastodon:h/public"}},
		{c, "site mastodon: 0", []Key{"mastodon:search/x", "mastodon:search/y"}},
		{c, "account twitter:1", []Key{"twitter:1", "twitter:1/followers", "twitter:1/following"}},
		{f4, "site bluesky: 0", []Key{"bluesky:search/x", "bluesky:search/y"}},
	} {
		for _, k := range u.keys {
			checkKey(t, k)
			if got := string(u.charter.appendUnit(nil, k)); got != u.unit {
				t.Errorf("unit of %s is %q, want %q", k, got, u.unit)
			}
		}
	}
	seen := map[string]int{}
	for i := range 400 {
		seen[string(f4.appendUnit(nil, Key(fmt.Sprintf("twitter:%d", i+1))))]++
	}
	if len(seen) != 4 {
		t.Errorf("fan-out 4 makes units %v", seen)
	}
	for unit, n := range seen {
		if n < 60 || n > 140 {
			t.Errorf("%d of 400 accounts in %s", n, unit)
		}
	}
}

// Hash slices are even. The test checks registrable domains over 2^6 slices by chi-square with
// 63 degrees of freedom (the 99.9 % point is 103).
func TestSlicesEven(t *testing.T) {
	c := DefaultCharter("x", "y")
	c.SliceBits = 6
	counts := map[Slice]int{}
	const n = 64 * 500
	for i := range n {
		counts[c.Slice(Key(fmt.Sprintf("web:http://site%d.example/", i)))]++
	}
	chi := 0.0
	for _, s := range c.Slices() {
		d := float64(counts[s]) - 500
		chi += d * d / 500
		delete(counts, s)
	}
	if chi > 103 || len(counts) > 0 {
		t.Errorf("chi-square %.1f, %d slices outside", chi, len(counts))
	}
}

func BenchmarkSlice(b *testing.B) {
	c := DefaultCharter("x", "y")
	for _, k := range []Key{"web:https://www.example.com/a/b/c", "mastodon:alice@mastodon.example", "bluesky:" + plc} {
		b.Run(k.Service(), func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if c.Slice(k) == 0 {
					b.Fatal()
				}
			}
		})
	}
}
