package web

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mmcdole/gofeed"
)

func TestFeeds(t *testing.T) {
	tests := map[string]string{
		"rss": `<?xml version="1.0" encoding="iso-8859-1"?><rss version="2.0"><channel><title>Not` + "\xed" + `cias</title><link>https://example.org/</link><language>pt</language>
<pubDate>Fri, 01 May 2026 12:00:00 GMT</pubDate><item><title>Um</title><link>/um</link></item><item><title>Dois</title><link>https://other.example/dois</link></item></channel></rss>`,
		"atom": `<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="pt"><title>Notícias</title><link href="https://example.org/"/><updated>2026-05-01T12:00:00Z</updated>
<entry><title>Um</title><link href="https://example.org/um"/></entry><entry><title>Dois</title><link href="https://other.example/dois"/></entry></feed>`,
		"json": `{"version":"https://jsonfeed.org/version/1.1","title":"Notícias","home_page_url":"https://example.org/","language":"pt",
"items":[{"id":"1","title":"Um","url":"https://example.org/um"},{"id":"2","title":"Dois","url":"https://other.example/dois"}]}`,
	}
	for name, body := range tests {
		p, err := extractXML(read(body))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, l := range p.links {
			got = append(got, l.Key.URL()+" "+l.Anchor)
		}
		if p.title != "Notícias" || p.text != "Um\nDois" || strings.Join(got, ",") != "https://example.org/ ,https://example.org/um Um,https://other.example/dois Dois" {
			t.Errorf("%s: title %q, text %q, links %q", name, p.title, p.text, got)
		}
		if name != "json" && (p.published == nil || !p.published.Equal(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))) {
			t.Errorf("%s: published %v", name, p.published)
		}
	}
}

func TestSitemaps(t *testing.T) {
	body := `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc> https://example.org/a?x=1&amp;y=2 </loc><lastmod>2026-01-01</lastmod></url>
<url><loc><![CDATA[https://example.org/b]]></loc></url><url><loc></loc></url></urlset>`
	p, err := extractXML(read(body))
	if err != nil || len(p.links) != 2 || p.links[0].Key != "web:https://example.org/a?x=1&y=2" ||
		p.links[1].Key != "web:https://example.org/b" || p.links[0].Rel != "sitemap" {
		t.Errorf("%+v %v", p, err)
	}
	if p, err := extractXML(read(body[:len(body)-30] + "<broken")); err != nil || len(p.links) != 2 {
		t.Errorf("broken at the end: %+v %v", p, err)
	}
	var many strings.Builder
	many.WriteString("<sitemapindex>")
	for i := range 60_000 {
		fmt.Fprintf(&many, "<sitemap><loc>https://example.org/s%d.xml</loc></sitemap>", i)
	}
	if p, err := extractXML(read(many.String())); err != nil || len(p.links) != 1000 || len(p.more) != 2000 ||
		p.stop != stopLinks {
		t.Errorf("%d links, stop %q, %v", len(p.links), p.stop, err)
	}
	if p, err := extractXML(read("<urlset><url><loc>https://example.org/a</loc></url>" + strings.Repeat("<a>",
		1000))); err != nil || len(p.links) != 1 || p.stop != stopXMLDepth {
		t.Errorf("any depth: %d links, stop %q, %v", len(p.links), p.stop, err)
	}
	if p, err := extractXML(read("<other><loc>https://example.org/</loc></other>")); err != nil || len(p.links) != 0 {
		t.Errorf("other XML: %+v %v", p, err)
	}
}

// The data of a sitemap's entries, and of nothing else in it.
func TestSitemapEntries(t *testing.T) {
	p, err := extractXML(read(`<?xml version="1.0" encoding="ISO-8859-1"?>
<urlset xmlns:image="i" xmlns:xhtml="x"><url><lastmod>2026-01-02T03:04:05+01:00</lastmod><loc>https://example.org/a</loc>
<image:image><image:loc>https://example.org/a.png</image:loc></image:image>
<xhtml:link rel="alternate" hreflang="pt-PT" href="https://example.org/pt/a"/><xhtml:link rel="alternate" hreflang="'" href="/bad"/></url>
<url><loc>/caf&#233;</loc><lastmod>2026-05</lastmod></url><url><loc>https://example.org/c</loc><lastmod>yesterday</lastmod></url>
<loc>https://example.org/stray</loc></urlset>`))
	var got []string
	for _, l := range p.links {
		date := ""
		if l.Modified != nil {
			date = l.Modified.Format(time.RFC3339)
		}
		got = append(got, strings.TrimPrefix(string(l.Key), "web:https://example.org")+" "+l.Rel+" "+l.Lang+" "+date)
	}
	want := []string{"/a sitemap  2026-01-02T02:04:05Z", "/pt/a alternate pt-PT 2026-01-02T02:04:05Z",
		"/caf%C3%A9 sitemap  2026-05-01T00:00:00Z", "/c sitemap  "}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n got %q\nwant %q", err, got, want)
	}
}

// A gzip sitemap that is complete, cut off, too large or packed twice, and a plain one.
func TestPackedSitemaps(t *testing.T) {
	pack := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write([]byte(text))
		z.Close()
		return b.String()
	}
	lines := "\uFEFFhttps://example.org/1\r\n\n  https://example.org/2 \nno address\n"
	xml := "<urlset><url><loc>https://example.org/1</loc></url><url><loc>https://example.org/2</loc></url>"
	long := xml + strings.Repeat("<url><loc>"+strings.Repeat(" ", 40)+"</loc></url>", 1<<18+1<<17) +
		"<url><loc>https://example.org/3</loc></url>"
	for name, c := range map[string]struct {
		url, kind, body, stop string
		links                 int
		err                   bool
	}{
		"packed":         {"/sitemap.xml.gz", "application/gzip", pack(xml + "</urlset>"), "", 2, false},
		"cut off":        {"/sitemap.xml.gz", "application/x-gzip", pack(xml)[:len(pack(xml))-9], "", 2, false},
		"unpacked":       {"/sitemap.xml.gz", "application/octet-stream", xml + "</urlset>", "", 2, false},
		"too large":      {"/sitemap.xml.gz", "text/xml", pack(long), stopText, 2, false},
		"twice":          {"/sitemap.xml.gz", "application/gzip", pack(pack(xml)), "", 0, true},
		"no gzip":        {"/sitemap.xml.gz", "application/gzip", "\x1f\x8b\x08garbage", "", 0, true},
		"plain":          {"/sitemap-pt.txt", "text/plain", lines, "", 2, false},
		"plain, packed":  {"/sitemap.txt.gz", "application/gzip", pack(lines), "", 2, false},
		"another text":   {"/notes.txt", "text/plain", lines, "", 0, false},
		"another packed": {"/logs.xml.gz", "application/gzip", pack("<log/>"), "", 0, false},
	} {
		in := read(c.body)
		in.url, in.mediaType, in.contentType = "https://example.org"+c.url, c.kind, c.kind
		p, err := readAs(in)
		if (err != nil) != c.err || len(p.links) != c.links || p.stop != c.stop {
			t.Errorf("%s: %v, %d links, stop %q", name, err, len(p.links), p.stop)
		}
	}
}

func FuzzXML(f *testing.F) {
	f.Add([]byte(`<urlset><url><loc>https://example.org/</loc></url></urlset>`))
	f.Add([]byte(`<rss><channel><title>t</title><item><link>/x</link></item></channel></rss>`))
	f.Add([]byte(`{"version":"https://jsonfeed.org/version/1","items":[{"url":"x"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		in := read(string(body))
		in.maxLinks, in.maxEntries, in.maxText = 10, 20, 1000
		if _, err := packedSitemap(in); err == nil {
			listed(in, bufio.NewReaderSize(bytes.NewReader(body), 2*maxRef))
		}
		if p, err := extractXML(in); err == nil && (len(p.links) > 10 || len(p.links)+len(p.more) > 20 ||
			len(p.text) > 1000 || len(p.title) > maxTitle) {
			t.Fatalf("%+v", p)
		}
	})
}

// An entry of a feed has the date of its last change if the date is valid.
func TestFeedDates(t *testing.T) {
	p, err := extractXML(read(`<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title>
<entry><title>a</title><link href="https://example.org/a"/><published>2026-01-01T00:00:00Z</published><updated>2026-05-01T14:00:00+02:00</updated></entry>
<entry><title>b</title><link href="https://example.org/b"/><published>2026-01-01T00:00:00Z</published></entry>
<entry><title>c</title><link href="https://example.org/c"/><updated>yesterday</updated></entry>
<entry><title>d</title><link href="https://example.org/d"/><updated>0001-01-01T00:00:00Z</updated></entry>
<entry><title>e</title><link href="https://example.org/a"/><updated>2026-06-01T00:00:00Z</updated></entry></feed>`))
	got := map[string]string{}
	for _, l := range p.links {
		got[strings.TrimPrefix(string(l.Key), "web:https://example.org/")] = fmt.Sprint(l.Modified)
	}
	want := map[string]string{"a": "2026-06-01 00:00:00 +0000 UTC", "b": "2026-01-01 00:00:00 +0000 UTC", "c": "<nil>",
		"d": "<nil>"}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v\n got %v\nwant %v", err, got, want)
	}
}

// Any date text gives a plausible time or none, and the time parses to itself again. The same holds
// for the dates of a feed.
func FuzzDates(f *testing.F) {
	for _, s := range []string{"2026-05-01T12:00:00Z", "2026-05", " 20260501 ", "Fri, 01 May 2026 12:00:00 GMT",
		"9999-12-31", "-1", "2026-05-01T12:00:00.999999999+14:00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at, ok := parseDate(s)
		if ok && (!plausible(at) || at.Location() != time.UTC) {
			t.Fatalf("%q is %s", s, at)
		}
		if again, same := parseDate(at.Format(time.RFC3339Nano)); ok && (!same || !again.Equal(at)) {
			t.Fatalf("%q is %s, then %s", s, at, again)
		}
		for _, d := range []*time.Time{&at, nil} {
			if got := dated(&gofeed.Item{PublishedParsed: d, UpdatedParsed: &at}); got != nil && !plausible(*got) {
				t.Fatalf("%q of a feed is %s", s, got)
			}
		}
	})
}
