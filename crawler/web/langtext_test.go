package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// listing is code as manuals show it. Its words are stop words of several languages.
const listing = `for (i = 0; i < n; ++i) { std::vector<int> v(a, b); if (s.empty() && k == NULL) return do_it(i, o, u); }
SELECT a.id, COUNT(*) AS n FROM tbl_orders a JOIN tbl_items i ON i.order_id = a.id WHERE a.ts > '2001-05-06' GROUP BY 1;
$ sudo apt-get install -y lib-foo-dev && make -j4 DESTDIR=/tmp/root install # as root
def on_event(self, de, la, le): self.et = est.pour(la, des=[1000, 1024]); print("le", den, det, og, er, til)
`

// manualPage is a manual page as the web shows it: all of it is preformatted.
const manualPage = `<html><body><pre>
FROB(1)                     User Commands                    FROB(1)

NAME
       frob - turn the knobs of a file one after another

SYNOPSIS
       frob [-v] [-k KNOB] [--output=FILE] FILE...

DESCRIPTION
       frob reads each file that is named on the command line and turns
       its knobs in the order in which they were written there. When no
       file is named, or when the name is a dash, it reads from the
       standard input. A knob that cannot be turned is left as it is, and
       a warning is shown unless there was a request to be silent.

       -v, --verbose
              say which knob is being turned
</pre></body></html>`

var proseOf = map[string]string{
	"en": "This chapter describes how the server reads its configuration. When the file cannot be found, the values that were given before are used instead, and a message is written to the log.",
	"fr": "Ce chapitre décrit la façon dont le serveur lit sa configuration. Quand le fichier est introuvable, les valeurs données auparavant sont utilisées, et un message est écrit dans le journal.",
	"de": "Dieses Kapitel beschreibt, wie der Server seine Einstellungen liest. Wenn die Datei nicht gefunden wird, gelten die Werte, die vorher angegeben wurden, und es wird eine Meldung geschrieben.",
	"es": "Este capítulo describe cómo lee el servidor su configuración. Cuando no se encuentra el fichero, se usan los valores que se dieron antes, y se escribe un mensaje en el registro.",
	"cs": "Tato kapitola popisuje, jak server čte své nastavení. Pokud soubor není nalezen, použijí se hodnoty, které byly zadány dříve, a do záznamu se zapíše zpráva, která to říká.",
	"pl": "Ten rozdział opisuje, jak serwer czyta swoje ustawienia. Jeśli plik nie zostanie znaleziony, są używane wartości, które podano wcześniej, a do dziennika jest zapisywany komunikat.",
	"da": "Dette kapitel beskriver, hvordan serveren læser sine indstillinger. Hvis filen ikke kan findes, bruges de værdier, som blev givet af brugeren før, og der bliver skrevet noget i loggen efter det.",
	"ja": "この章では、サーバーが設定をどのように読み込むかを説明します。ファイルが見つからないときは、前に指定された値が使われ、ログにメッセージが書き込まれます。",
	"ko": "이 장에서는 서버가 설정을 어떻게 읽는지 설명합니다. 파일을 찾을 수 없으면 이전에 지정한 값이 사용되고 기록에 메시지가 남습니다.",
	"zh": "本章说明服务器如何读取其配置。如果找不到该文件，则使用之前指定的值，并在日志中写入一条消息，以便管理员了解发生了什么。",
}

func paragraph(lang string) string { return "<p>" + proseOf[lang] + "</p>" }

// The language of a manual is that of its prose. Code, menus and names do not count.
func TestLanguageOfManuals(t *testing.T) {
	code := "<pre>" + strings.Repeat(listing, 30) + "</pre>"
	menu := "<ul>" + strings.Repeat("<li><a href=m>The list of all the commands that there are</a><li><a href=n>What is new in this version</a>", 40) + "</ul>"
	names := strings.Repeat("<tr><td>boost_is_a</td><td>std::is_de</td><td>LE_DES</td><td>n_est-1</td><td>x86_64</td></tr>", 20)
	for name, tt := range map[string]struct{ body, want string }{
		"a manual page":                          {manualPage, "en"},
		"code alone":                             {"<h1>frob.hpp</h1>" + code, "und"},
		"code alone, and the page says what":     {"<html lang=en>" + code, "en"},
		"English before and after code":          {code + paragraph("en") + code, "en"},
		"Japanese with much code":                {code + paragraph("ja") + code, "ja"},
		"Japanese that its template says is not": {"<html lang=en>" + code + paragraph("ja") + code, "ja"},
		"Japanese below a menu of English":       {menu + paragraph("ja"), "ja"},
		"Japanese full of names":                 {"<p>" + strings.Repeat("<code>frob_knob</code> は PostgreSQL の Server Side Include と Perl Compatible Regular Expression を使います。", 9), "ja"},
		"English that quotes Japanese": {paragraph("en") +
			"<p>The word 設定 is read as せってい and means a configuration, as every reader of that book knows.", "en"},
		"Korean with code":                      {code + paragraph("ko"), "ko"},
		"Chinese with code":                     {code + paragraph("zh"), "zh"},
		"a table of names":                      {"<table>" + names + "</table>", "und"},
		"a table of names, and a line of prose": {"<table>" + names + "</table>" + paragraph("en"), "en"},
		"inline code without an end":            {"<p>See <code>frob for more.<p>" + proseOf["en"], "en"},
		"a listing without an end":              {"<pre>" + listing + "<h2>Next</h2><p>" + proseOf["en"], "en"},
		"Czech":                                 {code + paragraph("cs"), "cs"},
		"Polish":                                {code + paragraph("pl"), "pl"},
		"Danish":                                {code + paragraph("da"), "da"},
	} {
		if p := mustExtract(t, read(tt.body)); p.lang != tt.want {
			t.Errorf("%s: %q, want %q", name, p.lang, tt.want)
		}
	}
}

// The claims of a page count where its text shows no language. The claim nearest to the text comes
// first.
func TestClaims(t *testing.T) {
	for _, tt := range []struct{ header, body, want string }{
		{"", `<html lang="pt"><p>frob(1)`, "pt"},
		{"", `<html xml:lang="pt"><p>frob(1)`, "pt"},
		{"", `<body lang="pt"><p>frob(1)`, "pt"},
		{"", `<body><div><div lang="pt"><p>frob(1)`, "pt"},
		{"", `<body lang=es><div lang="pt"><p>frob(1)`, "es"},
		{"", `<body>` + strings.Repeat("<div class=x></div>", 100) + `<div lang="pt"><p>frob(1)`, "und"},
		{"", `<meta http-equiv=Content-Language content=pt><p>frob(1)`, "pt"},
		{"", `<meta name="DC.language" content="pt"><p>frob(1)`, "pt"},
		{"pt", `<p>frob(1)`, "pt"},
		{"de", `<meta http-equiv=content-language content=fr><html lang=pt><body lang=es><p>frob(1)`, "pt"},
		{"de", `<meta http-equiv=content-language content=fr><p>frob(1)`, "fr"},
		{"de, en", `<p>frob(1)`, "und"},
		{"mul", `<p>frob(1)`, "und"},
		{"no such language!", `<p>frob(1)`, "und"},
		{"de", paragraph("fr"), "fr"},
	} {
		in := read(tt.body)
		in.claim = tt.header
		if p := mustExtract(t, in); p.lang != tt.want {
			t.Errorf("%q %s: %q, want %q", tt.header, tt.body, p.lang, tt.want)
		}
	}
}

// The Content-Language header reaches the record.
func TestContentLanguage(t *testing.T) {
	src, err := New(Options{Client: &fetch.Client{}})
	if err != nil {
		t.Fatal(err)
	}
	k, err := partition.ParseKey("https://example.org/frob")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"text/html", "text/plain"} {
		var res fetch.Result
		src.page(fetch.Task{Due: store.Due{Key: k}, Now: time.Unix(1.7e9, 0)}, &res, &fetch.Response{
			Status: http.StatusOK, Header: http.Header{"Content-Type": {kind}, "Content-Language": {"ja"}},
			Body: []byte("frob(1)"),
		})
		if res.Record.Lang != "ja" {
			t.Errorf("%s: %q", kind, res.Record.Lang)
		}
	}
}

// Code between the paragraphs of a page changes neither its language nor the times it mentions.
func TestCodeIsNoEvidence(t *testing.T) {
	names := []string{"en", "fr", "de", "es", "cs", "pl", "da", "ja", "ko", "zh"}
	lines := strings.Split(strings.TrimSpace(listing), "\n")
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "language")
		var body strings.Builder
		for range rapid.IntRange(1, 3).Draw(t, "paragraphs") {
			for range rapid.IntRange(0, 40).Draw(t, "lines") {
				element := rapid.SampledFrom([]string{"pre", "code", "samp", "kbd", "tt"}).Draw(t, "element")
				line := strings.NewReplacer("<", "&lt;", "&", "&amp;").Replace(rapid.SampledFrom(lines).Draw(t, "line"))
				fmt.Fprintf(&body, "<%s>%s</%s>", element, line, element)
			}
			body.WriteString(paragraph(name))
		}
		p, err := extract(read(body.String()))
		if err != nil || p.lang != name {
			t.Fatalf("%q, want %q, %v", p.lang, name, err)
		}
		if strings.Contains(p.spoken, "2001") {
			t.Fatalf("spoken: %q", p.spoken)
		}
	})
}

// For any page, the judged text is a part of its text and within its limit.
func FuzzSpeech(f *testing.F) {
	f.Add("<p>a <code>b</code> c <a href=x>d <tt>e</a> f<p>g<pre>h<h1>i")
	f.Add("<code><code></pre></a><a href=#></tt><kbd>" + strings.Repeat("<a href=x>y<tt>z</tt>", 50))
	f.Fuzz(func(t *testing.T, body string) {
		p := mustExtract(t, read(body))
		if len(p.spoken) > max(len(p.text), maxDated) || !utf8.ValidString(p.spoken) {
			t.Fatalf("%d bytes of %d: %q", len(p.spoken), len(p.text), p.spoken)
		}
		rest := p.text
		for said := range strings.FieldsSeq(p.spoken) { // a word cut at code is a part of a word
			_, after, ok := strings.Cut(rest, said)
			if said == strings.TrimSpace(gap) {
				continue
			}
			if !ok {
				t.Fatalf("%q is not in %q", said, rest)
			}
			rest = after
		}
		var e evidence
		e.take(p.text)
		if n := e.text.Len(); n > 2*langSample || !utf8.ValidString(e.text.String()) {
			t.Fatalf("%d bytes of evidence: %q", n, e.text.String())
		}
	})
}

// The times that a page mentions are not those in its code.
func TestTimesInCode(t *testing.T) {
	code := "<pre>" + listing + "</pre>"
	for name, tt := range map[string]struct{ body, has, hasNot string }{
		"prose":         {"<p>Em 1905 choveu.</p>" + code, "1905", "2001"},
		"inline":        {"<p>In 1905 we wrote <code>1999-01-08</code> here.", "1905", "1999"},
		"a manual page": {strings.Replace(manualPage, "one after another", "since 1905", 1), "1905", ""},
		"no code":       {"<p>Em 1905 choveu.", "1905", "…"},
		"listing only":  {code, "", "2001"},
	} {
		p := mustExtract(t, read(tt.body))
		if !strings.Contains(p.spoken, tt.has) || tt.hasNot != "" && strings.Contains(p.spoken, tt.hasNot) {
			t.Errorf("%s: %q", name, p.spoken)
		}
	}
}
