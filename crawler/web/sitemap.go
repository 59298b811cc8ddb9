package web

import (
	"bytes"
	"compress/gzip"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

// Sitemaps as in https://www.sitemaps.org/protocol.html: a list of addresses or
// of further sitemaps, in XML or plain, as it is or a gzip file.
const (
	maxXMLDepth   = 32       // elements nested; a sitemap has four
	maxUnpacked   = 16 << 20 // bytes of a packed sitemap that are read; what stands in them is followed
	maxEntryBytes = 8 << 20  // of the addresses of one sitemap
	maxDate       = 64       // bytes of a lastmod
)

// packed says whether the path is that of a sitemap in a gzip file, whatever
// media type it is sent with.
func packed(path string) bool {
	return strings.HasSuffix(path, ".xml.gz") || strings.HasSuffix(path, ".txt.gz")
}

func gzipped(body []byte) bool { return bytes.HasPrefix(body, []byte("\x1f\x8b\x08")) }

// pathOf is url without its query.
func pathOf(url string) string { path, _, _ := strings.Cut(url, "?"); return path }

// plainSitemap says whether the text at url is named as a sitemap is.
func plainSitemap(url string) bool {
	url = pathOf(url)
	name := strings.TrimSuffix(url[strings.LastIndexByte(url, '/')+1:], ".gz")
	return strings.HasSuffix(name, ".txt") && strings.Contains(name, "sitemap")
}

// packedSitemap unpacks a sitemap and reads it. A file that is cut off or
// larger than maxUnpacked is read as far as it goes.
func packedSitemap(in input) (page, error) {
	z, err := gzip.NewReader(bytes.NewReader(in.body))
	if err != nil {
		return page{}, fmt.Errorf("web: gzip: %w", err)
	}
	body, err := io.ReadAll(io.LimitReader(z, maxUnpacked+1))
	if err != nil && len(body) == 0 {
		return page{}, fmt.Errorf("web: gzip: %w", err)
	}
	over := len(body) > maxUnpacked
	in.body = body[:min(len(body), maxUnpacked)]
	if gzipped(in.body) {
		return page{}, errNoReader // packed twice
	}
	read := extractXML
	if plainSitemap(in.url) {
		read = func(in input) (page, error) { return listed(in), nil }
	}
	p, err := read(in)
	if err != nil {
		return p, err
	}
	if over {
		p.stop = stopText
	}
	return p, nil
}

// listed reads a plain sitemap: an address a line, in UTF-8.
func listed(in input) page {
	var refs []ref
	text := strings.TrimPrefix(string(in.body), "\uFEFF")
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || len(line) > maxRef || !utf8.ValidString(line) || !strings.Contains(line, "://") {
			continue
		}
		if refs = append(refs, ref{href: line, rel: "sitemap"}); len(refs) > in.maxEntries {
			break
		}
	}
	return entries(in, refs)
}

// entries is the page of a sitemap: all of it is followed, and as much kept as
// of any page.
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

// sitemapReader is what a sitemap has said so far.
type sitemapReader struct {
	refs  []ref
	path  []string // the open elements
	text  strings.Builder
	first int // in refs, of the entry we are in
	date  *time.Time
}

// sitemap reads the addresses of a sitemap or of an index of sitemaps. What is
// broken ends it; what stands before is kept.
func sitemap(in input) (page, error) {
	begun := time.Now()
	d := xml.NewDecoder(bytes.NewReader(in.body))
	d.Strict = false
	d.CharsetReader = charset.NewReaderLabel
	var r sitemapReader
	stop := ""
	for n := 1; len(r.refs) <= in.maxEntries; n++ {
		if n%checkEvery == 0 && time.Since(begun) > in.maxTime {
			stop = stopTime
			break
		}
		tok, err := d.Token()
		if err != nil {
			if !errors.Is(err, io.EOF) && len(r.refs) == 0 {
				return page{}, fmt.Errorf("web: sitemap: %w", err)
			}
			break
		}
		if err := r.token(tok); err != nil {
			return page{}, err
		}
	}
	p := entries(in, r.refs)
	if stop != "" {
		p.stop = stop
	}
	return p, nil
}

func (r *sitemapReader) token(tok xml.Token) error {
	switch tok := tok.(type) {
	case xml.StartElement:
		if len(r.path) >= maxXMLDepth {
			return fmt.Errorf("web: sitemap: deeper than %d", maxXMLDepth)
		}
		r.path = append(r.path, tok.Name.Local)
		r.text.Reset()
		switch tok.Name.Local {
		case "url", "sitemap":
			r.first, r.date = len(r.refs), nil
		case "link": // xhtml: the page in another language
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
	return nil
}

// end takes up what an element held. Only those right under url or sitemap are
// of the entry: an image or a video of it has a loc, too.
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
		r.refs = append(r.refs, ref{href: text, rel: "sitemap"})
	case name == "lastmod" && len(text) <= maxDate:
		if at, ok := parseDate(text); ok {
			r.date = &at
		}
	}
}

func (r *sitemapReader) inEntry() bool {
	if len(r.path) < 2 {
		return false
	}
	over := r.path[len(r.path)-2]
	return over == "url" || over == "sitemap"
}

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
		r.refs = append(r.refs, l)
	}
}

// hreflang is the language that a link declares, "" when it is none: a language
// tag, or x-default.
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
