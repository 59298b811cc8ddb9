package change

import (
	"strings"
	"testing"
)

// An edit of markup, scripts, white space or advertising is no change; an edit of a word is.
func TestTagOnlyEditIsNoChange(t *testing.T) {
	a := Digest(Text(`<html><body><p>Hello <b>wor</b>ld</p><script>var x=1</script></body></html>`))
	for name, page := range map[string]string{
		"other tags":   `<html><body class="x"><div>Hello <i>world</i></div></body></html>`,
		"other script": `<p>Hello world</p><script>var x=2</script><style>p{}</style>`,
		"white space":  "<p>\n  Hello\t world\n</p>",
		"an ad":        `<p>Hello world</p><div class="box ads"><div>Buy this</div> now</div>`,
		"a frame":      `<p>Hello world</p><iframe src=x>no frames</iframe>`,
		"comment":      `<p>Hello <!-- 12:01 -->world</p>`,
	} {
		if Digest(Text(page)) != a {
			t.Errorf("%s: counted as a change: %q", name, Text(page))
		}
	}
	for name, page := range map[string]string{
		"a word":        `<p>Hello there world</p>`,
		"a letter":      `<p>Hello worlds</p>`,
		"after ads":     `<p>Hello world</p><div id=ad><div>x</div></div><p>more</p>`,
		"header is not": `<div class="header load"><p>Hello world</p>again</div>`,
	} {
		if Digest(Text(page)) == a {
			t.Errorf("%s: not seen as a change: %q", name, Text(page))
		}
	}
}

// Parts that change by themselves are masked; dates, prices and results are not.
func TestMask(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"now 10:15", "now 23:59:01", true},
		{"at 21h30 in Lisbon", "at 9h05 in Lisbon", true},
		{"10:15 AM today", "11:20 PM today", true},
		{"score 3:1", "score 2:1", false}, // a result is not a clock time
		{"ratio 10:75", "ratio 10:76", false},
		{"1,234 views", "1,235 views", true},
		{"Visitas: 77", "Visitas: 78", true},
		{"price 77 euros", "price 78 euros", false},
		{"updated 3 minutes ago", "updated 14 minutes ago", true},
		{"há 3 horas", "há 4 horas", true},
		{"in 3 days", "in 4 days", false},
		{"generated in 0.123 seconds", "generated in 0.4 seconds", true},
		{"id 9f8a7c6d5e4f3a2b1c0d", "id 0a1b2c3d4e5f6a7b8c9d", true},
		{"internationalization2", "internationalization3", false},
		{"12 March 2026", "13 March 2026", false},
	} {
		if got := Digest(c.a) == Digest(c.b); got != c.same {
			t.Errorf("%q and %q: same %v, want %v", c.a, c.b, got, c.same)
		}
	}
}

// Each status, tag and digest gives its verdict. Only a strong tag proves that nothing changed.
func TestCompare(t *testing.T) {
	last := Seen{Status: 200, ETag: `"a"`, Digest: "x"}
	for name, c := range map[string]struct {
		now  Seen
		want Verdict
	}{
		"304":               {Seen{Status: 304}, Same},
		"same tag":          {Seen{Status: 200, ETag: `"a"`, Digest: "y"}, Same},
		"weak tag":          {Seen{Status: 200, ETag: `W/"a"`, Digest: "y"}, Different},
		"new tag same":      {Seen{Status: 200, ETag: `"b"`, Digest: "x"}, Same},
		"new tag, text":     {Seen{Status: 200, ETag: `"b"`, Digest: "y"}, Different},
		"404":               {Seen{Status: 404, Digest: "y"}, Gone},
		"410":               {Seen{Status: 410}, Gone},
		"error":             {Seen{Status: 503, Digest: "y"}, Unknown},
		"no answer":         {Seen{}, Unknown},
		"moved":             {Seen{Status: 301}, Moved},
		"temporarily":       {Seen{Status: 302}, Unknown},
		"moved, followed":   {Seen{Status: 200, Digest: "x", Moved: true}, Moved},
		"body was not kept": {Seen{Status: 200}, Unknown},
	} {
		if got := Compare(last, c.now); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	weak := Seen{Status: 200, ETag: `W/"a"`, Digest: "x"}
	if Compare(weak, Seen{Status: 200, ETag: `W/"a"`, Digest: "y"}) != Different {
		t.Error("a weak tag proved equality")
	}
}

// Reliable hints get high odds; hints that are always or never there say nothing.
func TestTrust(t *testing.T) {
	var honest, liar, silent Trust
	for i := range 400 {
		honest.Learn(i%4 == 0, i%4 == 0)
		liar.Learn(true, i%4 == 0)
		silent.Learn(false, i%4 == 0)
	}
	if r := honest.Ratio(true); r < 20 {
		t.Errorf("an honest sitemap's news: odds %.2f", r)
	}
	if r := honest.Ratio(false); r > 0.1 {
		t.Errorf("an honest sitemap's silence: odds %.2f", r)
	}
	if r := liar.Ratio(true); r < 0.9 || r > 1.1 {
		t.Errorf("always-new sitemap: odds %.2f, want about 1", r)
	}
	if r := silent.Ratio(false); r < 0.9 || r > 1.1 {
		t.Errorf("never-new sitemap: odds %.2f, want about 1", r)
	}
	if r := (Trust{}).Ratio(true); r != 1 {
		t.Errorf("unknown: odds %.2f", r)
	}
}

// The text of a page is not much longer than the page, and white space does not change its digest.
func FuzzText(f *testing.F) {
	f.Add("<p>a<b>b</b>")
	f.Add("<div class=ad><div>")
	f.Add("<svg/><script>")
	f.Fuzz(func(t *testing.T, page string) {
		text := Text(page)
		if len(text) > len(page)*6+64 || strings.Contains(text, "  ") {
			t.Fatalf("%q", text)
		}
		if Digest(text) != Digest(" "+text+"\n") {
			t.Fatal("white space is a change")
		}
	})
}

// Reported is high for a site whose hints are right. It is low if the hints report every change, or
// none.
func TestTold(t *testing.T) {
	var honest, half, liar, silent Trust
	for i := range 400 {
		changed := i%4 == 0
		honest.Learn(changed, changed)
		half.Learn(i%8 == 0, changed)
		liar.Learn(true, changed)
		silent.Learn(false, changed)
	}
	if h := honest.Reported(); h < 0.75 || h > 1 {
		t.Errorf("honest: %.2f", h)
	}
	if h := half.Reported(); h < 0.3 || h > 0.55 {
		t.Errorf("half: %.2f", h)
	}
	for name, s := range map[string]Trust{"liar": liar, "silent": silent, "unknown": {}} {
		if h := s.Reported(); h > 0.1 {
			t.Errorf("%s: %.2f", name, h)
		}
	}
	for range 2 * trustMemory { // the site's hints become wrong
		honest.Learn(true, false)
	}
	if r := honest.Ratio(true); r > 2 {
		t.Errorf("after %d lies its word has odds of %.1f", 2*trustMemory, r)
	}
}
