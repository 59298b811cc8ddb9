package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/analysis/lang/ar"
	"github.com/blevesearch/bleve/v2/analysis/lang/bg"
	"github.com/blevesearch/bleve/v2/analysis/lang/ca"
	"github.com/blevesearch/bleve/v2/analysis/lang/cs"
	"github.com/blevesearch/bleve/v2/analysis/lang/da"
	"github.com/blevesearch/bleve/v2/analysis/lang/de"
	"github.com/blevesearch/bleve/v2/analysis/lang/el"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/blevesearch/bleve/v2/analysis/lang/es"
	"github.com/blevesearch/bleve/v2/analysis/lang/eu"
	"github.com/blevesearch/bleve/v2/analysis/lang/fa"
	"github.com/blevesearch/bleve/v2/analysis/lang/fi"
	"github.com/blevesearch/bleve/v2/analysis/lang/fr"
	"github.com/blevesearch/bleve/v2/analysis/lang/gl"
	"github.com/blevesearch/bleve/v2/analysis/lang/hi"
	"github.com/blevesearch/bleve/v2/analysis/lang/hr"
	"github.com/blevesearch/bleve/v2/analysis/lang/hu"
	"github.com/blevesearch/bleve/v2/analysis/lang/id"
	"github.com/blevesearch/bleve/v2/analysis/lang/it"
	"github.com/blevesearch/bleve/v2/analysis/lang/nl"
	"github.com/blevesearch/bleve/v2/analysis/lang/no"
	"github.com/blevesearch/bleve/v2/analysis/lang/pt"
	"github.com/blevesearch/bleve/v2/analysis/lang/ro"
	"github.com/blevesearch/bleve/v2/analysis/lang/ru"
	"github.com/blevesearch/bleve/v2/analysis/lang/sv"
	"github.com/blevesearch/bleve/v2/analysis/lang/tr"

	"github.com/echo-node/echo-node/crawler/focus/lang"
)

// The text a language is told from, and how clear it has to be.
const (
	langSample = 4 << 10 // bytes looked at
	langEnough = 120     // runes below which the page's own word counts more
	langShare  = 12      // at least one word in so many tells a language
	langMargin = 1.15    // by which the best must lead the second
)

// letters that only some of the languages write, which tell apart those that
// share their small words (Portuguese and Galician).
var letters = [...]struct {
	letter rune
	langs  string
}{
	{'ã', "pt"}, {'õ', "pt"}, {'ç', "pt fr ca tr"}, {'â', "pt fr ro"}, {'ê', "pt fr"}, {'ñ', "es gl eu"}, {'ß', "de"}, {'ő', "hu"}, {'ű', "hu"},
	{'ř', "cs"}, {'ě', "cs"}, {'ı', "tr"}, {'ğ', "tr"}, {'ș', "ro"}, {'ț', "ro"}, {'ă', "ro"}, {'å', "sv da no"}, {'ø', "da no"}, {'æ', "da no"},
	{'ä', "de fi sv"}, {'đ', "hr"}, {'è', "fr it ca"}, {'ò', "it ca"},
}

// tongues tells languages by their commonest words, those that bleve leaves out
// of an index. It is quick, and every peer says the same of the same text.
// (whatlanggo, tried first, took three quarters of the time of an extraction
// and breaks ties by the order of a map, so two peers could disagree.)
//
// Of the seven that the judge of short texts knows, it is the judge who decides,
// and tells Portugal from Brazil: on 1,000 bytes of text it names all of them
// where the words leave 3 % of Spanish and 1 % of Galician open, on 200 bytes the
// words are wrong for 1.6 % and the judge for none. The other languages are the
// words' alone: to the judge they are one.
// Immutable after newTongues.
type tongues struct {
	names   []string
	words   map[string][]vote
	letters [maxLetter + 1][]vote // of those above ASCII
	judge   *lang.Judge
}

// maxLetter is the last letter that votes by itself.
const maxLetter = 0x250

// vote is what one word says: the fewer languages share it, the more.
type vote struct {
	lang   int
	weight float64
}

func newTongues() (*tongues, error) {
	lists := []struct {
		name string
		list []byte
	}{
		{"ar", ar.ArabicStopWords}, {"bg", bg.BulgarianStopWords}, {"ca", ca.CatalanStopWords}, {"cs", cs.CzechStopWords}, {"da", da.DanishStopWords},
		{"de", de.GermanStopWords}, {"el", el.GreekStopWords}, {"en", en.EnglishStopWords}, {"es", es.SpanishStopWords}, {"eu", eu.BasqueStopWords},
		{"fa", fa.PersianStopWords}, {"fi", fi.FinnishStopWords}, {"fr", fr.FrenchStopWords}, {"gl", gl.GalicianStopWords}, {"hi", hi.HindiStopWords},
		{"hr", hr.CroatianStopWords}, {"hu", hu.HungarianStopWords}, {"id", id.IndonesianStopWords}, {"it", it.ItalianStopWords}, {"nl", nl.DutchStopWords},
		{"no", no.NorwegianStopWords}, {"pt", pt.PortugueseStopWords}, {"ro", ro.RomanianStopWords}, {"ru", ru.RussianStopWords},
		{"sv", sv.SwedishStopWords}, {"tr", tr.TurkishStopWords},
	}
	judge, err := lang.Open()
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	t := &tongues{words: map[string][]vote{}, judge: judge}
	for i, l := range lists {
		t.names = append(t.names, l.name)
		m := analysis.NewTokenMap()
		if err := m.LoadBytes(l.list); err != nil {
			return nil, fmt.Errorf("web: words of %s: %w", l.name, err)
		}
		for w := range m {
			w = strings.ToLower(w)
			t.words[w] = append(t.words[w], vote{lang: i})
		}
	}
	for _, l := range letters {
		for name := range strings.FieldsSeq(l.langs) {
			t.letters[l.letter] = append(t.letters[l.letter], vote{lang: slices.Index(t.names, name)})
		}
	}
	for _, votes := range t.words {
		share(votes)
	}
	for _, votes := range t.letters {
		share(votes)
	}
	return t, nil
}

// share gives each of votes its part of one.
func share(votes []vote) {
	for i := range votes {
		votes[i].weight = 1 / float64(len(votes))
	}
}

// unsure is the language of a page when neither its text nor its template tells.
const unsure = "und"

// language is the BCP 47 tag of a page: what its text shows when that is long
// and clear, else what its lang attribute claims, else what a short text shows.
// Templates often claim "en" for pages that are not. A claim that agrees with
// the text keeps its region, unless the text shows another variety of Portuguese.
func (t *tongues) language(text, claim string) string {
	claim = languageTag(claim)
	sample := text
	if len(sample) > langSample {
		if sample = sample[:langSample]; !utf8.ValidString(sample) {
			sample = strings.ToValidUTF8(sample, "")
		}
	}
	found := byScript(sample)
	if found == "" {
		found = t.judged(sample, claim)
	}
	if found == "" {
		return cmp.Or(claim, unsure)
	}
	switch base, _, _ := strings.Cut(claim, "-"); {
	case base == found, found == "no" && (base == "nb" || base == "nn"), found == "hr" && (base == "sr" || base == "bs"):
		return claim
	}
	return found
}

// judged is the language of a text in letters that several languages have.
func (t *tongues) judged(sample, claim string) string {
	long := utf8.RuneCountInString(sample) >= langEnough
	if !long && claim != "" {
		return ""
	}
	var words string
	if long {
		words = t.byWords(sample)
	}
	switch v := t.judge.Text(sample); {
	case words != "" && !judgeKnows(words), v.Lang == lang.Other, v.Lang == lang.Und:
		return words
	default:
		return v.Lang.String()
	}
}

// judgeKnows says whether the judge of short texts tells the language tag from
// all others; of the rest it knows only that they are others.
func judgeKnows(tag string) bool {
	_, ok := lang.ParseLang(tag)
	return ok
}

func (t *tongues) byWords(text string) string {
	score := make([]float64, len(t.names))
	words := 0
	var buf [64]byte
	word := buf[:0] // in lower case
	plain := true   // the word is ASCII
	end := func() {
		if len(word) == 0 {
			return
		}
		words++
		for _, v := range t.words[string(word)] { // in the order of the lists: sums are the same everywhere
			score[v.lang] += v.weight
		}
		for rest := word; len(rest) > 0 && !plain; {
			r, size := utf8.DecodeRune(rest)
			rest = rest[size:]
			if r < utf8.RuneSelf || r > maxLetter {
				continue
			}
			for _, v := range t.letters[r] {
				score[v.lang] += v.weight
			}
		}
		word, plain = word[:0], true
	}
	for _, r := range text {
		switch {
		case r >= 'a' && r <= 'z':
			word = append(word, byte(r))
		case r >= 'A' && r <= 'Z':
			word = append(word, byte(r)+'a'-'A')
		case r < utf8.RuneSelf:
			end()
		default:
			if r < 0xDF || r > 0xFF { // those are small already
				r = unicode.ToLower(r)
			}
			if !unicode.IsLetter(r) && !unicode.IsMark(r) {
				end()
				continue
			}
			word, plain = utf8.AppendRune(word, r), false
		}
	}
	end()
	best, second := 0, -1
	for i := 1; i < len(score); i++ {
		switch {
		case score[i] > score[best]:
			best, second = i, best
		case second < 0 || score[i] > score[second]:
			second = i
		}
	}
	if score[best]*langShare < float64(words) || score[best] < langMargin*score[second] {
		return ""
	}
	return t.names[best]
}

// byScript names the languages that are alone with their script.
func byScript(text string) string {
	var han, kana, hangul, thai, hebrew, georgian, all int
	for _, r := range text {
		if r < 0x530 {
			if r|0x20 >= 'a' && r|0x20 <= 'z' || r >= utf8.RuneSelf && unicode.IsLetter(r) {
				all++
			}
			continue
		}
		if !unicode.IsLetter(r) {
			continue
		}
		all++
		switch {
		case unicode.Is(unicode.Han, r):
			han++
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			kana++
		case unicode.Is(unicode.Hangul, r):
			hangul++
		case unicode.Is(unicode.Thai, r):
			thai++
		case unicode.Is(unicode.Hebrew, r):
			hebrew++
		case unicode.Is(unicode.Georgian, r):
			georgian++
		}
	}
	switch half := all/2 + 1; {
	case all < 20:
		return ""
	case han+kana >= half && kana*10 >= han:
		return "ja"
	case han >= half:
		return "zh"
	case hangul >= half:
		return "ko"
	case thai >= half:
		return "th"
	case hebrew >= half:
		return "he"
	case georgian >= half:
		return "ka"
	}
	return ""
}

// languageTag is claim in the usual case when it looks like a tag, else "".
func languageTag(claim string) string {
	const most = 4 << 10 // bytes with the blanks around it
	if len(claim) > most {
		return ""
	}
	parts := strings.Split(strings.ReplaceAll(strings.TrimSpace(claim), "_", "-"), "-")
	if len(claim) > 35 || len(parts[0]) < 2 || len(parts[0]) > 3 {
		return ""
	}
	for i, p := range parts {
		p = strings.ToLower(p)
		if p == "" || len(p) > 8 || strings.Trim(p, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			return ""
		}
		switch {
		case i > 0 && len(p) == 2:
			p = strings.ToUpper(p)
		case i > 0 && len(p) == 4 && p[0] > '9':
			p = strings.ToUpper(p[:1]) + p[1:]
		}
		parts[i] = p
	}
	return strings.Join(parts, "-")
}
