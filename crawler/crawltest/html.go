package crawltest

import (
	"fmt"
	"html"
	"strings"
	"time"
)

// render returns the HTML of page p of site s. It also writes text that only looks like links: in a
// comment, in a script, and with schemes that crawlers must ignore.
func (w *World) render(s int, p Page) []byte {
	var b strings.Builder
	b.Grow(len(p.Text) + 256*len(p.Links) + 1024)
	charset := "utf-8"
	if w.latin1(s) {
		charset = "iso-8859-1"
	}
	fmt.Fprintf(&b, "<!doctype html>\n<html lang=%q>\n<head>\n<meta charset=%q>\n<title>%s</title>\n", p.Lang, charset,
		html.EscapeString(p.Title))
	if p.NoIndex && !w.headerRobots(s) {
		b.WriteString("<meta name=\"robots\" content=\"noindex, follow\">\n")
	}
	if p.NoFollow {
		b.WriteString("<meta name=\"ROBOTS\" content=\"NoFollow\">\n")
	}
	place, located := w.Place(s)
	if located {
		name := html.EscapeString(place.Name)
		fmt.Fprintf(&b, "<meta name=\"geo.position\" content=\"%.4f;%.4f\">\n<meta name=\"ICBM\" content=\"%.4f, %.4f\">\n<meta name=\"geo.placename\" content=\"%s\">\n",
			place.Lat, place.Lon, place.Lat, place.Lon, name)
	}
	b.WriteString("<style>p { margin: 1em }</style>\n</head>\n<body>\n")
	fmt.Fprintf(&b, "<main><article>\n<h1>%s</h1>\n", html.EscapeString(p.Title))
	for para := range strings.SplitSeq(p.Text, "\n\n") {
		b.WriteString("<p>" + html.EscapeString(para) + "</p>\n")
	}
	fmt.Fprintf(&b, "</article></main>\n<aside>\n<h2>%s</h2>\n<ul>\n", html.EscapeString(w.vocabOf(s).more))
	for _, l := range p.Links {
		rel := ""
		if l.NoFollow {
			rel = ` rel="sponsored NOFOLLOW"`
		}
		fmt.Fprintf(&b, "<li><a href=\"%s\"%s>%s</a></li>\n", html.EscapeString(l.Href), rel,
			html.EscapeString(l.Anchor))
	}
	b.WriteString("</ul>\n")
	if located {
		b.WriteString("<address>" + html.EscapeString(place.Name) + "</address>\n")
	}
	b.WriteString("<a href=\"mailto:info@example.test\">@</a> <a href=\"javascript:void(0)\">+</a> <a href=\"tel:+351000000000\">tel</a> <a href=\"#topo\">^</a>\n</aside>\n")
	b.WriteString("<!-- <a href=\"/comentario\">x</a> -->\n<script>document.title += '<a href=\"/script\">x</a>'</script>\n</body>\n</html>\n")
	return []byte(b.String())
}

// latin1 reports whether site s sends its pages in ISO 8859-1. The vocabulary fits into that
// character set.
func (w *World) latin1(s int) bool { return s%11 == 6 && !w.opts.Plain }

// headerRobots reports whether site s sends noindex in a header instead of in the page.
func (w *World) headerRobots(s int) bool { return s%8 == 4 }

// toLatin1 converts to ISO 8859-1. It drops other characters, but the vocabulary has none.
func toLatin1(utf []byte) []byte {
	out := make([]byte, 0, len(utf))
	for _, r := range string(utf) {
		if r < 256 {
			out = append(out, byte(r))
		}
	}
	return out
}

// robots returns the robots.txt of site s. "" means that the site has none and answers 404.
func (w *World) robots(s int) string {
	closed := w.has(s, areaPrivate) || w.has(s, areaCalendar)
	delay := w.crawlDelay(s)
	if !closed && delay == 0 && s%3 == 1 {
		return ""
	}
	text := "# " + w.Host(s) + "\nUser-agent: nobody-in-particular\nDisallow: /\n\nUser-agent: *\n"
	if w.has(s, areaPrivate) {
		text += "Disallow: /privado/\n"
	}
	if w.has(s, areaCalendar) {
		text += "Disallow: /agenda/\n"
	}
	if delay > 0 {
		text += fmt.Sprintf("Crawl-delay: %g\n", delay.Seconds())
	}
	return text
}

// crawlDelay returns the Crawl-delay of site s, 0 if it has none.
func (w *World) crawlDelay(s int) time.Duration {
	if s%4 == 3 {
		return w.opts.CrawlDelay
	}
	return 0
}
