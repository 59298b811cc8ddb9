package web

import (
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
)

// directives are the instructions of meta robots elements and X-Robots-Tag headers.
type directives struct{ noIndex, noFollow, noArchive bool }

// with returns the union of d and e: the more restrictive one holds.
func (d directives) with(e directives) directives {
	return directives{d.noIndex || e.noIndex, d.noFollow || e.noFollow, d.noArchive || e.noArchive}
}

// parseDirectives parses a list such as "noindex, nofollow" or "none". It ignores unknown words.
func parseDirectives(text string) (d directives) {
	for word := range strings.SplitSeq(strings.ToLower(text), ",") {
		switch strings.TrimSpace(word) {
		case "noindex":
			d.noIndex = true
		case "nofollow":
			d.noFollow = true
		case "none":
			d.noIndex, d.noFollow = true, true
		case "noarchive", "nocache":
			d.noArchive = true
		}
	}
	return d
}

// headerDirectives parses X-Robots-Tag headers. A header may begin with the name of an agent. The
// directives after that name are for that agent only.
func headerDirectives(values []string) (d directives) {
	for _, v := range values {
		mine := true
		for word := range strings.SplitSeq(v, ",") {
			if name, rest, ok := strings.Cut(word, ":"); ok {
				switch name = strings.ToLower(strings.TrimSpace(name)); name {
				case "unavailable_after", "max-snippet", "max-image-preview", "max-video-preview":
				default:
					mine, word = name == fetch.Token || name == "*", rest
				}
			}
			if mine {
				d = d.with(parseDirectives(word))
			}
		}
	}
	return d
}

// dateNames are the meta names and properties, in lower case, that hold the date of publication. An
// earlier name in the list wins over a later one, if its date parses.
var dateNames = [...]string{"article:published_time", "og:published_time", "datepublished", "date.issued",
	"dc.date.issued",
	"dcterms.issued", "dcterms.created", "dc.date", "citation_publication_date", "publication_date", "pubdate", "date"}

// dateRank returns the index of name in dateNames, or -1.
func dateRank(name string) int {
	for i, n := range dateNames {
		if n == name {
			return i
		}
	}
	return -1
}

var dateLayouts = [...]string{time.RFC3339Nano, "2006-01-02T15:04:05-0700", "2006-01-02T15:04Z07:00",
	"2006-01-02T15:04:05",
	"2006-01-02T15:04", "2006-01-02 15:04:05-07:00", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02", "2006-01",
	"2006/01/02", "20060102",
	time.RFC1123Z, time.RFC1123}

// plausible reports whether t is a possible date of a web page: year 1990 to 2100.
func plausible(t time.Time) bool {
	t = t.UTC()
	return t.Year() >= 1990 && t.Year() <= 2100
}

// parseDate parses a plausible date. Without a zone the date is in UTC.
func parseDate(text string) (time.Time, bool) {
	text = strings.TrimSpace(text)
	if len(text) > 40 {
		return time.Time{}, false
	}
	for _, l := range dateLayouts {
		if t, err := time.Parse(l, text); err == nil {
			return t.UTC(), plausible(t)
		}
	}
	return time.Time{}, false
}
