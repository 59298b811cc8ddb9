package period

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// token is a word, a number or a mark of text.
type token struct {
	from, to int32 // byte offsets in the text
	term     *term // its term in the vocabulary, or nil
	number   int32 // -1 if it is no number of up to 6 digits
	digits   int16 // at most manyDigits
	flags    flags
}

// word returns t in the form of the vocabulary, or "" if the vocabulary does not have it.
func (t *token) word() string {
	if t.term == nil {
		return ""
	}
	return t.term.word
}

// manyDigits is the number of digits from which they are no longer counted.
const manyDigits = 7

// flags are properties of a token.
type flags uint16

const (
	glued   flags = 1 << iota // no white space before
	capital                   // first letter is a capital
	accent                    // has an accent
	ordinal                   // a number with º, ª, st, th ...
	plural                    // a number with an s: 1940s
	zero                      // a number with a leading zero
	breaks                    // a paragraph ends before it
	letters                   // a word
	upper                     // a word of capitals only
	pluralS                   // a word that ends in s
	newline                   // a line ends before it
)

func (t *token) is(f flags) bool { return t.flags&f != 0 }

// Limits for the cost of one text. The text after them is ignored.
const (
	maxTokens = 1 << 20
	maxBytes  = 1 << 30
)

// tokenize cuts text into tokens.
func (r *ruleset) tokenize(text string) []token {
	tokens := make([]token, 0, len(text)/5+8)
	tens := false
	c := cutter{rules: r, text: text[:min(len(text), maxBytes)]}
	for c.at < len(c.text) && len(tokens) < maxTokens {
		if c.space() {
			continue
		}
		tokens = append(tokens, token{from: int32(c.at), number: -1, flags: c.before})
		t := &tokens[len(tokens)-1]
		c.next(t)
		t.to = int32(c.at)
		c.before = glued
		tens = tens || t.term != nil && t.term.tens
	}
	if !tens {
		return tokens
	}
	return joinNumbers(tokens)
}

// cutter cuts a text into tokens.
type cutter struct {
	rules  *ruleset
	text   string
	at     int
	before flags
	lines  int
	buf    []byte
}

// space skips white space and notes whether it had an empty line.
func (c *cutter) space() bool {
	if c.text[c.at] == ' ' {
		c.at++
		c.before &^= glued
		return true
	}
	r, size := utf8.DecodeRuneInString(c.text[c.at:])
	if !unicode.IsSpace(r) && r != '\u200b' && r != '\ufeff' {
		c.lines = 0
		return false
	}
	c.at += size
	c.before &^= glued
	if r == '\n' || r == '\u2029' {
		c.before |= newline
		if c.lines++; c.lines > 1 {
			c.before |= breaks
		}
	}
	return true
}

// next reads the token t, which begins here.
func (c *cutter) next(t *token) {
	b := c.text[c.at]
	switch {
	case b|0x20 >= 'a' && b|0x20 <= 'z':
		c.letters(t)
	case b >= '0' && b <= '9':
		c.number(t)
	case b < utf8.RuneSelf && b != '`':
		c.at++
		t.term = c.rules.marks[b]
	default:
		r, size := utf8.DecodeRuneInString(c.text[c.at:])
		if latin1(r) || unicode.IsLetter(r) {
			c.letters(t)
			return
		}
		mark := c.text[c.at : c.at+size]
		c.at += size
		switch r {
		case '–', '—', '‒', '−', '‑':
			mark = "–"
		case '’', '‘', '´', '`':
			mark = "'"
		case '°':
			mark = "º"
		}
		t.term = c.rules.terms[mark]
	}
}

// number reads the digits of a number and its suffix.
func (c *cutter) number(t *token) {
	for t.number = 0; c.at < len(c.text) && c.text[c.at] >= '0' && c.text[c.at] <= '9'; c.at++ {
		if t.digits < manyDigits {
			t.digits++
			t.number = t.number*10 + int32(c.text[c.at]-'0')
		}
	}
	if c.text[t.from] == '0' {
		t.flags |= zero
	}
	if t.digits == manyDigits {
		t.number = -1
	}
	c.suffix(t)
}

// suffix adds an ordinal sign or a plural s to the number.
func (c *cutter) suffix(t *token) {
	rest := c.text[c.at:]
	if rest == "" || rest[0] < utf8.RuneSelf && strings.IndexByte(".snrtoa'", rest[0]) < 0 {
		return // quicker than to try all suffixes
	}
	for _, s := range [...]string{".º", ".ª", ".°", "º", "ª", "°", "st", "nd", "rd", "th", "o", "a", "'s", "’s", "s"} {
		if !strings.HasPrefix(rest, s) {
			continue
		}
		if next, _ := utf8.DecodeRuneInString(rest[len(s):]); unicode.IsLetter(next) || unicode.IsDigit(next) {
			continue
		}
		if strings.HasSuffix(s, "s") {
			if t.digits != 4 && t.digits != 2 {
				return
			}
			t.flags |= plural
		} else {
			t.flags |= ordinal
		}
		c.at += len(s)
		return
	}
}

// letters reads a word. It reads a compound with hyphens only if the vocabulary has it.
func (c *cutter) letters(t *token) {
	from := c.at
	end := c.wordEnd(from)
	for to := end; to < len(c.text) && (c.text[to] == '-' || c.text[to] >= utf8.RuneSelf); {
		r, size := utf8.DecodeRuneInString(c.text[to:])
		if r != '-' && r != '‑' {
			break
		}
		next := c.wordEnd(to + size)
		if next == to+size {
			break
		}
		if to = next; c.rules.lookup(c.fold(c.text[from:to], nil)) != nil {
			end = to
		}
		if to-from > maxWord {
			break
		}
	}
	c.at = end
	t.flags |= letters
	folded := c.fold(c.text[from:end], &t.flags)
	t.term = c.rules.lookup(folded)
	if n := len(folded); n > 1 && folded[n-1] == 's' {
		t.flags |= pluralS
	}
}

// maxWord is the length of the longest word that is looked up, in bytes.
const maxWord = 40

func (c *cutter) wordEnd(at int) int {
	for at < len(c.text) {
		b := c.text[at]
		if b < utf8.RuneSelf {
			if b|0x20 >= 'a' && b|0x20 <= 'z' {
				at++
				continue
			}
			return at
		}
		r, size := utf8.DecodeRuneInString(c.text[at:])
		if !latin1(r) && !unicode.IsLetter(r) && !unicode.Is(unicode.M, r) {
			return at
		}
		at += size
	}
	return at
}

// fold returns word in lower case without accents, in a buffer that the next call overwrites. It
// notes capitals and accents in f.
func (c *cutter) fold(word string, f *flags) []byte {
	c.buf = c.buf[:0]
	if len(word) > maxWord {
		return c.buf
	}
	all := true
	var seen flags
	for i, r := range word {
		switch {
		case r >= 'a' && r <= 'z':
			all = false
			c.buf = append(c.buf, byte(r))
			continue
		case r >= 'A' && r <= 'Z', latin1(r) && r <= 'Þ':
			if i == 0 {
				seen |= capital
			}
			r += 'a' - 'A'
		case latin1(r):
			all = false
		case unicode.IsUpper(r):
			if i == 0 {
				seen |= capital
			}
			r = unicode.ToLower(r)
		case unicode.IsLetter(r):
			all = false
		}
		if r == '‑' {
			r = '-'
		}
		if r >= utf8.RuneSelf {
			plain, ok := plainLetter(r)
			if !latin1(r) && unicode.Is(unicode.M, r) {
				seen |= accent
				continue
			}
			if ok {
				seen |= accent
				r = plain
			}
		}
		c.buf = utf8.AppendRune(c.buf, r)
	}
	if all && len(word) > 0 {
		seen |= upper
	}
	if f != nil {
		*f |= seen
	}
	return c.buf
}

// latin1 reports whether r is one of the letters À to ÿ. Those up to Þ are capitals.
func latin1(r rune) bool { return r >= 'À' && r <= 'ÿ' && r != '×' && r != '÷' }

// plainLetter returns r without its accent, and whether it had one.
func plainLetter(r rune) (rune, bool) {
	switch r {
	case 'á', 'à', 'â', 'ã', 'ä':
		return 'a', true
	case 'é', 'è', 'ê', 'ë':
		return 'e', true
	case 'í', 'ì', 'î', 'ï':
		return 'i', true
	case 'ó', 'ò', 'ô', 'õ', 'ö':
		return 'o', true
	case 'ú', 'ù', 'û', 'ü':
		return 'u', true
	case 'ç':
		return 'c', true
	case 'ñ':
		return 'n', true
	}
	return r, false
}

// joinNumbers joins "vinte e cinco" and "twenty five" into one number.
func joinNumbers(tokens []token) []token {
	out := tokens[:0]
	for i := 0; i < len(tokens); i++ {
		t := &tokens[i]
		if t.term != nil && t.term.tens && i+1 < len(tokens) {
			tens := t.value("num")
			at := i + 1
			if w := tokens[at].word(); w == "e" || w == "-" {
				at++
			}
			if at < len(tokens) {
				if ones := tokens[at].value("num"); ones >= 1 && ones < 10 && tokens[at].word() != "a" &&
					tokens[at].word() != "an" {
					t.to, t.number, t.digits, t.term = tokens[at].to, int32(tens+ones), 2, nil
					i = at
				}
			}
		}
		if out = out[:len(out)+1]; &out[len(out)-1] != t {
			out[len(out)-1] = *t
		}
	}
	return out
}

// value returns the value of t in class by the lexicon, or 0.
func (t *token) value(class string) int {
	if t.term != nil {
		for i := range t.term.entries {
			if e := &t.term.entries[i]; e.class == class {
				return e.value
			}
		}
	}
	return 0
}

// has reports whether t is a word of class.
func (t *token) has(class string) bool {
	if t.term != nil {
		for i := range t.term.entries {
			if t.term.entries[i].class == class {
				return true
			}
		}
	}
	return false
}

// roman returns the value of a Roman numeral in capitals, or 0.
func roman(s string) int {
	total, last := 0, 0
	for i := len(s) - 1; i >= 0; i-- {
		v := 0
		switch s[i] {
		case 'I':
			v = 1
		case 'V':
			v = 5
		case 'X':
			v = 10
		case 'L':
			v = 50
		default:
			return 0
		}
		if v < last {
			total -= v
		} else {
			total, last = total+v, v
		}
	}
	return total
}
