package web

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"

	"github.com/echo-node/echo-node/store"
)

// Feeds and sitemaps are handled as pages whose links are their entries.

// isXML reports whether a media type may be that of a feed or a sitemap.
func isXML(kind string) bool {
	switch kind {
	case "application/xml", "text/xml", "application/rss+xml", "application/atom+xml", "application/rdf+xml",
		"application/feed+json":
		return true
	}
	return false
}

// extractXML parses a feed (RSS, Atom, JSON) or a sitemap. Other XML gives neither text nor links.
func extractXML(in input) (p page, err error) {
	defer func() {
		if r := recover(); r != nil {
			p, err = page{}, fmt.Errorf("web: extract: the parser panicked: %.80v", r)
		}
	}()
	if isSitemap(in.body[:min(len(in.body), maxHead)]) {
		return sitemap(in, bytes.NewReader(in.body))
	}
	f, stop, err := parseFeed(in)
	switch {
	case err != nil:
		return page{}, fmt.Errorf("web: feed: %w", err)
	case f == nil:
		return page{stop: stop}, nil
	}
	p = feed(in, f)
	if stop != "" {
		p.stop = stop
	}
	return p, nil
}

// parseFeed parses the feed in in. f is nil when there is none. stop is the limit that was hit.
func parseFeed(in input) (f *gofeed.Feed, stop string, err error) {
	switch body := bytes.TrimLeft(in.body, " \r\n\t\xfe\xff\x00\xef\xbb\xbf"); {
	case bytes.HasPrefix(body, []byte("{")):
		return jsonFeed(body, in.maxLinks)
	case bytes.HasPrefix(body, []byte("<")):
		r := newFeedReader(in.body, in.maxLinks)
		if err := r.read(in.maxTime); err != nil {
			return nil, r.x.stop, err
		}
		f, err := r.feed()
		return f, r.x.stop, err
	}
	return nil, "", nil
}

// feed returns the page of a feed. Its text is the titles of its entries.
func feed(in input, f *gofeed.Feed) page {
	title, text := prose{max: maxTitle}, prose{max: in.maxText}
	title.add(strings.ToValidUTF8(f.Title, "\uFFFD"))
	refs := []ref{{href: f.Link, rel: "home"}}
	for _, it := range f.Items {
		if len(refs) > in.maxLinks {
			break
		}
		anchor := prose{max: maxAnchor}
		anchor.add(strings.ToValidUTF8(it.Title, "\uFFFD"))
		text.add(strings.ToValidUTF8(it.Title, "\uFFFD"))
		text.newline()
		refs = append(refs, ref{href: it.Link, rel: "item", anchor: anchor.text(), modified: dated(it)})
	}
	p := page{title: title.text(), text: text.text(), spoken: text.text(),
		lang: in.langs.language(text.text(), cmp.Or(f.Language, in.claim))}
	for _, at := range [...]*time.Time{f.PublishedParsed, f.UpdatedParsed} {
		if at != nil && p.published == nil {
			utc := at.UTC()
			p.published = &utc
		}
	}
	p.links, p.stop = bounded(in, refs)
	return p
}

// dated returns the time of an entry's last change as the feed states it. It returns nil when there
// is none or it is not plausible.
func dated(it *gofeed.Item) (at *time.Time) {
	for _, d := range [...]*time.Time{it.PublishedParsed, it.UpdatedParsed} {
		if d == nil || !plausible(*d) || at != nil && !d.After(*at) {
			continue
		}
		utc := d.UTC()
		at = &utc
	}
	return at
}

// bounded returns the links for refs and, when there were too many, the name of the limit.
func bounded(in input, refs []ref) (out []store.Link, stop string) {
	out, over := links(in.url, "", refs, in.maxLinks, maxLinkBytes)
	if over || len(refs) > in.maxLinks {
		stop = stopLinks
	}
	return out, stop
}
