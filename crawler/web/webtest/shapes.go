package webtest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
	"strings"
)

// shape is a page that repeats one thing.
type shape struct {
	name, kind string
	head       string
	part       string           // the repeated text; or
	parts      func(int) string // its i-th repetition
	tail       string
}

// Shapes returns the names of all shapes.
func Shapes() (names []string) {
	for _, s := range shapes() {
		names = append(names, s.name)
	}
	return append(names, "sitemap in gzip", "utf-16", "windows-1252 expanding")
}

// OfShape returns a page of a shape with about size bytes, and at least its head and tail.
func OfShape(name string, size int) Page {
	switch name {
	case "sitemap in gzip":
		p := OfShape("sitemap", size)
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		z.Write(p.Body) //nolint:errcheck // a buffer never fails
		z.Close()       //nolint:errcheck // a buffer never fails
		return Page{name, "https://example.org/sitemap.xml.gz", "application/gzip", packed.Bytes()}
	case "utf-16":
		body := []byte("\xfe\xff")
		for _, b := range OfShape("text in one line", size/2).Body {
			body = append(body, 0, b)
		}
		return Page{name, at(typeHTML), typeHTML, body}
	case "windows-1252 expanding": // each byte becomes three of UTF-8
		return Page{name, at(typeHTML), typeHTML + "; charset=windows-1252", bytes.Repeat([]byte("\x80"), size)}
	}
	for _, s := range shapes() {
		if s.name == name {
			p := Page{name, at(s.kind), s.kind, s.body(size)}
			if name == "plain sitemap" {
				p.URL = "https://example.org/sitemap.txt"
			}
			return p
		}
	}
	panic("webtest: no shape " + name)
}

// body returns about size bytes of the shape.
func (s shape) body(size int) []byte {
	b := bytes.NewBuffer(make([]byte, 0, size+1<<10))
	b.WriteString(s.head)
	for i := 0; b.Len() < size-len(s.tail); i++ {
		if s.parts != nil {
			b.WriteString(s.parts(i))
			continue
		}
		b.WriteString(s.part)
	}
	b.WriteString(s.tail)
	return b.Bytes()
}

// numbered returns parts that differ in a number.
func numbered(format string) func(int) string {
	return func(i int) string { return fmt.Sprintf(format, i) }
}

// names returns a function that makes a tag with n attributes, all with different names.
func names(tag string, n int) func(int) string {
	var b strings.Builder
	b.WriteString("<" + tag)
	for i := range n {
		fmt.Fprintf(&b, " x%x", i)
	}
	b.WriteByte('>')
	text := b.String()
	return func(int) string { return text }
}

func once(first string, then string) func(int) string {
	return func(i int) string {
		if i == 0 {
			return first
		}
		return then
	}
}

func shapes() []shape { return slices.Concat(htmlShapes(), xmlShapes(), jsonShapes(), sitemapShapes()) }

const sentence = "o comboio de Lisboa em 1999 foi a 3 de maio. "

func htmlShapes() []shape {
	data := `<script type="application/ld+json">`
	return []shape{
		{name: "open paragraphs", kind: typeHTML, part: "<p>"},
		{name: "nested elements", kind: typeHTML, part: "<div><b><nav>"},
		{name: "paragraphs in a heading", kind: typeHTML, head: "<h1>x", part: "<p>"},
		{name: "text in a heading", kind: typeHTML, head: "<h1>", part: "x<b>"},
		{name: "one tag of equal attributes", kind: typeHTML, head: "<a ", part: "a "},
		{name: "one tag of attributes", kind: typeHTML, head: "<a ", parts: numbered("x%x ")},
		{name: "tags of 100,000 attributes", kind: typeHTML, parts: names("a", 100_000)},
		{name: "tags of 300 attributes", kind: typeHTML, parts: names("a", 300)},
		{name: "tags of 100 attributes", kind: typeHTML, parts: names("p", 100)},
		{name: "tags of 20 attributes", kind: typeHTML, parts: names("p", 20)},
		{name: "many attributes, then small tags", kind: typeHTML, parts: once(names("a", 60_000)(0), "<b a>")},
		{name: "a tag without end", kind: typeHTML, head: `<a href="`, part: "a"},
		{name: "a comment without end", kind: typeHTML, head: "<!--", part: "-"},
		{name: "comments", kind: typeHTML, part: "<!-->"},
		{name: "long comments", kind: typeHTML, parts: once("<!--", strings.Repeat("-", 600_000)+"-->x<!--")},
		{name: "a script without end", kind: typeHTML, head: "<script>", part: "<!--<script>"},
		{name: "long scripts", kind: typeHTML, part: "<style>" + strings.Repeat("a", 600_000) + "</style>x"},
		{name: "half entities", kind: typeHTML, part: "&a"},
		{name: "entities", kind: typeHTML, part: "&amp;"},
		{name: "entities of entities", kind: typeHTML, part: "&amp;amp;lt;"},
		{name: "entities without end", kind: typeHTML, head: "&", part: "a"},
		{name: "links to punycode", kind: typeHTML, part: `<a href="//xn--` + strings.Repeat("a", 8000) + `.com/">`},
		{name: "short links to punycode", kind: typeHTML, parts: numbered(`<a href="//xn--n3h%d.com/%%zz">`)},
		{name: "links with dots", kind: typeHTML, part: `<a href="/` + strings.Repeat("a/../", 1600) + `é">`},
		{name: "short links with dots", kind: typeHTML,
			parts: numbered(`<a href="/` + strings.Repeat("a/../", 80) + `é%d">`)},
		{name: "links of letters", kind: typeHTML, part: `<a href="//` + strings.Repeat("é", 3900) + `.com/">`},
		{name: "short links of letters", kind: typeHTML, parts: numbered(`<a href="//éé%d.com/">`)},
		{name: "links with many at signs", kind: typeHTML,
			part: `<a href="http://` + strings.Repeat("@:", 3900) + `/">`},
		{name: "links with blanks", kind: typeHTML, parts: numbered(`<a href="` + strings.Repeat(" ", 4000) + `/%d">`)},
		{name: "links with sessions", kind: typeHTML,
			parts: numbered(`<a href="/;sid=a;c=d/(S(x))/%d?a=b&phpsessid=d">`)},
		{name: "links", kind: typeHTML, parts: numbered(`<a href="/%d" rel="a b c d">some words here</a>`)},
		{name: "one link", kind: typeHTML, part: `<a href=x></a>`},
		{name: "rels", kind: typeHTML, part: `<link href=x rel="next ` + strings.Repeat("a ", 4000) + `">`},
		{name: "pictures in a link", kind: typeHTML, head: "<a href=x>", part: "<img alt=a>"},
		{name: "dates in meta elements", kind: typeHTML, part: "<meta name=date content=1999x>"},
		{name: "places in meta elements", kind: typeHTML, part: "<meta name=geo.placename content='a b c'>"},
		{name: "directives", kind: typeHTML, part: "<meta name=robots content='" + strings.Repeat(",", 2000) + "'>"},
		{name: "a claim of a language", kind: typeHTML, part: "<html lang='" + strings.Repeat("a-", 200_000) + "'>"},
		{name: "addresses", kind: typeHTML, part: "<address>a"},
		{name: "ranges of years", kind: typeHTML, head: "<p>", part: "1990-1991 "},
		{name: "text in one line", kind: typeHTML, head: "<p>", part: sentence},
		{name: "dates in one line", kind: typeHTML, head: "<p>",
			part: "de 3 de maio de 1999 a 4 de maio de 2000, segunda e "},
		{name: "one-letter words", kind: typeHTML, head: "<p>", part: "a "},
		{name: "one word", kind: typeHTML, head: "<p>", part: "a"},
		{name: "full stops", kind: typeHTML, head: "<p>", part: ". A"},
		{name: "digits", kind: typeHTML, head: "<p>", part: "1"},
		{name: "wide blanks", kind: typeHTML, head: "<p>", part: "\u00a0\u00a0"},
		{name: "blanks", kind: typeHTML, head: "<p>a", part: " "},
		{name: "ligatures", kind: typeHTML, head: "<p>", part: "\ufdfa"},
		{name: "ideographs", kind: typeHTML, head: "<p>", part: "市议会昨天"},
		{name: "marks of reposts", kind: typeHTML, head: "<p>", part: "RT @a: Retweeted by a "},
		{name: "broken UTF-8", kind: typeHTML, part: "\xffa"},
		{name: "linked data, deep", kind: typeHTML, part: data + strings.Repeat("[", 9000) + "</script>"},
		{name: "linked data, objects", kind: typeHTML, part: data + "[" + strings.Repeat("{},", 60_000) +
			"{}]</script>"},
		{name: "linked data, large", kind: typeHTML,
			part: data + `{"author":"` + strings.Repeat("a", 300_000) + `"}</script>`},
		{name: "linked data, graphs", kind: typeHTML,
			part: data + `{"@graph":[{"@graph":[{"geo":{"latitude":1,"longitude":2}}]}]}</script>`},
		{name: "plain text", kind: typeText, part: sentence},
		{name: "plain text in lines", kind: typeText, part: "a\n"},
		{name: "plain sitemap", kind: typeText, parts: numbered("https://example.org/%d\n")},
	}
}

func xmlShapes() []shape {
	rss := "<rss version='2.0'><channel>"
	dc := "<rss xmlns:dc='http://purl.org/dc/elements/1.1/'><channel>"
	div := "<div><b><i><u><s><tt><b a=''><i a=''><u a=''>" + strings.Repeat("<p>x</p>", 8) +
		"</u></i></b></tt></s></u></i></b></div>"
	space := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, " xmlns:n%x='u'", i)
		}
		return b.String()
	}
	return []shape{
		{name: "feed of namespaces", kind: typeXML, head: "<rss version='2.0'><channel" + space(20_000) + ">",
			part: "<a>"},
		{name: "feed of namespaces in one tag", kind: typeXML, head: "<rss version='2.0'><channel",
			parts: numbered(" xmlns:n%x='u'")},
		{name: "feed of 30 namespaces", kind: typeXML, head: "<rss version='2.0'><channel" + space(30) + ">",
			part: "<item><title>a</title><link>/x</link><n1:date>1</n1:date><n2:title>x</n2:title><pubDate>2000x</pubDate></item>", tail: "</channel></rss>"},
		{name: "feed of 60 namespaces", kind: typeXML, head: "<rss version='2.0'><channel" + space(60) + ">",
			part: "<item><title>a</title><link>/x</link><n1:date>1</n1:date><n2:title>x</n2:title><pubDate>2000x</pubDate></item>", tail: "</channel></rss>"},
		{name: "feed of depth", kind: typeXML, head: rss, part: "<a>"},
		{name: "feed of empty entries", kind: typeXML, head: rss, part: "<item/>", tail: "</channel></rss>"},
		{name: "feed of titles", kind: typeXML, head: rss, part: "<title/>", tail: "</channel></rss>"},
		{name: "feed of titles with elements", kind: typeXML, head: rss + "<item>", part: "<title>a<a/><a/></title>",
			tail: "</item></channel></rss>"},
		{name: "feed of strange elements", kind: typeXML, head: rss + "<item>", part: "<x/>",
			tail: "</item></channel></rss>"},
		{name: "feed of extensions", kind: typeXML, head: dc,
			part: "<item><dc:title>x</dc:title><dc:date>2000-x</dc:date><link>y</link></item>",
			tail: "</channel></rss>"},
		{name: "feed of extensions with elements", kind: typeXML, head: dc,
			part: "<item><dc:title>" + strings.Repeat("a<a/>", 3000) + "</dc:title></item>", tail: "</channel></rss>"},
		{name: "feed of dates", kind: typeXML, head: rss,
			part: "<item><pubDate>Mon, 02 January 2006 15:04:05 XX XX</pubDate></item>", tail: "</channel></rss>"},
		{name: "feed of descriptions", kind: typeXML, head: rss,
			part: "<item><title>t</title><link>/a</link><description>" + sentence + "</description></item>",
			tail: "</channel></rss>"},
		{name: "feed of pictures", kind: typeXML, head: rss,
			part: "<item><description><![CDATA[" + strings.Repeat("<b>", 400) + "]]></description></item>",
			tail: "</channel></rss>"},
		{name: "feed of XHTML", kind: typeXML, head: "<feed>", part: "<entry><title type='xhtml'>" + div +
			"</title></entry>", tail: "</feed>"},
		{name: "feed of HTML with a base", kind: typeXML, head: "<feed xml:base='http://a/b'>",
			part: "<entry><title type='html'>&lt;b&gt;&lt;i&gt;&lt;p&gt;x&lt;p&gt;x&lt;p&gt;x</title></entry>",
			tail: "</feed>"},
		{name: "feed of text", kind: typeXML, head: rss, part: "x"},
		{name: "feed of one title", kind: typeXML, head: rss + "<title>", part: "x"},
		{name: "feed of CDATA", kind: typeXML, head: rss + "<title>", part: "<![CDATA[x]]>"},
		{name: "feed of ampersands", kind: typeXML, head: rss, part: "<title>&&&&&&&&</title>",
			tail: "</channel></rss>"},
		{name: "feed of links", kind: typeXML, head: "<feed>", part: "<entry><link href='/x'/><title>x</title></entry>",
			tail: "</feed>"},
		{name: "feed of angles", kind: typeXML, head: "<feed>", part: "<"},
		{name: "feed of authors", kind: typeXML, head: rss, part: "<item><author>" + strings.Repeat("a@", 2000) +
			" (x)</author></item>", tail: "</channel></rss>"},
	}
}

func jsonShapes() []shape {
	return []shape{
		{name: "JSON feed of empty entries", kind: typeJSON, head: `{"items":[`, part: "{},", tail: "{}]}"},
		{name: "JSON feed of entries", kind: typeJSON, head: `{"items":[`,
			part: `{"title":"aaaaaaaaaaaaaaa","url":"/x","date_published":"2000x"},`, tail: "{}]}"},
		{name: "JSON feed of depth", kind: typeJSON, head: `{"items":`, part: "["},
		{name: "JSON feed of names", kind: typeJSON, head: "{", part: `"a":1,`, tail: `"a":1}`},
		{name: "JSON feed of one title", kind: typeJSON, head: `{"title":"`, part: "a", tail: `"}`},
		{name: "JSON feed of one entry", kind: typeJSON, head: `{"items":[{"title":"`, part: "a", tail: `"}]}`},
	}
}

func sitemapShapes() []shape {
	return []shape{
		{name: "sitemap", kind: typeXML, head: "<urlset>",
			parts: numbered("<url><loc>https://example.org/some/page/%d</loc><lastmod>2026-01-02</lastmod></url>")},
		{name: "sitemap of letters", kind: typeXML, head: "<urlset>", parts: numbered("<url><loc>/aé%d</loc></url>")},
		{name: "sitemap of depth", kind: typeXML, head: "<urlset>", part: "<a>"},
		{name: "sitemap of empty elements", kind: typeXML, head: "<urlset>", part: "<a/>"},
		{name: "sitemap of one tag", kind: typeXML, head: "<urlset ", part: "a "},
		{name: "sitemap of attributes", kind: typeXML, head: "<urlset>", part: "<a b='c' d='e' f='g' h='i'/>"},
		{name: "sitemap of entities", kind: typeXML, head: "<urlset><url><loc>", part: "&amp;"},
		{name: "sitemap of a comment", kind: typeXML, head: "<urlset><!--", part: "a"},
		{name: "sitemap of comments", kind: typeXML, head: "<urlset>", part: "<!---->"},
		{name: "sitemap of instructions", kind: typeXML, head: "<urlset>", part: "<?a?>"},
		{name: "sitemap of directives", kind: typeXML, head: "<urlset><!a", part: "<a"},
		{name: "sitemap of wrong ends", kind: typeXML, head: "<urlset>", part: "<a></b>"},
		{name: "sitemap of languages", kind: typeXML, head: "<urlset>",
			part: "<url><link hreflang='pt' href='/x'/></url>"},
	}
}
