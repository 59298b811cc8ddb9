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

// The text a language is told from, and how clear it has to be.
const (
	langSample = 4 << 10 // bytes looked at of the prose, of the links, of the whole text
	langShare  = 12      // at least one word in so many is one of the small words of the language
	langMargin = 1.15    // by which the best must lead the second
	langFew    = 4       // words under which a text tells no language
	langSure   = 20      // words from which a text counts more than what the page says of itself
	langPart   = 4       // unless at least one word in so many is of the language that it says
)

// letters that only some of the languages write, which tell apart those that
// share their small words (Portuguese and Galician).
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

// polish is the small words of Polish: bleve has them in a package that brings a stemmer along.
const polish = `ale bez bo być był była było były będzie chce chyba ci co czy czyli dla do dlaczego gdy gdzie go i ich ile im inne innych
iż ja jak jako jakie jaki jego jej jednak jednym jest jestem jeszcze jeśli jeżeli już każdy kiedy kilka kto która które którego której który
których którym którzy lub ma mają może można mnie mogą musi my na nad nam nas nasz nawet nic nich nie niej nim niż nią no od oraz pod poza po
ponieważ przed przez przy raz razie również są się swoje ta tak także tam te tego tej temu ten też to tu tutaj twój tych tylko tym u w we
wiele więc wszystkie wszystko właśnie z za zawsze ze żadna żadne że`

// tongues tells languages by their commonest words, those that bleve leaves out
// of an index. It is quick, and every peer says the same of the same text.
// (whatlanggo, tried first, took three quarters of the time of an extraction
// and breaks ties by the order of a map, so two peers could disagree.)
//
// Of the seven that the judge of short texts knows, it is the judge who decides,
// and tells Portugal from Brazil: on 1,000 bytes of text it names all of them
// where the words leave 3 % of Spanish and 1 % of Galician open, on 200 bytes the
// words are wrong for 1.6 % and the judge for none. But names alone are words of
// some language to it: the text has to have small words of the language too. The
// other languages are the words' alone: to the judge they are one.
// Immutable after newTongues.
type tongues struct {
	names []string
	words map[string][]vote
	// a bit for each of words, see place: most words of a text are in no list, and looking there costs most
	maybe   [1 << 16 / 64]uint64
	longest int                   // of words, in bytes
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

// place is the bit of tongues.maybe of a word.
func place(word []byte) (at uint16) {
	h := uint32(len(word))
	for _, b := range word {
		h = h*31 + uint32(b)
	}
	return uint16(h * 0x9E3779B1 >> 16) // Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4)
}

// has says whether word may be in words: false is certain.
func (t *tongues) has(word []byte) bool {
	at := place(word)
	return t.maybe[at/64]>>(at%64)&1 != 0
}

// share gives each of votes its part of one.
func share(votes []vote) {
	for i := range votes {
		votes[i].weight = 1 / float64(len(votes))
	}
}

// unsure is the language of a page when neither its text nor its template tells.
const unsure = "und"

// language is the BCP 47 tag of a text without markup, see tell.
func (t *tongues) language(text, claim string) string {
	return t.tell(languageTag(claim), speech{prose: text})
}

// speech is what of a page tells its language.
type speech struct {
	prose string // text of the page, without code and without links
	links string // the title and the text of links: menus, mostly
	rest  string // the whole text, of a page that has nothing else: the manual pages that are code throughout
}

// tell is the BCP 47 tag of a page: what its prose shows when that is long and clear, else what
// the page says of itself (claim), else what a short text shows, else unsure. Templates often
// claim "en" for pages that are not. Code is no evidence, and neither are menus where
// there is prose. A claim that agrees with the text keeps its region, unless the text shows
// another variety of Portuguese.
func (t *tongues) tell(claim string, s speech) string {
	if claim == "mul" { // several: which one the text says
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

// agreed is the tag of a page that is in one of langs, the first where the claim is none of them.
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

// judged is the language of a text, "" when it does not show, and whether it is long and clear.
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
		return "", false // names, which the judge takes for words
	}
	return judged, long && base == words
}

// mixed says whether a text that shows one of langs has so much of the language that the page claims
// that the claim is right: manuals are often translated in part.
func (t *tongues) mixed(e *evidence, langs, claim string) bool {
	claim, _, _ = strings.Cut(claim, "-")
	found, _, _ := strings.Cut(langs, "-")
	a, b := slices.Index(t.names, found), slices.Index(t.names, claim)
	if written, n := e.script(); slices.Contains(strings.Fields(written), claim) {
		return n >= langFew && a >= 0 && n*langPart >= t.apart(e, a, -1)
	}
	return a >= 0 && b >= 0 && a != b && t.apart(e, b, a) >= langFew && t.apart(e, b, a)*langPart >= t.apart(e, a, b)
}

// apart is how many words of e are small words of language a and not of b.
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

// clear is the language whose small words stand out among so many words, "" for none.
func (t *tongues) clear(c counted, words int) string {
	most := max(float64(c.hits[c.best]), c.score[c.best]) // which has the letters that few languages have
	if most == 0 || most*langShare < float64(words) || c.score[c.best] < langMargin*c.score[c.second] {
		return ""
	}
	return t.names[c.best]
}

// judgeKnows says whether the judge of short texts tells the language tag from
// all others; of the rest it knows only that they are others.
func judgeKnows(tag string) bool {
	_, ok := lang.ParseLang(tag)
	return ok
}

// counted is how many of the small words of each language a text has.
type counted struct {
	hits         []int
	score        []float64 // a word that several languages have counts in part for each
	best, second int       // by score
}

// smallWords counts the small words of text. Those of one letter are left out: what is one in
// Czech is a variable in a manual.
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
			for _, v := range t.words[string(word)] { // in the order of the lists: sums are the same everywhere
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
