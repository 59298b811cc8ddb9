package crawler

import (
	"strings"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Where a link is taken to lead into a trap. Both bounds are far above what the
// pages of people have, and a link that they leave out is counted in Stats.
const (
	maxRepeats  = 4  // times one segment stands in a path, or one name in a query
	maxSegments = 40 // of a path
)

// trap says why a link on the page from to k is not followed, "" when it is: a
// path that repeats itself (a relative link on an error page, resolved again and
// again) or has no end, or a calendar turned to where nothing is. It depends on
// the two addresses alone, and on the year, so that what is crawled of a site
// depends neither on the peer nor on the order of its pages.
func trap(from, k partition.Key, now time.Time) string {
	_, rest, ok := strings.Cut(k.URL(), "://")
	if !ok {
		return ""
	}
	path, query, _ := strings.Cut(rest, "?")
	if strings.Count(path, "/") > maxSegments {
		return "deep-path"
	}
	if repeats(path, "/", func(s string) string { return s }) {
		return "repetition"
	}
	if repeats(query, "&", func(s string) string { name, _, _ := strings.Cut(s, "="); return name }) &&
		len(query) > 200 {
		return "repetition" // a short query may well ask for several of a kind
	}
	if calendar(from.URL(), k.URL(), now.UTC().Year()) {
		return "calendar"
	}
	return ""
}

// repeats says whether a part of text, by what names it, stands there more than
// maxRepeats times. Parts of one character do not count (dates, pages, a/b/c).
func repeats(text, sep string, name func(string) string) bool {
	if strings.Count(text, sep) < maxRepeats {
		return false
	}
	seen := map[string]int{}
	for part := range strings.SplitSeq(text, sep) {
		if part = name(part); len(part) < 2 {
			continue
		}
		if seen[part]++; seen[part] > maxRepeats {
			return true
		}
	}
	return false
}
