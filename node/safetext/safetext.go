package safetext

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// class is what a rune means for display.
type class int

const (
	plain   class = iota
	newline       // ends a line in some programs
	space         // white space that moves a cursor
	control       // can control a terminal
	hidden        // is invisible, or changes the order of others
)

// classOf returns the class of r. The caller passes an invalid byte as utf8.RuneError with size
// 1; it is control. U+FFFD itself is plain.
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

// Text returns s for display over several lines. Of all control characters, only tabs and line
// feeds remain.
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

// shown reports whether r stays unchanged in Text.
func shown(r rune, size int) bool {
	return r == '\n' || r == '\t' || classOf(r, size) == plain
}

// textBytes is Text for bytes. It returns b itself when nothing has to be cleaned.
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

// Line returns s in one line. Every run of white space becomes one space, and both ends are
// trimmed.
func Line(s string) string {
	return strings.Join(strings.FieldsFunc(Text(s), unicode.IsSpace), " ")
}

// formula has the characters that begin a formula in a spreadsheet. Programs for East Asian
// text treat the wide forms like the narrow ones.
const formula = "=+-@＝＋－＠"

// Cell returns s as a cell of a CSV file: Text, with an apostrophe before it if a spreadsheet
// would compute it. White space at the beginning does not matter. A decimal number stays as it
// is.
func Cell(s string) string {
	s = Text(s)
	begin := strings.TrimLeftFunc(s, unicode.IsSpace)
	r, _ := utf8.DecodeRuneInString(begin)
	if begin == "" || (!strings.ContainsRune(formula, r) && s[0] != '\t') || number(s) {
		return s
	}
	return "'" + s
}

// number reports whether s is only a decimal number: a sign, digits, and at most one point with
// digits after it.
func number(s string) bool {
	s = strings.TrimLeft(s[:min(1, len(s))], "+-") + s[min(1, len(s)):]
	whole, part, point := strings.Cut(s, ".")
	digits := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	return digits(whole) && (!point || digits(part))
}
