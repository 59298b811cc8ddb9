package lang

import "math"

// Limits and thresholds of a person.
const (
	// MaxTexts is the number of texts of one person that are judged. Later ones are ignored.
	MaxTexts = 2000
	// SecondShare is the share of a person's texts in other languages from which these count more
	// than English for the main language. English is the usual second language.
	SecondShare = 0.2
	// MinPersonVariety is the least probability of a variety of Portuguese. Below it the verdict is
	// Pt.
	MinPersonVariety = 0.7
	// MinShare is the least share that is reported.
	MinShare = 0.01
	// maxEvidence is the limit of one text's evidence for or against a variety, in 1/256 bit. One
	// quoted sentence must not outvote ten of the person's own.
	maxEvidence = 8 * 256
	// minEvidence is the evidence for a variety, in 1/256 bit, that is subtracted from each text. A
	// text with less does not count. Otherwise many texts with almost no evidence would show their
	// register.
	minEvidence = 160
	rounds      = 12 // iterations of the estimate of shares
)

// Person collects the texts of one person. The zero value is not usable: see Judge.Person. It is
// not safe for concurrent use.
type Person struct {
	j      *Judge
	logits [][Classes]int32
	odds   []int32 // by text: log-odds of Portugal against Brazil
	texts  int
}

// Share is the share of a person's texts in a language.
type Share struct {
	Lang  Lang
	Share float64
}

// PersonVerdict is the languages that a person writes.
type PersonVerdict struct {
	// Lang is the main language. It is English only when the person writes hardly anything else:
	// see SecondShare.
	Lang       Lang
	Confidence float64
	// Shares are shares of the texts that could be judged, the largest first. Only those of at
	// least MinShare are listed. Shares is empty when Lang is Und.
	Shares []Share
	Texts  int // number of texts added
	Judged int // number of texts with enough words to count
}

// Person returns a Person without texts.
func (j *Judge) Person() *Person { return &Person{j: j} }

// Add adds one text.
func (p *Person) Add(text string) {
	p.texts++
	if len(p.logits) == MaxTexts {
		return
	}
	l, _, ok := p.j.score(text)
	if !ok {
		return
	}
	s := p.j.softmax(&l)
	odds, _ := p.j.told(&s, text) // 0 when the text is hardly Portuguese
	p.logits, p.odds = append(p.logits, l), append(p.odds, odds)
}

// tongues is the number of languages when Portuguese is one.
const tongues = int(Classes) - 1

// tongue returns the language of an index among tongues.
func tongue(i int) Lang {
	if i == 0 {
		return Pt
	}
	return Lang(i + 1)
}

// Verdict judges the texts added so far. It estimates the share of each language by expectation
// maximisation. So a text that could be Galician or Portuguese counts for the one that the person
// writes otherwise. The variety of Portuguese is decided once for a person, by the evidence of all
// their Portuguese texts.
func (p *Person) Verdict() PersonVerdict {
	v := PersonVerdict{Lang: Und, Texts: p.texts, Judged: len(p.logits)}
	if len(p.logits) == 0 {
		return v
	}
	share, resp := p.shares()
	main, other := tongueOf(En), 0.0
	for i, s := range share {
		if i != main {
			other += s
		}
	}
	if other >= SecondShare {
		main = 0
		for i := range share {
			if i != tongueOf(En) && share[i] > share[main] {
				main = i
			}
		}
	}
	doubt := 1.0 // probability that none of the texts is in the main language
	for _, r := range resp {
		doubt = float64(doubt * (1 - r[main]))
	}
	v.Lang, v.Confidence = tongue(main), 1-doubt
	if v.Confidence < MinConfidence {
		v.Lang = Und
		return v
	}
	variety, certain := p.variety(resp)
	if v.Lang == Pt {
		v.Lang, v.Confidence = variety, float64(v.Confidence*certain)
	}
	for i, s := range share {
		l := tongue(i)
		if l == Pt {
			l = variety
		}
		if s >= MinShare {
			v.Shares = append(v.Shares, Share{l, s})
		}
	}
	for i := range v.Shares { // insertion sort: few shares, and equal ones stay in language order
		for k := i; k > 0 && v.Shares[k].Share > v.Shares[k-1].Share; k-- {
			v.Shares[k], v.Shares[k-1] = v.Shares[k-1], v.Shares[k]
		}
	}
	return v
}

// tongueOf returns the index of a language among tongues.
func tongueOf(l Lang) int {
	if l == PtPT || l == PtBR {
		return 0
	}
	return int(l) - 1
}

// shares estimates the share of each language, and the probability of each language for each text.
// Products are rounded one by one (float64(...)). So no machine fuses them with a sum and gets
// other digits.
func (p *Person) shares() (share [tongues]float64, resp [][tongues]float64) {
	like := make([][tongues]float64, len(p.logits))
	for t := range p.logits {
		s := p.j.softmax(&p.logits[t])
		like[t][0] = s[PtPT] + s[PtBR]
		for i := 1; i < tongues; i++ {
			like[t][i] = s[i+1]
		}
	}
	for i := range share {
		share[i] = 1 / float64(tongues)
	}
	resp = make([][tongues]float64, len(like))
	for range rounds {
		var next [tongues]float64
		for t := range like {
			sum := 0.0
			for i := range share {
				resp[t][i] = float64(share[i] * like[t][i])
				sum += resp[t][i]
			}
			for i := range share {
				if sum > 0 {
					resp[t][i] /= sum
				} else {
					resp[t][i] = like[t][i] // no share is left: use the text alone
				}
				next[i] += resp[t][i]
			}
		}
		for i := range share {
			share[i] = next[i] / float64(len(like))
		}
	}
	return share, resp
}

// Evidence returns the numbers that decide the variety. sum is the sum of the log-odds of Portugal
// against Brazil of the Portuguese texts, in 1/256 bit, and weight is the weight of these texts.
// Both are divided by the square root of that weight. Evidence is for fitting Params.Slope and
// Offset.
func (p *Person) Evidence() (sum, weight float64) {
	_, resp := p.shares()
	return p.evidence(resp)
}

// evidence is Evidence for the known probabilities resp of the languages of each text.
func (p *Person) evidence(resp [][tongues]float64) (sum, weight float64) {
	for t, odds := range p.odds {
		d := max(-maxEvidence, min(maxEvidence, odds))
		d -= max(-minEvidence, min(minEvidence, d))
		sum += float64(float64(d) * resp[t][0])
		weight += resp[t][0]
	}
	if weight < 1e-9 {
		return 0, 0
	}
	root := math.Sqrt(weight)
	return sum / root, root
}

// variety returns the variety of the person's Portuguese and its probability.
func (p *Person) variety(resp [][tongues]float64) (Lang, float64) {
	sum, weight := p.evidence(resp)
	sum += float64(weight * float64(p.j.p.Offset))
	odds := int64(sum) * int64(p.j.p.Slope) / 4096
	portugal := p.j.portugal(int32(max(-1<<20, min(1<<20, odds))))
	switch {
	case portugal >= MinPersonVariety:
		return PtPT, portugal
	case 1-portugal >= MinPersonVariety:
		return PtBR, 1 - portugal
	}
	return Pt, 1
}
