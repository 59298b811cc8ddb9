package classify

import (
	"errors"
	"math/rand/v2"
	"slices"
)

// Example is one page with its true class.
type Example struct {
	Vector Vector
	Class  int
	Site   string // for cross-validation by site
}

// Classifier returns the class of a page. It is safe for concurrent use.
type Classifier func(Vector) int

// Trainer makes a classifier from examples. It uses the features that are true in use. Equal
// examples and seed make equal classifiers.
type Trainer func(examples []Example, use [Features]bool, seed uint64) Classifier

// AllFeatures returns a set with every feature.
func AllFeatures() [Features]bool {
	return [Features]bool{true, true, true, true, true, true, true}
}

// Random is the dissertation's random start: any of the classes with equal chance, always the
// same for the same page.
func Random(classes int, seed uint64) Classifier {
	return func(v Vector) int {
		h := seed
		for _, x := range v {
			h = (h ^ uint64(int64(x*16))) * 0x9E3779B97F4A7C15
			h ^= h >> 29
		}
		return int(h % uint64(classes))
	}
}

// Majority always answers the most common class. Every accuracy must be compared with this
// baseline.
func Majority(examples []Example, _ [Features]bool, _ uint64) Classifier {
	counts := classCounts(examples)
	best := 0
	for c := range counts {
		if counts[c] > counts[best] {
			best = c
		}
	}
	return func(Vector) int { return best }
}

func classCounts(examples []Example) []int {
	var counts []int
	for _, e := range examples {
		for len(counts) <= e.Class {
			counts = append(counts, 0)
		}
		counts[e.Class]++
	}
	return counts
}

// Balance draws from each class as many examples as the smallest class has.
func Balance(examples []Example, seed uint64) []Example {
	counts := classCounts(examples)
	least := len(examples)
	for _, n := range counts {
		if n > 0 {
			least = min(least, n)
		}
	}
	shuffled := slices.Clone(examples)
	rng := rand.New(rand.NewPCG(seed, 11))
	rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	taken := make([]int, len(counts))
	var out []Example
	for _, e := range shuffled {
		if taken[e.Class] < least {
			taken[e.Class]++
			out = append(out, e)
		}
	}
	return out
}

// CrossValidate trains on all folds but one and tests on that one, for each fold in turn.
// bySite keeps a site's pages in one fold, so that no page is judged by pages of its own site.
// Otherwise pages are distributed at random.
func CrossValidate(examples []Example, train Trainer, use [Features]bool, folds int, bySite bool,
	seed uint64) (Confusion, error) {
	fold := make([]int, len(examples))
	rng := rand.New(rand.NewPCG(seed, 13))
	sites := map[string]int{}
	for n, i := range rng.Perm(len(examples)) {
		fold[i] = n % folds
		if bySite {
			s, ok := sites[examples[i].Site]
			if !ok {
				s = len(sites) % folds
				sites[examples[i].Site] = s
			}
			fold[i] = s
		}
	}
	if folds < 2 || len(examples) < folds || bySite && len(sites) < folds {
		return Confusion{}, errors.New("classify: cross-validation: fewer examples or sites than folds")
	}
	out := NewConfusion(len(classCounts(examples)))
	for f := range folds {
		var in, test []Example
		for i, e := range examples {
			if fold[i] == f {
				test = append(test, e)
			} else {
				in = append(in, e)
			}
		}
		out.Test(train(in, use, seed), test)
	}
	return out, nil
}

// Wrapper selects features by backward elimination. It removes the least useful feature as long
// as that does not reduce the cross-validated accuracy.
func Wrapper(examples []Example, train Trainer, folds int, seed uint64) ([Features]bool, error) {
	use := AllFeatures()
	c, err := CrossValidate(examples, train, use, folds, false, seed)
	if err != nil {
		return use, err
	}
	for best := c.Accuracy(); ; {
		drop, dropped := -1, best
		for f := range use {
			if !use[f] {
				continue
			}
			without := use
			without[f] = false
			c, err := CrossValidate(examples, train, without, folds, false, seed)
			if err != nil {
				return use, err
			}
			if a := c.Accuracy(); a >= dropped {
				drop, dropped = f, a
			}
		}
		left := 0
		for _, u := range use {
			if u {
				left++
			}
		}
		if drop < 0 || left == 1 {
			return use, nil
		}
		use[drop], best = false, dropped
	}
}
