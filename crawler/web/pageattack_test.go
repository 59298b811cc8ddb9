package web

import (
	"fmt"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/web/webtest"
)

// Each of these pages once stopped a peer, or nearly: minutes of a core or gigabytes for one page.
// The test measures allocated memory, which does not depend on the load of the machine. It measures
// time only where the page took minutes. It does not wait for a page that takes far more, so the
// program of that time fails here too, without harm to the machine. The limits are written as
// names, because that program has no constants for them.
func attack(t *testing.T, p webtest.Page, most uint64, stops ...string) page {
	t.Helper()
	in := read(string(p.Body))
	in.contentType, in.mediaType, in.url = p.Type, p.Type, p.URL
	var out page
	before := metric(allocated)
	done := make(chan uint64, 1)
	go func() {
		out, _ = readAs(in) // an error is a valid result
		done <- metric(allocated) - before
	}()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	end := time.After(20 * time.Second)
	for ended := false; !ended; {
		select {
		case got := <-done:
			if ended = true; got > most {
				t.Errorf("%s of %d bytes: %d MiB allocated, at most %d", p.Shape, len(p.Body), got>>20, most>>20)
			}
		case <-look.C:
			if got := metric(allocated) - before; got > most+256<<20 {
				t.Fatalf("%s of %d bytes: %d MiB allocated and no end, at most %d", p.Shape, len(p.Body), got>>20,
					most>>20)
			}
		case <-end:
			t.Fatalf("%s of %d bytes: no end after 20 s", p.Shape, len(p.Body))
		}
	}
	found := len(stops) == 0
	for _, stop := range stops {
		found = found || out.stop == stop
	}
	if !found {
		t.Errorf("%s: stopped by %q, want %q", p.Shape, out.stop, stops)
	}
	return out
}

// 50 KB on the wire killed each peer that fetched it: a parser kept all namespaces for each
// element.
func TestAttackFeedNamespaces(t *testing.T) {
	var feed strings.Builder
	feed.WriteString(`<?xml version="1.0"?><rss version="2.0"><channel`)
	for i := range 2000 {
		fmt.Fprintf(&feed, " xmlns:n%x='u'", i)
	}
	feed.WriteString(">" + strings.Repeat("<a>", 2000))
	p := webtest.Page{Shape: "feed", URL: "https://example.org/f", Type: "application/rss+xml",
		Body: []byte(feed.String())}
	attack(t, p, 8<<20, "xml-attributes")
	attack(t, webtest.OfShape("feed of namespaces", 500_000), 16<<20, "xml-tag")
	attack(t, webtest.OfShape("feed of 30 namespaces", 16<<20), 512<<20)
}

func TestAttackFeedDepth(t *testing.T) {
	attack(t, webtest.OfShape("feed of depth", 16<<20), 16<<20, "xml-depth")
	attack(t, webtest.OfShape("JSON feed of depth", 16<<20), 16<<20, "json-depth")
	attack(t, webtest.OfShape("sitemap of depth", 16<<20), 16<<20, "xml-depth")
	attack(t, webtest.OfShape("linked data, deep", 16<<20), 64<<20, "json-ld")
}

// A JSON feed of 4 MiB of empty entries took hundreds of MiB.
func TestAttackFeedEntries(t *testing.T) {
	attack(t, webtest.OfShape("JSON feed of empty entries", 4<<20), 32<<20, "feed-entries")
	attack(t, webtest.OfShape("feed of empty entries", 4<<20), 64<<20, "feed-entries")
}

// 1.09 GiB and 8.4 s: each attribute of one tag was kept twice, by name.
func TestAttackAttributes(t *testing.T) {
	attack(t, webtest.OfShape("one tag of equal attributes", 16<<20), 64<<20, "html-tag")
	attack(t, webtest.OfShape("one tag of attributes", 16<<20), 128<<20, "html-tag")
	attack(t, webtest.OfShape("sitemap of one tag", 16<<20), 32<<20, "xml-tag")
	// At each tag the html.Tokenizer clears memory of the size that the largest tag needed.
	p := attack(t, webtest.OfShape("many attributes, then small tags", 4<<20), 256<<20)
	if p.stop != "html-attributes" {
		t.Errorf("stop %q", p.stop)
	}
}

// 10 s: each line in a heading copied the whole heading.
func TestAttackHeadings(t *testing.T) {
	p := attack(t, webtest.OfShape("paragraphs in a heading", 8<<20), 128<<20)
	if p.title != "x" {
		t.Errorf("title %.80q", p.title)
	}
	p = attack(t, webtest.OfShape("text in a heading", 8<<20), 256<<20)
	if !strings.HasPrefix(p.title, "xxx") || len(p.title) > maxTitle {
		t.Errorf("title %.80q", p.title)
	}
}

// Over 40 s on both cores of a peer: for each word of a text longer than MaxText, the rest of the
// text was read again.
func TestAttackSingleLineText(t *testing.T) {
	for _, shape := range []string{"text in one line", "plain text", "dates in one line", "one word",
		"one-letter words"} {
		if p := attack(t, webtest.OfShape(shape, 4<<20), 64<<20, "text-size"); len(p.text) < 1<<20-64 {
			t.Errorf("%s: %d bytes of text", shape, len(p.text))
		}
	}
}

const allocated = "/gc/heap/allocs:bytes"

func metric(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
