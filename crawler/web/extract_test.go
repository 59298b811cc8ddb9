package web

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/echo-node/echo-node/crawler/web/utf8text"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

var langs = func() *tongues {
	l, err := newTongues()
	if err != nil {
		panic(err)
	}
	return l
}()

// read returns the input for a fetched page. It has no time limit, because a busy machine must not
// change where extraction stops.
func read(body string) input {
	return input{body: []byte(body), contentType: "text/html", mediaType: "text/html",
		url:     "https://example.org/dir/page",
		maxText: 1 << 20, maxLinks: 1000, maxEntries: 3000, maxTime: time.Hour, langs: langs}
}

func mustExtract(t *testing.T, in input) page {
	t.Helper()
	p, err := extract(in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// One page in five character sets, declared in every possible way, gives one text.
func TestCharsets(t *testing.T) {
	const text = "Ação, coração — não é só “isto”: 5 €"
	const plain = "Ação, coração é às três"
	page := func(meta, words string) string {
		return "<html><head>" + meta + "<title>" + words + "</title></head><body><p>" + words + "</p></body></html>"
	}
	encode := func(s string, e interface{ String(string) (string, error) }) string {
		out, err := e.String(s)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	utf16 := func(e unicode.Endianness, bom unicode.BOMPolicy) interface{ String(string) (string, error) } {
		return unicode.UTF16(e, bom).NewEncoder()
	}
	tests := []struct{ name, contentType, body, want string }{
		{"utf-8 by header", "text/html; charset=UTF-8", page("", text), text},
		{"utf-8 by meta", "text/html", page("<meta charset=utf-8>", text), text},
		{"utf-8 by mark", "text/html; charset=iso-8859-1", "\xef\xbb\xbf" + page("", text), text},
		{"utf-8 unsaid", "text/html", page(strings.Repeat("<!-- a long comment -->", 60), text), text},
		{"windows-1252 by header", "text/html; charset=windows-1252",
			encode(page("", text), charmap.Windows1252.NewEncoder()), text},
		{"windows-1252 by meta", "text/html",
			encode(page(`<meta http-equiv=Content-Type content="text/html; charset=windows-1252">`, text),
				charmap.Windows1252.NewEncoder()), text},
		{"windows-1252 unsaid", "text/html", encode(page("", text), charmap.Windows1252.NewEncoder()), text},
		{"iso-8859-1 by header", "text/html; charset=ISO-8859-1",
			encode(page("", plain), charmap.ISO8859_1.NewEncoder()), plain},
		{"iso-8859-15 by meta", "text/html", encode(page("<meta charset=iso-8859-15>", plain+" 5 €"),
			charmap.ISO8859_15.NewEncoder()), plain + " 5 €"},
		{"utf-16le by mark", "text/html", encode(page("", text), utf16(unicode.LittleEndian, unicode.UseBOM)), text},
		{"utf-16be by mark", "text/html; charset=utf-8",
			encode(page("", text), utf16(unicode.BigEndian, unicode.UseBOM)), text},
		{"utf-16le by header", "text/html; charset=utf-16le",
			encode(page("", text), utf16(unicode.LittleEndian, unicode.IgnoreBOM)), text},
	}
	for _, tt := range tests {
		in := read(tt.body)
		in.contentType = tt.contentType
		if p := mustExtract(t, in); p.text != tt.want || p.title != tt.want {
			t.Errorf("%s: text %q, title %q, want %q", tt.name, p.text, p.title, tt.want)
		}
	}
}

func TestText(t *testing.T) {
	tests := []struct{ name, body, title, text string }{
		{"blocks", "<title>T</title><div>a<div>b</div>c</div><p>d<br>e", "T", "a\nb\nc\nd\ne"},
		{"spaces", "<p> a \n\t b<b>c</b> <i>d</i>\u00a0e\u200bf", "", "a bc d e f"},
		{"hidden", "a<script>if (a<b) x('</p>')</script><style>p{}</style><template>t</template><noscript>n</noscript><!-- c -->b", "", "ab"},
		{"navigation", "<nav>menu</nav><main>words</main><aside>ads</aside><footer>foot</footer>", "", "words"},
		{"a footnote", `<p>a<aside class="footnote-list brackets"><aside role="note">one</aside>
			<aside>two</aside></aside><aside>ads</aside><p>b`, "", "a\none\ntwo\nb"},
		{"a remark", `<main>a<aside class="starlight-aside starlight-aside--note">one</aside>
			<aside class="notecard">ads</aside>b</main>`, "", "a\none\nb"},
		{"a note around", `<nav><aside role="note">menu</aside>more</nav>words`, "", "words"},
		{"an open note", `<aside role="note">ads<main>words</main><aside>more ads</aside>`, "", "ads\nwords"},
		{"only navigation", "<nav>menu</nav>", "", "menu"},
		{"open navigation", "<nav>menu<main>words", "", "words"},
		{"svg title", "<svg><title>icon</title></svg><title>Real</title>x", "Real", "x"},
		{"title of heading", "<h1>The <b>head</b></h1>x", "The head", "The head\nx"},
		{"title of graph", `<meta property="og:title" content=" Graph  title "><h1>h</h1>`, "Graph title", "h"},
		{"entities", "<title>a &amp; b &#233; &lt;</title>&eacute;&nbsp;&copy;", "a & b é <", "é ©"},
		{"form", "<select><option>one<option>two</select><button>go</button>text", "", "text"},
		{"control", "a\x00b\x1bc\x7f", "", "a b c"},
		{"invalid", "<meta charset=utf-8>a\xffb", "", "a\uFFFDb"},
	}
	for _, tt := range tests {
		if p := mustExtract(t, read(tt.body)); p.title != tt.title || p.text != tt.text {
			t.Errorf("%s: title %q text %q, want %q %q", tt.name, p.title, p.text, tt.title, tt.text)
		}
	}
}

func TestLinks(t *testing.T) {
	l := func(url, anchor, rel string, no bool) store.Link {
		return store.Link{Key: partition.Key("web:" + url), Anchor: anchor, Rel: rel, NoFollow: no}
	}
	in := func(lang string, l store.Link) store.Link { l.Lang = lang; return l }
	tests := []struct {
		name, body string
		want       []store.Link
	}{
		{"relative", `<a href="b">B</a><a href=../c#x>C</a><a href="//other.example/d?">D</a>`, []store.Link{
			l("https://example.org/dir/b", "B", "", false), l("https://example.org/c", "C", "", false),
			l("https://other.example/d", "D", "", false)}},
		{"base", `<link rel=canonical href=x><base href="/other/"><base href="/no/"><a href=b>B</a>`, []store.Link{
			l("https://example.org/other/x", "", "canonical", false),
			l("https://example.org/other/b", "B", "", false)}},
		{"not links", `<a href="#a">A</a><a href="mailto:a@b">m</a><a href="javascript:x()">j</a><a>n</a><a href="">e</a><a href="page">self</a><link rel=stylesheet href=s.css><link rel="alternate stylesheet" href=t.css><link href=t>`, nil},
		{"kinds", `<area href=a><iframe src=b></iframe><frame src=c><link rel="Alternate" hreflang=pt href=d><meta http-equiv=refresh content="5; URL='e'">`, []store.Link{
			l("https://example.org/dir/a", "", "", false), l("https://example.org/dir/b", "", "", false),
			l("https://example.org/dir/c", "", "", false),
			in("pt", l("https://example.org/dir/d", "", "alternate", false)),
			l("https://example.org/dir/e", "", "refresh", false)}},
		{"rel", `<a rel="ugc NOOPENER" href=a>A</a><a rel=sponsored href=b>B</a><a rel=nofollow href=c>C</a><a rel=noopener href=c>again</a>`, []store.Link{
			l("https://example.org/dir/a", "A", "ugc noopener", true),
			l("https://example.org/dir/b", "B", "sponsored", true),
			l("https://example.org/dir/c", "C", "noopener", false)}},
		{"anchors", `<a href=a>one <b>two</b><p>three<a href=b>next</a> after <a href=c><img alt=" pic "></a>`,
			[]store.Link{
				l("https://example.org/dir/a", "one two three", "", false),
				l("https://example.org/dir/b", "next", "", false), l("https://example.org/dir/c", "pic", "", false)}},
	}
	for _, tt := range tests {
		if p := mustExtract(t, read(tt.body)); !reflect.DeepEqual(p.links, tt.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", tt.name, p.links, tt.want)
		}
	}
}

func TestMeta(t *testing.T) {
	p := mustExtract(t, read(`<html lang="PT_br"><meta name="date" content="2020-01-02"><meta property="article:published_time" content="2021-03-04T05:06:07+01:00">
<meta name=echo-node content="none"><meta name=googlebot content=noindex>`))
	if p.published == nil || p.published.Format(time.RFC3339) != "2021-03-04T04:06:07Z" ||
		p.robots != (directives{noIndex: true, noFollow: true}) || p.lang != "pt-BR" {
		t.Errorf("%+v %v", p, p.published)
	}
	for value, want := range map[string]directives{
		"noindex": {noIndex: true}, "NoFollow , archive": {noFollow: true}, "none": {noIndex: true, noFollow: true},
		"googlebot: noindex, nofollow": {},
		"echo-node: noindex":           {noIndex: true}, "otherbot: noindex, echo-node: nofollow": {noFollow: true},
		"unavailable_after: 25 Jun 2030 15:00:00 PST, noindex": {noIndex: true},
		"noarchive": {noArchive: true}, "none, NoCache": {noIndex: true, noFollow: true, noArchive: true},
		"googlebot: noarchive": {},
		"max-snippet: 5":       {}, "": {},
	} {
		if got := headerDirectives([]string{value}); got != want {
			t.Errorf("%q: %+v, want %+v", value, got, want)
		}
	}
}

func TestLanguage(t *testing.T) {
	pt := strings.Repeat("A câmara municipal aprovou ontem o novo orçamento da cidade, que prevê obras em todas as freguesias. ", 3)
	es := strings.Repeat("El ayuntamiento aprobó ayer el nuevo presupuesto de la ciudad, que prevé obras en todos los barrios. ", 3)
	for _, tt := range []struct{ text, claim, want string }{
		{pt, "", "pt-PT"}, {pt, "pt-PT", "pt-PT"}, {pt, "en", "pt-PT"}, {pt, "pt-BR", "pt-PT"}, {es, "en-US", "es"},
		{"short", "fr", "fr"}, {"short", "", "und"}, {"", "no such language!", "und"},
		{"short", "zh-hant-tw", "zh-Hant-TW"},
		{"Le conseil municipal a adopté hier le nouveau budget de la ville, qui prévoit des travaux dans tous les quartiers, et les habitants sont contents.", "en", "fr"},
		{"The city council has approved the new budget of the city yesterday, which plans works in all of the districts, and the people are happy.", "pt", "en"},
		{"O concello da cidade aprobou onte o novo orzamento, que prevé obras en todas as parroquias; os veciños e as veciñas están moi contentos coa súa decisión.", "", "gl"},
		{"L'ajuntament de la ciutat va aprovar ahir el nou pressupost, que preveu obres a tots els barris, i els veïns estan molt contents amb la seva decisió.", "", "ca"},
		{"Der Stadtrat hat gestern den neuen Haushalt der Stadt beschlossen, der Arbeiten in allen Vierteln vorsieht, und die Leute sind damit zufrieden.", "", "de"},
		{"Городской совет вчера утвердил новый бюджет города, который предусматривает работы во всех районах, и жители этим очень довольны, как они сказали.", "", "ru"},
		{"市议会昨天批准了新的城市预算，计划在所有地区开展工程，居民们都很高兴。", "en", "zh"},
		{"市議会は昨日、すべての地区での工事を予定する新しい市の予算を承認しました。", "", "ja"},
		{strings.Repeat("Xyzzy plugh frobnicate quux. ", 10), "", "und"},
	} {
		if got := langs.language(tt.text, tt.claim); got != tt.want {
			t.Errorf("%.20q claimed %q: %q, want %q", tt.text, tt.claim, got, tt.want)
		}
	}
}

// 50,000 links, deep nesting, no end tags: the limits hold and are named.
func TestExtractionLimits(t *testing.T) {
	var many strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&many, "<a href=/p%d>%d</a>", i, i)
	}
	in := read(many.String())
	in.maxLinks, in.maxText = 500, 1000
	p := mustExtract(t, in)
	if len(p.links) != 500 || p.stop != stopLinks || len(p.text) > 1000 {
		t.Errorf("%d links, stop %q, %d bytes of text", len(p.links), p.stop, len(p.text))
	}
	deep := read(strings.Repeat("<div><b><nav>", 300_000) + "x")
	begun := time.Now()
	if p := mustExtract(t, deep); p.stop != "" || time.Since(begun) > 5*time.Second {
		t.Errorf("stop %q after %v", p.stop, time.Since(begun))
	}
	late := read(strings.Repeat("<p>a", 100_000))
	late.maxTime = time.Nanosecond
	if p := mustExtract(t, late); p.stop != stopTime || p.text == "" {
		t.Errorf("stop %q", p.stop)
	}
	long := read(strings.Repeat("<a href=/"+strings.Repeat("x", 2000)+"%d>", 2))
	for i := range 3000 {
		long.body = append(long.body, fmt.Sprintf("<a href=/%s%d>", strings.Repeat("x", 1500), i)...)
	}
	long.maxLinks = 10_000
	p, size := mustExtract(t, long), 0
	for _, l := range p.links {
		size += len(l.Key) + len(l.Anchor)
	}
	if size > maxLinkBytes || p.stop != stopLinks {
		t.Errorf("%d bytes of links, stop %q", size, p.stop)
	}
}

func FuzzExtract(f *testing.F) {
	f.Add([]byte(`<html lang=pt><base href=/x/><title>T</title><a href=b rel=nofollow>x</a><meta name=robots content=noindex><nav>`), "text/html; charset=utf-8")
	f.Add([]byte("\xff\xfe<\x00a\x00>\x00"), "text/html")
	f.Add([]byte("<svg><title></svg><iframe src=a><frameset><frame src=b><plaintext><select><template>"),
		"text/html; charset=iso-2022-jp")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		in := read(string(body))
		in.contentType, in.maxText, in.maxLinks = contentType, 1000, 10
		p, err := extract(in)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.text) > 1000 || len(p.title) > maxTitle || len(p.links) > 10 || !utf8.ValidString(p.text) ||
			!utf8.ValidString(p.title) || strings.ContainsAny(p.text, "\x00\r\t") {
			t.Fatalf("%+v", p)
		}
		for _, l := range p.links {
			if k, err := partition.ParseKey(string(l.Key)); err != nil || k != l.Key ||
				!utf8.ValidString(l.Anchor+l.Rel) {
				t.Fatalf("link %+v: %v", l, err)
			}
		}
		if again, _ := extract(in); !reflect.DeepEqual(again, p) {
			t.Fatalf("twice: %+v and %+v", p, again)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("<meta charset=shift_jis>\x83\x65"), "text/html; charset=gb18030")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		s := decoded(t, body, contentType)
		if !utf8.ValidString(s) || len(s) > 4*len(body)+16 {
			t.Fatalf("%d bytes of %d, valid %v", len(s), len(body), utf8.ValidString(s))
		}
	})
}

// The places that a page declares in geo metadata and address elements, anywhere in the page. Each
// is kept once, and only a few are kept.
func TestDeclared(t *testing.T) {
	for _, c := range []struct {
		body string
		want []string
	}{
		{`<meta name="geo.position" content="38.72;-9.14"><meta name="ICBM" content="38.72, -9.14">`,
			[]string{"38.72,-9.14", "38.72, -9.14"}},
		{`<meta name="Geo.PlaceName" content=" Lisboa,  Portugal "><meta property="og:locality" content="Lisboa, Portugal">`, []string{"Lisboa, Portugal"}},
		{`<p>x</p><footer><address>Rua A, 1<br>1000 Lisboa</address></footer>`, []string{"Rua A, 1 1000 Lisboa"}},
		{`<address>one<address>two</address> three</address><p>four</p>`, []string{"one", "two"}},
		{`<address>` + strings.Repeat("long ", 100) + `</address><address></address><address>open`, nil},
		{strings.Repeat(`<meta name="geo.placename" content="x">`, 20), []string{"x"}},
	} {
		if got := mustExtract(t, read(c.body)).declared; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%.60s: %q, want %q", c.body, got, c.want)
		}
	}
	var many strings.Builder
	for i := range 20 {
		fmt.Fprintf(&many, "<address>place %d</address>", i)
	}
	if got := mustExtract(t, read(many.String())).declared; len(got) != maxDeclared {
		t.Errorf("%d of a page", len(got))
	}
}

// decoded returns everything that the Reader of utf8text.Decode gives.
func decoded(t *testing.T, body []byte, contentType string) string {
	t.Helper()
	text, err := io.ReadAll(utf8text.Decode(body, contentType))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
