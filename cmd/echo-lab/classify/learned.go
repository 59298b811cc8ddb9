package classify

import (
	"math"
	"math/rand/v2"
)

// LinearSVM is a support vector machine, one class against the rest, trained by stochastic
// subgradients (Shalev-Shwartz and others, Pegasos, 2007). The dissertation had to abort its
// own. Features enter as logarithms, scaled.
func LinearSVM(examples []Example, use [Features]bool, seed uint64) Classifier {
	const lambda, rounds = 1e-4, 20
	logs := make([]Example, len(examples))
	for i, e := range examples {
		logs[i] = Example{Vector: logged(e.Vector), Class: e.Class}
	}
	lo, scale := ranges(logs, use)
	weights := make([][Features + 1]float64, len(classCounts(examples)))
	for c := range weights {
		rng := rand.New(rand.NewPCG(seed, uint64(c)))
		w := &weights[c]
		for step := 1; step <= rounds*len(logs); step++ {
			e := &logs[rng.IntN(len(logs))]
			x := scaled(e.Vector, lo, scale)
			y := -1.0
			if e.Class == c {
				y = 1
			}
			rate := 1 / (lambda * float64(step+1000))
			margin := y * dot(w, &x)
			for f := range Features {
				w[f] *= 1 - rate*lambda
			}
			if margin < 1 {
				for f := range Features {
					w[f] += rate * y * x[f]
				}
				w[Features] += rate * y * 0.1
			}
		}
	}
	return func(v Vector) int {
		x := scaled(logged(v), lo, scale)
		best := 0
		for c := range weights {
			if dot(&weights[c], &x) > dot(&weights[best], &x) {
				best = c
			}
		}
		return best
	}
}

func logged(v Vector) Vector {
	for f := range v {
		v[f] = math.Log1p(max(0, v[f]))
	}
	return v
}

func dot(w *[Features + 1]float64, x *Vector) float64 {
	s := w[Features]
	for f := range x {
		s += w[f] * x[f]
	}
	return s
}

const hidden = 16 // units of Network's hidden layer

// network is one hidden layer of tanh units and a softmax.
type network struct {
	in  [hidden][Features + 1]float64
	out [][hidden + 1]float64
}

// Network is a neural net, the other classifier that the dissertation had to abort. It has one
// hidden layer, trained by stochastic gradient descent on the cross entropy.
func Network(examples []Example, use [Features]bool, seed uint64) Classifier {
	const rounds, rate = 40, 0.05
	rng := rand.New(rand.NewPCG(seed, 23))
	logs := make([]Example, len(examples))
	for i, e := range examples {
		logs[i] = Example{Vector: logged(e.Vector), Class: e.Class}
	}
	lo, scale := ranges(logs, use)
	n := &network{out: make([][hidden + 1]float64, len(classCounts(examples)))}
	for h := range n.in {
		for f := range n.in[h] {
			n.in[h][f] = rng.NormFloat64()
		}
	}
	for round := range rounds {
		step := rate / (1 + float64(round)/20)
		for range logs {
			e := &logs[rng.IntN(len(logs))]
			x := scaled(e.Vector, lo, scale)
			n.learn(&x, e.Class, step)
		}
	}
	return func(v Vector) int {
		x := scaled(logged(v), lo, scale)
		_, odds := n.forward(&x)
		best := 0
		for c := range odds {
			if odds[c] > odds[best] {
				best = c
			}
		}
		return best
	}
}

func (n *network) forward(x *Vector) (units [hidden]float64, odds []float64) {
	for h := range n.in {
		units[h] = math.Tanh(dot(&n.in[h], x))
	}
	odds = make([]float64, len(n.out))
	top := math.Inf(-1)
	for c := range n.out {
		odds[c] = n.out[c][hidden]
		for h, u := range units {
			odds[c] += n.out[c][h] * u
		}
		top = max(top, odds[c])
	}
	sum := 0.0
	for c := range odds {
		odds[c] = math.Exp(odds[c] - top)
		sum += odds[c]
	}
	for c := range odds {
		odds[c] /= sum
	}
	return units, odds
}

func (n *network) learn(x *Vector, class int, step float64) {
	units, odds := n.forward(x)
	var back [hidden]float64
	for c := range n.out {
		err := odds[c]
		if c == class {
			err--
		}
		for h := range back {
			back[h] += err * n.out[c][h]
			n.out[c][h] -= step * err * units[h]
		}
		n.out[c][hidden] -= step * err
	}
	for h := range n.in {
		g := step * back[h] * (1 - units[h]*units[h])
		for f := range x {
			n.in[h][f] -= g * x[f]
		}
		n.in[h][Features] -= g
	}
}
