package web

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

// decode is body as valid UTF-8, its character set found as the HTML standard
// says: byte order mark, header, meta element in the first 1024 bytes; else
// UTF-8 when the whole body is, else windows-1252. What does not decode becomes
// U+FFFD.
func decode(body []byte, contentType string) string {
	e, name, certain := charset.DetermineEncoding(body[:min(len(body), 1024)], contentType)
	// windows-1252 is also the answer when nothing is declared. A page that does
	// declare it, or latin-1, and is valid UTF-8 throughout is taken to err.
	if name == "utf-8" || !certain && name == "windows-1252" && utf8.Valid(body) {
		body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
		return valid(body)
	}
	text, err := e.NewDecoder().Bytes(body)
	if err != nil { // a decoder of the standard replaces, so this is one that cannot
		return valid(body)
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	return valid(text)
}

// valid is text with U+FFFD for what is not UTF-8.
func valid(text []byte) string {
	if utf8.Valid(text) { // quicker to say than to replace nothing
		return string(text)
	}
	return strings.ToValidUTF8(string(text), "\uFFFD")
}
