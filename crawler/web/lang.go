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
	"github.com/blevesearch/bleve/v2/analysis/lang/ga"
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

	"github.com/echo-node/echo-node/crawler/judge/lang"
)

// Limits for the detection of a page's language.
const (
	langSample = 4 << 10 // bytes that are read of the prose, the links or the whole text
	langShare  = 12      // at least 1/langShare of the words are stop words of the language
	langMargin = 1.15    // the best score must be this many times the second
	langFew    = 4       // a text with fewer words shows no language
	langSure   = 20      // from this many words on, the text beats the page's claim
	langPart   = 4       // unless 1/langPart as many words are of the claimed language
)

// letters are letters that only some languages write. They tell apart languages that share stop
// words (Portuguese and Galician).
var letters = [...]struct {
	letter rune
	langs  string
}{
	{'ã', "pt"}, {'õ', "pt"}, {'ç', "pt fr ca tr"}, {'â', "pt fr ro"}, {'ê', "pt fr"}, {'ñ', "es gl eu"}, {'ß', "de"},
	{'ő', "hu"}, {'ű', "hu"},
	{'ř', "cs"}, {'ě', "cs"}, {'ı', "tr"}, {'ğ', "tr"}, {'ș', "ro"}, {'ț', "ro"}, {'ă', "ro"}, {'å', "sv da no"},
	{'ø', "da no"}, {'æ', "da no"},
	{'ä', "de fi sv"}, {'đ', "hr"}, {'ł', "pl"}, {'ą', "pl"}, {'ę', "pl"}, {'ś', "pl"}, {'ż', "pl"}, {'ź', "pl"},
	{'è', "fr it ca"}, {'ò', "it ca"},
}

// polish is the list of Polish stop words. In bleve it is in a package that also brings a stemmer.
const polish = `ale bez bo być był była było były będzie chce chyba ci co czy czyli dla do dlaczego gdy gdzie go i ich ile im inne innych
iż ja jak jako jakie jaki jego jej jednak jednym jest jestem jeszcze jeśli jeżeli już każdy kiedy kilka kto która które którego której który
których którym którzy lub ma mają może można mnie mogą musi my na nad nam nas nasz nawet nic nich nie niej nim niż nią no od oraz pod poza po
ponieważ przed przez przy raz razie również są się swoje ta tak także tam te tego tej temu ten też to tu tutaj twój tych tylko tym u w we
wiele więc wszystkie wszystko właśnie z za zawsze ze żadna żadne że`

// tongues detects languages by their most common words, which are bleve's stop words. It is quick,
// and every peer gets the same result for the same text. (whatlanggo, tried first, took three
// quarters of the time of an extraction. It also breaks ties by the order of a map, so two peers
// could disagree.)
//
// crawler/judge/lang knows seven languages. For those it decides, and it tells Portuguese of
// Portugal from that of Brazil. On 1,000 bytes of text it identifies all of them, while the stop
// words leave 3 % of Spanish and 1 % of Galician open. On 200 bytes the stop words are wrong for
// 1.6 % and the judge for none. But to the judge, a text of names alone is in some language. So the
// text must also have stop words of that language. For all other languages only the stop words
// decide, because the judge knows them only as Other.
//
// A tongues is immutable after newTongues.
type tongues struct {
	names []string
	words map[string][]vote
	// one bit for each word in words, see place. Most words of a text are in no list, and the
	// lookup in the map is the most expensive step.
	maybe   [1 << 16 / 64]uint64
	longest int                   // bytes of the longest word in words
	letters [maxLetter + 1][]vote // votes of letters above ASCII
	judge   *lang.Judge
}

// maxLetter is the last letter that has votes of its own.
const maxLetter = 0x250

// vote is the weight that one word or letter adds for a language: the fewer languages share it, the
// more.
type vote struct {
	lang   int
	weight float64
}

// newTongues builds the word lists and opens the language judge. It is expensive: call it once.
func newTongues() (*tongues, error) {
	lists := []struct {
		name string
		list []byte
	}{
		{"ar", ar.ArabicStopWords}, {"bg", bg.BulgarianStopWords}, {"ca", ca.CatalanStopWords},
		{"cs", cs.CzechStopWords}, {"da", da.DanishStopWords},
		{"de", de.GermanStopWords}, {"el", el.GreekStopWords}, {"en", en.EnglishStopWords}, {"es", es.SpanishStopWords},
		{"eu", eu.BasqueStopWords},
		{"fa", fa.PersianStopWords}, {"fi", fi.FinnishStopWords}, {"fr", fr.FrenchStopWords}, {"ga", ga.IrishStopWords},
		{"gl", gl.GalicianStopWords}, {"hi", hi.HindiStopWords},
		{"hr", hr.CroatianStopWords}, {"hu", hu.HungarianStopWords}, {"id", id.IndonesianStopWords},
		{"it", it.ItalianStopWords}, {"nl", nl.DutchStopWords},
		{"no", no.NorwegianStopWords}, {"pl", []byte(polish)}, {"pt", pt.PortugueseStopWords},
		{"ro", ro.RomanianStopWords}, {"ru", ru.RussianStopWords},
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
			at := place([]byte(w))
			t.maybe[at/64] |= 1 << (at % 64)
			t.longest = max(t.longest, len(w))
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

// place returns the index of a word's bit in tongues.maybe.
func place(word []byte) (at uint16) {
	h := uint32(len(word))
	for _, b := range word {
		h = h*31 + uint32(b)
	}
	// Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4)
	return uint16(h * 0x9E3779B1 >> 16)
}

// has reports whether word may be in words. false is certain.
func (t *tongues) has(word []byte) bool {
	at := place(word)
	return t.maybe[at/64]>>(at%64)&1 != 0
}

// share divides the weight 1 equally among votes.
func share(votes []vote) {
	for i := range votes {
		votes[i].weight = 1 / float64(len(votes))
	}
}

// unsure is the language of a page when neither its text nor its claim shows one.
const unsure = "und"

// language returns the BCP 47 tag of a text without markup, see tell.
func (t *tongues) language(text, claim string) string {
	return t.tell(languageTag(claim), speech{prose: text})
}

// speech is the part of a page that shows its language.
type speech struct {
	prose string // text of the page without code and links
	links string // the title and the text of links: mostly menus
	rest  string // the whole text, if the page has code: for manual pages that are all code
}

// tell returns the BCP 47 tag of a page. The order is: the language of its prose when that is long
// and clear; then claim, which the page says about itself; then the language of a short text; then
// unsure. Templates often claim "en" for pages in other languages. Code is no evidence, and menus
// are none where there is prose. A claim that agrees with the text keeps its region, unless the
// text shows another variety of Portuguese.
func (t *tongues) tell(claim string, s speech) string {
	if claim == "mul" { // several languages: the text shows which one
		claim = ""
	}
	var e evidence
	found := ""
	for _, sample := range [...]string{s.prose, s.links} {
		e.take(sample)
		is, sure := t.judged(&e)
		if is != "" && (claim == "" || sure && !t.mixed(&e, is, claim)) {
			return agreed(is, claim)
		}
		found = cmp.Or(found, is)
	}
	if claim == "" && s.rest != "" {
		e = evidence{}
		if e.take(s.rest); e.words > e.dropped {
			is, _ := t.judged(&e)
			return cmp.Or(is, unsure)
		}
	}
	if claim != "" {
		found = claim
	}
	return cmp.Or(found, unsure)
}

// agreed returns the claim if it is compatible with one of langs, otherwise the first of langs.
func agreed(langs, claim string) string {
	base, _, _ := strings.Cut(claim, "-")
	first := ""
	for found := range strings.FieldsSeq(langs) {
		first = cmp.Or(first, found)
		switch {
		case base == found, found == "no" && (base == "nb" || base == "nn"), found == "da" &&
			(base == "nb" || base == "no"),
			found == "hr" && (base == "sr" || base == "bs"), found == "cs" && base == "sk":
			return claim
		}
	}
	return first
}

// judged returns the language of a text, or "" when none shows. sure reports whether the text is
// long and clear.
func (t *tongues) judged(e *evidence) (found string, sure bool) {
	text := e.text.String()
	small := t.smallWords(text)
	if langs, written := e.script(); written >= langFew && written >= 2*small.hits[small.best] {
		return langs, true
	}
	if e.words < langFew {
		return "", false
	}
	long := e.words >= langSure
	words := t.clear(small, e.words)
	v := t.judge.Text(text)
	if v.Lang == lang.Other || v.Lang == lang.Und {
		return words, long && words != "" && (v.Lang == lang.Other) != judgeKnows(words)
	}
	judged := v.Lang.String()
	base, _, _ := strings.Cut(judged, "-")
	if at := slices.Index(t.names, base); base != words && small.hits[at]*langShare < e.words {
		return "", false // the judge took names for words
	}
	return judged, long && base == words
}

// mixed reports whether a text that shows one of langs has enough of the claimed language for the
// claim to be right. Manuals are often translated in part.
func (t *tongues) mixed(e *evidence, langs, claim string) bool {
	claim, _, _ = strings.Cut(claim, "-")
	found, _, _ := strings.Cut(langs, "-")
	a, b := slices.Index(t.names, found), slices.Index(t.names, claim)
	if written, n := e.script(); slices.Contains(strings.Fields(written), claim) {
		return n >= langFew && a >= 0 && n*langPart >= t.apart(e, a, -1)
	}
	return a >= 0 && b >= 0 && a != b && t.apart(e, b, a) >= langFew && t.apart(e, b, a)*langPart >= t.apart(e, a, b)
}

// apart returns how many words of e are stop words of language a and not of b.
func (t *tongues) apart(e *evidence, a, b int) (n int) {
	for word := range strings.FieldsFuncSeq(e.text.String(), func(r rune) bool {
		return !unicode.IsLetter(r) &&
			!unicode.IsMark(r)
	}) {
		votes := t.words[strings.ToLower(word)]
		is := func(lang int) bool { return slices.ContainsFunc(votes, func(v vote) bool { return v.lang == lang }) }
		if utf8.RuneCountInString(word) > 1 && is(a) && !is(b) {
			n++
		}
	}
	return n
}

// clear returns the language whose stop words are clearly the most frequent among so many words, or
// "".
func (t *tongues) clear(c counted, words int) string {
	most := max(float64(c.hits[c.best]), c.score[c.best]) // the score includes letters
	if most == 0 || most*langShare < float64(words) || c.score[c.best] < langMargin*c.score[c.second] {
		return ""
	}
	return t.names[c.best]
}

// judgeKnows reports whether crawler/judge/lang tells the language tag from all others. All
// languages that it does not know are lang.Other to it.
func judgeKnows(tag string) bool {
	_, ok := lang.ParseLang(tag)
	return ok
}

// counted is the number of stop words of each language in a text.
type counted struct {
	hits         []int
	score        []float64 // a word of several languages counts in part for each
	best, second int       // indices of the two highest scores
}

// smallWords counts the stop words of text. It leaves out words of one letter: such a stop word of
// Czech is often a variable in a manual.
func (t *tongues) smallWords(text string) counted {
	c := counted{hits: make([]int, len(t.names)), score: make([]float64, len(t.names))}
	var buf [64]byte
	word := buf[:0] // in lower case
	plain := true   // the word is ASCII
	end := func() {
		if len(word) == 0 {
			return
		}
		if len(word) > 1 && len(word) <= t.longest && (plain || len(word) > utf8.UTFMax || utf8.RuneCount(word) > 1) &&
			t.has(word) {
			for _, v := range t.words[string(word)] { // in list order: sums are equal everywhere
				c.score[v.lang] += v.weight
				c.hits[v.lang]++
			}
		}
		for rest := word; len(rest) > 0 && !plain; {
			r, size := utf8.DecodeRune(rest)
			rest = rest[size:]
			if r < utf8.RuneSelf || r > maxLetter {
				continue
			}
			for _, v := range t.letters[r] {
				c.score[v.lang] += v.weight
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
			if r < 0xDF || r > 0xFF { // these are lower case already
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
	c.second = 1
	for i := 1; i < len(c.score); i++ {
		switch {
		case c.score[i] > c.score[c.best]:
			c.best, c.second = i, c.best
		case c.score[i] > c.score[c.second]:
			c.second = i
		}
	}
	return c
}

// languageTag returns claim in the usual letter case if it looks like a language tag, otherwise "".
func languageTag(claim string) string {
	const most = 4 << 10 // bytes with the spaces around it
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
