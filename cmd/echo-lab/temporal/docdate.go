package temporal

import (
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/judge/period"
)

// DateEvidence is what a page says about when it was written. It is empty if the page says
// nothing.
type DateEvidence struct {
	JSONLD       []string // datePublished, dateCreated, dateModified, in this order
	Meta         []string // article:published_time, dc.date, date ...
	Byline       []string // <time datetime>, visible lines such as "Publicado a 3 de maio de 2010"
	URL          string
	LastModified string // the HTTP header
}

// DocDate is the day on which a page was written.
type DocDate struct {
	Date       time.Time // midnight UTC
	Source     string    // jsonld, meta, byline, url or last-modified
	Confidence float64   // 0 to 1
}

// firstDocDay is the earliest day that counts as a page's date.
var firstDocDay = period.NewDay(1990, 1, 1)

// How much each source is trusted. Two sources that agree on a day are trusted more.
const (
	trustJSONLD   = 0.95
	trustMeta     = 0.9
	trustByline   = 0.75
	trustURL      = 0.8
	trustModified = 0.4
	agreement     = 0.5 // of the remaining doubt
)

// FindDocDate checks the evidence in order: JSON-LD, meta tags, byline, a date in the URL,
// Last-Modified. The page's date is the first date that is not before 1990 and not more than a
// day after now. ok is false if there is none.
func FindDocDate(e DateEvidence, now time.Time) (found DocDate, ok bool) {
	latest := period.DayOf(now.UTC()) + 1
	var chain []DocDate
	add := func(source string, trust float64, texts ...string) {
		for _, text := range texts {
			if day, ok := docDay(text, source == "url"); ok && day >= firstDocDay && day <= latest {
				y, m, d := day.Date()
				chain = append(chain, DocDate{time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC), source, trust})
				return
			}
		}
	}
	add("jsonld", trustJSONLD, e.JSONLD...)
	add("meta", trustMeta, e.Meta...)
	add("byline", trustByline, e.Byline...)
	add("url", trustURL, e.URL)
	add("last-modified", trustModified, e.LastModified)
	if len(chain) == 0 {
		return DocDate{}, false
	}
	found = chain[0]
	for _, other := range chain[1:] {
		if gap := found.Date.Sub(other.Date); gap.Abs() <= 24*time.Hour {
			found.Confidence += (1 - found.Confidence) * agreement
		}
	}
	return found, true
}

// maxDateText is how many bytes of a piece of evidence are read.
const maxDateText = 500

// docDay reads a day from one piece of evidence: a machine-readable format, or else the first
// complete date in words. For a URL, a month is enough.
func docDay(text string, url bool) (period.Day, bool) {
	text = strings.TrimSpace(text[:min(len(text), maxDateText)])
	for _, layout := range [...]string{time.RFC3339, time.RFC1123, time.RFC1123Z, time.RFC850, time.ANSIC,
		"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "20060102"} {
		if t, err := time.Parse(layout, text); err == nil {
			return period.DayOf(t), true
		}
	}
	if url {
		return urlDay(text)
	}
	for _, e := range period.Tag(text, time.Time{}) {
		if e.Dated && e.Grain == period.GrainDay && e.Kind == period.Explicit && e.Form == period.FormDate {
			return e.Span.Start, true
		}
	}
	return 0, false
}

// urlDay looks for /2010/05/01/, /2010-05-01, /20100501 and /2010/05/ in a path.
func urlDay(url string) (period.Day, bool) {
	if _, path, ok := strings.Cut(url, "://"); ok {
		url = path
	}
	_, path, _ := strings.Cut(url, "/")
	fields := strings.FieldsFunc(path, func(r rune) bool { return r < '0' || r > '9' })
	number := func(s string, n int) int {
		v := 0
		if len(s) != n {
			return 0
		}
		for _, c := range s {
			v = v*10 + int(c-'0')
		}
		return v
	}
	for i, f := range fields {
		if v := number(f, 8); v > 0 && validDate(v/10000, v/100%100, v%100) {
			return period.NewDay(v/10000, v/100%100, v%100), true
		}
		y := number(f, 4)
		if y == 0 || i+1 >= len(fields) {
			continue
		}
		m := number(fields[i+1], 2)
		if i+2 < len(fields) && validDate(y, m, number(fields[i+2], 2)) {
			return period.NewDay(y, m, number(fields[i+2], 2)), true
		}
		if validDate(y, m, 1) {
			return period.NewDay(y, m, 1), true
		}
	}
	return 0, false
}

func validDate(y, m, d int) bool {
	if y < 1990 || y >= 2200 || m < 1 || m > 12 || d < 1 {
		return false
	}
	// for a day after the end of the month this is the last day
	_, _, last := period.NewDay(y, m, d).Date()
	return d == last
}
