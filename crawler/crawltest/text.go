package crawltest

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// textKey returns a number for r that is unique within its site. Pages that are not articles need
// text too, so their numbers lie outside the range of article numbers.
func textKey(r ref) int {
	if r.area == areaArticle {
		return r.n
	}
	return r.n | int(r.area)<<24
}

func (w *World) topicOf(site, n int) topic {
	return pick(w.draw(drawTopic, site, n), w.vocabOf(site).topics)
}

// write sets the title, text and token of p.
func (w *World) write(p *Page, r ref) {
	v, n := w.vocabOf(r.site), textKey(r)
	t := w.topicOf(r.site, n)
	rng := w.draw(drawText, r.site, n)
	p.Token = token(w.draw(drawToken, r.site, n))
	p.Title = upper(fill(rng, v, t, v.title)) + " (" + strconv.Itoa(r.site+1) + "." + strconv.Itoa(r.n) + ")"
	var b strings.Builder
	for words, sentence := 0, 0; words < w.opts.Words; sentence++ {
		if sentence > 0 {
			if sentence%4 == 0 {
				b.WriteString("\n\n")
			} else {
				b.WriteByte(' ')
			}
		}
		s := upper(fill(rng, v, t, pick(rng, v.sentences)))
		words += strings.Count(s, " ") + 1
		b.WriteString(s)
	}
	b.WriteString("\n\nRef. " + p.Token + ".")
	p.Text = b.String()
}

// fill replaces the $ slots of a template; see vocabulary.
func fill(rng *rand.Rand, v vocabulary, t topic, template string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(template, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		switch after[0] {
		case 'T':
			b.WriteString(t.name)
		case 'P':
			b.WriteString(pick(rng, v.places))
		case 'N':
			b.WriteString(pick(rng, v.people))
		case 'M':
			b.WriteString(pick(rng, v.months))
		case 'Y':
			b.WriteString(strconv.Itoa(1850 + rng.IntN(176)))
		case 'K':
			b.WriteString(strconv.Itoa(3 + rng.IntN(9000)))
		}
		template = after[1:]
	}
}

// token returns a word of letters that exists in no language.
func token(rng *rand.Rand) string {
	b := []byte("zq")
	for x, i := rng.Uint64(), 0; i < 10; i++ {
		b = append(b, 'a'+byte(x%20))
		x /= 20
	}
	return string(b)
}

// upper returns s with an upper-case first letter.
func upper(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}
