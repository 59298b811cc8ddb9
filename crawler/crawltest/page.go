package crawltest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// area is the kind of page that a path leads to.
type area uint8

const (
	areaArticle  area = iota // n is the number of the article; 0 is the home page
	areaCopy                 // article n under another path, with the same bytes
	areaMoved                // 301 to article n
	areaChain                // 302, 302, 301: n of chainLength; the last leads to another site
	areaRing                 // two 302 redirects that lead to each other
	areaGone                 // 404, though linked
	areaDraft                // noindex
	areaUnvoted              // linked only with rel=nofollow
	areaEnd                  // meta nofollow
	areaBeyond               // linked only from areaEnd
	areaPrivate              // disallowed by robots.txt
	areaCalendar             // disallowed by robots.txt, n months, endless
	areaMaze                 // n steps, endless
)

const (
	chainLength  = 3
	privatePages = 3
	// maxSteps is the last page of the calendar and of the maze. It is far beyond what the crawl of
	// a test fetches, and it limits the paths that are parsed.
	maxSteps = 2000
)

// ref identifies one page.
type ref struct {
	site int
	area area
	n    int
}

// Link is one link on a page.
type Link struct {
	URL      string // canonical
	Href     string // as written in the page
	Anchor   string
	NoFollow bool // rel=nofollow
}

// Page is the truth about one URL.
type Page struct {
	URL      string
	Status   int
	Redirect string // target of a 3xx, canonical
	Title    string
	Lang     string // BCP 47
	Text     string // the article, blank lines between paragraphs; no headings, no links
	Token    string // a word that occurs only on this page and its copies
	Links    []Link
	NoIndex  bool // the page has noindex
	NoFollow bool // the page has nofollow
	// Disallowed reports whether the site's robots.txt disallows the page.
	Disallowed bool
	Maze       bool
}

// Page returns the truth about a canonical URL of this world. It returns false if there is no such
// page.
func (w *World) Page(url string) (Page, bool) {
	r, ok := w.parse(url)
	if !ok {
		return Page{}, false
	}
	return w.page(r), true
}

// has reports whether site s has area a. Every world of at least ten sites has all areas; the maze
// needs Options.Maze.
func (w *World) has(s int, a area) bool {
	if a == areaMaze {
		return w.opts.Maze && s%10 == 6
	}
	if w.opts.Plain {
		return a == areaArticle
	}
	switch a {
	case areaArticle:
		return true
	case areaCopy:
		return s%3 == 0 && w.opts.Pages > 1
	case areaMoved:
		return s%2 == 1
	case areaChain:
		return s%5 == 3
	case areaRing:
		return s%10 == 7
	case areaGone:
		return s%4 == 2
	case areaDraft:
		return s%4 == 0
	case areaUnvoted, areaEnd, areaBeyond:
		return s%4 == 1
	case areaPrivate:
		return s%5 == 0
	case areaCalendar:
		return s%8 == 1
	}
	return false
}

// path returns the canonical path of r.
func (w *World) path(r ref) string {
	v := w.vocabOf(r.site)
	switch r.area {
	case areaArticle:
		if r.n == 0 {
			return "/"
		}
		return "/" + v.articles + "/" + w.topicOf(r.site, r.n).slug + "-" + strconv.Itoa(r.n)
	case areaCalendar:
		return fmt.Sprintf("/agenda/%d/%d", 2026+r.n/12, r.n%12+1)
	case areaMaze:
		return "/eco" + strings.Repeat("/eco", r.n)
	}
	return "/" + areaSegment[r.area] + "/" + strconv.Itoa(r.n)
}

// areaSegment holds the first path segment of the areas with numbered pages. The others have none.
var areaSegment = [...]string{areaCopy: "copia", areaMoved: "antigo", areaChain: "salto", areaRing: "anel",
	areaGone:  "perdido",
	areaDraft: "rascunho", areaUnvoted: "patrocinado", areaEnd: "fim", areaBeyond: "apos", areaPrivate: "privado"}

// parsePath is the inverse of path.
func (w *World) parsePath(s int, path string) (ref, bool) {
	r, ok := w.guess(s, path)
	return r, ok && w.has(s, r.area) && w.exists(r) && w.path(r) == path
}

// guess parses a path without a check that the page exists.
func (w *World) guess(s int, path string) (ref, bool) {
	if path == "/" {
		return ref{site: s}, true
	}
	seg := strings.Split(strings.TrimPrefix(path, "/"), "/")
	last := seg[len(seg)-1]
	switch {
	case seg[0] == "eco":
		return ref{s, areaMaze, len(seg) - 1}, len(seg) <= maxSteps
	case seg[0] == "agenda" && len(seg) == 3:
		year, err1 := strconv.Atoi(seg[1])
		month, err2 := strconv.Atoi(last)
		return ref{s, areaCalendar, (year-2026)*12 + month - 1}, err1 == nil && err2 == nil
	case len(seg) != 2:
		return ref{}, false
	case seg[0] == w.vocabOf(s).articles:
		n, err := strconv.Atoi(last[strings.LastIndexByte(last, '-')+1:])
		return ref{s, areaArticle, n}, err == nil
	}
	n, err := strconv.Atoi(last)
	if err != nil {
		return ref{}, false
	}
	a := slices.Index(areaSegment[:], seg[0])
	return ref{s, area(max(a, 0)), n}, a > 0
}

// exists reports whether r's area has a page with r's number.
func (w *World) exists(r ref) bool {
	switch r.area {
	case areaArticle:
		return r.n >= 0 && r.n < w.opts.Pages
	case areaCopy, areaMoved:
		return r.n == w.special(r.site)
	case areaChain:
		return r.n >= 1 && r.n <= chainLength
	case areaRing:
		return r.n == 1 || r.n == 2
	case areaPrivate:
		return r.n >= 1 && r.n <= privatePages
	case areaCalendar, areaMaze:
		return r.n >= 0 && r.n < maxSteps
	}
	return r.n == 1
}

// special returns the number of the article of site s that has a copy and an old URL.
func (w *World) special(s int) int { return min(1+s%3, w.opts.Pages-1) }

// page returns the truth about r.
func (w *World) page(r ref) Page {
	p := Page{URL: w.url(r), Status: http.StatusOK, Lang: w.Lang(r.site)}
	switch r.area {
	case areaMoved:
		p.Status, p.Redirect = http.StatusMovedPermanently, w.url(ref{r.site, areaArticle, r.n})
		return p
	case areaChain:
		p.Status, p.Redirect = http.StatusFound, w.url(ref{r.site, areaChain, r.n + 1})
		if r.n == chainLength {
			p.Status, p.Redirect = http.StatusMovedPermanently,
				w.url(ref{(r.site + 7) % w.opts.Sites, areaArticle, w.opts.Pages - 1})
		}
		return p
	case areaRing:
		p.Status, p.Redirect = http.StatusFound, w.url(ref{r.site, areaRing, 3 - r.n})
		return p
	case areaGone:
		p.Status = http.StatusNotFound
		return p
	case areaCopy:
		r.area = areaArticle
	}
	p.NoIndex = r.area == areaDraft
	p.NoFollow = r.area == areaEnd
	p.Disallowed = r.area == areaPrivate || r.area == areaCalendar
	p.Maze = r.area == areaMaze
	w.write(&p, r)
	p.Links = w.links(r)
	return p
}
