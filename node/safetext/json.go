package safetext

import (
	"bytes"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON returns the JSON text b in which every character that is hostile to a terminal is
// escaped. The decoded value stays the same. If nothing is hostile, JSON returns b itself.
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

// writeEscaped writes r as a JSON escape. Bytes that are not UTF-8 become U+FFFD, as in a
// decoder.
func writeEscaped(b *bytes.Buffer, r rune) {
	for _, u := range utf16.Encode([]rune{r}) {
		fmt.Fprintf(b, `\u%04x`, u)
	}
}

// hostileJSON returns the index of the first character of b that JSON escapes, or len(b). Most
// text needs only one check per byte.
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
