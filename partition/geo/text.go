package geo

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/echo-node/echo-node/partition/geo/atlas"
)

// MaxText is the length in bytes of the longest text that is read. The rest is ignored.
const MaxText = 512

// text is a location field split into its parts.
type text struct {
	segments []segment
	flags    []flag
}

// segment is the text between two separators.
type segment struct {
	words []word
	moved bool // an arrow is before it
}

// word is one word of a segment, as written and as compared.
type word struct {
	raw    string
	folded string
	dot    bool // a dot follows it
}

// flag is one flag: of a country, by its ISO code, or of a part of a country, by the letters of
// its tags ("gbeng").
type flag struct {
	code   string
	before []word // the words directly before it
	moved  bool   // an arrow is before it
}

// splitter splits a text, one rune after the other.
type splitter struct {
	text
	part   strings.Builder
	last   []word // of the segment that ended at the rune before
	moved  bool
	letter rune   // the first half of a flag, 0 none
	tags   string // of a flag made of tags, "" none
}

// split splits a text. Emoji, and punctuation that occurs in no name, separate. A dot, an
// apostrophe and a hyphen between letters do not.
func split(s string) text {
	if len(s) > MaxText {
		s = s[:MaxText]
	}
	s = plain(s)
	s = strings.NewReplacer("<->", "↔", "<=>", "↔", "->", "→", "=>", "→", ">", "→", "➡", "→", "➔", "→", "➜", "→", "➝",
		"→", "➞", "→", "⟶", "→", "⇒", "→", "⮕", "→").Replace(s[:min(len(s), 2*MaxText)])
	runes := []rune(strings.ToValidUTF8(s, " "))
	var t splitter
	for i, r := range runes {
		if r == '-' && i > 0 && i+1 < len(runes) && unicode.IsSpace(runes[i-1]) && unicode.IsSpace(runes[i+1]) {
			r = '|'
		}
		t.next(r)
	}
	t.flush()
	return t.text
}

// next reads one more rune.
func (t *splitter) next(r rune) {
	if t.flagged(r) {
		return
	}
	switch {
	case r == '→':
		t.flush()
		t.moved = true
	case inName(r):
		t.part.WriteRune(r)
	default:
		t.flush()
		t.last = nil
	}
}

// flagged processes r if it is a part of a flag.
func (t *splitter) flagged(r rune) bool {
	const blackFlag, tagA, tagZ, tagEnd = 0x1F3F4, 0xE0061, 0xE007A, 0xE007F
	switch {
	case r == blackFlag:
		t.flush()
		t.tags = " "
	case t.tags != "" && r >= tagA && r <= tagZ && len(t.tags) < 8:
		t.tags += string('a' + r - tagA)
	case t.tags != "" && r == tagEnd:
		t.flag(strings.TrimSpace(t.tags))
		t.tags = ""
	case r >= 0x1F1E6 && r <= 0x1F1FF:
		t.flush()
		if t.letter == 0 {
			t.letter = r
			return true
		}
		t.flag(string([]rune{'A' + t.letter - 0x1F1E6, 'A' + r - 0x1F1E6}))
		t.letter = 0
	default:
		t.letter, t.tags = 0, ""
		return false
	}
	return true
}

// flag adds a flag, with the words and the arrow before it.
func (t *splitter) flag(code string) {
	t.flags = append(t.flags, flag{code, t.last, t.moved})
	t.last = nil
}

// flush ends the present segment, if it has words.
func (t *splitter) flush() {
	words := wordsOf(t.part.String())
	if len(words) > 0 {
		t.segments = append(t.segments, segment{words: words, moved: t.moved})
		t.last = words
	}
	t.part.Reset()
}

// inName reports whether r can be inside a name. Any other rune separates segments.
func inName(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r) || unicode.IsSpace(r) && r != '\n' ||
		strings.ContainsRune("-.'`#@_", r)
}

// wordsOf returns the words of a part. Three or more single letters become one word.
func wordsOf(part string) []word {
	var out []word
	single := 0
	for part != "" {
		from := strings.IndexFunc(part, inWord)
		if from < 0 {
			break
		}
		part = part[from:]
		to := strings.IndexFunc(part, func(r rune) bool { return !inWord(r) })
		if to < 0 {
			to = len(part)
		}
		raw := part[:to]
		part = part[to:]
		folded := atlas.Fold(raw)
		if folded == "" {
			continue
		}
		if len(folded) == 1 {
			single++
		}
		out = append(out, word{raw, folded, strings.HasPrefix(part, ".")})
	}
	if single == len(out) && single >= 3 { // L I S B O A, S.J.M.
		var w word
		for _, o := range out {
			w.raw += o.raw
			w.folded += o.folded
		}
		return []word{w}
	}
	return out
}

// inWord reports whether r can be inside a word.
func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)
}

// zone matches a name of the time zone database.
var zone = regexp.MustCompile(`^(Europe|America|Africa|Asia|Atlantic|Australia|Indian|Pacific)/(?:[A-Za-z_]+/)?([A-Za-z_]+)$`)

// findZone returns the city that a time zone is named after.
func findZone(s string) (city string, ok bool) {
	m := zone.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return "", false
	}
	return strings.ReplaceAll(m[2], "_", " "), true
}

// shorten removes emphasis: three or more equal letters become keep letters.
func shorten(s string, keep int) string {
	runes := []rune(s)
	var out []rune
	for i := 0; i < len(runes); {
		j := i
		for j < len(runes) && runes[j] == runes[i] {
			j++
		}
		if j-i >= 3 {
			out = append(out, runes[i:i+keep]...)
		} else {
			out = append(out, runes[i:j]...)
		}
		i = j
	}
	return string(out)
}
