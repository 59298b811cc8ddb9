package web

import (
	"fmt"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/judge/duplicates"
	"github.com/echo-node/echo-node/crawler/judge/period"
	"github.com/echo-node/echo-node/partition/geo"
	"github.com/echo-node/echo-node/store"
)

// What is judged of a text, in bytes from its beginning. Bytes and not time: what
// a peer finds must not depend on how fast it is. The times of 32 KiB take some 0.5 ms,
// the print of 16 KiB some 0.3 (BenchmarkJudge).
const (
	maxDated  = 32 << 10
	MaxPrint  = 16 << 10 // of a page's text, for its print
	minCopied = 200      // under so many bytes a text is a heading or a notice, not a copy of anything
)

// place is where a page declares to be: the surest of what it says, nil when it
// says nothing or nothing known. Its language and its domain help to tell places
// of one name apart. The gazetteer is opened for the first page that says so: most
// crawls come upon few.
func (s *Source) place(rec *store.Record) (*store.Place, error) {
	if len(rec.Declared) == 0 {
		return nil, nil
	}
	g, err := s.o.Places()
	if err != nil {
		return nil, err
	}
	hints := geo.Hints{Language: rec.Lang}
	if host := rec.Key.Host(); len(host) > 3 && host[len(host)-3] == '.' {
		hints.Country = strings.ToUpper(host[len(host)-2:])
	}
	var best geo.Resolution
	for _, text := range rec.Declared[:min(len(rec.Declared), geo.MaxDeclared)] {
		r := g.Resolve(text, hints)
		if r.Place != nil && (best.Place == nil || surer(r, best)) {
			best = r
		}
	}
	if best.Place == nil {
		return nil, nil
	}
	p := best.Place
	return &store.Place{Name: p.Name, Country: p.Country, Lat: p.Lat, Lon: p.Lon, Confidence: best.Confidence}, nil
}

// surer says whether a tells the place better than b: coordinates, then a town
// rather than its country, then the higher confidence.
func surer(a, b geo.Resolution) bool {
	rank := func(r geo.Resolution) (n int) {
		if r.Evidence == "coordinates" {
			n += 2
		}
		if r.Place.Admin1 != "" {
			n++
		}
		return n
	}
	if rank(a) != rank(b) {
		return rank(a) > rank(b)
	}
	return a.Confidence > b.Confidence
}

// judge adds to rec what the judges of crawler/judge and the gazetteer say of
// it. spoken is the part of its text that may speak of times. What they say is a
// function of the page alone, but for the times of fetching.
// A panic of one of them is an error, and what it would have said is missing.
func (s *Source) judge(rec *store.Record, spoken string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("web: judge: a judge panicked: %.80v", r)
		}
	}()
	if rec.Place, err = s.place(rec); err != nil {
		return fmt.Errorf("web: judge: %w", err)
	}
	if rec.Text == "" {
		return nil
	}
	rec.Period = speaksOf(rec, spoken)
	if len(rec.Text) >= minCopied {
		p := duplicates.NewPrint(duplicates.Text{Text: Printed(rec.Text)})
		rec.Copies = store.Fingerprint(duplicates.PrintVersion, p.Bits, p.Content)
	}
	return nil
}

// speaksOf is the time that rec's title and the spoken part of its text speak of. What points from the day of
// writing counts only when the page says which day that was.
func speaksOf(rec *store.Record, spoken string) []store.Interval {
	var written time.Time
	if rec.PublishedAt != nil {
		written = *rec.PublishedAt
	}
	said := period.Tag(rec.Title+"\n\n"+head(spoken, maxDated), written)
	var out []store.Interval
	for _, span := range period.Content(said, store.MaxPeriod) {
		out = append(out, store.Interval{Start: span.Start.String(), End: span.End.String()})
	}
	return out
}

// Printed is the part of a page's text that its print is made of.
func Printed(text string) string { return head(text, MaxPrint) }

// head is the first most bytes of text, less a rune that they would cut.
func head(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && text[most]&0xC0 == 0x80 {
		most--
	}
	return text[:most]
}
