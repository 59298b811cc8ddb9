package lang

import "strings"

// The kinds of features that are used only for the varieties of Portuguese.
const (
	kindTriple = 0x77 << 56 // three words
	kindEnd    = 0x88 << 56 // the ending of a word: two, three or four letters
	kindAfter  = 0x99 << 56 // a word and such an ending of the next one
	kindStart  = 0xaa << 56 // the beginning of a word: four or six letters
	kindFrame  = 0xbb << 56 // two to four pieces of a sentence's frame
	kindGap    = 0xcc << 56 // two pieces of the frame with any piece between
	kindPiece  = 0xdd << 56 // a piece that is the ending of a word
	low56      = 1<<56 - 1
	golden64   = 0x9e3779b97f4a7c15
	mixer64    = 0xbf58476d1ce4e5b9
)

// maxPerVariety is the largest number of features of one word here: the word and the pair twice,
// the pair's ending, the triple, n-grams of 4 and 5, accents, six of endings, two of beginnings,
// and four of each of two pieces.
const maxPerVariety = 6 + 2*(maxWord+2) + 3*maxWord + 1 + 6 + 2 + 8

// frameWords are the words of a sentence's frame. In the frame these words are kept, and all other
// words are replaced by their endings. They have no accents. A pronoun joined to its verb by a
// hyphen keeps the hyphen.
const frameWords = `
a o as os um uma uns umas ao aos do da dos das no na nos nas num numa nuns numas dum duma duns dumas pelo pela pelos pelas
de em por para pra pro com sem sob sobre entre desde ate ante apos contra perante conforme segundo durante mediante exceto excepto
e ou mas nem que se como quando onde porque porquanto pois porem contudo todavia entretanto portanto logo embora caso enquanto senao quer ora
eu tu ele ela vos eles elas voce voces vc vcs me te lhe lhes mim ti si comigo contigo consigo conosco connosco convosco
-me -te -se -lhe -lhes -nos -vos -o -a -os -as -lo -la -los -las -no -na -nas -mo -to -lho -ia -iam -ei
meu minha meus minhas teu tua teus tuas seu sua seus suas nosso nossa nossos nossas vosso vossa vossos vossas dele dela deles delas
este esta estes estas esse essa esses essas aquele aquela aqueles aquelas isto isso aquilo deste desta destes destas desse dessa desses dessas daquele daquela disto disso daquilo
neste nesta nestes nestas nesse nessa nesses nessas naquele naquela nisto nisso outro outra outros outras noutro noutra
todo toda todos todas tudo nada algo alguem ninguem algum alguma alguns algumas nenhum nenhuma cada qual quais quem cujo cuja quanto quanta tanto tanta tantos qualquer quaisquer
muito muita muitos muitas pouco pouca poucos mais menos mesmo mesma tao demais demasiado bastante quase
nao sim ja ainda sempre nunca jamais tambem apenas so somente inclusive alias assim entao depois antes agora hoje ontem amanha aqui ca ali la ai acola dentro fora cima baixo bem mal talvez
era eram foi foram fui ser sendo sido sao sou es somos seja sejam fosse fossem for sera serao seria
estao estou estamos estava estavam esteve estar estando estado estiver esteja ta to tou tava
tem tenho tens temos tinha tinham teve ter tendo tido tera teria tenha tiver
ha havia houve haver haja havera hei
vai vou vais vamos vao ia iam ir indo va
fazer faz feito fez pode podem podia poder poderia deve devem devia dever deveria deverao precisa querem queria
dois duas tres primeiro primeira gente coisa vez vezes dia dias`

// frames is the set of hashes of frameWords. It is immutable.
var frames = makeFrames()

func makeFrames() map[uint64]struct{} {
	m := map[uint64]struct{}{}
	for w := range strings.FieldsSeq(frameWords) {
		var s scanner
		s.n = copy(s.word[:], w)
		m[s.whole()] = struct{}{}
	}
	return m
}

// varieties computes the features of one text that distinguish the varieties of Portuguese.
type varieties struct {
	s      scanner
	before uint64    // hash of the word before the last
	pieces [3]uint64 // last pieces of the frame, the latest first; 0 is none
	begun  bool
	buf    [maxPerVariety]uint64
}

// VarietyFeatures appends the hashes of the features that distinguish the varieties of Portuguese
// to dst. They are words and pairs of words (each twice, because they show most), triples,
// beginnings and endings of words. They are also n-grams of 4 and 5 letters, and accented letters.
// The last kind occurs in a text on any topic: two to four neighbouring pieces of a sentence's
// frame, in which only the small words are kept as words. A text without its accents has the same
// features except those of the accented letters.
func VarietyFeatures(text string, dst []uint64) []uint64 {
	v := varieties{s: newScanner(text)}
	for {
		features, more := v.next()
		dst = append(dst, features...)
		if !more {
			return dst
		}
	}
}

// next returns the features of the next word. more is false after the last one.
func (v *varieties) next() (features []uint64, more bool) {
	n, whole, more := v.beside()
	if more {
		n += v.own(v.buf[n:], whole)
	}
	return v.buf[:n], more
}

// beside finds the next word and writes the n features that it has together with the words before
// it. whole is the hash of the word. more is false after the last word.
func (v *varieties) beside() (n int, whole uint64, more bool) {
	if !v.s.next() {
		if v.begun && v.marked() {
			n = v.piece(0, afterMark)
		}
		return n, 0, false
	}
	if !v.begun {
		v.begun = true
		v.pieces[0] = startOfSentence
	} else if v.marked() {
		n = v.piece(n, afterMark)
	}
	whole = v.s.whole()
	n = v.piece(n, v.stands(whole))
	prev := v.s.prev
	ends, k := v.s.endings()
	for _, end := range ends[:k] {
		v.buf[n] = mix(kindAfter | (prev*golden64^end)&low56)
		n++
	}
	v.buf[n] = mix(kindTriple | (v.before*golden64^prev*mixer64^whole)&low56)
	pair, end := v.s.beside(whole)
	v.buf[n+1], v.buf[n+2], v.buf[n+3] = pair, pair, end
	v.before = prev
	return n + 4, whole, true
}

// marked reports whether a mark is before the word.
func (v *varieties) marked() bool { return v.s.prev == startOfSentence || v.s.prev == afterMark }

// stands returns the piece of the frame for the word.
func (v *varieties) stands(whole uint64) uint64 {
	if _, ok := frames[whole]; ok {
		return whole
	}
	end := uint64(0)
	for _, b := range v.s.word[max(0, v.s.n-3):v.s.n] {
		end = end<<8 | uint64(b)
	}
	return kindPiece | end
}

// piece adds the next piece of the frame and writes the features that end with it.
func (v *varieties) piece(n int, p uint64) int {
	h := p
	for i, q := range v.pieces {
		if q == 0 {
			break
		}
		if i == 1 {
			v.buf[n] = mix(kindGap | (q*mixer64^p)&low56)
			n++
		}
		h = h*golden64 ^ q ^ uint64(i)
		v.buf[n] = mix(kindFrame | (h^h>>32)&low56)
		n++
	}
	v.pieces = [3]uint64{p, v.pieces[0], v.pieces[1]}
	return n
}

// endings returns the last two, three and four letters of the word, backwards. n is 0 for a short
// word.
func (s *scanner) endings() (ends [3]uint64, n int) {
	w := s.word[:s.n]
	if len(w) < leastEnds {
		return ends, 0
	}
	end := uint64(w[len(w)-1])
	for i := range ends {
		end = end<<8 | uint64(w[len(w)-2-i])
		ends[i] = end
	}
	return ends, len(ends)
}

// leastEnds is the least number of letters of a word whose endings and beginnings are features.
const leastEnds = 5

// own writes the features of the word itself, which beside found.
func (v *varieties) own(out []uint64, whole uint64) int {
	word := mix(kindWord | whole)
	out[0], out[1] = word, word
	n := 2
	ends, k := v.s.endings()
	for _, end := range ends[:k] {
		out[n] = mix(kindEnd | end)
		n++
	}
	if w := v.s.word[:v.s.n]; len(w) >= leastEnds {
		start := uint64(0)
		for i, b := range w[:min(6, len(w))] {
			start = start<<8 | uint64(b)
			if i == 3 || i == 5 && len(w) > 6 {
				out[n] = mix(kindStart | start)
				n++
			}
		}
	}
	return n + v.s.shape(out[n:], 4)
}

// Varieties are the weights of VarietyFeatures, positive for Portugal and negative for Brazil. The
// index is the first bits of a feature's hash. Two features with the same index share its weight.
type Varieties struct {
	weights []int8
	shift   uint
}

// NewVarieties returns a Varieties with 1<<bits weights of 0.
func NewVarieties(bits uint32) *Varieties {
	return &Varieties{make([]int8, 1<<bits), 64 - uint(bits)}
}

// Set sets the weight at index at, of 1<<bits.
func (v *Varieties) Set(at int, weight int8) { v.weights[at] = weight }

func (v *Varieties) sum(hashes []uint64) (sum int64) {
	for _, h := range hashes {
		sum += int64(v.weights[h>>v.shift])
	}
	return sum
}

// varietySum is the sum over the features of one word by itself.
type varietySum struct{ sum, total int32 }

// leastPortuguese is the probability of Portuguese below which its varieties are not distinguished,
// because nothing depends on it.
const leastPortuguese = 1.0 / 64

// Odds returns the log-odds of Portugal against Brazil, in 1/256 bit, of a text that is Portuguese,
// and the Bucket of the number of its features. It is for calibration.
func (j *Judge) Odds(text string) (odds int32, bucket int) {
	odds, n := j.odds(text)
	return odds, Bucket(n)
}

// odds is Odds with the number of features. It caches the sums of words.
func (j *Judge) odds(text string) (odds int32, features int) {
	f := varieties{s: newScanner(text)}
	m := take[memory[varietySum]](&j.memories)
	defer j.memories.Put(m)
	sum, total := int64(0), int64(0)
	for {
		n, whole, more := f.beside()
		sum += j.v.sum(f.buf[:n])
		total += int64(n)
		if !more {
			break
		}
		var word varietySum
		if own, known := m.of(&f.s, whole); known {
			word = *own
		} else {
			n = f.own(f.buf[:], whole)
			if word = (varietySum{int32(j.v.sum(f.buf[:n])), int32(n)}); own != nil {
				*own = word
			}
		}
		sum += int64(word.sum)
		total += int64(word.total)
	}
	return j.oddsOf(sum, total), int(total)
}

// oddsOf returns the log-odds for total features whose weights have the given sum.
func (j *Judge) oddsOf(sum, total int64) int32 {
	if total == 0 {
		return 0
	}
	score := sum * 65536 / rootOf(total)
	sharp := int64(j.p.VarietySharp[Bucket(int(total))])
	return int32(max(-1<<20, min(1<<20, score*sharp/4096)))
}

// told returns the odds of a text with the probabilities p. ok is false when the text is hardly
// Portuguese.
func (j *Judge) told(p *Scores, text string) (odds int32, ok bool) {
	if p[PtPT]+p[PtBR] < leastPortuguese {
		return 0, false
	}
	odds, _ = j.odds(text)
	return odds, true
}

// divide divides the probability of Portuguese between the varieties.
func (j *Judge) divide(p *Scores, odds int32) {
	portugal := j.portugal(odds)
	whole := p[PtPT] + p[PtBR]
	p[PtPT], p[PtBR] = float64(whole*portugal), float64(whole*(1-portugal))
}

// portugal returns the probability of Portugal for log-odds.
func (j *Judge) portugal(odds int32) float64 {
	var two [Classes]int32
	for c := range two {
		two[c] = -1 << 24
	}
	two[PtPT], two[PtBR] = odds, 0
	return j.softmax(&two)[PtPT]
}
