package temporal

import (
	"testing"
	"time"
)

func TestFindDocDate(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name     string
		evidence DateEvidence
		want     string
	}{
		{"nothing", DateEvidence{}, ""},
		{"json-ld", DateEvidence{JSONLD: []string{"2013-01-21T10:00:00+01:00"}, URL: "http://x/2012/01/01/"},
			"2013-01-21 jsonld"},
		{"meta", DateEvidence{Meta: []string{"rubbish", "2013-01-21"}, LastModified: "Mon, 02 Jan 2006 15:04:05 GMT"},
			"2013-01-21 meta"},
		{"byline", DateEvidence{Byline: []string{"Publicado a 3 de Maio de 2010 às 14:30"}}, "2010-05-03 byline"},
		{"byline without a year", DateEvidence{Byline: []string{"3 de Maio"}}, ""},
		{"url day", DateEvidence{URL: "http://x.pt/noticias/2010/05/03/titulo"}, "2010-05-03 url"},
		{"url month", DateEvidence{URL: "http://x.pt/2010/05/titulo-de-1945"}, "2010-05-01 url"},
		{"url in one", DateEvidence{URL: "http://x.pt/a-20100503-b"}, "2010-05-03 url"},
		{"url of another number", DateEvidence{URL: "http://x.pt/12345678/2010"}, ""},
		{"last modified", DateEvidence{LastModified: "Mon, 02 Jan 2006 15:04:05 GMT"}, "2006-01-02 last-modified"},
		{"the future is passed over", DateEvidence{Meta: []string{"2031-01-01"}, URL: "http://x/2010/05/03"},
			"2010-05-03 url"},
		{"before 1990 too", DateEvidence{JSONLD: []string{"1974-04-25"}, Meta: []string{"1999-04-25"}},
			"1999-04-25 meta"},
		{"tomorrow is a time zone", DateEvidence{Meta: []string{"2026-11-22"}}, "2026-11-22 meta"},
	} {
		found, ok := FindDocDate(c.evidence, now)
		got := ""
		if ok {
			got = found.Date.Format(time.DateOnly) + " " + found.Source
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	alone, _ := FindDocDate(DateEvidence{URL: "http://x/2010/05/03"}, now)
	both, _ := FindDocDate(DateEvidence{Byline: []string{"3 de maio de 2010"}, URL: "http://x/2010/05/03"}, now)
	if both.Confidence <= trustByline || alone.Confidence != trustURL || both.Confidence >= 1 {
		t.Errorf("confidence alone %v, agreed %v", alone.Confidence, both.Confidence)
	}
}

func FuzzFindDocDate(f *testing.F) {
	f.Add("http://x/2010/05/03", "3 de maio de 2010")
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, url, byline string) {
		found, ok := FindDocDate(DateEvidence{URL: url, Byline: []string{byline}, LastModified: byline}, now)
		far := found.Date.Year() < 1990 || found.Date.After(now.AddDate(0, 0, 2))
		if ok && (far || found.Confidence <= 0 || found.Confidence > 1) {
			t.Fatalf("%+v", found)
		}
	})
}
