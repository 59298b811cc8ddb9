package classify

import (
	"errors"
	"math"
	"slices"
)

// Group is one group of pages by change rate.
type Group struct {
	Pages  int
	Mean   float64 // of the grouped value (r, per visit interval)
	Lo, Hi float64 // the values in the group: [Lo, Hi)
	// Period is the mean interval between changes in days: visitDays ÷ Mean. The dissertation
	// reads its groups in another way; see the package comment.
	Period float64
}

// KMeans divides values into k groups, fastest first. In one dimension the best groups are
// intervals. So it finds the optimum exactly, by dynamic programming over the distinct values
// (at most maxDistinct; more are binned), without a random start. visitDays is the interval
// between visits to which the values refer.
func KMeans(values []float64, k int, visitDays float64) ([]Group, error) {
	xs, counts := distinct(values)
	if k < 1 || len(xs) < k || !(visitDays > 0) {
		return nil, errors.New("classify: k-means: fewer values than groups, or no interval")
	}
	cuts := bestCuts(xs, counts, k)
	groups := make([]Group, k)
	for g := range groups {
		lo, hi := cuts[g], cuts[g+1]
		out := &groups[k-1-g]
		sum := 0.0
		for i := lo; i < hi; i++ {
			out.Pages += counts[i]
			sum += xs[i] * float64(counts[i])
		}
		out.Mean = sum / float64(out.Pages)
		out.Period = visitDays / out.Mean // +Inf if nothing ever changed
		out.Lo, out.Hi = 0, math.Inf(1)
		if g > 0 {
			out.Lo = (xs[lo-1] + xs[lo]) / 2
		}
		if g < k-1 {
			out.Hi = (xs[hi-1] + xs[hi]) / 2
		}
	}
	return groups, nil
}

// GroupOf returns the group of a value.
func GroupOf(groups []Group, value float64) int {
	for g := range groups {
		if value >= groups[g].Lo {
			return g
		}
	}
	return len(groups) - 1
}

const maxDistinct = 500

// distinct returns the sorted values with their counts, reduced to maxDistinct means.
func distinct(values []float64) ([]float64, []int) {
	sorted := slices.Sorted(slices.Values(values))
	var xs []float64
	var counts []int
	for _, v := range sorted {
		if n := len(xs); n > 0 && xs[n-1] == v {
			counts[n-1]++
		} else {
			xs, counts = append(xs, v), append(counts, 1)
		}
	}
	for len(xs) > maxDistinct { // join neighbours in pairs
		n := 0
		for i := 0; i < len(xs); i += 2 {
			x, c := xs[i], counts[i]
			if i+1 < len(xs) {
				c += counts[i+1]
				x = (x*float64(counts[i]) + xs[i+1]*float64(counts[i+1])) / float64(c)
			}
			xs[n], counts[n] = x, c
			n++
		}
		xs, counts = xs[:n], counts[:n]
	}
	return xs, counts
}

// bestCuts returns the k+1 borders of the groups with the smallest sum of squares.
func bestCuts(xs []float64, counts []int, k int) []int {
	n := len(xs)
	w, s, q := make([]float64, n+1), make([]float64, n+1), make([]float64, n+1)
	for i, x := range xs {
		c := float64(counts[i])
		w[i+1], s[i+1], q[i+1] = w[i]+c, s[i]+c*x, q[i]+c*x*x
	}
	cost := func(a, b int) float64 { // of xs[a:b] as one group
		d := s[b] - s[a]
		return q[b] - q[a] - d*d/(w[b]-w[a])
	}
	best := make([][]float64, k+1)
	from := make([][]int, k+1)
	for g := range best {
		best[g], from[g] = make([]float64, n+1), make([]int, n+1)
		for b := range best[g] {
			best[g][b] = math.Inf(1)
		}
	}
	best[0][0] = 0
	for g := 1; g <= k; g++ {
		for b := g; b <= n; b++ {
			for a := g - 1; a < b; a++ {
				if c := best[g-1][a] + cost(a, b); c < best[g][b] {
					best[g][b], from[g][b] = c, a
				}
			}
		}
	}
	cuts := make([]int, k+1)
	for g, b := k, n; g >= 0; g-- {
		cuts[g] = b
		b = from[g][b]
	}
	return cuts
}
