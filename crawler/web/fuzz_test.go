package web

import (
	"bytes"
	"encoding/xml"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mmcdole/gofeed"
	"golang.org/x/net/html"

	"github.com/echo-node/echo-node/crawler/web/utf8text"
	"github.com/echo-node/echo-node/crawler/web/webtest"
)

// The tokens of a page are those that html.Tokenizer gives when it buffers the whole page.
func FuzzTokens(f *testing.F) {
	f.Add([]byte(`<a b c=d e='f'>x &amp;lt; y<script><p></script><!-- > --><br/></a z><title>t&amp;</title><plaintext><a>`))
	f.Add([]byte("<style x" + strings.Repeat(" a b", 300) + "><p></style>"))
	f.Fuzz(func(t *testing.T, body []byte) {
		z, got := html.NewTokenizer(bytes.NewReader(body)), newTokens(bytes.NewReader(body))
		for {
			want := z.Next()
			for want == html.CommentToken || want == html.DoctypeToken {
				want = z.Next()
			}
			if is := got.next(); is != want {
				t.Fatalf("%v, want %v", is, want)
			}
			switch want {
			case html.ErrorToken:
				return
			case html.TextToken:
				if text := z.Text(); !bytes.Equal(got.text, text) || got.part {
					t.Fatalf("%q, want %q", got.text, text)
				}
			default:
				if is, want := got.z.Token(), z.Token(); !reflect.DeepEqual(is, want) {
					t.Fatalf("%+v, want %+v", is, want)
				}
			}
		}
	})
}

// Text added in parts gives the same prose as text added at once.
func FuzzProse(f *testing.F) {
	f.Add("a bc  def\tghij\u00a0k", 7, 3)
	f.Fuzz(func(t *testing.T, text string, most, at int) {
		if !utf8.ValidString(text) || most < 1 || most > 1<<12 || at < 0 || at > len(text) {
			return
		}
		var w prose
		w.max = most
		w.add(text)
		if w.Len() > most || !utf8.ValidString(w.String()) {
			t.Fatalf("%q, at most %d", w.String(), most)
		}
		whole, lines := prose{max: 1 << 20}, prose{max: 1 << 20}
		whole.add(strings.ReplaceAll(text, "\n", " "))
		if err := lines.read(utf8text.NewReader(strings.NewReader(text))); err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Join(strings.Fields(lines.text()), " "),
			strings.Join(strings.Fields(whole.text()), " "); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}

// For a well-formed feed, the result is that of gofeed, so the parts that are left out do not
// matter. For tags that do not match, feedReader names the end tag after the start tag, and gofeed
// keeps the original.
func FuzzFeed(f *testing.F) {
	for _, shape := range webtest.Shapes() {
		if strings.Contains(shape, "feed of") {
			f.Add(webtest.OfShape(shape, 300).Body)
		}
	}
	f.Add([]byte(`<rss xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><dc:title>T</dc:title><item><title>a &amp; b<b/></title><link>/x</link><dc:date>2026-01-01</dc:date></item></channel></rss>`))
	f.Add([]byte(`<feed xml:base="http://a/b/" xml:lang="pt"><title type="html">&lt;b&gt;</title><entry><link rel="alternate" href="c"/><issued>2026-01-01</issued></entry></feed>`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > 16<<10 || !wellFormed(body) {
			return
		}
		in := read(string(body))
		in.maxLinks = 100
		got, stop, err := parseFeed(in)
		want, wantErr := gofeed.NewParser().ParseString(string(body))
		if err != nil || wantErr != nil || got == nil || stop != "" {
			return // one of the two is stricter with broken feeds
		}
		if a, b := feed(in, got), feed(in, want); !reflect.DeepEqual(a, b) {
			t.Fatalf("%+v\nwant %+v", a, b)
		}
	})
}

func wellFormed(body []byte) bool {
	for d := xml.NewDecoder(bytes.NewReader(body)); ; {
		if _, err := d.Token(); err != nil {
			return err == io.EOF
		}
	}
}

// For any text a cursor comes to an end, and its values are parts of the text.
func FuzzJSONCursor(f *testing.F) {
	f.Add([]byte(`{"title":"a","items":[{"url":"/x","title":1},{}],"x":{"y":[1,2,{"z":null}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c := jsonCursor{text: slices.Clone(text)}
		for {
			from := c.at
			raw, err := c.value()
			if err != nil || c.at <= from {
				break
			}
			if !bytes.Contains(text, raw) {
				t.Fatalf("%q is not in %q", raw, text)
			}
			c.at++
		}
		jsonFeed(text, 10)
		depthOf(text)
	})
}

// Any bad page can be judged.
func FuzzBadPage(f *testing.F) {
	f.Add(uint64(1), []byte("<p>x"))
	f.Fuzz(func(t *testing.T, seed uint64, body []byte) {
		p := webtest.NewGenerator(seed,
			[]webtest.Page{{Shape: "given", URL: "https://example.org/", Type: "text/html", Body: body}}).Next()
		in := read(string(p.Body))
		in.contentType, in.mediaType, in.url = p.Type, strings.TrimSpace(strings.Split(p.Type, ";")[0]), p.URL
		in.maxText, in.maxLinks, in.maxEntries = 1000, 10, 20
		got, err := readAs(in)
		if err != nil {
			if strings.Contains(err.Error(), "panicked") {
				t.Fatal(err)
			}
			return
		}
		if len(got.text) > 1000 || len(got.title) > maxTitle || len(got.links) > 10 ||
			!utf8.ValidString(got.text+got.title+got.description+got.author) {
			t.Fatalf("%+v", got)
		}
	})
}
