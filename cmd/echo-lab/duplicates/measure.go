package duplicates

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/echo-node/echo-node/crawler/judge/duplicates"
)

// Options are the options of Measure.
type Options struct {
	PerClass int // texts of each class
	Words    int // of a text
	Seed     uint64
	Texts    int       // of each language, among which the paper's shares of copies are planted
	Data     string    // directory of real sentences, see Sentences; "" = none
	Register []string  // of the real sentences
	Talk     io.Writer // progress; nil = none
}

// Limits of Options.
const (
	vocabularySize = 8000
	mostPerClass   = 20_000
	leastTexts     = 1000
	mostTexts      = 1_000_000
	leastWords     = 6
	mostWords      = 100
)

// paperWords is the length of the texts to which the required values apply: about that of a
// tweet of 2012.
const paperWords = 15

// The smallest precision of echo-node's method.
const leastPrecision = 0.98

// ErrOptions is wrapped by the errors in Options.
var ErrOptions = errors.New("options")

func (o *Options) validate() error {
	if o.PerClass < 1 || o.PerClass > mostPerClass || o.Words < leastWords || o.Words > mostWords {
		return fmt.Errorf("duplicates: %w: %d of a class (1 to %d), %d words (%d to %d)",
			ErrOptions, o.PerClass, mostPerClass, o.Words, leastWords, mostWords)
	}
	if o.Texts < leastTexts || o.Texts > mostTexts {
		return fmt.Errorf("duplicates: %w: %d texts (%d to %d)", ErrOptions, o.Texts, leastTexts, mostTexts)
	}
	return nil
}

// Report is the result of Measure.
type Report struct {
	PerClass int         `json:"per_class"`
	Words    int         `json:"words"`
	Seed     uint64      `json:"seed"`
	Classes  []Class     `json:"classes"`
	All      Class       `json:"all"` // Found is over the classes that are copies
	Distance []Threshold `json:"distances"`
	Rates    []Rate      `json:"rates"`
	Example  Example     `json:"example"`
	Real     []Real      `json:"real,omitempty"`
}

// Class is one kind of edit, with the methods that are compared.
type Class struct {
	Name  string `json:"name"`
	Other bool   `json:"other"` // the text is no copy: none of it should be found
	Ours  Score  `json:"ours"`  // echo-node's method
	Paper Score  `json:"paper"` // the paper's
	// share of the pairs within 3 bits where repeated words count: see CountSimhash
	Counts float64 `json:"counts"`
}

// Score is what one method found of a class.
type Score struct {
	// share of the planted texts grouped with their original: for copies, the recall
	Found float64 `json:"found"`
	Right int     `json:"right"` // memberships that are copies
	Wrong int     `json:"wrong"` // memberships of texts of the class that are no copies
}

// Precision returns the share of the memberships that are copies, or 1 without any.
func (s Score) Precision() float64 {
	if s.Right+s.Wrong == 0 {
		return 1
	}
	return float64(s.Right) / float64(s.Right+s.Wrong)
}

// Threshold is the paper's method with another distance, in bits.
type Threshold struct {
	Bits      int     `json:"bits"`
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
}

// paperBits is the distance that the paper found best, and mostBits the largest that it tried.
const (
	paperBits = duplicates.DefaultDistance
	mostBits  = 10
)

// Measure plants copies and looks for them.
func Measure(ctx context.Context, o Options) (*Report, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.Talk == nil {
		o.Talk = io.Discard
	}
	r := &Report{PerClass: o.PerClass, Words: o.Words, Seed: o.Seed, Example: PaperExample()}
	r.Rates = measureRates(o.Texts)
	texts := plant(o)
	ours, paper := score(duplicates.Options{}, texts, o.PerClass), score(duplicates.Options{Paper: true}, texts,
		o.PerClass)
	counts := countPairs(texts, o.PerClass)
	for i, c := range classes() {
		r.Classes = append(r.Classes, Class{c.name, c.other, ours[i], paper[i], counts[i]})
	}
	r.All = Class{Name: "all", Ours: sum(ours), Paper: sum(paper)}
	for bits := 1; bits <= mostBits; bits++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		fmt.Fprintf(o.Talk, "the paper's method at %d bits\n", bits)
		all := sum(score(duplicates.Options{Paper: true, Distance: bits}, texts, o.PerClass))
		r.Distance = append(r.Distance, Threshold{bits, all.Precision(), all.Found})
	}
	if o.Data != "" {
		var err error
		if r.Real, err = Sentences(ctx, o.Data, o.Register, o.Talk); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// score groups the texts and counts by class.
func score(opts duplicates.Options, texts []duplicates.Text, perClass int) []Score {
	all := classes()
	out, found := make([]Score, len(all)), make([]int, len(all))
	for _, g := range duplicates.GroupAll(slices.Values(texts), opts) {
		for _, m := range g[1:] {
			kind, class, n := parse(m.ID)
			head, of, at := parse(m.Representative)
			planted := kind == copyText && head == baseText && class == of && n == at
			if planted {
				found[class]++
			}
			if planted && !all[class].other {
				out[class].Right++
			} else {
				out[class].Wrong++
			}
		}
	}
	for i := range out {
		out[i].Found = float64(found[i]) / float64(perClass)
	}
	return out
}

// parse splits an id of plant into its parts.
func parse(id string) (kind string, class, n int) {
	parts := strings.Split(id, "/")
	class, _ = strconv.Atoi(parts[1])
	n, _ = strconv.Atoi(parts[2])
	return parts[0], class, n
}

// sum returns a Score of all classes. Found is over the classes that are copies.
func sum(scores []Score) Score {
	var out Score
	planted := 0
	for i, c := range classes() {
		out.Right += scores[i].Right
		out.Wrong += scores[i].Wrong
		if !c.other {
			out.Found += scores[i].Found
			planted++
		}
	}
	out.Found /= float64(planted)
	return out
}

// Faults returns where echo-node's method is below the required values. Those of the classes
// are for texts of 15 words.
func (r *Report) Faults() []error {
	var faults []error
	add := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if r.Words == paperWords {
		for i, c := range classes() {
			switch got := r.Classes[i].Ours.Found; {
			case c.other && got > 0:
				add("%s: %.3f are taken for copies", c.name, got)
			case got < c.least:
				add("%s: %.3f found, want %.2f", c.name, got, c.least)
			}
		}
	}
	if p := r.All.Ours.Precision(); p < leastPrecision {
		add("precision %.4f, want %.2f", p, leastPrecision)
	}
	for _, x := range r.Rates {
		for _, got := range []float64{x.Ours, x.Paper} {
			if got < x.Planted-rateWithin || got > x.Planted+rateWithin {
				add("%s: planted %.4f, found %.4f", x.Language, x.Planted, got)
			}
		}
	}
	for _, x := range r.Real {
		if x.Recall < leastReal || x.Precision() < leastPrecision {
			add("%s: recall %.3f, %d right, %d other pairs", x.Name, x.Recall, x.Right, x.Wrong)
		}
	}
	return faults
}
