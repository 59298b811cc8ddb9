package classify

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Tree is a decision tree on numeric features.
type Tree struct {
	nodes []node
}

// node is a test, or a leaf when feature is negative.
type node struct {
	feature     int
	cut         float64 // at most this value: left
	left, right int32
	class       int
	total, miss float64 // training examples that reach it, and those of another class
}

const (
	minLeaf  = 2    // examples in a leaf (C4.5's default)
	confide  = 0.69 // normal quantile of C4.5's 25 % confidence, for pruning
	maxDepth = 40
)

// C45 trains a tree like C4.5. It takes the best gain ratio among tests of at least mean gain,
// then prunes by pessimistic error (Quinlan, "C4.5: programs for machine learning", 1993; the
// dissertation's J48).
func C45(examples []Example, use [Features]bool, _ uint64) Classifier {
	t := Grow(examples, use)
	t.Prune()
	return t.Classify
}

// C45Unpruned is C45 without pruning.
func C45Unpruned(examples []Example, use [Features]bool, _ uint64) Classifier {
	t := Grow(examples, use)
	return t.Classify
}

// Forest is the modern ensemble: 40 trees vote. Each is grown on a random draw of the examples
// and of three quarters of the features.
func Forest(examples []Example, use [Features]bool, seed uint64) Classifier {
	rng := rand.New(rand.NewPCG(seed, 17))
	classes := len(classCounts(examples))
	trees := make([]*Tree, 40)
	for i := range trees {
		sample := make([]Example, len(examples))
		for j := range sample {
			sample[j] = examples[rng.IntN(len(examples))]
		}
		some := use
		for f := range some {
			some[f] = use[f] && rng.IntN(4) > 0
		}
		trees[i] = Grow(sample, some)
	}
	return func(v Vector) int {
		votes := make([]int, classes)
		best := 0
		for _, t := range trees {
			c := t.Classify(v)
			if votes[c]++; votes[c] > votes[best] {
				best = c
			}
		}
		return best
	}
}

// Grow grows a tree until its leaves are pure or too small.
func Grow(examples []Example, use [Features]bool) *Tree {
	t := &Tree{}
	t.grow(slices.Clone(examples), use, len(classCounts(examples)), 0)
	return t
}

// Classify follows the tree from the root to a leaf.
func (t *Tree) Classify(v Vector) int {
	i := int32(0)
	for t.nodes[i].feature >= 0 {
		if n := &t.nodes[i]; v[n.feature] <= n.cut {
			i = n.left
		} else {
			i = n.right
		}
	}
	return t.nodes[i].class
}

// Size counts the nodes and leaves that can be reached.
func (t *Tree) Size() (nodes, leaves int) { return t.size(0) }

func (t *Tree) size(i int32) (nodes, leaves int) {
	n := &t.nodes[i]
	if n.feature < 0 {
		return 1, 1
	}
	a, b := t.size(n.left)
	c, d := t.size(n.right)
	return a + c + 1, b + d
}

// grow appends the subtree for examples to t.nodes and returns the index of its root. It stops
// at pure, small or deep nodes, and where no split helps.
func (t *Tree) grow(examples []Example, use [Features]bool, classes, depth int) int32 {
	counts := make([]float64, classes)
	for _, e := range examples {
		counts[e.Class]++
	}
	best := 0
	for c := range counts {
		if counts[c] > counts[best] {
			best = c
		}
	}
	total := float64(len(examples))
	at := int32(len(t.nodes))
	n := node{feature: -1, class: best, total: total}
	if classes > 0 {
		n.miss = total - counts[best]
	}
	t.nodes = append(t.nodes, n)
	if n.miss == 0 || total < 2*minLeaf || depth >= maxDepth {
		return at
	}
	feature, cut, ok := bestSplit(examples, use, counts)
	if !ok {
		return at
	}
	mid := partition(examples, feature, cut)
	left := t.grow(examples[:mid], use, classes, depth+1)
	right := t.grow(examples[mid:], use, classes, depth+1)
	n = t.nodes[at]
	n.feature, n.cut, n.left, n.right = feature, cut, left, right
	t.nodes[at] = n
	return at
}

func partition(examples []Example, feature int, cut float64) int {
	mid := 0
	for i := range examples {
		if examples[i].Vector[feature] <= cut {
			examples[i], examples[mid] = examples[mid], examples[i]
			mid++
		}
	}
	return mid
}

type split struct {
	feature          int
	cut, gain, ratio float64
}

// bestSplit takes each feature's best cut by gain. Among those with at least the mean gain it
// returns the one with the best gain ratio.
func bestSplit(examples []Example, use [Features]bool, counts []float64) (feature int, cut float64, ok bool) {
	var splits []split
	mean := 0.0
	for f := range use {
		if !use[f] {
			continue
		}
		if s, ok := cutOf(examples, f, counts); ok {
			splits = append(splits, s)
			mean += s.gain
		}
	}
	mean /= float64(max(1, len(splits)))
	best := split{ratio: -1}
	for _, s := range splits {
		if s.gain >= mean-1e-9 && s.ratio > best.ratio {
			best = s
		}
	}
	return best.feature, best.cut, best.ratio > 0
}

// cutOf returns the cut of feature f with the greatest information gain, minus C4.5's penalty
// for choosing among many cuts.
func cutOf(examples []Example, f int, counts []float64) (split, bool) {
	slices.SortFunc(examples, func(a, b Example) int {
		switch {
		case a.Vector[f] < b.Vector[f]:
			return -1
		case a.Vector[f] > b.Vector[f]:
			return 1
		}
		return a.Class - b.Class
	})
	total := float64(len(examples))
	left, right := make([]float64, len(counts)), slices.Clone(counts)
	before := entropy(counts, total)
	best, cuts := split{feature: f}, 0.0
	for i := 0; i+1 < len(examples); i++ {
		left[examples[i].Class]++
		right[examples[i].Class]--
		a, b := examples[i].Vector[f], examples[i+1].Vector[f]
		if a == b {
			continue
		}
		cuts++
		n := float64(i + 1)
		if n < minLeaf || total-n < minLeaf {
			continue
		}
		gain := before - (n*entropy(left, n)+(total-n)*entropy(right, total-n))/total
		if gain > best.gain {
			info := -(n*math.Log2(n/total) + (total-n)*math.Log2((total-n)/total)) / total
			best.gain, best.cut, best.ratio = gain, (a+b)/2, gain/info
		}
	}
	best.gain -= math.Log2(max(1, cuts)) / total
	return best, best.gain > 1e-9
}

func entropy(counts []float64, total float64) float64 {
	h := 0.0
	for _, c := range counts {
		if c > 0 {
			h -= c / total * math.Log2(c/total)
		}
	}
	return h
}

// Prune replaces branches by leaves, from the bottom up, where the pessimistic error of the
// branch is no less than that of one leaf.
func (t *Tree) Prune() { t.prune(0) }

func (t *Tree) prune(i int32) float64 {
	n := &t.nodes[i]
	leaf := pessimistic(n.total, n.miss)
	if n.feature < 0 {
		return leaf
	}
	branch := t.prune(n.left) + t.prune(n.right)
	if leaf <= branch+0.1 {
		n.feature = -1
		return leaf
	}
	return branch
}

// pessimistic returns the upper bound of the expected errors of a leaf.
func pessimistic(n, miss float64) float64 {
	if n == 0 {
		return 0
	}
	if miss == 0 {
		return n * (1 - math.Pow(0.25, 1/n))
	}
	f, z := miss/n, confide
	return n * (f + z*z/(2*n) + z*math.Sqrt(f/n-f*f/n+z*z/(4*n*n))) / (1 + z*z/n)
}
