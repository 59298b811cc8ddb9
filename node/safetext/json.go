package safetext

import (
	"bytes"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON is the JSON text b in which every character that is hostile to a terminal is
// escaped. What it decodes to is the same. b is returned itself when nothing is.
func JSON(b []byte) []byte {
	i := hostileJSON(b)
	if i == len(b) {
		return b
	}
	var out bytes.Buffer
	out.Grow(len(b) + 64)
	for {
		out.Write(b[:i])
		if b = b[i:]; len(b) == 0 {
			return out.Bytes()
		}
		r, size := utf8.DecodeRune(b)
		writeEscaped(&out, r)
		b = b[size:]
		i = hostileJSON(b)
	}
}

// writeEscaped writes r as JSON escapes it; what is no UTF-8 becomes U+FFFD, as a
// decoder makes of it.
func writeEscaped(b *bytes.Buffer, r rune) {
	for _, u := range utf16.Encode([]rune{r}) {
		fmt.Fprintf(b, `\u%04x`, u)
	}
}

// hostileJSON is where the first character of b is that JSON escapes, or len(b). Most
// text passes with one look a byte.
func hostileJSON(b []byte) int {
	for i := 0; i < len(b); {
		c := b[i]
		if c >= ' ' && c < 0x7f || c == '\n' || c == '\t' || c == '\r' {
			i++
			continue
		}
		r, size := utf8.DecodeRune(b[i:])
		if classOf(r, size) != plain {
			return i
		}
		i += size
	}
	return len(b)
}
