package period

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// written is a day of writing, a Monday.
var written = time.Date(2013, 1, 21, 15, 0, 0, 0, time.UTC)

func TestRules(t *testing.T) {
	if _, err := parseRules(lexiconText, rulesText); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ lexicon, rules string }{
		{"", "a b"}, {"", "a => nothing"}, {"", "%x => date"}, {"", "a => date x"}, {"month: a", ""},
		{"month a: b", ""}, {"", "a ? => date"},
	} {
		if _, err := parseRules(c.lexicon, c.rules); err == nil {
			t.Errorf("%q %q is accepted", c.lexicon, c.rules)
		}
	}
}

// The field names are part of the command line's interface.
func TestJSON(t *testing.T) {
	got, err := json.Marshal(Tag("em junho de 2000", time.Time{}))
	want := `[{"text":"junho de 2000","start":"2000-06-01","end":"2000-06-30","value":"2000-06-XX","grain":"month","kind":"explicit","form":"date"}]`
	if err != nil || string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestValues(t *testing.T) {
	for phrase, want := range map[string]string{
		"1 de Maio, 2010":         "2010-05-01 day explicit date",
		"Junho de 2000":           "2000-06-XX month explicit date",
		"em 2008":                 "2008-XX-XX year explicit date",
		"anos 40":                 "194X-XX-XX decade explicit date",
		"século XIX":              "18XX-XX-XX century explicit date",
		"terceiro milénio":        "2XXX-XX-XX millennium explicit date",
		"de Abril a Maio de 2009": "2009-04-XX/2009-05-XX month explicit interval",
		"verão de 2012":           "2012-06-XX/2012-09-XX season explicit date",
		"Q2 2010":                 "2010-04-XX/2010-06-XX quarter explicit date",
		"Dia de Natal 2010":       "2010-12-25 day implicit date",
		"semana passada":          "2013-W03 week deictic date",
		"há duas semanas":         "2013-01-07 day deictic date",
		"dois dias depois":        "2013-01-23 day anaphoric date",
		"nos últimos dois anos":   "2011-01-21/2013-01-21 interval deictic interval",
		"recentemente":            "PAST_REF  vague date",
		"durante dois meses":      "P2M month explicit duration",
		"todas as semanas":        "R/P1W week explicit frequency",
		"44 a.C.":                 "-0043-XX-XX year explicit date",
	} {
		found := Tag(phrase, written)
		if len(found) != 1 {
			t.Errorf("%q: %d expressions", phrase, len(found))
			continue
		}
		e := found[0]
		if got := strings.Join([]string{e.Value, string(e.Grain), string(e.Kind), string(e.Form)}, " "); got != want {
			t.Errorf("%q: %s, want %s", phrase, got, want)
		}
	}
}

// Without a day of writing, relative expressions stay unresolved, and keep the parts that are
// known.
func TestWithoutReference(t *testing.T) {
	for phrase, want := range map[string]string{
		"em maio": "XXXX-05-XX", "25 de abril": "XXXX-04-25", "ontem": "XXXX-XX-XX", "no próximo ano": "XXXX-XX-XX",
		"há duas semanas": "XXXX-XX-XX", "na segunda-feira": "XXXX-WXX-1", "no Natal": "XXXX-12-25",
		"no verão":         "XXXX-06-XX/XXXX-09-XX",
		"dois dias depois": "XXXX-XX-XX", "recentemente": "PAST_REF", "às 14h30": "T14:30",
		"século passado":  "XXXX-XX-XX",
		"29 de fevereiro": "XXXX-02-29", "este fim de semana": "XXXX-WXX-WE", "nos últimos dois anos": "XXXX-XX-XX",
	} {
		found := Tag(phrase, time.Time{})
		if len(found) != 1 || found[0].Value != want || found[0].Dated {
			t.Errorf("%q: %+v, want %s", phrase, found, want)
		}
	}
	found := Tag("Em 1940 casou. Dois anos depois, em maio, partiu.", time.Time{})
	if len(found) != 3 || found[1].Start != "1942-01-01" || found[2].Start != "1942-05-01" {
		t.Errorf("dates before in the text: %+v", found)
	}
}

// A new paragraph does not use the year of another one if there is a day of writing.
func TestParagraphs(t *testing.T) {
	found := Tag("Em 1940 casou.\n\nEm maio há eleições.", written)
	if len(found) != 2 || found[1].Start != "2013-05-01" {
		t.Errorf("%+v", found)
	}
	blocks := TagBlocks([]string{"Em 1940 casou.", "No ano seguinte partiu. 1 de\n\nMaio"}, written)
	if len(blocks) != 2 || len(blocks[1]) != 2 || blocks[1][0].Start != "1941-01-01" || blocks[1][1].Text != "Maio" {
		t.Errorf("%+v", blocks)
	}
}

func FuzzTag(f *testing.F) {
	for _, line := range []string{"de 1 de Abril a 2 de Maio de 2009", "séc. V a.C. e 1939-45", "há 9999 milénios",
		"daqui a 9999 séculos", "31/02/2010", "29 de fevereiro de 2011", "às 14h30 \n\n dois dias depois", "9999 a.C.",
		"millennium 40º"} {
		f.Add(line, int64(0))
	}
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		ref := time.Unix(unix%(1<<36), 0).UTC()
		last := 0
		for _, e := range Tag(text, ref) {
			if e.From < last || e.To <= e.From || e.To > len(text) || e.Text != text[e.From:e.To] {
				t.Fatalf("%q: %+v after %d", text, e, last)
			}
			if e.Dated && e.Span.Start > e.Span.End {
				t.Fatalf("%q: %+v ends before it starts", text, e)
			}
			if e.Value == "" || e.Kind == "" || e.Form == "" {
				t.Fatalf("%q: %+v is not complete", text, e)
			}
			if utf8.ValidString(text) && !utf8.ValidString(e.Text) {
				t.Fatalf("%q: cut inside a letter: %q", text, e.Text)
			}
			last = e.To
		}
	})
}

func TestDays(t *testing.T) {
	day := time.Date(-10, 1, 1, 0, 0, 0, 0, time.UTC)
	for d := DayOf(day); day.Year() < 2500; day = day.AddDate(0, 0, 13) {
		y, m, dd := d.Date()
		if y != day.Year() || m != int(day.Month()) || dd != day.Day() || NewDay(y, m, dd) != d {
			t.Fatalf("%v is %d-%d-%d", day, y, m, dd)
		}
		if want := (int(day.Weekday())+6)%7 + 1; d.Weekday() != want {
			t.Fatalf("%v is weekday %d, want %d", day, d.Weekday(), want)
		}
		if _, week := day.ISOWeek(); y > 0 && !strings.HasSuffix(isoWeek(d), "-W"+two(week)) {
			t.Fatalf("%v is %s, want week %d", day, isoWeek(d), week)
		}
		d += 13
	}
	for year, want := range map[int]string{1818: "1818-03-22", 1943: "1943-04-25", 2000: "2000-04-23",
		2008: "2008-03-23", 2025: "2025-04-20", 2038: "2038-04-25"} {
		if got := easter(year).String(); got != want {
			t.Errorf("Easter %d is %s, want %s", year, got, want)
		}
	}
}

func two(n int) string { return string([]byte{'0' + byte(n/10), '0' + byte(n%10)}) }

// page returns about 90 KB of prose with some 100 dates.
func page(t testing.TB) string {
	t.Helper()
	paragraph := "O tratado foi assinado em 22 de Outubro de 1943, dois anos depois da conferência, e entrou em vigor no ano seguinte. " +
		"Nos anos 40 a cidade tinha 1945 habitantes; a Rua 1.º de Maio ligava a estação ao porto, onde a segunda companhia esperava. " +
		"As obras continuaram sem grandes sobressaltos, com a população a crescer e o comércio a prosperar em toda a região do litoral. " +
		"Os jornais da época não deram grande atenção ao assunto, que só mais tarde viria a ser estudado por vários investigadores.\n\n"
	return strings.Repeat(paragraph, 90_000/len(paragraph)+1)
}

// TestPageTime checks a loose limit. BenchmarkPage measures.
func TestPageTime(t *testing.T) {
	text := page(t)
	Tag("1999", written) // compiles the rules
	best := time.Hour
	for range 5 {
		start := time.Now()
		Tag(text, written)
		best = min(best, time.Since(start))
	}
	t.Logf("%d bytes in %v", len(text), best)
	if best > 500*time.Millisecond {
		t.Errorf("%d bytes took %v", len(text), best)
	}
}

func BenchmarkPage(b *testing.B) {
	text := page(b)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Tag(text, written)
	}
}

// Long runs of words that begin many patterns must take linear time.
func TestTagLinear(t *testing.T) {
	for _, piece := range []string{"de 1 a ", "1, 2 e ", "2010-", "dia 1 de maio de ", "X ", "anos 40 e ", "Rua de ",
		"' ", "1º ", "segunda-"} {
		text := strings.Repeat(piece, 60_000/len(piece))
		start := time.Now()
		Tag(text, written)
		took := time.Since(start)
		t.Logf("%q: %v", piece, took)
		if took > 5*time.Second { // some milliseconds on an idle machine
			t.Errorf("%q repeated took %v", piece, took)
		}
	}
}
