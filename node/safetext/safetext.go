package safetext

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// class is what a rune means to who looks at it.
type class int

const (
	plain   class = iota
	newline       // ends a line in some programs
	space         // white space that moves a cursor
	control       // drives a terminal
	hidden        // has no shape, or changes the order of others
)

// classOf tells what r is. An invalid byte is given as utf8.RuneError with size 1
// and is control; U+FFFD itself is plain.
func classOf(r rune, size int) class {
	switch {
	case r == '\n', r == '\u0085', r == '\u2028', r == '\u2029':
		return newline
	case r == '\t', r == '\r', r == '\v', r == '\f':
		return space
	case r < ' ', r >= 0x7f && r < 0xa0, r == utf8.RuneError && size == 1:
		return control
	case r < 0x61c:
		return plain
	case r == '\u061c', r == '\u180e', r == '\u200b', r == '\u200e', r == '\u200f', r >= '\u202a' && r <= '\u202e',
		r >= '\u2060' && r <= '\u206f', r == '\ufeff', r >= '\ufff0' && r <= '\ufffb',
		r >= 0x1d173 && r <= 0x1d17a, r >= 0xe0000 && r <= 0xe0fff:
		return hidden
	}
	return plain
}

// Text is s as it may be shown over several lines: of all control characters, only
// tabs and line feeds are left.
func Text(s string) string {
	for i := 0; i < len(s); {
		r, size := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
		}
		if !shown(r, size) {
			return string(textBytes([]byte(s)))
		}
		i += size
	}
	return s
}

// shown tells whether r stays as it is in Text.
func shown(r rune, size int) bool {
	return r == '\n' || r == '\t' || classOf(r, size) == plain
}

// textBytes is Text of bytes, and b itself when nothing is to be cleaned.
func textBytes(b []byte) []byte {
	var out bytes.Buffer
	from := 0
	for i := 0; i < len(b); {
		r, size := rune(b[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(b[i:])
		}
		if !shown(r, size) {
			out.Write(b[from:i])
			switch classOf(r, size) {
			case newline:
				out.WriteByte('\n')
			case space:
				out.WriteByte(' ')
			case control:
				out.WriteRune(utf8.RuneError)
			}
			from = i + size
		}
		i += size
	}
	if from == 0 {
		return b
	}
	out.Write(b[from:])
	return out.Bytes()
}

// Line is s in one line: every run of white space becomes one space, none stays at
// the ends.
func Line(s string) string {
	return strings.Join(strings.FieldsFunc(Text(s), unicode.IsSpace), " ")
}

// formula begins what a spreadsheet takes for something to compute. The wide forms
// are read as the narrow ones by programs for East Asian text.
const formula = "=+-@＝＋－＠"

// Cell is s as a cell of a CSV file: Text, and with an apostrophe before it if a
// spreadsheet would compute it, white space at its begin or not. A decimal number
// stays as it is.
func Cell(s string) string {
	s = Text(s)
	begin := strings.TrimLeftFunc(s, unicode.IsSpace)
	r, _ := utf8.DecodeRuneInString(begin)
	if begin == "" || (!strings.ContainsRune(formula, r) && s[0] != '\t') || number(s) {
		return s
	}
	return "'" + s
}

// number tells whether s is a decimal number and nothing else: a sign, digits, at
// most one point with digits after it.
func number(s string) bool {
	s = strings.TrimLeft(s[:min(1, len(s))], "+-") + s[min(1, len(s)):]
	whole, part, point := strings.Cut(s, ".")
	digits := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	return digits(whole) && (!point || digits(part))
}
