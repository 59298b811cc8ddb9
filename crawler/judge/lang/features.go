package lang

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// WeightsVersion is the version of the weights file format, and of the features that Features and
// VarietyFeatures make. Weights of another version do not open.
const WeightsVersion = 3

// Limits for the input.
const (
	MaxText = 4 << 10 // bytes of a text; the rest is not read
	maxWord = 32      // letters of a word; the rest is dropped
	// maxAddress is how far from its start an address must be recognisable, in bytes. Otherwise a
	// long text without spaces would be read again at every word.
	maxAddress = 64
	// maxPerWord is the largest number of features of one word: three sizes of n-gram over
	// maxWord+2 letters, three for each accented letter, seven of the word.
	maxPerWord = 3*(maxWord+2) + 3*maxWord + 7
)

// The kinds of features. They are mixed into the hashes, so that the kinds do not collide.
const (
	kindWord   = 0x11 << 56
	kindRaw    = 0x22 << 56 // the word with its accents
	kindPair   = 0x33 << 56
	kindEnding = 0x44 << 56 // a word and the ending of the next one
	kindAccent = 0x55 << 56 // an accented letter between its neighbours
	kindGram   = 0x60 << 56 // + size
)

// Values of scanner.prev that are no word: the start of a sentence, or a mark that separates words.
const (
	startOfSentence = 0xa5
	afterMark       = 0x5a
)

// letters folds Latin letters to a to z, and to lower case. 0 means not a Latin letter.
type letters struct {
	fold  [0x250]byte
	lower [0x250]uint16
	tail  [0x100]byte // U+1E00 to U+1EFF
}

// latin is immutable.
var latin = makeLatin()

// makeLatin builds the tables from the Unicode decompositions.
func makeLatin() *letters {
	l := &letters{}
	odd := map[rune]byte{'ß': 's', 'æ': 'a', 'ø': 'o', 'ð': 'd', 'þ': 't', 'đ': 'd', 'ħ': 'h', 'ı': 'i', 'ĸ': 'k',
		'ł': 'l', 'ŋ': 'n', 'œ': 'o', 'ŧ': 't', 'ƒ': 'f', 'ǝ': 'e', 'ə': 'e', 'ª': 'a', 'º': 'o'}
	fold := func(r rune) byte {
		r = unicode.ToLower(r)
		if r < utf8.RuneSelf {
			if r >= 'a' && r <= 'z' {
				return byte(r)
			}
			return 0
		}
		if b, ok := odd[r]; ok {
			return b
		}
		d, _ := utf8.DecodeRuneInString(norm.NFKD.String(string(r))) // the base letter comes first
		if d = unicode.ToLower(d); d >= 'a' && d <= 'z' && unicode.IsLetter(r) {
			return byte(d)
		}
		return odd[d]
	}
	for r := range rune(len(l.fold)) {
		l.fold[r] = fold(r)
		l.lower[r] = uint16(unicode.ToLower(r) & 0xffff)
	}
	for i := range l.tail {
		l.tail[i] = fold(0x1e00 + rune(i))
	}
	return l
}

// scanner cuts a text into words and computes their features.
type scanner struct {
	text string
	pos  int
	from int    // start of the word that next found, in text
	prev uint64 // hash of the word before, or startOfSentence or afterMark

	word [maxWord]byte   // folded
	raw  [maxWord]uint16 // with accents, lower case
	n    int
	odd  bool // a letter of the word has an accent

	words          int
	latin, foreign int // number of Latin letters, and of letters of other scripts
}

func newScanner(text string) scanner {
	if len(text) > MaxText {
		text = text[:MaxText]
	}
	return scanner{text: text, prev: startOfSentence}
}

// Features appends the hashes of all features of text to dst: n-grams of 3 to 5 letters inside
// words, words, pairs of words, a word with the ending of the next, and accented letters. Accents
// are folded first. A letter with an accent adds more features, so a text without its accents has a
// subset of the features. Features also returns the number of words in the text, and whether its
// letters are mostly of another script than Latin.
func Features(text string, dst []uint64) (features []uint64, words int, foreign bool) {
	s := newScanner(text)
	var buf [2 * maxPerWord]uint64
	for {
		n, more := s.fill(buf[:])
		dst = append(dst, buf[:n]...)
		if !more {
			return dst, s.words, s.foreign > s.latin
		}
	}
}

// Words returns the words of text as Features reads them, without addresses, mentions and hashtags.
// Letters are folded to a to z. Laughter and repeated letters are shortened. A hyphen before a
// pronoun and an apostrophe stay. Words is there to compare another method on the same words.
func Words(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		s := newScanner(text)
		for s.next() && yield(string(s.word[:s.n])) {
		}
	}
}

// fill writes features into buf, which has room for at least maxPerWord.
func (s *scanner) fill(buf []uint64) (n int, more bool) {
	for len(buf)-n >= maxPerWord {
		if !s.next() {
			return n, false
		}
		n += s.features(buf[n:])
	}
	return n, true
}

func mix(x uint64) uint64 {
	x ^= x >> 32
	x *= 0x9e3779b97f4a7c15
	x ^= x >> 29
	x *= 0xbf58476d1ce4e5b9
	return x ^ x>>32
}

// features writes the features of the word that next found and returns their number.
func (s *scanner) features(out []uint64) int {
	whole := s.whole()
	out[0] = mix(kindWord | whole)
	out[1], out[2] = s.beside(whole)
	return 3 + s.shape(out[3:], 3)
}

// whole returns a hash of the word.
func (s *scanner) whole() uint64 {
	whole := uint64(0)
	for _, b := range s.word[:s.n] {
		whole = (whole ^ uint64(b)) * 0x100000001b3
	}
	return whole & (1<<56 - 1)
}

// beside returns the features of the word together with the word before it. Then the word becomes
// the word before.
func (s *scanner) beside(whole uint64) (pair, end uint64) {
	pair = mix(kindPair | (s.prev*0x9e3779b97f4a7c15^whole)&(1<<56-1))
	end = mix(kindEnding | (s.prev*0x9e3779b97f4a7c15^ending(s.word[:s.n]))&(1<<56-1))
	s.prev = whole
	return pair, end
}

// shape writes the features of the letters of the word: n-grams of least to 5 letters, and accents.
func (s *scanner) shape(out []uint64, least int) int {
	n := 0
	add := func(h uint64) { out[n] = mix(h); n++ }
	w := s.word[:s.n]
	var padded [maxWord + 2]byte
	padded[0] = '_'
	copy(padded[1:], w)
	padded[s.n+1] = '_'
	g := uint64(0)
	for i := range s.n + 2 {
		g = g<<8 | uint64(padded[i])
		if i >= 2 && least <= 3 {
			add(kindGram | 3<<56 | g&(1<<24-1))
		}
		if i >= 3 {
			add(kindGram | 4<<56 | g&(1<<32-1))
		}
		if i >= 4 {
			add(kindGram | 5<<56 | g&(1<<40-1))
		}
	}
	if s.odd {
		h := uint64(0)
		for i, r := range s.raw[:s.n] {
			h = (h ^ uint64(r)) * 0x100000001b3
			if r >= utf8.RuneSelf {
				add(kindAccent | uint64(r))
				add(kindAccent | uint64(r)<<16 | uint64(padded[i])<<8)
				add(kindAccent | uint64(r)<<16 | uint64(padded[i+2]))
			}
		}
		add(kindRaw | h&(1<<56-1))
	}
	return n
}

// ending returns the last two letters of a word, or "ndo", or "r" after a vowel. It distinguishes
// "a fazer" from "fazendo".
func ending(w []byte) uint64 {
	n := len(w)
	switch {
	case n >= 3 && w[n-1] == 'o' && w[n-2] == 'd' && w[n-3] == 'n':
		return 'n'<<16 | 'd'<<8 | 'o'
	case n >= 3 && w[n-1] == 'r' && strings.IndexByte("aeio", w[n-2]) >= 0:
		return 'r'
	case n >= 2:
		return uint64(w[n-2])<<8 | uint64(w[n-1])
	case n == 1:
		return uint64(w[0])
	}
	return 0
}

// next finds the next word. It returns false at the end.
func (s *scanner) next() bool {
	s.n, s.odd = 0, false
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z' || c >= utf8.RuneSelf:
			if s.skipAddress() {
				continue
			}
			s.from = s.pos
			if s.readWord(); s.n > 0 {
				s.words++
				return true
			}
		case c == '@' || c == '#':
			s.pos++
			s.skipName()
		case c == '.' || c == '!' || c == '?' || c == '\n' || c == '\r':
			s.prev = startOfSentence
			s.pos++
		case c == ' ' || c == '\t':
			s.pos++
		case c == '-' && s.pos+1 < len(s.text) && s.pos > 0 && s.text[s.pos-1] > ' ':
			s.from = s.pos
			s.pos++ // a hyphen before a pronoun becomes part of the word
			if c := s.text[s.pos] | 0x20; c >= 'a' && c <= 'z' {
				s.word[0], s.raw[0], s.n = '-', '-', 1
				s.readWord()
				s.words++
				return true
			}
		default:
			s.prev = afterMark
			s.pos++
		}
	}
	return false
}

// skipName skips the characters that a name after @ or # may have.
func (s *scanner) skipName() {
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '@' || c == '-' ||
			c >= utf8.RuneSelf ||
			c == '.' && s.pos+1 < len(s.text) && s.text[s.pos+1] > ' ' {
			s.pos++
			continue
		}
		return
	}
}

// skipAddress skips a URL, a bare domain with a path, or a mail address.
func (s *scanner) skipAddress() bool {
	end := s.pos
	dot, address := false, false
	for end < len(s.text) && s.text[end] > ' ' {
		switch s.text[end] {
		case ':':
			address = address || strings.HasPrefix(s.text[end:], "://")
		case '@':
			address = true
		case '/':
			address = address || dot
		case '.':
			dot = dot || end > s.pos && end+1 < len(s.text) && s.text[end+1] > ' ' && s.text[end+1] != '.' &&
				s.text[end-1] != '.'
		}
		if !address && end-s.pos > maxAddress {
			break
		}
		end++
	}
	if !address && dot && end-s.pos > 4 {
		w := s.text[s.pos : s.pos+4]
		address = w[3] == '.' && w[0]|0x20 == 'w' && w[1]|0x20 == 'w' && w[2]|0x20 == 'w'
	}
	if address {
		s.pos = end
		s.prev = afterMark
	}
	return address
}

// readWord reads letters up to the first other character.
func (s *scanner) readWord() {
	run := 0
	for s.pos < len(s.text) {
		r, size := rune(s.text[s.pos]), 1
		// The quick path for most letters.
		if b := byte(r) | 0x20; b >= 'a' && b <= 'z' && s.n > 0 && s.n < maxWord && s.word[s.n-1] != b {
			s.word[s.n], s.raw[s.n] = b, uint16(b)
			s.n++
			s.pos++
			s.latin++
			run = 1
			continue
		}
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s.text[s.pos:])
		}
		var b byte
		switch {
		case int(r) < len(latin.fold):
			b = latin.fold[r]
		case r >= 0x1e00 && r < 0x1f00:
			b = latin.tail[r-0x1e00]
		case r >= 0x300 && r < 0x370: // a combining mark is ignored
			s.pos += size
			continue
		}
		if b == 0 {
			s.afterWord(r, size)
			break
		}
		s.pos += size
		s.latin++
		if s.n > 0 && s.word[s.n-1] == b {
			run++
		} else {
			run = 1
		}
		switch {
		case run == 3 && b != 'k': // "muuuito" means one letter; "kkkk" is laughter
			s.n -= 1
			s.latin -= 2
			continue
		case run > 3:
			s.latin--
			continue
		}
		if s.n < maxWord {
			low := uint16(b)
			if r >= utf8.RuneSelf {
				if low = 0xffff; int(r) < len(latin.lower) {
					low = latin.lower[r]
				}
				s.odd = true
			}
			s.word[s.n], s.raw[s.n] = b, low
			s.n++
		}
	}
	s.shortenLaughter()
}

// afterWord handles the character that ended a word.
func (s *scanner) afterWord(r rune, size int) {
	switch {
	case r == '\'' || r == '’':
		s.pos += size
		if s.n > 0 && s.n < maxWord {
			s.word[s.n], s.raw[s.n] = '\'', '\''
			s.n++
		}
	case r >= utf8.RuneSelf:
		s.pos += size
		if r >= 0x370 && unicode.IsLetter(r) {
			s.foreign++
		} else if s.n == 0 {
			s.prev = afterMark
		}
	}
}

// shortenLaughter makes "hahahaha" and "hahaha" one word. A word that repeats two or three letters
// is cut to two repetitions.
func (s *scanner) shortenLaughter() {
	for period := 2; period <= 3; period++ {
		if s.n <= 2*period {
			continue
		}
		same := true
		for i := period; i < s.n && same; i++ {
			same = s.word[i] == s.word[i-period]
		}
		if same {
			s.n = 2 * period
			return
		}
	}
}
