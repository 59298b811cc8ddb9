package period

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func datesOf(segments []Segment) []string {
	var out []string
	for _, g := range segments {
		var days []string
		for _, d := range g.Dates {
			days = append(days, d.Start.String())
		}
		var links []string
		for _, l := range g.Links {
			links = append(links, l.Key)
		}
		out = append(out, strings.Join(days, " ")+"|"+strings.Join(links, " "))
	}
	return out
}

const twoDates = "Em 22 de Outubro de 2013 foi aberta a obra, e em 2 de Janeiro de 2014 acabou."

func TestSegmentsParagraphs(t *testing.T) {
	blocks := []Block{
		{Text: "Sem data nenhuma.", Links: []Link{{Key: "a"}}},
		{Text: twoDates, Links: []Link{{Key: "b", At: 10}, {Key: "c", At: 60}}},
		{Text: "Continua sem data.", Links: []Link{{Key: "d"}}},
		{Text: "Depois veio 1999.", Links: []Link{{Key: "e"}}},
		{Text: "Também em 1999.", Links: []Link{{Key: "f"}}},
	}
	got := datesOf(Segments(blocks, time.Time{}, SegmentOptions{}))
	want := []string{"|a", "2013-10-22 2014-01-02|b c d", "1999-01-01|e f"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = datesOf(Segments(blocks, time.Time{}, SegmentOptions{Inherit: -1}))
	want = []string{"|a", "2013-10-22 2014-01-02|b c", "|d", "1999-01-01|e f"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = datesOf(Segments(blocks, time.Time{}, SegmentOptions{Sentences: true}))
	want = []string{"|a", "2013-10-22|b", "2014-01-02|c d", "1999-01-01|e f"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSegmentsInherit(t *testing.T) {
	blocks := []Block{{Text: "Em 1940."}, {Text: "x", Links: []Link{{Key: "a"}}},
		{Text: "y", Links: []Link{{Key: "b"}}}}
	got := datesOf(Segments(blocks, time.Time{}, SegmentOptions{Inherit: 1}))
	if diff := cmp.Diff([]string{"1940-01-01|a", "|b"}, got); diff != "" {
		t.Error(diff)
	}
}

// "== 1943 ==" dates its section, up to the next heading that is not deeper.
func TestSegmentsHeadings(t *testing.T) {
	segments := Segments([]Block{
		{Text: "1943", Heading: 2},
		{Text: "A batalha.", Links: []Link{{Key: "a"}}},
		{Text: "Norte", Heading: 3},
		{Text: "Outra batalha.", Links: []Link{{Key: "b"}}},
		{Text: "Em 1950 foi lembrada.", Links: []Link{{Key: "c"}}},
		{Text: "Sem data.", Links: []Link{{Key: "d"}}},
		{Text: "Ver também", Heading: 2},
		{Text: "Lista.", Links: []Link{{Key: "e"}}},
	}, time.Time{}, SegmentOptions{})
	want := []string{"1943-01-01|", "1943-01-01|a b", "1950-01-01|c", "1943-01-01|d", "|e"}
	if diff := cmp.Diff(want, datesOf(segments)); diff != "" {
		t.Error(diff)
	}
	if !segments[1].Inherited || segments[2].Inherited {
		t.Error("which dates are inherited")
	}
}

func TestSentences(t *testing.T) {
	for text, want := range map[string]string{
		"Uma frase. Outra frase! E esta?":             "Uma frase.|Outra frase!|E esta?",
		"O Sr. Silva e a Dra. Sousa vieram. Partiram": "O Sr. Silva e a Dra. Sousa vieram.|Partiram",
		"No séc. XIX viveu. Morreu em 44 a.C. César":  "No séc. XIX viveu.|Morreu em 44 a.C. César",
		"Custa 3.50 euros. Barato.":                   "Custa 3.50 euros.|Barato.",
		"J. R. Silva veio... e foi. Fim":              "J. R. Silva veio... e foi.|Fim",
		"Título\n\nTexto sem ponto\n\n":               "Título|Texto sem ponto",
		"Disse «sim.» Depois saiu":                    "Disse «sim.» Depois saiu",
		"Acabou em 1945. 1946 foi melhor.":            "Acabou em 1945.|1946 foi melhor.",
		"":                                            "",
	} {
		var got []string
		for _, s := range Sentences(text) {
			got = append(got, text[s[0]:s[1]])
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzSegments(f *testing.F) {
	f.Add("Em 1940. Sr. Silva\n\n", 3)
	f.Add(twoDates, 10)
	f.Fuzz(func(t *testing.T, text string, at int) {
		last := 0
		for _, s := range Sentences(text) {
			if s[0] < last || s[1] <= s[0] || s[1] > len(text) {
				t.Fatalf("%q: sentence %v after %d", text, s, last)
			}
			last = s[1]
		}
		for _, opts := range []SegmentOptions{{}, {Sentences: true}} {
			links := 0
			for _, g := range Segments([]Block{{Text: text, Links: []Link{{Key: "a", At: at & 0xffff}}}}, time.Time{},
				opts) {
				links += len(g.Links)
			}
			if at&0xffff < len(text) && links != 1 {
				t.Fatalf("%q: the link at %d is in %d segments", text, at&0xffff, links)
			}
		}
	})
}

// A block with very many dates, sentences and links is cut in linear time.
func TestSegmentsLarge(t *testing.T) {
	n := 20_000
	if testing.Short() {
		n = 2000
	}
	text := strings.Repeat("Em 1940 foi. Em maio de 1950 veio. ", n)
	block := Block{Text: text}
	for i := range n {
		block.Links = append(block.Links, Link{Key: "k", At: (i * 7919) % len(text)})
	}
	start := time.Now()
	segments := Segments([]Block{block}, time.Time{}, SegmentOptions{Sentences: true})
	links := 0
	for _, g := range segments {
		links += len(g.Links)
	}
	if took := time.Since(start); links != n || len(segments) != 2*n || took > 20*time.Second {
		t.Errorf("%d links, %d segments in %v", links, len(segments), took)
	}
}
