package web

import (
	"fmt"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/web/webtest"
)

// Each of these once stopped a peer, or nearly: minutes of a core or gigabytes for one
// page. What is measured here is memory that was allocated, which does not depend on how
// busy the machine is, and time only where it was minutes.
func attack(t *testing.T, p webtest.Page, most uint64, stops ...string) page {
	t.Helper()
	in := read(string(p.Body))
	in.contentType, in.mediaType, in.url = p.Type, p.Type, p.URL
	var out page
	done := make(chan uint64)
	go func() {
		before := metric("/gc/heap/allocs:bytes")
		out, _ = readAs(in) // an error is an answer
		done <- metric("/gc/heap/allocs:bytes") - before
	}()
	select {
	case got := <-done:
		if got > most {
			t.Errorf("%s of %d bytes: %d MiB allocated, at most %d", p.Shape, len(p.Body), got>>20, most>>20)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("%s of %d bytes: no end after 20 s", p.Shape, len(p.Body))
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

// 50 KB on the wire killed each peer that fetched it: a parser kept all namespaces for
// each element.
func TestAttackFeedNamespaces(t *testing.T) {
	var feed strings.Builder
	feed.WriteString(`<?xml version="1.0"?><rss version="2.0"><channel`)
	for i := range 2000 {
		fmt.Fprintf(&feed, " xmlns:n%x='u'", i)
	}
	feed.WriteString(">" + strings.Repeat("<a>", 2000))
	p := webtest.Page{Shape: "feed", URL: "https://example.org/f", Type: "application/rss+xml", Body: []byte(feed.String())}
	attack(t, p, 8<<20, stopXMLAttrs)
	attack(t, webtest.OfShape("feed of namespaces", 500_000), 16<<20, stopXMLTag)
	attack(t, webtest.OfShape("feed of 60 namespaces", 16<<20), 512<<20)
}

func TestAttackFeedDepth(t *testing.T) {
	attack(t, webtest.OfShape("feed of depth", 16<<20), 16<<20, stopXMLDepth)
	attack(t, webtest.OfShape("JSON feed of depth", 16<<20), 16<<20, stopJSONDepth)
	attack(t, webtest.OfShape("sitemap of depth", 16<<20), 16<<20, stopXMLDepth)
	attack(t, webtest.OfShape("linked data, deep", 16<<20), 64<<20, stopData)
}

// A JSON feed of 4 MiB of empty entries took hundreds.
func TestAttackFeedEntries(t *testing.T) {
	attack(t, webtest.OfShape("JSON feed of empty entries", 4<<20), 32<<20, stopEntries)
	attack(t, webtest.OfShape("feed of empty entries", 4<<20), 64<<20, stopEntries)
}

// 1.09 GiB and 8.4 s: each attribute of one tag was kept twice, by name.
func TestAttackAttributes(t *testing.T) {
	attack(t, webtest.OfShape("one tag of equal attributes", 16<<20), 64<<20, stopTag)
	attack(t, webtest.OfShape("one tag of attributes", 16<<20), 128<<20, stopTag)
	attack(t, webtest.OfShape("sitemap of one tag", 16<<20), 32<<20, stopXMLTag)
	// The tokenizer clears what it once needed for the largest tag at each tag.
	p := attack(t, webtest.OfShape("many attributes, then small tags", 4<<20), 256<<20)
	if p.stop != stopAttributes {
		t.Errorf("stop %q", p.stop)
	}
}

// 10 s: each line in a heading copied the heading.
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

// Over 40 s, and both cores of a peer: each word of a text longer than MaxText had the
// rest of it read again.
func TestAttackSingleLineText(t *testing.T) {
	for _, shape := range []string{"text in one line", "plain text", "dates in one line", "one word", "one-letter words"} {
		if p := attack(t, webtest.OfShape(shape, 4<<20), 64<<20, stopText); len(p.text) < 1<<20-64 {
			t.Errorf("%s: %d bytes of text", shape, len(p.text))
		}
	}
}

// What is cut is cut after whole words, and where words end does not depend on how the
// text came.
func TestProseIsTheSameInParts(t *testing.T) {
	text := strings.Repeat("a bc  def\tghij\u00a0klmno \n pqrstu ", 40)
	for most := 1; most < 200; most++ {
		whole, parts := prose{max: most}, prose{max: most}
		whole.add(text)
		for i, part := range strings.SplitAfter(text, "d") {
			if parts.add(part); i%7 == 0 {
				parts.add("")
			}
		}
		if whole.String() != parts.String() && !strings.HasPrefix(whole.String()+" ", parts.String()) {
			t.Errorf("at most %d: %q in one, %q in parts", most, whole.String(), parts.String())
		}
		if whole.Len() > most {
			t.Errorf("%d bytes, at most %d", whole.Len(), most)
		}
	}
}

// An entity is decoded once: a page about HTML says what it says.
func TestEntitiesAreDecodedOnce(t *testing.T) {
	p := mustExtract(t, read("<title>&amp;lt;b&amp;gt;</title><a href='/x?a&amp;lt=1'>&amp;copy;</a> &amp;amp;"))
	if p.title != "&lt;b&gt;" || p.text != "&copy; &amp;" || len(p.links) != 1 || p.links[0].Anchor != "&copy;" || p.links[0].Key != "web:https://example.org/x?a&lt=1" {
		t.Errorf("%q %q %+v", p.title, p.text, p.links)
	}
}

// Behind a tag, a comment or a script that is too long to be held, a page goes on.
func TestWhatIsTooLongIsPassedOver(t *testing.T) {
	long := strings.Repeat("a", 3*maxToken/2)
	for name, c := range map[string]struct{ body, text, stop string }{
		"tag":        {`x<p title="` + long + `>">y`, "x y", stopTag},
		"end tag":    {`x</p ` + long + `>y`, "x y", stopTag},
		"unquoted":   {`x<p title=` + long + `>y`, "x y", stopTag},
		"comment":    {`x<!--` + long + `> -- > --!>y`, "xy", ""},
		"doctype":    {`<!doctype ` + long + `>y`, "y", ""},
		"script":     {`x<script>` + long + `<p></script>y`, "xy", ""},
		"style":      {`x<style>` + long + `</styl<p></style>y`, "xy", ""},
		"script tag": {`x<script data="` + long + `"><p>z</p></script>y`, "xy", stopTag},
		"title":      {`<title>t ` + long + `</title>y`, "y", ""},
		"many":       {`<script ` + strings.Repeat("a b ", 300) + `><p></script>y`, "y", ""},
	} {
		p := mustExtract(t, read(c.body))
		if got := strings.Join(strings.Fields(p.text), " "); got != c.text || p.stop != c.stop {
			t.Errorf("%s: %.80q, stop %q", name, p.text, p.stop)
		}
	}
	in := read("<pre>" + strings.Repeat("é&amp;", maxToken))
	in.maxText = 1 << 30
	if p := mustExtract(t, in); p.text != strings.Repeat("é&", maxToken) {
		t.Errorf("a long text is not itself: %d bytes, want %d", len(p.text), 3*maxToken)
	}
}

func metric(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
