package langmodel

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/echo-node/echo-node/cmd/echo-lab/twitterecho"
	"github.com/echo-node/echo-node/crawler/judge/lang"
)

// judged is a text with the result of an uncalibrated judge that never saw its source.
type judged struct {
	Sample
	logits [lang.Classes]int32
	bucket int
	odds   int32 // of Portuguese, and the bucket of these odds
	among  int
	weight float64 // so that registers count alike
}

// maxCalibrate is about how many texts of a fold are used to fit the temperatures.
const maxCalibrate = 15000

// judgeRaw judges an even selection of the samples, with and without accents.
func judgeRaw(j *lang.Judge, samples []Sample) []judged {
	type key struct {
		l lang.Lang
		r string
	}
	n := map[key]float64{}
	for _, s := range samples {
		n[key{s.Lang, s.Register}]++
	}
	var out []judged
	every := max(1, len(samples)/maxCalibrate)
	for i := 0; i < len(samples); i += every {
		s := samples[i]
		if s.Lang >= lang.Classes {
			continue
		}
		text := s.Text
		if len(out)%3 == 0 {
			text = stripAccents(text)
		}
		if l, b, ok := j.Logits(text); ok {
			odds, among := j.Odds(text)
			out = append(out, judged{s, l, b, odds, among, 1 / (50 + n[key{s.Lang, s.Register}])})
		}
	}
	return out
}

// sharpness fits a temperature for each length of text, by the smallest cross-entropy. It does
// so for the languages and for the varieties of Portuguese. Lengths with few texts get the
// temperature of all texts.
func sharpness(all []judged) (languages, varieties [lang.Buckets]int32) {
	language := func(x *judged, t float64) float64 {
		var z [classes]float64
		for c := range z {
			z[c] = float64(x.logits[c]) / 256 * math.Ln2 / t
		}
		p := softmax(z)
		if x.Lang <= lang.PtBR {
			return p[lang.PtPT] + p[lang.PtBR]
		}
		return p[x.Lang]
	}
	variety := func(x *judged, t float64) float64 {
		z := float64(x.odds) / 256 * math.Ln2 / t
		if x.Lang == lang.PtBR {
			z = -z
		}
		return 1 / (1 + math.Exp(-z))
	}
	var portuguese []judged
	for _, x := range all {
		if x.Lang <= lang.PtBR {
			portuguese = append(portuguese, x)
		}
	}
	for b := range languages {
		languages[b] = int32(math.Round(plainSharp / temperature(all, language,
			func(x *judged) bool { return x.bucket == b })))
		varieties[b] = int32(math.Round(4096 * math.Log2E / varietyUnit / temperature(portuguese, variety,
			func(x *judged) bool { return x.among == b })))
	}
	return languages, varieties
}

// temperature returns the temperature with the smallest cross-entropy of the right answer. It
// uses the texts of one length, or all texts when these are few.
func temperature(texts []judged, right func(x *judged, t float64) float64, of func(x *judged) bool) float64 {
	var own []judged
	for i := range texts {
		if of(&texts[i]) {
			own = append(own, texts[i])
		}
	}
	if len(own) < 1000 {
		own = texts
	}
	best, bestLoss := 1.0, math.Inf(1)
	for t := 0.4; t < 6; t *= 1.06 {
		loss := 0.0
		for i := range own {
			loss -= own[i].weight * math.Log(right(&own[i], t)+1e-12)
		}
		if loss < bestLoss {
			best, bestLoss = t, loss
		}
	}
	return best
}

// person has texts of one language and register. Some persons also have English texts.
type person struct {
	lang     lang.Lang
	register string
	texts    []string
}

// setting says how persons are made.
type setting struct {
	Name     string
	min, max int
	english  bool // half of them write 30 % English
	strip    bool
	each     int // persons of each variety of Portuguese and register
}

// settings returns the settings of the report; each is the number of persons of each variety of
// Portuguese and register.
func settings(each int) []setting {
	return []setting{
		{"30-100 texts", 30, 100, true, false, each},
		{"10 texts, no accents", 10, 10, false, true, each},
		{"10 texts", 10, 10, false, false, each},
	}
}

// maxShort is the largest length of a person's text, in characters.
const maxShort = 140

// persons makes people from samples. Each person's texts are from one source if a source has
// enough texts, otherwise from all sources of a register.
func persons(samples []Sample, st setting, seed uint64) []person {
	r := rand.New(rand.NewPCG(seed, 99))
	type pool struct {
		l      lang.Lang
		r      string
		source string
	}
	pools := map[pool][]string{}
	var english []string
	for _, s := range samples {
		if s.Lang >= lang.Classes || utf8.RuneCountInString(s.Text) > maxShort || len(strings.Fields(s.Text)) < 3 {
			continue
		}
		text := s.Text
		if st.strip {
			text = stripAccents(text)
		}
		register := s.Register
		if s.Lang == lang.Other {
			register, _, _ = strings.Cut(register, "-")
		}
		source := s.Source
		if s.Lang == lang.Other {
			source = s.Register + s.Source
		}
		pools[pool{s.Lang, register, ""}] = append(pools[pool{s.Lang, register, ""}], text)
		pools[pool{s.Lang, register, source}] = append(pools[pool{s.Lang, register, source}], text)
		if s.Lang == lang.En {
			english = append(english, text)
		}
	}
	var kinds []pool
	for p := range pools {
		kinds = append(kinds, p)
	}
	slices.SortFunc(kinds, func(a, b pool) int {
		return strings.Compare(a.l.String()+" "+a.r+" "+a.source, b.l.String()+" "+b.r+" "+b.source)
	})
	var out []person
	for at, k := range kinds {
		if k.source != "" {
			continue
		}
		var own []pool // those of one source that are enough
		for _, o := range kinds[at+1:] {
			if o.l == k.l && o.r == k.r && len(pools[o]) >= st.max {
				own = append(own, o)
			}
		}
		each := st.each
		if k.l > lang.PtBR {
			each /= 5
		}
		for range each {
			n := st.min + r.IntN(st.max-st.min+1)
			from := pools[k]
			if len(own) > 0 {
				from = pools[own[r.IntN(len(own))]]
			}
			if len(from) < n {
				if n = st.min; len(from) < n {
					break
				}
			}
			p := person{lang: k.l, register: k.r}
			for _, i := range r.Perm(len(from))[:n] {
				text := from[i]
				if st.english && len(out)%2 == 0 && len(english) > 0 && r.IntN(10) < 3 {
					text = english[r.IntN(len(english))]
				}
				p.texts = append(p.texts, text)
			}
			out = append(out, p)
		}
	}
	return out
}

// evidence is the result of a judge for a person's Portuguese.
type evidence struct {
	sum, weight float64
	portugal    bool
	register    string
}

func measure(j *lang.Judge, people []person) []evidence {
	var out []evidence
	for _, p := range people {
		if p.lang > lang.PtBR {
			continue
		}
		of := j.Person()
		for _, t := range p.texts {
			of.Add(t)
		}
		sum, weight := of.Evidence()
		out = append(out, evidence{sum, weight, p.lang == lang.PtPT, p.register})
	}
	return out
}

// platt fits slope and offset of a person's log-odds (after Platt 1999), by Newton's method
// with a small ridge. Registers count alike.
func platt(all []evidence) (slope, offset int32) {
	n := map[string]float64{}
	for _, e := range all {
		n[e.register]++
	}
	weights := make([]float64, len(all))
	for i, e := range all {
		weights[i] = 1 / n[e.register]
	}
	const ridge = 1e-3
	a, b := 0.0, 0.0 // of sum/1000 and weight/10
	for range 30 {
		ga, gb, haa, hab, hbb := ridge*a, ridge*b, ridge, 0.0, ridge
		for i, e := range all {
			x, y, w := e.sum/1000, e.weight/10, weights[i]
			p := 1 / (1 + math.Exp(-(a*x + b*y)))
			miss := p
			if e.portugal {
				miss--
			}
			ga += w * miss * x
			gb += w * miss * y
			v := w * p * (1 - p)
			haa += v * x * x
			hab += v * x * y
			hbb += v * y * y
		}
		det := haa*hbb - hab*hab
		a -= (hbb*ga - hab*gb) / det
		b -= (haa*gb - hab*ga) / det
	}
	if !(a > 0) { // no evidence at all: no value can be trusted
		return 0, 0
	}
	perUnit := a / 1000 * 256 / math.Ln2 // natural log-odds to 1/256 bit
	return int32(math.Round(perUnit * 4096)), int32(math.Round(b / 10 / (a / 1000)))
}

// paper fits what the method of package twitterecho needs: the profile of letters of samples
// from Portugal, and the two thresholds with the best balanced accuracy on people.
func paper(samples []Sample, people []person) twitterecho.Params {
	var counts [26]int
	for _, s := range samples {
		if s.Lang != lang.PtPT {
			continue
		}
		for _, c := range strings.ToLower(stripAccents(s.Text)) {
			if c >= 'a' && c <= 'z' {
				counts[c-'a']++
			}
		}
	}
	p := twitterecho.Params{Profile: twitterecho.Rank(counts)}
	var n [3]float64
	var e [3][]twitterecho.Evidence // Portugal, Brazil, others
	for _, who := range people {
		kind := min(int(who.lang), 2)
		n[kind]++
		e[kind] = append(e[kind], twitterecho.Measure(p.Profile, who.texts...))
	}
	best := -1.0
	for far := int32(20); far < 200; far += 4 {
		for brazil := int32(1); brazil < 100; brazil += 2 {
			var hit [3]float64
			for kind := range e {
				for _, x := range e[kind] {
					said := 0
					switch {
					case x.Distance >= far:
						said = 2
					case x.Brazil >= brazil:
						said = 1
					}
					if said == kind {
						hit[kind]++
					}
				}
			}
			if score := hit[0]/max(1, n[0]) + hit[1]/max(1, n[1]) + hit[2]/max(1, n[2]); score > best {
				best, p.Far, p.Brazil = score, far, brazil
			}
		}
	}
	return p
}
