package web

import (
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
)

// directives are what meta robots and X-Robots-Tag say.
type directives struct{ noIndex, noFollow, noArchive bool }

// with is the union: the most restrictive of both holds.
func (d directives) with(e directives) directives {
	return directives{d.noIndex || e.noIndex, d.noFollow || e.noFollow, d.noArchive || e.noArchive}
}

// parseDirectives reads "noindex, nofollow", "none" and ignores the rest.
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

// headerDirectives reads X-Robots-Tag headers. One may begin with the name of
// the agent it is for; after that name its directives are for that agent only.
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

// dateNames are the meta names and properties, lower case, that hold when a
// page was published, the first one that parses wins.
var dateNames = [...]string{"article:published_time", "og:published_time", "datepublished", "date.issued",
	"dc.date.issued",
	"dcterms.issued", "dcterms.created", "dc.date", "citation_publication_date", "publication_date", "pubdate", "date"}

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

// plausible says whether t is a time of this web.
func plausible(t time.Time) bool {
	t = t.UTC()
	return t.Year() >= 1990 && t.Year() <= 2100
}

// parseDate reads a date of this web: years 1990 to 2100, UTC when no zone is given.
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
