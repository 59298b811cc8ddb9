package period

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

func TestParseScope(t *testing.T) {
	for text, want := range map[string]string{
		"1939..1945":             "1939-01-01..1945-12-31",
		"1939":                   "1939-01-01..1939-12-31",
		"2001-09":                "2001-09-01..2001-09-30",
		"2001-02":                "2001-02-01..2001-02-28",
		"2000-02":                "2000-02-01..2000-02-29",
		"1974-04-25":             "1974-04-25..1974-04-25",
		"2012-02-29":             "2012-02-29..2012-02-29",
		"..1945":                 "..1945-12-31",
		"1939..":                 "1939-01-01..",
		"1939-09..1945-09":       "1939-09-01..1945-09-30",
		"1939-09-01..1945-09-02": "1939-09-01..1945-09-02",
		"1939-09..1945":          "1939-09-01..1945-12-31",
		"1939..1939":             "1939-01-01..1939-12-31",
		"194X":                   "1940-01-01..1949-12-31",
		"194x":                   "1940-01-01..1949-12-31",
		"19XX":                   "1900-01-01..1999-12-31",
		"194X..195X":             "1940-01-01..1959-12-31",
		"-0043":                  "-0043-01-01..-0043-12-31",
		"-0043..0014":            "-0043-01-01..0014-12-31",
		"0476":                   "0476-01-01..0476-12-31",
		"1914..1918,1939..1945":  "1914-01-01..1918-12-31,1939-01-01..1945-12-31",
		"1939..1945, 1914..1918": "1914-01-01..1918-12-31,1939-01-01..1945-12-31",
		"1939..1942,1941..1945":  "1939-01-01..1945-12-31",
		"1939,1940":              "1939-01-01..1940-12-31",
		" 2001 ":                 "2001-01-01..2001-12-31",
	} {
		scope, err := ParseScope(text)
		if err != nil || scope.String() != want {
			t.Errorf("ParseScope(%q) = %v %v, want %s", text, scope, err, want)
			continue
		}
		again, err := ParseScope(scope.String())
		if err != nil || again.String() != want {
			t.Errorf("%s read again is %v %v", want, again, err)
		}
	}
	for _, text := range []string{"", "..", "1945..1939", "19", "19450", "1945-13", "1945-00", "1945-1", "2011-02-29",
		"1945-02-30", "1945-1-1", "abc",
		"1945...1946", "1939..,", ",", "19X5", "XXXX", "194X-05", "-194X", "1945-01-01-01", "1945 1946", "+939",
		"0000..,..194X"} {
		if scope, err := ParseScope(text); !errors.Is(err, ErrScope) {
			t.Errorf("ParseScope(%q) = %v %v", text, scope, err)
		}
	}
}

func FuzzParseScope(f *testing.F) {
	f.Add("1939..1945,..-0043,194X")
	f.Add("0000..,..194X")
	f.Fuzz(func(t *testing.T, text string) {
		scope, err := ParseScope(text)
		if err != nil {
			return
		}
		again, err := ParseScope(scope.String())
		if err != nil || again.String() != scope.String() {
			t.Fatalf("%q is %v, read again %v %v", text, scope, again, err)
		}
	})
}

func mustScope(t testing.TB, text string) Scope {
	t.Helper()
	scope, err := ParseScope(text)
	if err != nil {
		t.Fatal(err)
	}
	return scope
}

func TestValid(t *testing.T) {
	war := mustScope(t, "1939..1945")
	in, out, decade, century := yearSpan(1940), yearSpan(1950), yearsSpan(1940, 1949), yearsSpan(1901, 2000)
	for _, c := range []struct {
		dates []Span
		bound float64
		want  bool
	}{
		{nil, PaperShare, false},
		{[]Span{in}, PaperShare, true},
		{[]Span{monthSpan(1945, 12)}, PaperShare, true},
		{[]Span{in, in, out}, PaperShare, false},
		{[]Span{in, in, out}, 0.5, true},
		{[]Span{in, out}, 0.5, false},
		{[]Span{decade}, PaperShare, false},
		{[]Span{century}, PaperShare, false},
		{[]Span{out}, 0, false},
	} {
		if got := war.Valid(c.dates, c.bound); got != c.want {
			t.Errorf("Valid(%v, %v) = %v", c.dates, c.bound, got)
		}
	}
	if !war.Overlaps(decade) || war.Overlaps(out) ||
		war.Distance(out) != int(NewDay(1950, 1, 1)-NewDay(1945, 12, 31)) || war.Distance(in) != 0 {
		t.Error("overlap or distance")
	}
}

func TestSpanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := func(name string) Span {
			a, b := rapid.IntRange(-5000, 5000).Draw(t, name), rapid.IntRange(0, 3000).Draw(t, name+" length")
			return Span{Day(a), Day(a + b)}
		}
		a, b := span("a"), span("b")
		if a.Overlaps(b) != b.Overlaps(a) || a.Distance(b) != b.Distance(a) {
			t.Fatal("not symmetric")
		}
		if a.Contains(b) && !a.Overlaps(b) || a.Overlaps(b) != (a.Distance(b) == 0) {
			t.Fatal("containing, overlapping and distance disagree")
		}
	})
}

// "Einstein 1900..1910" finds the text about a thesis of 1905.
func TestContent(t *testing.T) {
	found := Tag("Terminou a tese em 1905. Em 1921 recebeu o prémio e em 1922 viajou, durante dois meses; recentemente foi lembrado.", written)
	for limit, want := range map[int]string{
		9: "1905-01-01..1905-12-31,1921-01-01..1922-12-31",
		1: "1905-01-01..1922-12-31",
	} {
		if got := Content(found, limit).String(); got != want {
			t.Errorf("in %d spans: %s, want %s", limit, got, want)
		}
	}
	for query, want := range map[string]bool{"1900..1910": true, "1905-06": true, "1906..1920": false, "2013": false,
		"1922": true} {
		hit := false
		for _, s := range mustScope(t, query) {
			hit = hit || Content(found, 9).Overlaps(s)
		}
		if hit != want {
			t.Errorf("%s: %v", query, hit)
		}
	}
	if got := Content(nil, 3); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}
