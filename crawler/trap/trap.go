// Package trap finds links that lead into an endless site: paths that repeat themselves, paths that
// are too long, and calendars. It is pure.
package trap

import (
	"strings"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Limits above which a link leads into a trap. They are far above what pages made by people have.
// crawler.Stats counts each link that they leave out.
const (
	maxRepeats  = 4  // how often one segment may be in a path, or one name in a query
	maxSegments = 40 // segments of a path
)

// Of returns why a link on the page from to k is not followed; "" if it is followed. A link is
// not followed in three cases. Its path repeats itself (a relative link on an error page, resolved
// again and again). Its path is too long. Or a calendar leads to a year without entries.
//
// The result depends only on the two addresses and the year. So the pages crawled of a site depend
// neither on the peer nor on the order of the pages.
func Of(from, k partition.Key, now time.Time) string {
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
		return "repetition" // a short query may ask for several of a kind
	}
	if calendar(from.URL(), k.URL(), now.UTC().Year()) {
		return "calendar"
	}
	return ""
}

// repeats reports whether a part of text is there more than maxRepeats times. name returns the name
// of a part, which is compared. Parts of one character do not count (dates, pages, a/b/c).
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
