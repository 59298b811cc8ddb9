package web

import (
	"bytes"
	"io"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/transform"
)

// decode reads body as valid UTF-8, its character set found as the HTML standard
// says: byte order mark, header, meta element in the first 1024 bytes; else
// UTF-8 when the whole body is, else windows-1252. What does not decode becomes
// U+FFFD. It holds a few KiB: a body is never there twice.
func decode(body []byte, contentType string) io.Reader {
	e, name, certain := charset.DetermineEncoding(body[:min(len(body), 1024)], contentType)
	// windows-1252 is also the answer when nothing is declared. A page that does
	// declare it, or latin-1, and is valid UTF-8 throughout is taken to err.
	if name == "utf-8" || !certain && name == "windows-1252" && utf8.Valid(body) {
		return &validReader{from: bytes.NewReader(bytes.TrimPrefix(body, mark))}
	}
	return &validReader{from: transform.NewReader(bytes.NewReader(body), e.NewDecoder()), marked: true}
}

var mark = []byte("\xef\xbb\xbf")

// validReader gives the bytes of from with U+FFFD for each run of what is not UTF-8. It
// fills what it is given as far as it can: a tokenizer copies what it holds at each Read.
type validReader struct {
	from   io.Reader
	marked bool // a byte order mark may come
	held   [8 << 10]byte
	in     []byte // of held, not looked at yet: at most the beginning of a character
	out    []byte // valid, not given yet
	room   []byte // of out, where something was replaced
	bad    bool   // the last that was given stands for a run
	err    error
}

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

// fill sets out to the next valid bytes; none are left when it stays empty.
func (v *validReader) fill() {
	for len(v.out) == 0 && (v.err == nil || len(v.in) > 0) {
		had := copy(v.held[:], v.in)
		for had < utf8.UTFMax && v.err == nil { // else a character may not be whole
			var n int
			n, v.err = v.from.Read(v.held[had:])
			had += n
		}
		v.in = v.held[:had]
		if v.marked && len(v.in) > 0 {
			v.in, v.marked = bytes.TrimPrefix(v.in, mark), false
		}
		whole := v.in
		if v.err == nil {
			whole = whole[:wholeRunes(whole)]
		}
		v.in = v.in[len(whole):]
		if utf8.Valid(whole) {
			v.out, v.bad = whole, v.bad && len(whole) == 0
			continue
		}
		v.replace(whole)
	}
}

// replace sets out to text with U+FFFD for each run of what is no UTF-8.
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

// wholeRunes is the length of text without a character at its end of which bytes
// are missing.
func wholeRunes(text []byte) int {
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
