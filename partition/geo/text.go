package geo

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/echo-node/echo-node/partition/geo/atlas"
)

// MaxText is the length in bytes of the longest text that is looked at; what
// follows is ignored.
const MaxText = 512

// text is a location field taken apart.
type text struct {
	segments []segment
	flags    []string // ISO codes of the flags in it
}

// segment is what stands between two separators.
type segment struct {
	words []word
	moved bool // an arrow stands before it
}

type word struct {
	raw    string
	folded string
}

// split takes a text apart. Emoji and punctuation that nobody puts into a name
// separate; a hyphen, a dot and an apostrophe do not.
func split(s string) text {
	if len(s) > MaxText {
		s = s[:MaxText]
	}
	s = strings.ToValidUTF8(s, " ")
	s = strings.NewReplacer("->", "→", "=>", "→", "➡", "→", "➔", "→", "➜", "→").Replace(s)
	var t text
	var part strings.Builder
	moved := false
	flush := func() {
		if words := wordsOf(part.String()); len(words) > 0 {
			t.segments = append(t.segments, segment{words: words, moved: moved})
		}
		part.Reset()
	}
	var letter rune // first half of a flag
	for _, r := range s {
		if r >= 0x1F1E6 && r <= 0x1F1FF {
			flush()
			if letter == 0 {
				letter = r
				continue
			}
			t.flags = append(t.flags, string([]rune{'A' + letter - 0x1F1E6, 'A' + r - 0x1F1E6}))
			letter = 0
			continue
		}
		letter = 0
		switch {
		case r == '→':
			flush()
			moved = true
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.Is(unicode.M, r) && r < 0xFE00, unicode.IsSpace(r) && r != '\n', strings.ContainsRune("-.'’´`#@_", r):
			part.WriteRune(r)
		default:
			flush()
		}
	}
	flush()
	return t
}

func wordsOf(part string) []word {
	var out []word
	single := 0
	for _, raw := range strings.FieldsFunc(part, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.M, r) }) {
		folded := atlas.Fold(raw)
		if folded == "" {
			continue
		}
		if len(folded) == 1 {
			single++
		}
		out = append(out, word{raw, folded})
	}
	if single == len(out) && single >= 4 { // L I S B O A
		var w word
		for _, o := range out {
			w.raw += o.raw
			w.folded += o.folded
		}
		return []word{w}
	}
	return out
}

// coordinates finds "38.72, -9.14" in a text, as old clients wrote it.
var coordinates = regexp.MustCompile(`(?:^|[^0-9.])(-?[0-9]{1,2}\.[0-9]{1,9})\s*[,;]\s*(-?[0-9]{1,3}\.[0-9]{1,9})(?:[^0-9.]|$)`)

func findCoordinates(s string) (lat, lon float64, ok bool) {
	m := coordinates.FindStringSubmatch(s[:min(len(s), MaxText)])
	if m == nil {
		return 0, 0, false
	}
	lat, err1 := strconv.ParseFloat(m[1], 64)
	lon, err2 := strconv.ParseFloat(m[2], 64)
	return lat, lon, err1 == nil && err2 == nil && lat >= -90 && lat <= 90 && lon >= -180 && lon <= 180
}

// zone matches a name of the time zone database.
var zone = regexp.MustCompile(`^(Europe|America|Africa|Asia|Atlantic|Australia|Indian|Pacific)/(?:[A-Za-z_]+/)?([A-Za-z_]+)$`)

// findZone is the city that a time zone is named after.
func findZone(s string) (city string, ok bool) {
	m := zone.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return "", false
	}
	return strings.ReplaceAll(m[2], "_", " "), true
}

// shorten undoes emphasis: three or more equal letters become one.
func shorten(s string) string {
	runes := []rune(s)
	var out []rune
	for i := 0; i < len(runes); {
		j := i
		for j < len(runes) && runes[j] == runes[i] {
			j++
		}
		if j-i >= 3 {
			out = append(out, runes[i])
		} else {
			out = append(out, runes[i:j]...)
		}
		i = j
	}
	return string(out)
}
