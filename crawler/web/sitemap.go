package web

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/echo-node/echo-node/crawler/web/utf8text"
)

// Limits for sitemaps as in https://www.sitemaps.org/protocol.html. A sitemap is a list of
// addresses or of further sitemaps, in XML or plain text, possibly in a gzip file.
const (
	maxUnpacked   = 16 << 20 // unpacked bytes that are read of a gzip sitemap
	maxEntryBytes = 8 << 20  // bytes of the addresses of one sitemap
	maxDate       = 64       // bytes of a lastmod
)

// packed reports whether the path is that of a gzip sitemap. The media type of the response does
// not matter.
func packed(path string) bool {
	return strings.HasSuffix(path, ".xml.gz") || strings.HasSuffix(path, ".txt.gz")
}

// isSitemap reports whether a document that begins with head is a sitemap.
func isSitemap(head []byte) bool {
	return bytes.Contains(head, []byte("<urlset")) || bytes.Contains(head, []byte("<sitemapindex"))
}

// gzipped reports whether body begins like a gzip file.
func gzipped(body []byte) bool { return bytes.HasPrefix(body, []byte("\x1f\x8b\x08")) }

// pathOf returns url without its query.
func pathOf(url string) string { path, _, _ := strings.Cut(url, "?"); return path }

// plainSitemap reports whether the name of the text at url is that of a sitemap.
func plainSitemap(url string) bool {
	url = pathOf(url)
	name := strings.TrimSuffix(url[strings.LastIndexByte(url, '/')+1:], ".gz")
	return strings.HasSuffix(name, ".txt") && strings.Contains(name, "sitemap")
}

// packedSitemap parses a sitemap while it unpacks it, because a few KiB may become 16 MiB. A file
// that is cut off or larger than maxUnpacked is read as far as possible.
func packedSitemap(in input) (p page, err error) {
	z, err := gzip.NewReader(bytes.NewReader(in.body))
	if err != nil {
		return page{}, fmt.Errorf("web: gzip: %w", err)
	}
	limit := &io.LimitedReader{R: z, N: maxUnpacked + 1}
	from := bufio.NewReaderSize(limit, 2*maxRef)
	head, err := from.Peek(maxHead)
	switch {
	case err != nil && len(head) == 0:
		return page{}, fmt.Errorf("web: gzip: %w", err)
	case gzipped(head):
		return page{}, errNoReader // packed twice
	case plainSitemap(in.url):
		p, err = listed(in, from), nil
	case isSitemap(head):
		p, err = safely(func() (page, error) { return sitemap(in, from) })
	default:
		limit.N = min(limit.N, maxFeed)
		in.body, err = io.ReadAll(from)
		if len(in.body) > 0 { // a file that is cut off still has its beginning
			p, err = extractXML(in)
		}
	}
	if err == nil && limit.N <= 0 {
		p.stop = stopText
	}
	return p, err
}

// listed parses a plain sitemap: one address per line, in UTF-8.
func listed(in input, from *bufio.Reader) page {
	var refs []ref
	size, long := 0, false // long: the line is longer than an address may be
	for first := true; len(refs) <= in.maxEntries && size <= maxEntryBytes; first = false {
		line, err := from.ReadSlice('\n')
		if first {
			line = bytes.TrimPrefix(line, []byte(utf8text.Mark))
		}
		part := errors.Is(err, bufio.ErrBufferFull)
		line = bytes.TrimSpace(line)
		if !long && !part && len(line) <= maxRef && utf8.Valid(line) && bytes.Contains(line, []byte("://")) {
			refs = append(refs, ref{href: string(line), rel: "sitemap"})
			size += len(line)
		}
		if long = part; err != nil && !part {
			break // the end, or the file is cut off
		}
	}
	p := entries(in, refs)
	if size > maxEntryBytes {
		p.stop = stopLinks
	}
	return p
}

// entries returns the page of a sitemap. All its entries are followed. Its record keeps as many as
// for any page.
func entries(in input, refs []ref) (p page) {
	all, over := links(in.url, "", refs, in.maxEntries, maxEntryBytes)
	if over || len(refs) > in.maxEntries {
		p.stop = stopLinks
	}
	kept, size := 0, 0
	for kept < min(len(all), in.maxLinks) {
		if size += len(all[kept].Key) + len(all[kept].Rel) + len(all[kept].Lang); size > maxLinkBytes {
			break
		}
		kept++
	}
	p.links, p.more = all[:kept:kept], all[kept:]
	return p
}

// sitemapReader is the state of parsing a sitemap.
type sitemapReader struct {
	refs  []ref
	size  int      // bytes of refs
	path  []string // the open elements
	text  strings.Builder
	first int // index in refs of the current entry's first address
	date  *time.Time
}

// sitemap parses the addresses of a sitemap or of a sitemap index. A syntax error ends it; the
// addresses before the error are kept.
func sitemap(in input, from io.Reader) (page, error) {
	begun := time.Now()
	x := newXMLReader(from)
	var r sitemapReader
	for len(r.refs) <= in.maxEntries && r.size <= maxEntryBytes {
		if x.n%checkEvery == 0 && time.Since(begun) > in.maxTime {
			x.stop = stopTime
			break
		}
		tok, err := x.next()
		if err != nil {
			if !errors.Is(err, io.EOF) && len(r.refs) == 0 {
				return page{}, fmt.Errorf("web: sitemap: %w", err)
			}
			break
		}
		r.token(tok)
	}
	p := entries(in, r.refs)
	switch {
	case x.stop != "":
		p.stop = x.stop
	case r.size > maxEntryBytes:
		p.stop = stopLinks
	}
	return p, nil
}

// token handles one XML token.
func (r *sitemapReader) token(tok xml.Token) {
	switch tok := tok.(type) {
	case xml.StartElement:
		r.path = append(r.path, tok.Name.Local)
		r.text.Reset()
		switch tok.Name.Local {
		case "url", "sitemap":
			r.first, r.date = len(r.refs), nil
		case "link": // xhtml:link, the page in another language
			r.alternate(tok.Attr)
		}
	case xml.CharData:
		if r.text.Len()+len(tok) <= maxRef {
			r.text.Write(tok)
		}
	case xml.EndElement:
		r.end(tok.Name.Local)
		if len(r.path) > 0 {
			r.path = r.path[:len(r.path)-1]
		}
	}
}

// end handles the content of an element. It belongs to the entry only if it is directly under url
// or sitemap. An image or a video of the entry also has a loc.
func (r *sitemapReader) end(name string) {
	text := strings.TrimSpace(r.text.String())
	r.text.Reset()
	switch {
	case name == "url" || name == "sitemap":
		for i := r.first; i < len(r.refs) && r.date != nil; i++ {
			r.refs[i].modified = r.date
		}
		r.first, r.date = len(r.refs), nil
	case !r.inEntry() || text == "":
	case name == "loc":
		r.add(ref{href: text, rel: "sitemap"})
	case name == "lastmod" && len(text) <= maxDate:
		if at, ok := parseDate(text); ok {
			r.date = &at
		}
	}
}

func (r *sitemapReader) add(l ref) {
	r.refs = append(r.refs, l)
	r.size += len(l.href)
}

// inEntry reports whether the open element is directly under url or sitemap.
func (r *sitemapReader) inEntry() bool {
	if len(r.path) < 2 {
		return false
	}
	over := r.path[len(r.path)-2]
	return over == "url" || over == "sitemap"
}

// alternate adds the address of the page in another language, from the attributes of an xhtml:link.
func (r *sitemapReader) alternate(attrs []xml.Attr) {
	var l ref
	for _, a := range attrs {
		switch a.Name.Local {
		case "href":
			l.href = a.Value
		case "hreflang":
			l.lang = hreflang(a.Value)
		}
	}
	if r.inEntry() && l.lang != "" && l.href != "" && len(l.href) <= maxRef {
		l.rel = "alternate"
		r.add(l)
	}
}

// hreflang returns the language that a link declares: a language tag or x-default. Otherwise it
// returns "".
func hreflang(text string) string {
	text = strings.TrimSpace(text)
	if len(text) < 2 || len(text) > 35 || strings.ContainsFunc(text, notInTag) {
		return ""
	}
	return text
}

func notInTag(r rune) bool {
	return r != '-' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
}
