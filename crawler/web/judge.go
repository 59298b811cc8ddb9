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

// These limits say how much of a text is judged, in bytes from its beginning. They are bytes and
// not time, because the result must not depend on the speed of the peer. The periods of 32 KiB take
// about 0.5 ms, the fingerprint of 16 KiB about 0.3 ms (BenchmarkJudge).
const (
	maxDated       = 32 << 10
	MaxFingerprint = 16 << 10 // bytes of a page's text that its fingerprint is made of
	minCopied      = 200      // a text of fewer bytes is a heading or a notice, not a copy
)

// place returns the most certain place that the page declares. It returns nil when the page
// declares none or none that the gazetteer knows. The page's language and domain help to choose
// between places with the same name. The gazetteer is opened at the first page that declares a
// place, because most crawls meet few.
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

// surer reports whether a is more certain than b. Coordinates come first, then a town before its
// country, then the higher confidence.
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

// judge adds to rec the results of the gazetteer, crawler/judge/period and
// crawler/judge/duplicates. spoken is the part of its text that may mention times. The results
// depend only on the page. If one of them panics, judge returns an error and that result is
// missing.
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
		p := duplicates.NewFingerprint(duplicates.Text{Text: Fingerprinted(rec.Text)})
		rec.Copies = store.Fingerprint(duplicates.FingerprintVersion, p.Bits, p.Content)
	}
	return nil
}

// speaksOf returns the periods that rec's title and the spoken part of its text mention. A date
// that is relative to the day of writing counts only when the page says which day that was.
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

// Fingerprinted returns the part of a page's text that its fingerprint is made of.
func Fingerprinted(text string) string { return head(text, MaxFingerprint) }

// head returns the first most bytes of text, without a character that this would cut in two.
func head(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && text[most]&0xC0 == 0x80 {
		most--
	}
	return text[:most]
}
