package lang

// Lang is a language, or what is said when there is none to tell.
type Lang uint8

// The languages. The first Classes of them have scores.
const (
	PtPT  Lang = iota // Portuguese of Portugal
	PtBR              // Portuguese of Brazil
	Es                // Spanish
	Gl                // Galician
	En                // English
	Fr                // French
	It                // Italian
	Other             // any other
	Pt                // Portuguese, either variety
	Und               // too little to tell

	Classes = Pt
)

var names = [...]string{"pt-PT", "pt-BR", "es", "gl", "en", "fr", "it", "other", "pt", "und"}

// String is the BCP 47 tag, and "other".
func (l Lang) String() string {
	if int(l) < len(names) {
		return names[l]
	}
	return "und"
}

// ParseLang is the inverse of String.
func ParseLang(tag string) (Lang, bool) {
	for l, name := range names {
		if name == tag {
			return Lang(l), true
		}
	}
	return Und, false
}

// What a verdict needs.
const (
	// MinConfidence is the least probability a language must have, the two
	// varieties of Portuguese taken as one. Under it the verdict is Und.
	MinConfidence = 0.6
	// MinVariety is the least part of the probability of Portuguese that a variety must
	// have, and MinConfidence its least probability. Under either the verdict is Pt.
	MinVariety = 0.7
	// minFeatures is what one word of four letters has; under it there is no text.
	minFeatures = 8
)

// Scores are probabilities by language, PtPT to Other; their sum is 1.
type Scores [Classes]float64

// Verdict is what one text is in.
type Verdict struct {
	Lang       Lang    // PtPT to Other, Pt or Und
	Confidence float64 // that Lang is right, 0 to 1; of Und, that of the likeliest language
	Scores     Scores
}

// Text judges one text, of which at most MaxText bytes are read. It allocates nothing.
func (j *Judge) Text(text string) Verdict {
	logits, _, ok := j.score(text)
	if !ok {
		v := Verdict{Lang: Und, Confidence: 1.0 / float64(Classes)}
		for c := range v.Scores {
			v.Scores[c] = 1.0 / float64(Classes)
		}
		return v
	}
	p := j.softmax(&logits)
	if odds, ok := j.told(&p, text); ok {
		j.divide(&p, odds)
	}
	return decide(p)
}

// Logits are what the languages' Scores are made of, in 1/256 bit and relative to Other, and
// the Bucket of the text's length; ok is false when there is too little to judge. What Portuguese
// has, the sum of its two, is dealt to its varieties by Odds. For calibration.
func (j *Judge) Logits(text string) (logits [Classes]int32, bucket int, ok bool) {
	logits, n, ok := j.score(text)
	return logits, Bucket(n), ok
}

// score is the logits of a text; ok is false when it has no words to speak of.
func (j *Judge) score(text string) (logits [Classes]int32, features int, ok bool) {
	s := newScanner(text)
	r := take[room](&j.rooms)
	defer j.rooms.Put(r)
	var a sums
	n := 0
	for s.next() {
		whole := s.whole()
		a.add(r.own(&s, j.t, whole))
		r.beside[n], r.beside[n+1] = s.beside(whole)
		if n += 2; n == len(r.beside) {
			a.add(j.t.sum(r.beside[:]))
			n = 0
		}
	}
	a.add(j.t.sum(r.beside[:n]))
	if s.foreign > s.latin {
		logits[Other] = 20 * 256
		return logits, 0, true
	}
	if a.total < minFeatures {
		return logits, 0, false
	}
	return j.logits(&a), int(a.total), true
}

// decide is the verdict that probabilities bear.
func decide(p Scores) Verdict {
	v := Verdict{Lang: Pt, Confidence: p[PtPT] + p[PtBR], Scores: p}
	for l := Es; l < Classes; l++ {
		if p[l] > v.Confidence {
			v.Lang, v.Confidence = l, p[l]
		}
	}
	least := max(MinConfidence, float64(MinVariety*v.Confidence))
	switch {
	case v.Confidence < MinConfidence:
		v.Lang = Und
	case v.Lang == Pt && p[PtPT] >= least:
		v.Lang, v.Confidence = PtPT, p[PtPT]
	case v.Lang == Pt && p[PtBR] >= least:
		v.Lang, v.Confidence = PtBR, p[PtBR]
	}
	return v
}
