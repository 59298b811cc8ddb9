package change

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"

	"golang.org/x/net/html"
)

// maxText is the most text that a digest includes. For a longer text, only the length of the rest
// counts.
const maxText = 8 << 20

// Digest returns the digest of text after Mask. It is equal for two visits if only self-changing
// parts differ. The form is "sha256:" and 32 hex digits. The 128 bits guard against accidents, not
// attacks: an attacker can change the page anyway.
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

// Text returns the visible text of an HTML document. It leaves out markup, scripts, styles,
// templates, embedded frames, and elements whose class or id marks advertising. Runs of white space
// become one blank. Text reads at most maxText bytes of text and never fails: what cannot be parsed
// counts as text.
func Text(document string) string {
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(document))
	var skip string // inside this element no text counts
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

// silent reports whether an element has no visible text.
func silent(tag string) bool {
	switch tag {
	case "script", "style", "template", "noscript", "iframe", "object", "svg":
		return true
	}
	return false
}

// void reports whether an element has no end tag, so that it contains nothing.
func void(tag string) bool {
	switch tag {
	case "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr":
		return true
	}
	return false
}

// inline reports whether an element does not separate words: <b>ch</b>ange is one word.
func inline(tag string) bool {
	switch tag {
	case "a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "dfn", "em", "i", "kbd", "mark", "q", "s",
		"samp", "small", "span", "strong", "sub", "sup", "time", "u", "var", "wbr", "font", "tt":
		return true
	}
	return false
}

// advertises reports whether the attributes of the current start tag mark advertising.
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

// notLetter reports whether r is not a lower-case ASCII letter.
func notLetter(r rune) bool { return r < 'a' || r > 'z' }
