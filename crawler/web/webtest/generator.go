package webtest

import (
	"bytes"
	"math/rand/v2"
	"strings"
)

// Generator makes random pages. It is not safe for concurrent use.
type Generator struct {
	rand   *rand.Rand
	corpus []Page
	names  []string
}

// NewGenerator returns a Generator for a seed. Some of its pages are mixed from corpus.
func NewGenerator(seed uint64, corpus []Page) *Generator {
	return &Generator{rand.New(rand.NewPCG(seed, 0xbad)), corpus, Shapes()}
}

// Next returns the next page, of a few KiB.
func (g *Generator) Next() Page {
	switch g.rand.IntN(8) {
	case 0:
		return OfShape(g.names[g.rand.IntN(len(g.names))], 1+g.rand.IntN(4<<10))
	case 1, 2, 3:
		if len(g.corpus) > 0 {
			return g.mutated()
		}
	}
	return g.written()
}

// written returns a page of the grammar.
func (g *Generator) written() Page {
	kind := [...]string{typeHTML, typeHTML, typeHTML, typeXML, typeXML, typeJSON, typeText}[g.rand.IntN(7)]
	p := Page{Shape: "written " + kind, URL: at(kind), Type: kind}
	if g.rand.IntN(4) == 0 {
		p.Type += "; charset=" + charsets[g.rand.IntN(len(charsets))]
	}
	pieces := map[string][]string{typeHTML: htmlPieces, typeXML: xmlPieces, typeJSON: jsonPieces, typeText: words}[kind]
	var b strings.Builder
	if heads := map[string][]string{typeXML: xmlHeads, typeJSON: {`{"items":[`, `{"title":`},
		typeHTML: {"<!doctype html><html>", ""}}[kind]; heads != nil {
		b.WriteString(heads[g.rand.IntN(len(heads))])
	}
	for range 1 + g.rand.IntN(60) {
		piece := pieces[g.rand.IntN(len(pieces))]
		if g.rand.IntN(3) == 0 {
			piece += words[g.rand.IntN(len(words))]
		}
		if g.rand.IntN(12) == 0 {
			piece = strings.Repeat(piece, 1+g.rand.IntN(80))
		}
		b.WriteString(piece)
	}
	p.Body = []byte(b.String())
	if g.rand.IntN(3) == 0 {
		p.Body = g.mutate(p.Body)
	}
	return p
}

// mutated returns a changed page of the corpus.
func (g *Generator) mutated() Page {
	p := g.corpus[g.rand.IntN(len(g.corpus))]
	p.Shape = "mutated " + p.Shape
	if g.rand.IntN(16) == 0 {
		p.Type = [...]string{typeHTML, typeXML, typeJSON, typeText}[g.rand.IntN(4)]
	}
	p.Body = bytes.Clone(p.Body)
	for range 1 + g.rand.IntN(4) {
		p.Body = g.mutate(p.Body)
	}
	return p
}

const maxMutated = 64 << 10 // bytes that a page may grow to

// mutate returns body with one random change.
func (g *Generator) mutate(body []byte) []byte {
	if len(body) == 0 {
		return []byte("<")
	}
	from := g.rand.IntN(len(body))
	to := from + g.rand.IntN(min(len(body)-from, 1<<10)+1)
	switch g.rand.IntN(7) {
	case 0: // cut off
		return body[:from]
	case 1: // left out
		return append(body[:from:from], body[to:]...)
	case 2: // repeated
		part := bytes.Repeat(body[from:to], 1+g.rand.IntN(20))
		body = append(append(body[:from:from], part...), body[from:]...)
	case 3: // a byte changed
		body[from] = byte(g.rand.IntN(256))
	case 4: // a piece inserted
		pieces := [...][]string{htmlPieces, xmlPieces, jsonPieces, words}[g.rand.IntN(4)]
		body = append(append(body[:from:from], pieces[g.rand.IntN(len(pieces))]...), body[from:]...)
	case 5: // a part of another page inserted
		if len(g.corpus) > 0 {
			other := g.corpus[g.rand.IntN(len(g.corpus))].Body
			at := g.rand.IntN(len(other) + 1)
			part := other[at:min(len(other), at+1<<10)]
			body = append(append(body[:from:from], part...), body[from:]...)
		}
	case 6: // a syntax character changed
		if i := bytes.IndexAny(body[from:], `<>"'&/={}[]`); i >= 0 {
			body[from+i] = `<>"'&/={}[]`[g.rand.IntN(11)]
		}
	}
	return body[:min(len(body), maxMutated)]
}

// The grammar: the pieces that pages of each kind are made of.
var (
	charsets = []string{"utf-8", "utf-16", "utf-16le", "iso-8859-1", "windows-1252", "shift_jis", "iso-2022-jp",
		"gb18030", "big5", "euc-kr",
		"replacement", "iso-2022-kr", "x-user-defined", "hz-gb-2312", "utf-7", "nonsense"}
	words = []string{"a ", sentence, "A câmara aprovou ontem. ", "1999 ", "25 de Abril ", "&amp;lt;b&amp;gt; ",
		"&#x0; ", "&#xD800;", "\x00", "\u200b", "\ufeff",
		"\xff\xfe", "市议会昨天", "RT @a: ", "\u202e", "\r\n", "\n\n", "…", "&nbsp;", "&notanentity;", "no séc. XX ",
		"12/13/14 ", "\u0301\u0301\u0301"}
	htmlPieces = []string{"<p>", "</p>", "<div>", "</div>", "<h1>", "</h1>", "<title>", "</title>", "<nav>", "</nav>",
		"<main>", "<svg>", "</svg>", "<math>",
		"<script>", "</script>", `<script type="application/ld+json">`,
		`{"@type":"Article","headline":"x","author":[{"name":"y"}],"datePublished":"2020-01-02"}`,
		"<style>", "</style>", "<textarea>", "</textarea>", "<select>", "<option>", "<template>", "<noscript>",
		"<plaintext>", "<xmp>", "<iframe src=a>",
		`<a href="/a">`, `<a href=" //é.com/x?y#z ">`, `<a href="javascript:x">`,
		`<a href='../../../x;sid=1234567890abcdef'>`, "</a>", `<base href="/b/">`,
		`<base href="//`, `<link rel=canonical href=c>`, `<link rel=alternate hreflang=pt href=d>`,
		`<meta charset=utf-16>`, `<meta charset=shift_jis>`,
		`<meta name=robots content=noindex>`, `<meta name=date content=2020-02-30>`,
		`<meta property=og:title content="&amp;quot;">`,
		`<meta name=geo.position content="38.7;-9.1">`, `<meta http-equiv=refresh content="0;url=x">`,
		`<html lang=pt_PT>`, "<address>", "</address>",
		"<!--", "-->", "<!", "<![CDATA[", "]]>", "<?", "</", "<", ">", `"`, "'", "=", "<a", "<p a=b a=c",
		`<img alt="x">`, "<br/>", "<body>", "<frameset><frame src=x>"}
	xmlHeads = []string{"", "<rss><channel>", `<feed xmlns="http://www.w3.org/2005/Atom">`,
		`<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">`,
		"<urlset>", "<sitemapindex>", `<?xml version="1.0" encoding="iso-8859-1"?><rss><channel>`,
		`<?xml version="1.0" encoding="utf-16"?>`,
		`<?xml version="1.1"?>`, `<feed xml:base="http://a/b/" xml:lang="pt">`}
	xmlPieces = []string{"<item>", "</item>", "<entry>", "</entry>", "<title>", "</title>", "<title type='html'>",
		"<title type='xhtml'>", "<link>", "</link>",
		"<link href='/x'/>", "<link rel='alternate' href='é'/>", "<pubDate>Fri, 01 May 2026 12:00:00 GMT</pubDate>",
		"<updated>2026-05-01T12:00:00Z</updated>",
		"<dc:date xmlns:dc='http://purl.org/dc/elements/1.1/'>2026</dc:date>", "<div>", "</div>", "<b>", "</b>",
		"<![CDATA[", "]]>", "<!--", "-->", "<?x", "?>",
		"<!DOCTYPE x [<!ENTITY a 'b'>]>", "&a;", "&lt;", "&#10;", "<a:b>", "</a:b>", "<a:b:c>", "<x xmlns:a='u'>",
		"</x>", "<x xmlns=''>", "<url><loc>",
		"</loc></url>", "<lastmod>2026-01-01</lastmod>", "<", ">", "/>", "'", `"`, "</channel>", "</rss>", "</feed>",
		"<image><title>", "<x/>"}
	jsonPieces = []string{"{", "}", "[", "]", ",", ":", `"title":`, `"url":`, `"items":[`,
		`"date_published":"2026-01-01T00:00:00Z"`, `"a"`, `"\ud800"`, `"\"`,
		"1", "-", "1e999", "true", "nul", "null", `{"title":"x","url":"/y"}`, `"language":"pt"`, `"home_page_url":"/"`,
		"\\", `"`}
)
