package lang

import "math"

// Limits and thresholds of a person.
const (
	// MaxTexts is how many texts of one person are judged; later ones are ignored.
	MaxTexts = 2000
	// SecondShare is the part of somebody's texts, English set aside, that says
	// more of where they belong than the English does: English is the usual
	// second language.
	SecondShare = 0.2
	// MinPersonVariety is the least probability of a variety of Portuguese;
	// under it the verdict is Pt.
	MinPersonVariety = 0.7
	// MinShare is the least share that is told.
	MinShare = 0.01
	// maxEvidence caps what one text says for or against a variety, in 1/256
	// bit: one quoted sentence must not outvote ten of their own.
	maxEvidence = 8 * 256
	// minEvidence is what a text says of the variety before it counts, in 1/256 bit, and what is
	// taken off: many texts that each say next to nothing would tell of their register.
	minEvidence = 160
	rounds      = 12 // of the estimate of shares
)

// Person gathers the texts of one person. The zero value is not usable: see
// Judge.Person. Not safe for concurrent use.
type Person struct {
	j      *Judge
	logits [][Classes]int32
	odds   []int32 // by text, of Portugal against Brazil
	texts  int
}

// Share is how much of somebody's texts is in a language.
type Share struct {
	Lang  Lang
	Share float64
}

// PersonVerdict is what a person writes in.
type PersonVerdict struct {
	// Lang is the main language, English only when hardly anything else is
	// written: see SecondShare.
	Lang       Lang
	Confidence float64
	// Shares are of the texts that could be judged; the largest first, those
	// of at least MinShare; empty when Lang is Und.
	Shares []Share
	Texts  int // added
	Judged int // that had enough words to count
}

// Person begins a person without texts.
func (j *Judge) Person() *Person { return &Person{j: j} }

// Add counts one more text.
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
	odds, _ := p.j.told(&s, text) // 0 when it is hardly Portuguese
	p.logits, p.odds = append(p.logits, l), append(p.odds, odds)
}

// tongues is how many languages there are when Portuguese is one.
const tongues = int(Classes) - 1

// tongue is the language of an index among tongues.
func tongue(i int) Lang {
	if i == 0 {
		return Pt
	}
	return Lang(i + 1)
}

// Verdict judges what was added. How much is written in each language is
// estimated by expectation maximisation: a text that could be Galician or Portuguese counts for
// that which the person writes otherwise. The variety of Portuguese is decided
// once for a person, by the evidence of all their Portuguese.
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
	doubt := 1.0 // that none of the texts is in the main language
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
	for i := range v.Shares { // few: insertion keeps equal ones in the order of the languages
		for k := i; k > 0 && v.Shares[k].Share > v.Shares[k-1].Share; k-- {
			v.Shares[k], v.Shares[k-1] = v.Shares[k-1], v.Shares[k]
		}
	}
	return v
}

func tongueOf(l Lang) int {
	if l == PtPT || l == PtBR {
		return 0
	}
	return int(l) - 1
}

// shares estimates the share of each language, and of each text the probability
// of each. Products are rounded one by one (float64(...)), so that no machine
// fuses them with a sum and comes to other digits.
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
					resp[t][i] = like[t][i] // shares of nothing left: believe the text
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

// Evidence is what decides the variety: the summed log-odds of Portugal against
// Brazil of the Portuguese texts, and the weight of these, both over the root of that
// weight, in 1/256 bit. It is for fitting Params.Slope and Offset.
func (p *Person) Evidence() (sum, weight float64) {
	_, resp := p.shares()
	return p.evidence(resp)
}

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

// variety is the variety of the person's Portuguese.
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
