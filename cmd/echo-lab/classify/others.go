package classify

import (
	"math"
	"slices"
)

// NaiveBayes treats the features as independent and normal within a class: argmax P(C) ∏
// P(x|C), in logarithms.
func NaiveBayes(examples []Example, use [Features]bool, _ uint64) Classifier {
	counts := classCounts(examples)
	mean, square := make([]Vector, len(counts)), make([]Vector, len(counts))
	for _, e := range examples {
		for f, x := range e.Vector {
			mean[e.Class][f] += x / float64(counts[e.Class])
		}
	}
	for _, e := range examples {
		for f, x := range e.Vector {
			d := x - mean[e.Class][f]
			square[e.Class][f] += d * d / float64(counts[e.Class])
		}
	}
	return func(v Vector) int {
		best, bestLog := 0, math.Inf(-1)
		for c, n := range counts {
			if n == 0 {
				continue
			}
			l := math.Log(float64(n))
			for f, x := range v {
				if use[f] {
					s := max(square[c][f], 1e-6)
					l -= (math.Log(s) + (x-mean[c][f])*(x-mean[c][f])/s) / 2
				}
			}
			if l > bestLog {
				best, bestLog = c, l
			}
		}
		return best
	}
}

// KNN returns the majority among the k nearest examples, by Euclidean distance with every
// feature scaled to its range. It looks at all examples each time.
func KNN(k int) Trainer {
	return func(examples []Example, use [Features]bool, _ uint64) Classifier {
		lo, scale := ranges(examples, use)
		points := make([]Vector, len(examples))
		for i, e := range examples {
			points[i] = scaled(e.Vector, lo, scale)
		}
		classes := len(classCounts(examples))
		return func(v Vector) int {
			v = scaled(v, lo, scale)
			near := make([]neighbour, 0, k+1)
			for i := range points {
				d := distance(&v, &points[i])
				if len(near) == k && d >= near[k-1].far {
					continue
				}
				at, _ := slices.BinarySearchFunc(near, d, func(n neighbour, d float64) int {
					if n.far <= d {
						return -1
					}
					return 1
				})
				near = slices.Insert(near, at, neighbour{d, examples[i].Class})
				near = near[:min(k, len(near))]
			}
			votes := make([]int, max(1, classes))
			for _, n := range near {
				votes[n.class]++
			}
			best := 0
			for _, n := range near { // the nearest wins a tie
				if votes[n.class] > votes[best] {
					best = n.class
				}
			}
			return best
		}
	}
}

type neighbour struct {
	far   float64
	class int
}

func distance(a, b *Vector) float64 {
	d := 0.0
	for f := range a {
		d += (a[f] - b[f]) * (a[f] - b[f])
	}
	return d
}

// ranges returns the smallest value and 1 ÷ range of each feature, and 0 for an unused one.
func ranges(examples []Example, use [Features]bool) (lo, scale Vector) {
	if len(examples) == 0 {
		return lo, scale
	}
	lo = examples[0].Vector
	hi := lo
	for _, e := range examples {
		for f, x := range e.Vector {
			lo[f], hi[f] = min(lo[f], x), max(hi[f], x)
		}
	}
	for f := range scale {
		if use[f] && hi[f] > lo[f] {
			scale[f] = 1 / (hi[f] - lo[f])
		}
	}
	return lo, scale
}

func scaled(v, lo, scale Vector) Vector {
	for f := range v {
		v[f] = (v[f] - lo[f]) * scale[f]
	}
	return v
}
