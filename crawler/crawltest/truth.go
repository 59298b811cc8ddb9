package crawltest

import (
	"net/http"
	"slices"
	"strings"
	"unicode"
)

// Expected is the sorted set of URLs that a correct crawler fetches, each once,
// when it is given these seeds (Seeds, or any canonical URLs of the world). See
// the package comment for the rules. It walks the whole world: about 20 µs a
// page.
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

// out is where r leads for one who obeys: page without its text.
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

// Difference is how a crawl differs from what was expected; each list sorted.
type Difference struct {
	Missing []string `json:"missing"` // expected, never fetched
	Extra   []string `json:"extra"`   // fetched, not expected (the maze excepted)
	Twice   []string `json:"twice"`   // fetched more than once
}

// None is true when the crawl was exact.
func (d Difference) None() bool { return len(d.Missing)+len(d.Extra)+len(d.Twice) == 0 }

// SecondOfASite are those of Twice that are not the first of their site: who
// asks a site for one page at a time, and for the next when the first is safe,
// has none, whenever it was killed.
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

// Compare holds what the server saw against expected, as Expected made it.
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

// Matching are the URLs among expected whose title or text has the word, in
// any case: the true answer to a query for it. Pages that say noindex, gone
// pages and redirects are no part of it; copies are.
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

// Words are words worth asking for, one a language, each on several pages: the
// slugs of topics.
func (w *World) Words() []string {
	var words []string
	for _, v := range w.vocab {
		name := v.topics[0].name
		words = append(words, name[strings.LastIndexByte(name, ' ')+1:])
	}
	return words
}
