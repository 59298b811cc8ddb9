package langmodel

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/echo-node/echo-node/crawler/judge/lang"
)

// Options are the options of a training.
type Options struct {
	Seed   uint64
	Bits   uint32  // the table has 1<<Bits slots of 8 bytes; at most 19
	Epochs int     // over the drawn texts
	Rate   float64 // learning rate (AdaGrad)
	Drop   float64 // part of a text's features that is left out each time
	People int     // made for each variety of Portuguese and register, to calibrate and test
	Made   int     // sentences made per epoch for each variety of Portuguese

	// the varieties of Portuguese have 1<<VarietyBits weights of a byte; at most 22
	VarietyBits   uint32
	VarietyEpochs int  // over what is drawn for them
	Written       bool // also learn the varieties from the written pairs
}

// Default returns the options with which the shipped weights are trained.
func Default() Options {
	return Options{Seed: 1, Bits: 18, Epochs: 4, Rate: 0.5, Drop: 0.3, Made: 16000, People: 200, VarietyBits: 21,
		VarietyEpochs: 8, Written: true}
}

const (
	classes = int(lang.Classes)
	free    = classes - 1
	// unit is how many steps of a quantised weight equal 1.
	unit = 24.0
	// plainSharp is Params.Sharp for a temperature of 1.
	plainSharp = 4096 * math.Log2E / unit
)

// quota returns how many texts of a language and register one epoch draws at most, and how
// often it draws each.
func quota(l lang.Lang, have int) int {
	most := map[lang.Lang]int{lang.PtPT: 15000, lang.PtBR: 15000, lang.Pt: 8000, lang.Other: 1000}[l]
	if most == 0 {
		most = 7000
	}
	return min(most, 3*have)
}

// group has the texts of a language and register.
type group struct {
	lang  lang.Lang
	texts []Sample
	quota int
}

// paired keeps of the Portuguese samples what both varieties have of a source and register,
// with equal numbers. What only one variety has would represent its topics. With Brazilian
// proverbs and none from Portugal, "man" and "woman" would count as Brazilian.
func paired(samples []Sample) []Sample {
	type key struct {
		source, register string
		l                lang.Lang
	}
	have, taken := map[key]int{}, map[key]int{}
	for _, s := range samples {
		have[key{s.Source, s.Register, s.Lang}]++
	}
	var out []Sample
	for _, s := range samples {
		if s.Lang <= lang.PtBR {
			k := key{s.Source, s.Register, s.Lang}
			if taken[k]++; taken[k] > have[key{s.Source, s.Register, lang.PtBR - s.Lang}] {
				continue
			}
		}
		out = append(out, s)
	}
	return out
}

// groups sorts samples into the groups from which an epoch draws. Both varieties of Portuguese
// have the same quota of a register, plus made sentences.
func groups(samples []Sample, made int) []group {
	type key struct {
		l lang.Lang
		r string
	}
	by := map[key][]Sample{}
	for _, s := range paired(samples) {
		by[key{s.Lang, s.Register}] = append(by[key{s.Lang, s.Register}], s)
	}
	var all []group
	for k, texts := range by {
		q := quota(k.l, len(texts))
		if k.l <= lang.PtBR {
			twin := by[key{lang.PtBR - k.l, k.r}]
			if len(twin) == 0 {
				continue
			}
			q = min(q, quota(k.l, len(twin)))
		}
		all = append(all, group{k.l, texts, q})
	}
	slices.SortFunc(all, func(a, b group) int {
		return cmp.Or(int(a.lang)-int(b.lang), cmp.Compare(a.texts[0].Register, b.texts[0].Register))
	})
	for v := range lang.Es { // sentences are made when they are drawn
		all = append(all, group{lang: v, quota: made})
	}
	return all
}

// model has the weights in training.
type model struct {
	hashes  []uint64
	dict    *dictionary
	w       [][8]float32 // by feature: seven weights and the AdaGrad sum
	unknown [8]float64
	bias    [8]float64
}

// train learns weights from samples. It is deterministic for a seed on one machine.
func train(ctx context.Context, samples []Sample, o Options) (*model, error) {
	r := rand.New(rand.NewPCG(o.Seed, 17))
	g := newGrammar()
	gs := groups(samples, o.Made)
	m := &model{}
	m.choose(gs, g, o, r)
	m.w = make([][8]float32, len(m.hashes))
	var buf []uint64
	err := walk(ctx, gs, g, o.Epochs, r, func(l lang.Lang, text string, slow float64) {
		buf, _, _ = lang.Features(text, buf[:0])
		m.learn(buf, l, o, o.Rate*slow, r)
	})
	return m, err
}

// walk draws the texts of the groups, each group's quota per epoch, in a new order each time.
// step learns from each text; slow falls from 1 to a tenth.
func walk(ctx context.Context, gs []group, g *grammar, epochs int, r *rand.Rand,
	step func(l lang.Lang, text string, slow float64)) error {
	var order []int32
	for i, gr := range gs {
		for range gr.quota {
			order = append(order, int32(i))
		}
	}
	for epoch := range epochs {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.Shuffle(len(order), func(a, b int) { order[a], order[b] = order[b], order[a] })
		for at, i := range order {
			progress := (float64(epoch) + float64(at)/float64(len(order))) / float64(epochs)
			l, text := gs[i].draw(g, r)
			step(l, text, 1-0.9*progress)
		}
	}
	return nil
}

// draw returns a text of the group as training sees it.
func (gr *group) draw(g *grammar, r *rand.Rand) (lang.Lang, string) {
	if len(gr.texts) == 0 {
		text := g.sentence(int(gr.lang), r)
		if r.IntN(10) < 4 {
			text = stripAccents(text)
		}
		return gr.lang, text
	}
	s := gr.texts[r.IntN(len(gr.texts))]
	return s.Lang, g.vary(s, r)
}

// choose counts the features and selects the dictionary.
func (m *model) choose(gs []group, g *grammar, o Options, r *rand.Rand) {
	texts := 0
	for _, gr := range gs {
		texts += len(gr.texts) + gr.quota
	}
	c := newCounter(uint(min(23, max(12, bits.Len(uint(64*texts))))))
	var buf []uint64
	ids := map[string]int32{}
	for _, gr := range gs {
		texts := slices.Clone(gr.texts)
		slices.SortStableFunc(texts, func(a, b Sample) int { return cmp.Compare(a.Source, b.Source) })
		every := max(1, len(texts)/20000)
		for i := 0; i < len(texts); i += every {
			s := texts[i]
			if _, ok := ids[s.Source]; !ok {
				ids[s.Source] = int32(len(ids))
			}
			buf, _, _ = lang.Features(s.Text, buf[:0])
			if s.Lang == lang.Pt {
				c.add(buf, lang.Lang(i/every%2), ids[s.Source], 1)
				continue
			}
			c.add(buf, s.Lang, ids[s.Source], 1)
		}
		if len(gr.texts) == 0 {
			for i := range gr.quota { // made sentences count as if they came from many sources
				buf, _, _ = lang.Features(g.sentence(int(gr.lang), r), buf[:0])
				c.add(buf, gr.lang, -2-int32(i), 1)
			}
		}
	}
	m.hashes = c.best(int(0.95*float64(int(1)<<o.Bits)), 4)
	m.dict = newDictionary(m.hashes)
}

// learn takes one step of stochastic gradient descent on the cross-entropy.
func (m *model) learn(features []uint64, l lang.Lang, o Options, rate float64, r *rand.Rand) {
	ids := make([]int32, 0, 512)
	unknown := 0.0
	for _, h := range features {
		if r.Float64() < o.Drop {
			continue
		}
		if id := m.dict.find(h); id >= 0 {
			ids = append(ids, id)
		} else {
			unknown++
		}
	}
	n := float64(len(ids)) + unknown
	if n < 4 {
		return
	}
	x := 1 / math.Sqrt(n)
	var z [classes]float64
	for _, id := range ids {
		w := &m.w[id]
		for c := range free {
			z[c] += float64(w[c])
		}
	}
	for c := range free {
		z[c] = (z[c]+m.unknown[c]*unknown)*x + m.bias[c]
	}
	p := softmax(z)
	var grad [free]float64
	norm := 0.0
	for c := range free {
		y := 0.0
		switch {
		case lang.Lang(c) == l:
			y = 1
		case l == lang.Pt && lang.Lang(c) <= lang.PtBR:
			y = 0.5
		}
		grad[c] = p[c] - y
		norm += grad[c] * grad[c]
	}
	if norm < 1e-6 {
		return
	}
	for _, id := range ids {
		w := &m.w[id]
		w[free] += float32(norm * x * x)
		step := float32(rate * x / math.Sqrt(float64(w[free])+1e-3))
		for c := range free {
			w[c] -= step * float32(grad[c])
		}
	}
	ux := unknown * x
	m.unknown[free] += norm * ux * ux
	m.bias[free] += norm
	for c := range free {
		m.unknown[c] -= 0.2 * rate * ux * grad[c] / math.Sqrt(m.unknown[free]+1)
		m.bias[c] -= 0.2 * rate * grad[c] / math.Sqrt(m.bias[free]+1)
	}
}

func softmax(z [classes]float64) (p [classes]float64) {
	top := slices.Max(z[:])
	sum := 0.0
	for c := range z {
		p[c] = math.Exp(z[c] - top)
		sum += p[c]
	}
	for c := range p {
		p[c] /= sum
	}
	return p
}

// quantise returns the table and its parameters, uncalibrated.
func (m *model) quantise(o Options) (lang.Params, *lang.Table) {
	p := lang.Params{Bits: o.Bits, Slope: 4096}
	t := lang.NewTable(o.Bits)
	for i, h := range m.hashes {
		var q [free]int8
		none := true
		for c := range free {
			q[c] = int8(max(-127, min(127, math.Round(float64(m.w[i][c])*unit))))
			none = none && q[c] == 0
		}
		if !none || m.w[i][free] > 0 {
			t.Put(h, q)
		}
	}
	for c := range free {
		p.Unknown[c] = int32(math.Round(m.unknown[c] * unit * 256))
		p.Bias[c] = int32(math.Round(m.bias[c] * unit * 256))
	}
	for i := range p.Sharp {
		p.Sharp[i] = int32(math.Round(plainSharp))
	}
	return p, t
}
