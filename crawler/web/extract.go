package web

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/echo-node/echo-node/crawler/web/utf8text"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Limits that are not options.
const (
	maxTitle   = 512 // bytes
	maxAnchor  = 200 // bytes
	maxRef     = 8 << 10
	checkEvery = 1 << 12 // tokens between two checks of the clock
)

// input is a body to parse, with what is known about it and its limits.
type input struct {
	body                   []byte
	contentType, mediaType string
	url, claim             string // claim is the Content-Language
	maxText, maxLinks      int
	maxEntries             int // entries of a sitemap
	maxTime                time.Duration
	langs                  *tongues
}

// page is the result of parsing one page.
type page struct {
	title, text, lang   string
	spoken              string // the part of text that may mention times
	published           *time.Time
	links               []store.Link
	more                []store.Link // further links to follow, too many for the record
	declared            []string     // places that the page declares
	description, author string
	canonical           partition.Key // "" when the page names none or itself
	robots              directives
	stop                string // the limit that was hit
}

// extract parses an HTML or plain text page. An error is a fault of the parser. A panic of the
// parser becomes such an error, so that a page cannot stop this peer.
func extract(in input) (p page, err error) {
	defer func() {
		if r := recover(); r != nil {
			p, err = page{}, fmt.Errorf("web: extract: the parser panicked: %.80v", r)
		}
	}()
	doc := utf8text.Decode(in.body, in.contentType)
	if in.mediaType == "text/plain" {
		return plain(in, doc)
	}
	r := newReader(in)
	r.read(doc)
	return r.page(), nil
}

// plain parses a page without markup.
func plain(in input, doc io.Reader) (p page, err error) {
	w := prose{max: in.maxText}
	if err := w.read(doc); err != nil {
		p.stop = stopCharset
	}
	p.text = w.text()
	p.lang, p.spoken = in.langs.language(p.text, in.claim), p.text
	if w.full {
		p.stop = stopText
	}
	return p, nil
}

// reader walks the tokens of one page. It builds no tree. So memory holds only what is kept, and
// nested elements cannot make it slow.
type reader struct {
	in    input
	main  prose // the text
	aside prose // text of navigation and the like, used when main is empty
	title prose

	skip     [4]int // number of open elements of each kind of skipped
	notes    int    // number of open aside elements, from the first that is a note
	inTitle  bool
	inHeader bool  // inside the first h1, a substitute for the title
	headed   bool  // the first h1 had content
	heading  prose // text of the first h1
	ogTitle  string
	claim    string // the first lang attribute of html, body or an outer element
	outers   int    // number of outer elements whose attributes were read
	metaLang string // language of a meta element
	base     string
	dateRank int
	date     time.Time
	dates    int // number of meta elements that may hold a date
	robots   directives
	refs     []ref
	refBytes int // bytes of refs
	at       attributes
	open     int // 1 + index in refs of the open a element, 0 for none
	anchor   prose
	stop     string

	code    [2]int // open code elements: blocks, and those inside a line
	codes   parts  // the code in main
	anchors parts

	inData bool // inside a script element of JSON-LD
	data   int  // bytes of all JSON-LD so far
	about  about
	canon  string // href of the canonical link

	declared  []string // places that the page declares
	inAddress bool
	contact   prose // text of the open address element
}

// ref is a link as the page writes it.
type ref struct {
	href, rel, anchor, lang string
	modified                *time.Time // date of the entry in a sitemap or a feed
}

// The kinds of skipped elements.
const (
	hidden  = iota // a browser never shows it
	foreign        // svg and math, which have their own title and text elements
	around         // navigation: text of the site, not of the page
	form
)

// skipped returns the kind of skipped elements that a is, or -1.
func skipped(a atom.Atom) int {
	switch a {
	case atom.Script, atom.Style, atom.Template, atom.Noscript, atom.Iframe, atom.Object:
		return hidden
	case atom.Svg, atom.Math:
		return foreign
	case atom.Nav, atom.Aside, atom.Footer, atom.Menu:
		return around
	case atom.Select, atom.Button, atom.Textarea, atom.Datalist:
		return form
	}
	return -1
}

// newReader returns a reader for one page.
func newReader(in input) reader {
	return reader{
		in: in, main: prose{max: in.maxText}, aside: prose{max: in.maxText}, title: prose{max: maxTitle},
		heading:  prose{max: maxTitle},
		dateRank: len(dateNames),
	}
}

// read reads all tokens of doc, until the end or a limit.
func (r *reader) read(doc io.Reader) {
	begun := time.Now()
	z := newTokens(doc)
	for look := checkEvery; ; {
		if z.n >= look {
			look = z.n + checkEvery
			if time.Since(begun) > r.in.maxTime {
				r.stopped(stopTime)
				return
			}
		}
		switch z.next() {
		case html.ErrorToken:
			if r.stopped(z.stop); !errors.Is(z.ended, io.EOF) {
				r.stopped(stopCharset)
			}
			return
		case html.TextToken:
			r.textToken(z)
		case html.StartTagToken:
			r.startTag(z.z, false)
		case html.SelfClosingTagToken:
			r.startTag(z.z, true)
		case html.EndTagToken:
			name, _ := z.z.TagName()
			r.endTag(atom.Lookup(name))
		}
	}
}

// stopped notes a limit that was hit. Only the first one is kept.
func (r *reader) stopped(bound string) {
	if r.stop == "" {
		r.stop = bound
	}
}

// textToken appends a text to the parts of the page that it belongs to.
func (r *reader) textToken(z *tokens) {
	if r.inData {
		r.linkedData(z.text, !z.part)
	}
	if r.skip[hidden] > 0 || r.skip[foreign] > 0 {
		return
	}
	text := string(z.text)
	switch {
	case r.inTitle:
		r.title.add(text)
		return
	case r.open > 0:
		r.anchor.add(text)
	}
	if r.inAddress {
		r.contact.add(text)
	}
	if r.inHeader {
		r.heading.add(text)
		r.headed = r.headed || text != ""
	}
	switch {
	case r.skip[form] > 0:
	case r.skip[around] > 0:
		r.aside.add(text)
	default:
		r.main.add(text)
	}
}

// startTag handles the start of an element. It tracks the open elements and reads the attributes of
// those that have a meaning here.
func (r *reader) startTag(z *html.Tokenizer, selfClosed bool) {
	name, more := z.TagName()
	a := atom.Lookup(name)
	if k := skipped(a); a == atom.Aside && r.notes > 0 && !selfClosed {
		r.notes++
	} else if k >= 0 && !selfClosed {
		r.skip[k]++
	}
	if breaks(a) {
		r.newline()
	}
	r.address(a, !selfClosed)
	r.codeTag(a, !selfClosed)
	switch a {
	case atom.Title:
		r.inTitle = r.skip[foreign] == 0 && r.title.Len() == 0 && !selfClosed
	case atom.H1:
		r.inHeader = !r.headed && !selfClosed
	case atom.Main:
		r.skip[around], r.notes = 0, 0 // an element that was never closed ends here at the latest
	}
	if !more || !hasAttributes(a) && !r.outer(a) {
		return
	}
	at := &r.at
	if !at.read(z, a) {
		r.stopped(stopAttributes)
	}
	switch a {
	case atom.Html, atom.Body, atom.Div, atom.Section, atom.Article, atom.Main:
		r.claim = cmp.Or(r.claim, languageTag(at[atLang]), languageTag(at[atXMLLang]))
	case atom.Base:
		if r.base == "" {
			r.base = at[atHref]
		}
	case atom.Meta:
		r.meta(at)
	case atom.Script:
		r.inData = !selfClosed && strings.EqualFold(strings.TrimSpace(at[atType]), "application/ld+json")
	case atom.Link:
		r.link(at)
	case atom.A, atom.Area:
		r.closeAnchor()
		if r.ref(at[atHref], at[atRel]) && a == atom.A && !selfClosed {
			r.open = len(r.refs)
		}
		if at[atHref] != "" && a == atom.A && !selfClosed {
			r.anchors.begin(r.main.Len())
		}
	case atom.Img:
		if r.open > 0 {
			r.anchor.add(" " + at[atAlt] + " ")
		}
	case atom.Iframe, atom.Frame:
		r.ref(at[atSrc], "")
	case atom.Aside:
		if r.notes == 0 && !selfClosed && at.isNote() {
			r.notes = 1
			r.skip[around]--
		}
	}
}

// endTag handles the end of an element. End tags without a start are ignored.
func (r *reader) endTag(a atom.Atom) {
	if k := skipped(a); a == atom.Aside && r.notes > 0 {
		r.notes--
	} else if k >= 0 && r.skip[k] > 0 {
		r.skip[k]--
	}
	r.address(a, false)
	r.codeTag(a, false)
	switch a {
	case atom.Title:
		r.inTitle = false
	case atom.Script:
		r.inData = false
	case atom.H1:
		r.inHeader = false
	case atom.A:
		r.closeAnchor()
	}
	if breaks(a) {
		r.newline()
	}
}

// newline ends a line of text.
func (r *reader) newline() {
	r.main.newline()
	r.aside.newline()
	r.anchor.add(" ")
	r.contact.add(" ")
	if r.inHeader {
		r.heading.add(" ")
		r.headed = true
	}
}

// closeAnchor stores the text of the open a element, if there is one.
func (r *reader) closeAnchor() {
	if r.open > 0 {
		r.refs[r.open-1].anchor = r.anchor.text()
	}
	r.open, r.anchor = 0, prose{max: maxAnchor}
	r.anchors.end(r.main.Len())
}

// ref keeps a reference. It returns false when href cannot be one or there are too many.
func (r *reader) ref(href, rel string) bool {
	whole := href
	href = strings.TrimSpace(href)
	if href == "" || href[0] == '#' || len(href) > maxRef {
		return false
	}
	if len(whole) > len(href)+maxRef {
		href = strings.Clone(href) // so that the spaces are not kept in memory
	}
	if len(rel) > maxRel {
		rel = strings.Clone(rel[:maxRel])
	}
	r.refBytes += len(href) + len(rel)
	if len(r.refs) >= 4*r.in.maxLinks || r.refBytes > maxRefBytes { // duplicates still count here
		r.stop = stopLinks
		return false
	}
	r.refs = append(r.refs, ref{href: href, rel: rel})
	return true
}

// meta handles a meta element: directives, refresh, language, title, place, description, author,
// date.
func (r *reader) meta(at *attributes) {
	content := at[atContent]
	switch strings.ToLower(at[atName]) {
	case "robots", "echo-node":
		r.robots = r.robots.with(parseDirectives(content))
	}
	if strings.EqualFold(at[atHTTPEquiv], "refresh") {
		if _, to, ok := strings.Cut(content, "="); ok {
			r.ref(strings.Trim(to, " \t\r\n\"'"), "refresh")
		}
	}
	if strings.EqualFold(at[atHTTPEquiv], "content-language") {
		r.metaLang = cmp.Or(r.metaLang, languageTag(content))
	}
	for _, name := range [...]string{at[atProperty], at[atName], at[atItemprop]} {
		name = strings.ToLower(name)
		if name == "dc.language" || name == "dcterms.language" {
			r.metaLang = cmp.Or(r.metaLang, languageTag(content))
		}
		if name == "og:title" && r.ogTitle == "" {
			r.ogTitle = content
		}
		r.declares(name, content)
		r.about.meta(name, content)
		if rank := dateRank(name); rank >= 0 && rank < r.dateRank {
			if r.dates++; r.dates > maxMetaDates {
				r.stopped(stopMetaDates)
				continue
			}
			if t, ok := parseDate(content); ok {
				r.date, r.dateRank = t, rank
			}
		}
	}
}

// page returns the result when all tokens were read.
func (r *reader) page() page {
	r.closeAnchor()
	p := page{title: r.title.text(), text: r.main.text(), robots: r.robots, declared: r.declared, stop: r.stop}
	for _, other := range [...]string{r.ogTitle, r.heading.text(), r.about.headline} {
		if p.title == "" {
			w := prose{max: maxTitle}
			w.add(other)
			p.title = w.text()
		}
	}
	r.codes.end(r.main.Len())
	if p.text == "" {
		p.text, r.codes, r.anchors = r.aside.text(), parts{}, parts{}
	}
	if r.main.full && p.stop == "" {
		p.stop = stopText
	}
	if r.dateRank < len(dateNames) {
		p.published = &r.date
	}
	p.description, p.author = r.about.texts()
	p.canonical = canonical(r.in.url, r.base, r.canon)
	p.spoken = r.spoken(&p)
	p.lang = r.in.langs.tell(cmp.Or(r.claim, r.metaLang, languageTag(r.in.claim)), r.speech(&p))
	var over bool
	if p.links, over = links(r.in.url, r.base, r.refs, r.in.maxLinks, maxLinkBytes); over {
		p.stop = stopLinks
	}
	return p
}

// breaks reports whether a starts or ends a line of text.
func breaks(a atom.Atom) bool {
	switch a {
	case atom.P, atom.Div, atom.Br, atom.Hr, atom.Li, atom.Ul, atom.Ol, atom.Dl, atom.Dt, atom.Dd, atom.Table, atom.Tr,
		atom.Td, atom.Th,
		atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Pre, atom.Blockquote, atom.Section, atom.Article,
		atom.Header, atom.Footer,
		atom.Nav, atom.Aside, atom.Main, atom.Figure, atom.Figcaption, atom.Form, atom.Fieldset, atom.Address,
		atom.Body, atom.Option, atom.Caption,
		atom.Details, atom.Summary, atom.Center, atom.Title:
		return true
	}
	return false
}

// outer reports whether a may be the element that holds the whole page and declares its language
// instead of html and body. Only the first few such elements count.
func (r *reader) outer(a atom.Atom) bool {
	const most = 8
	switch a {
	case atom.Div, atom.Section, atom.Article, atom.Main:
		r.outers++
		return r.outers <= most && r.claim == ""
	}
	return false
}

// safely calls read. A panic of the parser becomes an error.
func safely(read func() (page, error)) (p page, err error) {
	defer func() {
		if r := recover(); r != nil {
			p, err = page{}, fmt.Errorf("web: extract: the parser panicked: %.80v", r)
		}
	}()
	return read()
}
