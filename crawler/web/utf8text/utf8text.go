// Package utf8text reads the body of a response as valid UTF-8, whatever its character set.
package utf8text

import (
	"bytes"
	"io"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/transform"
)

// Decode returns a Reader of body as valid UTF-8. It finds the character set as the HTML standard
// says: byte order mark, header, meta element in the first 1024 bytes. If none of them names it,
// the set is UTF-8 when the whole body is valid UTF-8, otherwise windows-1252. Bytes that do not
// decode become U+FFFD. The Reader holds a few KiB, so no second copy of the body exists.
func Decode(body []byte, contentType string) io.Reader {
	e, name, certain := charset.DetermineEncoding(body[:min(len(body), 1024)], contentType)
	// DetermineEncoding also returns windows-1252 when nothing is declared. If a page declares it,
	// or latin-1, but is valid UTF-8 throughout, the declaration is taken to be wrong.
	if name == "utf-8" || !certain && name == "windows-1252" && utf8.Valid(body) {
		return &validReader{from: bytes.NewReader(bytes.TrimPrefix(body, []byte(Mark)))}
	}
	return &validReader{from: transform.NewReader(bytes.NewReader(body), e.NewDecoder()), marked: true}
}

// NewReader returns a Reader of from as valid UTF-8. Each run of bytes that are not UTF-8 becomes
// one U+FFFD.
func NewReader(from io.Reader) io.Reader { return &validReader{from: from} }

// Mark is the byte order mark in UTF-8.
const Mark = "\xef\xbb\xbf"

// validReader reads from and replaces each run of bytes that are not UTF-8 by one U+FFFD. Each Read
// fills its buffer as far as possible, because a tokenizer copies its buffer at each Read.
type validReader struct {
	from   io.Reader
	marked bool // a byte order mark may follow
	held   [8 << 10]byte
	in     []byte // the unchecked part of held: at most the start of a character
	out    []byte // valid bytes that Read has not returned yet
	room   []byte // the memory of out when something was replaced
	bad    bool   // the last character returned replaces a run of bad bytes
	err    error
}

// Read implements io.Reader.
func (v *validReader) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(v.out) == 0 {
			if v.fill(); len(v.out) == 0 {
				break
			}
		}
		c := copy(p[n:], v.out)
		n, v.out = n+c, v.out[c:]
	}
	if n == 0 && len(p) > 0 {
		return 0, v.err
	}
	return n, nil
}

// fill sets out to the next valid bytes. If out stays empty, none are left.
func (v *validReader) fill() {
	for len(v.out) == 0 && (v.err == nil || len(v.in) > 0) {
		had := copy(v.held[:], v.in)
		for had < utf8.UTFMax && v.err == nil { // otherwise a character may be incomplete
			var n int
			n, v.err = v.from.Read(v.held[had:])
			had += n
		}
		v.in = v.held[:had]
		if v.marked && len(v.in) > 0 {
			v.in, v.marked = bytes.TrimPrefix(v.in, []byte(Mark)), false
		}
		whole := v.in
		if v.err == nil {
			whole = whole[:WholeRunes(whole)]
		}
		v.in = v.in[len(whole):]
		if utf8.Valid(whole) {
			v.out, v.bad = whole, v.bad && len(whole) == 0
			continue
		}
		v.replace(whole)
	}
}

// replace sets out to text, with one U+FFFD for each run of bytes that are not UTF-8.
func (v *validReader) replace(text []byte) {
	v.room = v.room[:0]
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch is := r == utf8.RuneError && size == 1; {
		case !is:
			v.room, v.bad = append(v.room, text[:size]...), false
		case !v.bad:
			v.room, v.bad = utf8.AppendRune(v.room, utf8.RuneError), true
		}
		text = text[size:]
	}
	v.out = v.room
}

// WholeRunes returns the length of text without an incomplete character at its end.
func WholeRunes(text []byte) int {
	for n := len(text) - 1; n >= 0 && n > len(text)-utf8.UTFMax; n-- {
		if utf8.RuneStart(text[n]) {
			if !utf8.FullRune(text[n:]) {
				return n
			}
			break
		}
	}
	return len(text)
}
