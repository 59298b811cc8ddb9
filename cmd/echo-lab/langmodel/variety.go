package langmodel

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/echo-node/echo-node/crawler/judge/lang"
)

const (
	// varietyUnit is how many steps of a quantised weight equal 1.
	varietyUnit = 20.0
	// varietyRate is the learning rate (AdaGrad). It is lower than that of the languages,
	// because there are more epochs.
	varietyRate = 0.3
	// A feature of fewer sources, or with fewer occurrences, represents its topics. It gets no
	// weight.
	varietySources, varietyCount = 3, 4
)

// varieties are the weights, in training, that distinguish Portugal from Brazil.
type varieties struct {
	weights, squares []float32 // of lang.Varieties, and the sums of AdaGrad
	useful           []bool
	shift            uint
}

// trainVarieties learns by logistic regression from the Portuguese of samples, paired, and from
// sentences of the grammar. It is deterministic for a seed on one machine.
func trainVarieties(ctx context.Context, samples []Sample, o Options) (*varieties, error) {
	r := rand.New(rand.NewPCG(o.Seed, 29))
	g := newGrammar()
	var portuguese []Sample
	for _, s := range samples {
		if s.Lang <= lang.PtBR {
			portuguese = append(portuguese, s)
		}
	}
	gs := groups(portuguese, o.Made)
	size := 1 << o.VarietyBits
	v := &varieties{weights: make([]float32, size), squares: make([]float32, size), shift: 64 - uint(o.VarietyBits)}
	v.choose(gs, g, r)
	var buf []uint64
	err := walk(ctx, gs, g, o.VarietyEpochs, r, func(l lang.Lang, text string, slow float64) {
		buf = lang.VarietyFeatures(text, buf[:0])
		v.learn(buf, l == lang.PtPT, o.Drop, varietyRate*slow, r)
	})
	return v, err
}

// choose marks the positions whose features come from enough sources.
func (v *varieties) choose(gs []group, g *grammar, r *rand.Rand) {
	size := len(v.weights)
	last, sources, n := make([]int32, size), make([]int32, size), make([]int32, size)
	var buf []uint64
	count := func(text string, source int32) {
		buf = lang.VarietyFeatures(text, buf[:0])
		for _, h := range buf {
			at := h >> v.shift
			n[at]++
			if last[at] != source {
				last[at] = source
				sources[at]++
			}
		}
	}
	ids := map[string]int32{}
	for _, gr := range gs {
		texts := slices.Clone(gr.texts)
		slices.SortStableFunc(texts, func(a, b Sample) int { return cmp.Compare(a.Source, b.Source) })
		for _, s := range texts {
			if ids[s.Source] == 0 {
				ids[s.Source] = int32(len(ids) + 1)
			}
			count(s.Text, ids[s.Source])
		}
		if len(gr.texts) == 0 {
			for i := range gr.quota { // made sentences count as if they came from many sources
				count(g.sentence(int(gr.lang), r), -1-int32(i))
			}
		}
	}
	v.useful = make([]bool, size)
	for at := range v.useful {
		v.useful[at] = sources[at] >= varietySources && n[at] >= varietyCount
	}
}

// score returns the log-odds of Portugal.
func (v *varieties) score(features []uint64) float64 {
	sum := 0.0
	for _, h := range features {
		sum += float64(v.weights[h>>v.shift])
	}
	return sum / math.Sqrt(float64(max(1, len(features))))
}

// learn takes one step of stochastic gradient descent on the cross-entropy. drop is the share
// of the features that do not learn from this text.
func (v *varieties) learn(features []uint64, portugal bool, drop, rate float64, r *rand.Rand) {
	if len(features) == 0 {
		return
	}
	miss := 1 / (1 + math.Exp(-v.score(features)))
	if portugal {
		miss--
	}
	if math.Abs(miss) < 1e-3 {
		return
	}
	step := miss / math.Sqrt(float64(len(features)))
	for _, h := range features {
		if r.Float64() < drop {
			continue
		}
		at := h >> v.shift
		if !v.useful[at] {
			continue
		}
		v.squares[at] += float32(step * step)
		v.weights[at] -= float32(rate * step / math.Sqrt(float64(v.squares[at])+1e-3))
	}
}

// quantise returns the weights as a judge uses them, uncalibrated, and sets their parameters in
// p.
func (v *varieties) quantise(o Options, p *lang.Params) *lang.Varieties {
	out := lang.NewVarieties(o.VarietyBits)
	for at, w := range v.weights {
		out.Set(at, int8(max(-127, min(127, math.Round(float64(w)*varietyUnit)))))
	}
	p.VarietyBits = o.VarietyBits
	for i := range p.VarietySharp {
		p.VarietySharp[i] = int32(math.Round(4096 * math.Log2E / varietyUnit))
	}
	return out
}
