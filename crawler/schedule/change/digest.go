package change

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"

	"golang.org/x/net/html"
)

// maxText caps the text one digest looks at; the rest of a longer page is
// digested as it is counted: its length alone.
const maxText = 8 << 20

// Digest is the digest of text after Mask: equal for two visits if only what
// changes by itself changed. The form is "sha256:" and 32 hex digits (128 bits:
// it guards against accident, not attack; an attacker can change the page anyway).
func Digest(text string) string {
	var rest int
	if len(text) > maxText {
		rest, text = len(text)-maxText, text[:maxText]
	}
	h := sha256.New()
	io.WriteString(h, Mask(text)) // a hash never fails to write
	if rest > 0 {
		h.Write([]byte{byte(rest), byte(rest >> 8), byte(rest >> 16), byte(rest >> 24)})
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)[:16])
}

// Text is the visible text of an HTML document: no markup, no script, style,
// template or embedded frame, nothing inside an element whose class or id says it
// is advertising. Runs of white space are one blank. It reads at most maxText
// bytes of text and never fails: what cannot be parsed is text.
func Text(document string) string {
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(document))
	var skip string // inside this element nothing counts
	depth := 0
	for b.Len() < maxText {
		switch z.Next() {
		case html.ErrorToken:
			return strings.Join(strings.Fields(b.String()), " ")
		case html.TextToken:
			if skip == "" {
				b.Write(z.Text())
			}
		case html.StartTagToken:
			name, attrs := z.TagName()
			switch tag := string(name); {
			case skip == "" && !void(tag) && (silent(tag) || attrs && advertises(z)):
				skip, depth = tag, 1
			case skip == tag:
				depth++
			case skip == "" && !inline(tag):
				b.WriteByte(' ')
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			if skip == string(name) {
				if depth--; depth == 0 {
					skip = ""
				}
			} else if skip == "" && !inline(string(name)) {
				b.WriteByte(' ')
			}
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// silent elements hold no text a reader sees.
func silent(tag string) bool {
	switch tag {
	case "script", "style", "template", "noscript", "iframe", "object", "svg":
		return true
	}
	return false
}

// void elements have no end tag, so they can hold nothing.
func void(tag string) bool {
	switch tag {
	case "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr":
		return true
	}
	return false
}

// inline elements do not part words: <b>ch</b>ange is one word.
func inline(tag string) bool {
	switch tag {
	case "a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "dfn", "em", "i", "kbd", "mark", "q", "s",
		"samp", "small", "span", "strong", "sub", "sup", "time", "u", "var", "wbr", "font", "tt":
		return true
	}
	return false
}

// advertises reads the attributes of the current start tag.
func advertises(z *html.Tokenizer) bool {
	for {
		key, value, more := z.TagAttr()
		if k := string(key); k == "class" || k == "id" {
			for word := range strings.FieldsFuncSeq(strings.ToLower(string(value)), notLetter) {
				switch word {
				case "ad", "ads", "advert", "advertisement", "adsense", "adsbygoogle", "sponsored", "publicidade",
					"publicidad", "anuncio":
					return true
				}
			}
		}
		if !more {
			return false
		}
	}
}

func notLetter(r rune) bool { return r < 'a' || r > 'z' }
