package web

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"

	"github.com/echo-node/echo-node/store"
)

// Feeds and sitemaps are pages whose links are their entries.

// maxFeed is the largest feed that is parsed: its parser builds a tree and
// cannot be stopped on the way.
const maxFeed = 4 << 20

// isXML says whether a media type may be a feed's or a sitemap's.
func isXML(kind string) bool {
	switch kind {
	case "application/xml", "text/xml", "application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/feed+json":
		return true
	}
	return false
}

// extractXML reads a feed (RSS, Atom, JSON) or a sitemap; other XML has neither
// text nor links.
func extractXML(in input) (p page, err error) {
	defer func() {
		if r := recover(); r != nil {
			p, err = page{}, fmt.Errorf("web: extract: the parser panicked: %.80v", r)
		}
	}()
	head := in.body[:min(len(in.body), 2<<10)]
	if bytes.Contains(head, []byte("<urlset")) || bytes.Contains(head, []byte("<sitemapindex")) {
		return sitemap(in)
	}
	if gofeed.DetectFeedType(bytes.NewReader(in.body)) == gofeed.FeedTypeUnknown {
		return page{}, nil
	}
	if len(in.body) > maxFeed {
		return page{}, fmt.Errorf("web: feed: %d bytes, at most %d", len(in.body), maxFeed)
	}
	f, err := gofeed.NewParser().Parse(bytes.NewReader(in.body))
	if err != nil {
		return page{}, fmt.Errorf("web: feed: %w", err)
	}
	return feed(in, f), nil
}

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
	p := page{title: title.text(), text: text.text(), lang: in.langs.language(text.text(), f.Language)}
	for _, at := range [...]*time.Time{f.PublishedParsed, f.UpdatedParsed} {
		if at != nil && p.published == nil {
			utc := at.UTC()
			p.published = &utc
		}
	}
	p.links, p.stop = bounded(in, refs)
	return p
}

// dated is when an entry changed last, as the feed says; nil when it does not, or
// says what parseDate would not take.
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

// bounded is links and, when there were too many, the limit.
func bounded(in input, refs []ref) (out []store.Link, stop string) {
	out, over := links(in.url, "", refs, in.maxLinks, maxLinkBytes)
	if over || len(refs) > in.maxLinks {
		stop = stopLinks
	}
	return out, stop
}
