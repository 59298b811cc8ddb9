package web

import (
	"strings"
	"testing"
)

// An entity is decoded once, so a page about HTML keeps its meaning.
func TestEntitiesAreDecodedOnce(t *testing.T) {
	p := mustExtract(t, read("<title>&amp;lt;b&amp;gt;</title><a href='/x?a&amp;lt=1'>&amp;copy;</a> &amp;amp;"))
	if p.title != "&lt;b&gt;" || p.text != "&copy; &amp;" || len(p.links) != 1 ||
		p.links[0].Anchor != "&copy;" || p.links[0].Key != "web:https://example.org/x?a&lt=1" {
		t.Errorf("%q %q %+v", p.title, p.text, p.links)
	}
}

// After a tag, a comment or a script that is too long for the buffer, the page is read on.
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
		"tags": {"x" + strings.Repeat(`<b title="`+long[:maxToken/2]+`">`, 2*maxTags/maxToken) + "y", "x",
			stopTags},
		"fewer tags": {"x" + strings.Repeat(`<b title="`+long[:maxToken/2]+`">`, 2*maxTags/maxToken-1) + "y", "xy", ""},
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
