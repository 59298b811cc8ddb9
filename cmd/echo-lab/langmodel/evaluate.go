package langmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/abadojack/whatlanggo"

	"github.com/echo-node/echo-node/cmd/echo-lab/twitterecho"
	"github.com/echo-node/echo-node/crawler/judge/lang"
)

// Folds is the number of parts over which the sources are distributed.
const Folds = 5

// atOnce is how many parts are trained in parallel; two take about 2 GB. The result does not
// depend on it.
const atOnce = 2

// Result is the result of a training.
type Result struct {
	Weights []byte             // lang.Parse reads them
	Paper   twitterecho.Params // fitted on the same texts
	Report  *Report
}

// part is one fold with the judge that never saw its sources.
type part struct {
	tests     []Sample
	params    lang.Params
	table     *lang.Table
	varieties *lang.Varieties
	raw       []judged
	people    [][]person // by setting
	seen      []evidence
	judge     *lang.Judge
	paper     twitterecho.Params
}

// Train learns weights from samples and calibrates them on folds by source. All sources except
// the held-out ones are used for the weights. With evaluate, the report says how good the
// judges of the folds are on texts that they never saw. It also says how good the weights are
// on the held-out sources and extra. Train writes progress to talk.
func Train(ctx context.Context, samples, extra []Sample, o Options, evaluate bool, talk io.Writer) (Result, error) {
	var usable, held []Sample
	for _, s := range samples {
		if s.heldOut() {
			held = append(held, s)
		} else {
			usable = append(usable, s)
		}
	}
	var pairs []Sample
	if o.Written {
		pairs = written(slices.Concat(samples, extra))
	}
	parts := make([]*part, Folds+1) // the last is of all sources
	fails := make([]error, len(parts))
	unseen := slices.Concat(held, extra)
	var wait sync.WaitGroup
	var speak sync.Mutex
	places := make(chan struct{}, atOnce)
	for k := range parts {
		wait.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			parts[k], fails[k] = trainPart(ctx, k, usable, unseen, pairs, o)
			if fails[k] == nil {
				speak.Lock()
				defer speak.Unlock()
				fmt.Fprintf(talk, "trained part %d of %d: %d texts to test\n", k+1, len(parts), len(parts[k].tests))
			}
		})
	}
	wait.Wait()
	if err := errors.Join(fails...); err != nil {
		return Result{}, err
	}
	if err := calibrate(parts, usable); err != nil {
		return Result{}, err
	}
	last := parts[Folds]
	res := Result{Weights: lang.Encode(last.params, last.table, last.varieties), Paper: last.paper}
	if evaluate {
		res.Report = report(parts)
	}
	return res, nil
}

// trainPart returns fold k of usable with a judge that saw nothing of it, except pairs. With k
// after the last fold, the judge saw everything and is tested on unseen.
func trainPart(ctx context.Context, k int, usable, unseen, pairs []Sample, o Options) (*part, error) {
	p := &part{}
	var from []Sample
	for _, s := range usable {
		if k < Folds && s.fold(Folds) == k {
			p.tests = append(p.tests, s)
		} else {
			from = append(from, s)
		}
	}
	if k == Folds {
		p.tests = unseen
	}
	m, err := train(ctx, from, o)
	if err != nil {
		return nil, err
	}
	p.params, p.table = m.quantise(o)
	v, err := trainVarieties(ctx, slices.Concat(from, pairs), o)
	if err != nil {
		return nil, err
	}
	p.varieties = v.quantise(o, &p.params)
	if err := p.open(); err != nil {
		return nil, err
	}
	p.raw = judgeRaw(p.judge, p.tests)
	for i, st := range settings(o.People) {
		p.people = append(p.people, persons(p.tests, st, o.Seed+uint64(100*k+i)))
	}
	return p, nil
}

func (p *part) open() (err error) {
	p.judge, err = lang.Parse(lang.Encode(p.params, p.table, p.varieties))
	return err
}

// calibrate sets the sharpness and the person's parameters of each part, using the other folds.
func calibrate(parts []*part, usable []Sample) error {
	for k, p := range parts {
		var raw []judged
		for i, o := range parts[:Folds] {
			if i != k {
				raw = append(raw, o.raw...)
			}
		}
		p.params.Sharp, p.params.VarietySharp = sharpness(raw)
	}
	for _, p := range parts {
		if err := p.open(); err != nil {
			return err
		}
		for _, people := range p.people {
			p.seen = append(p.seen, measure(p.judge, people)...)
		}
	}
	for k, p := range parts {
		var seen []evidence
		var people []person
		for i, o := range parts[:Folds] {
			if i != k {
				seen = append(seen, o.seen...)
				people = append(people, o.people[0]...)
			}
		}
		p.params.Slope, p.params.Offset = platt(seen)
		var from []Sample
		for _, s := range usable {
			if k == Folds || s.fold(Folds) != k {
				from = append(from, s)
			}
		}
		p.paper = paper(from, people)
		if err := p.open(); err != nil {
			return err
		}
	}
	return nil
}

// Report has the results of a training, on sources that the judging model never saw.
type Report struct {
	Digest      string               `json:"digest"`
	People      []PersonRow          `json:"people"`
	Texts       []TextRow            `json:"texts"` // of eight words or more
	Confusion   map[string][]CountOf `json:"confusion"`
	Calibration []Bin                `json:"calibration"` // of texts of any length
}

// Rates are precision and recall of pt-PT.
type Rates struct {
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
}

// PersonRow compares pt-PT people of one register with all others of it.
type PersonRow struct {
	Setting  string `json:"setting"`
	Register string `json:"register"`
	Portugal int    `json:"portugal"` // number of people
	Others   int    `json:"others"`
	Ours     Rates  `json:"ours"`
	Unsure   int    `json:"unsure"`   // of those from Portugal: pt or und
	Language Rates  `json:"language"` // of Portuguese, either variety
	Paper    Rates  `json:"paper"`
	// Whatlanggo has no varieties: all Portuguese counts as from Portugal.
	Whatlanggo Rates `json:"whatlanggo"`
}

// TextRow has the texts of a language and register; values are shares.
type TextRow struct {
	Lang     string  `json:"lang"`
	Register string  `json:"register"`
	Texts    int     `json:"texts"`
	Right    float64 `json:"right"`  // right language; for Portuguese right variety
	Pt       float64 `json:"pt"`     // Portuguese texts judged to be "pt"
	Unsure   float64 `json:"unsure"` // und
	Stripped float64 `json:"stripped"`
	Paper    float64 `json:"paper"` // right; other is right for everything except Portuguese
	// right; pt is right for both varieties, and other for Galician, which it does not know
	Whatlanggo float64 `json:"whatlanggo"`
}

// CountOf is how often a language was the answer.
type CountOf struct {
	Said  string `json:"said"`
	Count int    `json:"count"`
}

// Bin has the verdicts in a range of confidence: how many, and the share of right ones.
type Bin struct {
	From, To float64
	N        int
	Right    float64
}

// maxTabled is about how many single texts of a fold the report judges, evenly chosen.
const maxTabled = 30000

// minWords is the smallest number of words of a text in the confusion matrix.
const minWords = 8

// whatlang returns whatlanggo's language as a Lang.
func whatlang(text string) lang.Lang {
	switch whatlanggo.DetectLang(text) {
	case whatlanggo.Por:
		return lang.Pt
	case whatlanggo.Spa:
		return lang.Es
	case whatlanggo.Eng:
		return lang.En
	case whatlanggo.Fra:
		return lang.Fr
	case whatlanggo.Ita:
		return lang.It
	}
	return lang.Other
}

func report(parts []*part) *Report {
	r := &Report{Digest: parts[Folds].judge.Digest()}
	for i, st := range settings(0) {
		r.People = append(r.People, peopleRows(parts, i, st.Name)...)
	}
	r.texts(parts)
	return r
}

// tally counts for precision and recall.
type tally struct{ hit, said, are int }

func (t *tally) add(said, is bool) {
	if said {
		t.said++
	}
	if is {
		t.are++
	}
	if said && is {
		t.hit++
	}
}

func (t tally) rates() Rates {
	return Rates{float64(t.hit) / max(1, float64(t.said)), float64(t.hit) / max(1, float64(t.are))}
}

// peopleRows judges the people of one setting by all methods. It returns a row for each
// register, and one for all registers together.
func peopleRows(parts []*part, setting int, name string) []PersonRow {
	type row struct {
		ours, language, paper, other tally
		unsure, people               int
	}
	rows := map[string]*row{}
	for _, p := range parts {
		for _, who := range p.people[setting] {
			of := p.judge.Person()
			for _, t := range who.texts {
				of.Add(t)
			}
			v := of.Verdict()
			pt, portuguese := who.lang == lang.PtPT, who.lang <= lang.PtBR
			paper := p.paper.Language(who.texts...)
			what := whatlang(strings.Join(who.texts, "\n"))
			for _, register := range []string{who.register, "all"} {
				if rows[register] == nil {
					rows[register] = &row{}
				}
				x := rows[register]
				x.people++
				x.ours.add(v.Lang == lang.PtPT, pt)
				x.language.add(v.Lang <= lang.PtBR || v.Lang == lang.Pt, portuguese)
				x.paper.add(paper == lang.PtPT, pt)
				x.other.add(what == lang.Pt, pt)
				if pt && v.Lang >= lang.Pt {
					x.unsure++
				}
			}
		}
	}
	var out []PersonRow
	for register, x := range rows {
		if x.ours.are > 0 {
			out = append(out, PersonRow{name, register, x.ours.are, x.people - x.ours.are, x.ours.rates(), x.unsure,
				x.language.rates(), x.paper.rates(), x.other.rates()})
		}
	}
	slices.SortFunc(out, func(a, b PersonRow) int { return cmp.Compare(a.Register, b.Register) })
	return out
}

// texts judges single texts and sets the report's Texts, Confusion and Calibration. Texts with
// fewer than minWords words count only for Calibration, unless they are in a foreign script.
func (r *Report) texts(parts []*part) {
	type key struct{ l, register string }
	rows := map[key]*TextRow{}
	said := map[string]map[string]int{}
	bins := make([]Bin, 10)
	for _, p := range parts {
		every := max(1, len(p.tests)/maxTabled)
		for i := 0; i < len(p.tests); i += every {
			s := p.tests[i]
			if s.Lang >= lang.Classes {
				continue
			}
			v := p.judge.Text(s.Text)
			right := v.Lang == s.Lang || v.Lang == lang.Pt && s.Lang <= lang.PtBR
			if v.Lang != lang.Und {
				b := &bins[min(9, int(v.Confidence*10))]
				b.N++
				b.Right += one(right)
			}
			if _, words, foreign := lang.Features(s.Text, nil); words < minWords && !foreign {
				continue
			}
			register := s.Register
			if s.Lang == lang.Other {
				register, _, _ = strings.Cut(register, "-")
			}
			k := key{s.Lang.String(), register}
			if rows[k] == nil {
				rows[k] = &TextRow{Lang: k.l, Register: k.register}
			}
			if said[k.l] == nil {
				said[k.l] = map[string]int{}
			}
			said[k.l][v.Lang.String()]++
			x := rows[k]
			x.Texts++
			x.Right += one(v.Lang == s.Lang)
			x.Pt += one(v.Lang == lang.Pt && s.Lang <= lang.PtBR)
			x.Unsure += one(v.Lang == lang.Und)
			x.Stripped += one(p.judge.Text(stripAccents(s.Text)).Lang == s.Lang)
			paper, what := p.paper.Language(s.Text), whatlang(s.Text)
			x.Paper += one(paper == s.Lang || paper == lang.Other && s.Lang > lang.PtBR)
			x.Whatlanggo += one(what == s.Lang || what == lang.Pt && s.Lang <= lang.PtBR || what == lang.Other &&
				s.Lang == lang.Gl)
		}
	}
	for _, x := range rows {
		n := float64(x.Texts)
		for _, f := range []*float64{&x.Right, &x.Pt, &x.Unsure, &x.Stripped, &x.Paper, &x.Whatlanggo} {
			*f /= n
		}
		r.Texts = append(r.Texts, *x)
	}
	slices.SortFunc(r.Texts, func(a, b TextRow) int {
		return cmp.Or(cmp.Compare(a.Lang, b.Lang), cmp.Compare(a.Register, b.Register))
	})
	r.Confusion = map[string][]CountOf{}
	for l, counts := range said {
		for c := range lang.Und + 1 {
			r.Confusion[l] = append(r.Confusion[l], CountOf{c.String(), counts[c.String()]})
		}
	}
	for i, b := range bins {
		if b.N > 0 {
			r.Calibration = append(r.Calibration, Bin{float64(i) / 10, float64(i+1) / 10, b.N, b.Right / float64(b.N)})
		}
	}
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Write prints the report as tables.
func (r *Report) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "weights %s\n\npeople: precision and recall of pt-PT, on sources never trained on\nsetting\tregister\tPortugal\tothers\tours\tunsure\tPortuguese\tpaper\twhatlanggo\n", r.Digest[:16])
	f := func(x Rates) string { return fmt.Sprintf("%.3f %.3f", x.Precision, x.Recall) }
	for _, p := range r.People {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%d\t%s\t%s\t%s\n", p.Setting, p.Register, p.Portugal, p.Others, f(p.Ours),
			p.Unsure, f(p.Language), f(p.Paper), f(p.Whatlanggo))
	}
	fmt.Fprintf(t, "\ntexts of %d words or more: part right (the paper's thresholds are fitted for people, not for one text)\nlang\tregister\ttexts\tright\tsaid pt\tund\tno accents\tpaper\twhatlanggo\n", minWords)
	for _, x := range r.Texts {
		fmt.Fprintf(t, "%s\t%s\t%d\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\n", x.Lang, x.Register, x.Texts, x.Right, x.Pt,
			x.Unsure, x.Stripped, x.Paper, x.Whatlanggo)
	}
	fmt.Fprint(t, "\nconfusion: is (down), said (across)\n")
	for c := range lang.Und + 1 {
		fmt.Fprintf(t, "\t%s", c)
	}
	fmt.Fprintln(t)
	for l := range lang.Classes {
		fmt.Fprint(t, l)
		for _, c := range r.Confusion[l.String()] {
			fmt.Fprintf(t, "\t%d", c.Count)
		}
		fmt.Fprintln(t)
	}
	fmt.Fprint(t, "\ncalibration of single texts: confidence, texts, part right\n")
	for _, b := range r.Calibration {
		fmt.Fprintf(t, "%.1f-%.1f\t%d\t%.3f\n", b.From, b.To, b.N, b.Right)
	}
	return t.Flush()
}
