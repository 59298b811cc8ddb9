package web

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Posts as Mastodon, snac and Pleroma write them.
func TestFragment(t *testing.T) {
	const at = "https://m.example/@ana/1"
	for _, c := range []struct {
		html, text string
		links      []string
	}{
		{`<p>Olá <span class="h-card"><a href="https://m.example/@rui" class="u-url mention">@<span>rui</span></a></span>!<br>Linha 2</p><p>Fim &amp; mais</p>`,
			"Olá @rui!\nLinha 2\nFim & mais", []string{"web:https://m.example/@rui"}},
		{`<p><a href="https://example.org/a/b?c=d"><span class="invisible">https://</span><span class="ellipsis">example.org/a</span><span class="invisible">/b?c=d</span></a></p>`,
			"https://example.org/a/b?c=d", []string{"web:https://example.org/a/b?c=d"}},
		{`plain & <b>unclosed <a href="/rel">x`, "plain & unclosed x", []string{"web:https://m.example/rel"}},
		{`<script>alert(1)</script><a href="javascript:alert(1)">y</a>`, "y", nil},
		{``, "", nil},
	} {
		text, links, cut, err := Fragment(c.html, at, 0, 0)
		if err != nil || cut || text != c.text || len(links) != len(c.links) {
			t.Errorf("%s: %q %v cut %v %v, want %q %v", c.html, text, links, cut, err, c.text, c.links)
			continue
		}
		for i, l := range links {
			if string(l.Key) != c.links[i] {
				t.Errorf("%s: link %s, want %s", c.html, l.Key, c.links[i])
			}
		}
	}
	if text, _, cut, _ := Fragment(strings.Repeat("é ", 100), at, 11, 0); !cut || len(text) > 11 ||
		!utf8.ValidString(text) {
		t.Errorf("over its cap: %q, cut %v", text, cut)
	}
}

func FuzzFragment(f *testing.F) {
	f.Add("<p>a <a href='/b'>c</a>", "https://m.example/@ana/1")
	f.Add("<svg><title><math>", "")
	f.Fuzz(func(t *testing.T, html, at string) {
		text, links, _, err := Fragment(html, at, 300, 5)
		if err != nil || len(text) > 300 || len(links) > 5 {
			t.Errorf("%d bytes, %d links, %v", len(text), len(links), err)
		}
	})
}
