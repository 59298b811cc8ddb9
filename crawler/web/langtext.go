package web

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// evidence holds the parts of a text sample that show its language. Code, names, paths and numbers
// are the same in all languages, so they are left out.
type evidence struct {
	text    strings.Builder // the words that count, with sentence punctuation
	last    byte            // the last byte of text
	words   int             // number of words in text; scripts without spaces are not counted
	dropped int             // number of words left out
	scripts [scripts]int    // number of letters of each script that few languages write
}

// take adds the words of the first langSample bytes of sample.
func (e *evidence) take(sample string) {
	sample = head(sample, langSample)
	e.text.Grow(len(sample))
	for from := 0; from < len(sample); {
		to := from
		for to < len(sample) && sample[to] != ' ' && sample[to] != '\n' {
			to++
		}
		e.word(sample[from:to])
		if to < len(sample) && sample[to] == '\n' {
			e.mark('\n')
		}
		from = to + 1
	}
}

// mark writes a separator. Neighbouring words are evidence too, so words that are not neighbours
// must be separated.
func (e *evidence) mark(b byte) {
	if e.last != 0 && e.last != b {
		e.text.WriteByte(b) //nolint:errcheck // never fails
		e.last = b
	}
}

// word handles the bytes between two spaces.
func (e *evidence) word(w string) {
	core := w
	if n := len(w); n > 0 && !letter(w[0]) {
		core = strings.TrimLeft(core, "([{\"'“‘«‹„¿¡—–…·•")
	}
	if n := len(core); n > 0 && !letter(core[n-1]) {
		core = strings.TrimRight(core, ")]}\"'”’»›.,;:!?—–…·")
	}
	switch {
	case core == "":
		e.mark(',')
	case e.scripted(core):
	case named(core):
		e.dropped++
		e.mark(',') // the words around it are not neighbours
	default:
		e.words++
		e.mark(' ')
		e.text.WriteString(core) //nolint:errcheck // never fails
		if e.last = w[len(w)-1]; strings.IndexByte(".,;:!?", e.last) >= 0 {
			e.text.WriteByte(e.last) //nolint:errcheck // never fails
		}
	}
}

// scripted counts the letters of w that only few languages write, and reports whether w has any.
// The other letters of such a word are mostly part of a name.
func (e *evidence) scripted(w string) (found bool) {
	first := 0
	for first < len(w) && w[first] < scriptedByte {
		first++
	}
	for _, r := range w[first:] {
		if r < firstScripted {
			continue
		}
		if s := scriptOf(r); s != noScript {
			e.scripts[s]++
			found = true
		}
	}
	return found
}

// letter reports whether b is an ASCII letter.
func letter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

// named reports whether w looks like an identifier, path, number or abbreviation. Signs of that are
// digits, code punctuation, a capital after a small letter, or only capitals.
func named(w string) bool {
	var small, capital, other bool
	for i := 0; i < len(w); i++ {
		switch c := w[i]; {
		case c >= 'a' && c <= 'z':
			small = true
		case c >= 'A' && c <= 'Z':
			if small && i > 0 && w[i-1] >= 'a' && w[i-1] <= 'z' {
				return true
			}
			capital = true
		case c >= utf8.RuneSelf:
			other = true
		case c == '\'':
		case c == '-':
			if i == 0 {
				return true // a command line option
			}
		default:
			return true
		}
	}
	return capital && !small && !other && len(w) > 1
}

// The scripts that only one language, or few, are written in.
const (
	noScript = iota
	han
	kana
	hangul
	thai
	lao
	hebrew
	georgian
	armenian
	bengali
	gurmukhi
	gujarati
	tamil
	telugu
	kannada
	malayalam
	sinhala
	burmese
	khmer
	ethiopic
	scripts
)

// firstScripted is the first letter that scriptOf knows.
const firstScripted = 0x530

// scriptedByte is the first byte of firstScripted in UTF-8. Letters before it have a lower first
// byte.
const scriptedByte = 0xD4

// byScripts holds the languages of each script, with the most frequent one first, and the average
// number of letters in a word.
var byScripts = [scripts]struct {
	langs   string
	letters int
}{
	han: {"zh yue wuu lzh", 2}, kana: {"ja", 2}, hangul: {"ko", 3}, thai: {"th", 4}, lao: {"lo", 4},
	hebrew: {"he yi", 4}, georgian: {"ka", 5},
	armenian: {"hy", 5}, bengali: {"bn as", 5}, gurmukhi: {"pa", 5}, gujarati: {"gu", 5}, tamil: {"ta", 5},
	telugu: {"te", 5}, kannada: {"kn", 5},
	malayalam: {"ml", 5}, sinhala: {"si", 5}, burmese: {"my", 5}, khmer: {"km", 5}, ethiopic: {"am ti", 4},
}

// blocks are the Unicode ranges of the scripts, in ascending order.
var blocks = [...]struct {
	first, last rune
	script      int
}{
	{0x530, 0x58F, armenian}, {0x590, 0x5FF, hebrew}, {0x980, 0x9FF, bengali}, {0xA00, 0xA7F, gurmukhi},
	{0xA80, 0xAFF, gujarati},
	{0xB80, 0xBFF, tamil}, {0xC00, 0xC7F, telugu}, {0xC80, 0xCFF, kannada}, {0xD00, 0xD7F, malayalam},
	{0xD80, 0xDFF, sinhala},
	{0xE00, 0xE7F, thai}, {0xE80, 0xEFF, lao}, {0x1000, 0x109F, burmese}, {0x10A0, 0x10FF, georgian},
	{0x1100, 0x11FF, hangul},
	{0x1200, 0x139F, ethiopic}, {0x1780, 0x17FF, khmer}, {0x1C90, 0x1CBF, georgian}, {0x3041, 0x30FF, kana},
	{0x3130, 0x318F, hangul},
	{0x31F0, 0x31FF, kana}, {0x3400, 0x9FFF, han}, {0xAC00, 0xD7A3, hangul}, {0xF900, 0xFAFF, han},
	{0xFF66, 0xFF9F, kana},
	{0x20000, 0x3FFFF, han},
}

// scriptOf returns the script of a letter. It returns noScript for a script of many languages and
// for what is not a letter. r is at least firstScripted.
func scriptOf(r rune) int {
	for _, b := range blocks {
		if r <= b.last {
			if r < b.first || !unicode.IsLetter(r) && !unicode.IsMark(r) {
				return noScript
			}
			return b.script
		}
	}
	return noScript
}

// script returns the languages that the letters in e.scripts point to, or "", and about how many
// words are written in that script.
func (e *evidence) script() (langs string, words int) {
	counts := e.scripts
	if counts[kana]*kanaOf >= counts[han] { // Japanese is written with both
		counts[kana] += counts[han]
		counts[han] = 0
	}
	for s := noScript + 1; s < scripts; s++ {
		if n := counts[s] / byScripts[s].letters; n > words {
			langs, words = byScripts[s].langs, n
		}
	}
	return langs, words
}

// kanaOf is the ratio that marks Japanese: at least one kana for each kanaOf Han characters.
// Chinese text has next to none.
const kanaOf = 10
