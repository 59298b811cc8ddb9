package web

import (
	"fmt"
	"strings"
	"testing"
	"time"
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
	if err != nil || len(p.links) != 2 || p.links[0].Key != "web:https://example.org/a?x=1&y=2" || p.links[1].Key != "web:https://example.org/b" || p.links[0].Rel != "sitemap" {
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
	if p, err := extractXML(read(many.String())); err != nil || len(p.links) != 1000 || p.stop != stopLinks {
		t.Errorf("%d links, stop %q, %v", len(p.links), p.stop, err)
	}
	if _, err := extractXML(read("<urlset>" + strings.Repeat("<a>", 1000))); err == nil {
		t.Error("any depth")
	}
	if p, err := extractXML(read("<other><loc>https://example.org/</loc></other>")); err != nil || len(p.links) != 0 {
		t.Errorf("other XML: %+v %v", p, err)
	}
}

func FuzzXML(f *testing.F) {
	f.Add([]byte(`<urlset><url><loc>https://example.org/</loc></url></urlset>`))
	f.Add([]byte(`<rss><channel><title>t</title><item><link>/x</link></item></channel></rss>`))
	f.Add([]byte(`{"version":"https://jsonfeed.org/version/1","items":[{"url":"x"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		in := read(string(body))
		in.maxLinks, in.maxText = 10, 1000
		if p, err := extractXML(in); err == nil && (len(p.links) > 10 || len(p.text) > 1000 || len(p.title) > maxTitle) {
			t.Fatalf("%+v", p)
		}
	})
}
