package lang

// Lang is a language, or one of the values for an unclear text.
type Lang uint8

// The languages. Scores has an entry for each of the first Classes of them.
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
	Und               // too little text to decide

	Classes = Pt
)

var names = [...]string{"pt-PT", "pt-BR", "es", "gl", "en", "fr", "it", "other", "pt", "und"}

// String returns the BCP 47 tag, or "other".
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

// The thresholds of a verdict.
const (
	// MinConfidence is the least probability of a language, with both varieties of Portuguese taken
	// as one. Below it the verdict is Und.
	MinConfidence = 0.6
	// MinVariety is the least share of the probability of Portuguese that a variety must have. Its
	// own probability must be at least MinConfidence. Otherwise the verdict is Pt.
	MinVariety = 0.7
	// minFeatures is the number of features of one word of four letters. With fewer there is no
	// text to judge.
	minFeatures = 8
)

// Scores are the probabilities of the languages PtPT to Other. Their sum is 1.
type Scores [Classes]float64

// Verdict is the language of one text.
type Verdict struct {
	Lang       Lang    // PtPT to Other, Pt or Und
	Confidence float64 // probability of Lang, 0 to 1; for Und, that of the most likely language
	Scores     Scores
}

// Text judges one text. It reads at most MaxText bytes and allocates nothing.
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

// Logits returns the values that the languages' Scores are computed from, in 1/256 bit and relative
// to Other, and the Bucket of the text's length. ok is false when there is too little text. Odds
// divides the sum of the two Portuguese values between the varieties. Logits is for calibration.
func (j *Judge) Logits(text string) (logits [Classes]int32, bucket int, ok bool) {
	logits, n, ok := j.score(text)
	return logits, Bucket(n), ok
}

// score returns the logits of a text. ok is false when it has too few words.
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

// decide returns the verdict for probabilities.
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
