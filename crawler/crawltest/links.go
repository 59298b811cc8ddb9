package crawltest

import (
	"strconv"
	"strings"
)

// fanOut is the number of children per node in the trees that make every article and every site
// reachable.
const fanOut = 4

// links returns the links on page r.
func (w *World) links(r ref) []Link {
	l := linker{w: w, from: r}
	switch r.area {
	case areaArticle:
		l.tree()
		l.random()
		if r.n == 0 {
			l.sites()
			l.specials()
		}
	case areaEnd:
		l.add(ref{r.site, areaBeyond, 1}, false)
	case areaPrivate:
		l.add(ref{r.site, areaPrivate, r.n%privatePages + 1}, false)
	case areaCalendar, areaMaze:
		l.add(ref{site: r.site}, false)
		l.add(ref{r.site, r.area, r.n + 1}, false)
	default:
		l.add(ref{site: r.site}, false)
		l.random()
	}
	return l.links
}

// linker collects the links of one page.
type linker struct {
	w     *World
	from  ref
	links []Link
}

// tree links an article to its children in the site.
func (l *linker) tree() {
	for c := l.from.n*fanOut + 1; c <= l.from.n*fanOut+fanOut && c < l.w.opts.Pages; c++ {
		l.add(ref{l.from.site, areaArticle, c}, false)
	}
}

// sites links a home page to its children in the tree of sites.
func (l *linker) sites() {
	for c := l.from.site*fanOut + 1; c <= l.from.site*fanOut+fanOut && c < l.w.opts.Sites; c++ {
		l.add(ref{site: c}, false)
	}
}

// random adds Options.Degree links to random articles.
func (l *linker) random() {
	w := l.w
	rng := w.draw(drawLinks, l.from.site, textKey(l.from))
	for range w.opts.Degree {
		to := ref{l.from.site, areaArticle, rng.IntN(w.opts.Pages)}
		if w.opts.Sites > 1 && rng.Float64() < w.opts.Cross {
			to.site = (to.site + 1 + rng.IntN(w.opts.Sites-1)) % w.opts.Sites
		}
		l.add(to, false)
	}
}

// specials links a home page to everything that is not an article, and to addresses that a crawler
// must not reach.
func (l *linker) specials() {
	s := l.from.site
	for _, r := range []ref{{s, areaCopy, l.w.special(s)}, {s, areaMoved, l.w.special(s)}, {s, areaChain, 1},
		{s, areaRing, 1}, {s, areaGone, 1},
		{s, areaDraft, 1}, {s, areaUnvoted, 1}, {s, areaEnd, 1}, {s, areaPrivate, 1}, {s, areaPrivate, 2},
		{s, areaCalendar, 0}, {s, areaMaze, 0}} {
		if l.w.has(s, r.area) {
			l.add(r, r.area == areaUnvoted)
		}
	}
	if s%7 == 2 && !l.w.opts.Plain {
		for _, href := range forbidden(l.w.opts.Port) {
			l.links = append(l.links, Link{URL: href, Href: href, Anchor: "interno"})
		}
	}
}

// forbidden returns links to addresses that an outside crawler must not reach. The loopback ones
// have the world's port, where Start listens and counts such requests.
func forbidden(port int) []string {
	p := ":" + strconv.Itoa(port) + "/"
	return []string{"http://169.254.169.254/latest/meta-data/", "http://10.0.0.1/admin", "http://192.168.1.1/",
		"http://[::1]" + p,
		"http://0x7f.1" + p, "http://127.0.0.1" + p, "http://2130706433" + p, "http://[::ffff:127.0.0.1]" + p,
		"http://localhost" + p}
}

// add appends a link. It writes the URL in one of the forms that real pages use for the same URL.
func (l *linker) add(to ref, noFollow bool) {
	path := l.w.path(to)
	canonical := "http://" + l.w.hostport(to.site) + path
	href := canonical
	local := to.site == l.from.site
	switch shape := l.w.draw(drawShape, l.from.site, textKey(l.from)<<8+len(l.links)).IntN(8); {
	case shape == 0:
		href += "#ler"
	case shape == 1:
		href = strings.TrimPrefix(canonical, "http:")
	case shape == 2:
		href = "HTTP://" + strings.ToUpper(l.w.hostport(to.site)) + path
	case shape <= 4 && local:
		href = path
	case shape == 5 && local:
		href = "/./x/.." + path
	case shape == 6:
		href = "  " + canonical + "\n"
	}
	anchor := strings.Trim(strings.ReplaceAll(path, "-", " "), "/")
	if anchor == "" {
		anchor = l.w.Host(to.site)
	}
	l.links = append(l.links, Link{URL: canonical, Href: href, Anchor: anchor, NoFollow: noFollow})
}
