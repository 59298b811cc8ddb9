package crawltest

import (
	"net/http"
	"slices"
	"strings"
	"unicode"
)

// Expected returns the sorted set of URLs that a correct crawler fetches from these seeds, each
// once. The seeds are Seeds() or any canonical URLs of the world. The package comment gives the
// rules. Expected walks the whole world, which takes about 20 µs per page.
func (w *World) Expected(seeds []string) []string {
	found := make(map[string]bool)
	queue := make([]ref, 0, len(seeds))
	follow := func(url string) {
		if found[url] {
			return
		}
		r, ok := w.parse(url)
		if !ok || r.area == areaPrivate || r.area == areaCalendar || r.area == areaMaze {
			return
		}
		found[url] = true
		queue = append(queue, r)
	}
	for _, s := range seeds {
		follow(s)
	}
	for len(queue) > 0 {
		r := queue[0]
		queue = queue[1:]
		redirect, links := w.out(r)
		if redirect != "" {
			follow(redirect)
		}
		for _, l := range links {
			if !l.NoFollow {
				follow(l.URL)
			}
		}
	}
	return sorted(found)
}

// out returns where r leads for a crawler that follows the rules. It is page without the text.
func (w *World) out(r ref) (redirect string, links []Link) {
	switch r.area {
	case areaMoved, areaChain, areaRing:
		return w.page(r).Redirect, nil
	case areaGone, areaEnd:
		return "", nil
	case areaCopy:
		r.area = areaArticle
	}
	return "", w.links(r)
}

// Difference is the difference between a crawl and the expected one. Each list is sorted.
type Difference struct {
	Missing []string `json:"missing"` // expected but never fetched
	Extra   []string `json:"extra"`   // fetched but not expected (without the maze)
	Twice   []string `json:"twice"`   // fetched more than once
}

// None reports whether the crawl was exact.
func (d Difference) None() bool { return len(d.Missing)+len(d.Extra)+len(d.Twice) == 0 }

// SecondOfASite returns the URLs of Twice without the first one of each site. A crawler that
// requests one page of a site at a time, and the next only when the first is durable, has none.
// That holds even if it is killed at any time.
func (d Difference) SecondOfASite() (urls []string) {
	sites := map[string]bool{}
	for _, url := range d.Twice {
		_, rest, _ := strings.Cut(url, "://")
		host, _, _ := strings.Cut(rest, "/")
		if sites[host] {
			urls = append(urls, url)
		}
		sites[host] = true
	}
	return urls
}

// Compare compares what the server measured with expected, a result of Expected.
func (w *World) Compare(expected []string) Difference {
	missing, extra, twice := make(map[string]bool), make(map[string]bool), make(map[string]bool)
	for _, url := range expected {
		missing[url] = true
	}
	for url, n := range w.Fetched() {
		if n > 1 {
			twice[url] = true
		}
		if missing[url] {
			delete(missing, url)
		} else if r, ok := w.parse(url); ok && r.area != areaMaze {
			extra[url] = true
		}
	}
	return Difference{sorted(missing), sorted(extra), sorted(twice)}
}

// Matching returns the URLs in expected whose title or text contains the word, in any case. This is
// the true answer to a query for it. Copies are included. Pages with noindex, gone pages and
// redirects are not.
func (w *World) Matching(word string, expected []string) []string {
	word = strings.ToLower(word)
	var urls []string
	for _, url := range expected {
		p, ok := w.Page(url)
		if !ok || p.Status != http.StatusOK || p.NoIndex {
			continue
		}
		words := strings.FieldsFunc(strings.ToLower(p.Title+" "+p.Text),
			func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if slices.Contains(words, word) {
			urls = append(urls, url)
		}
	}
	return urls
}

// Words returns one useful search word per language: the noun of a topic. Each occurs on several
// pages.
func (w *World) Words() []string {
	var words []string
	for _, v := range w.vocab {
		name := v.topics[0].name
		words = append(words, name[strings.LastIndexByte(name, ' ')+1:])
	}
	return words
}
