package classify

import "math"

// Confusion counts answers: rows are true classes, columns answers.
type Confusion struct{ Counts [][]int }

// NewConfusion returns an empty table of classes.
func NewConfusion(classes int) Confusion {
	c := Confusion{make([][]int, classes)}
	for i := range c.Counts {
		c.Counts[i] = make([]int, classes)
	}
	return c
}

// Test adds a classifier's answers.
func (c Confusion) Test(f Classifier, examples []Example) {
	for _, e := range examples {
		if answer := f(e.Vector); e.Class < len(c.Counts) && answer < len(c.Counts) {
			c.Counts[e.Class][answer]++
		}
	}
}

func (c Confusion) total() (total, right int) {
	for i, row := range c.Counts {
		for j, n := range row {
			total += n
			if i == j {
				right += n
			}
		}
	}
	return total, right
}

// Accuracy returns the share of right answers.
func (c Confusion) Accuracy() float64 {
	total, right := c.total()
	return div(float64(right), float64(total))
}

// Interval returns the half width of the accuracy's 95 % interval (Wilson's, at its wider
// side).
func (c Confusion) Interval() float64 {
	total, _ := c.total()
	n, p, z := float64(total), c.Accuracy(), 1.96
	if n == 0 {
		return 1
	}
	centre := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return half + math.Abs(centre-p)
}

// Majority returns the accuracy of always answering the most common class.
func (c Confusion) Majority() float64 {
	total, _ := c.total()
	most := 0
	for _, row := range c.Counts {
		sum := 0
		for _, n := range row {
			sum += n
		}
		most = max(most, sum)
	}
	return div(float64(most), float64(total))
}

// MacroF1 returns the mean over classes of the harmonic mean of precision and recall.
func (c Confusion) MacroF1() float64 {
	sum := 0.0
	for k := range c.Counts {
		sum += c.Versus(k).F()
	}
	return div(sum, float64(len(c.Counts)))
}

// Balanced returns the mean recall over classes that occur.
func (c Confusion) Balanced() float64 {
	sum, n := 0.0, 0.0
	for k := range c.Counts {
		if b := c.Versus(k); b.TP+b.FN > 0 {
			sum, n = sum+b.Recall(), n+1
		}
	}
	return div(sum, n)
}

// Versus returns class k against all others.
func (c Confusion) Versus(k int) Binary {
	var b Binary
	for i, row := range c.Counts {
		for j, n := range row {
			switch {
			case i == k && j == k:
				b.TP += n
			case i == k:
				b.FN += n
			case j == k:
				b.FP += n
			default:
				b.TN += n
			}
		}
	}
	return b
}

// Binary is a table of two classes.
type Binary struct{ TP, FN, FP, TN int }

// The dissertation's six measures, and two that it lacks. Balanced and MCC do not favour a
// classifier that always answers the more common class.

// Accuracy returns the share of right answers.
func (b Binary) Accuracy() float64 {
	return div(float64(b.TP+b.TN), float64(b.TP+b.TN+b.FP+b.FN))
}

// Recall returns the share of positives found.
func (b Binary) Recall() float64 { return div(float64(b.TP), float64(b.TP+b.FN)) }

// Specificity returns the share of negatives that were not reported.
func (b Binary) Specificity() float64 { return div(float64(b.TN), float64(b.TN+b.FP)) }

// Precision returns the share of positive answers that are right.
func (b Binary) Precision() float64 { return div(float64(b.TP), float64(b.TP+b.FP)) }

// NPV returns the share of negative answers that are right.
func (b Binary) NPV() float64 { return div(float64(b.TN), float64(b.TN+b.FN)) }

// F returns the harmonic mean of precision and recall.
func (b Binary) F() float64 { return div(2*float64(b.TP), float64(2*b.TP+b.FP+b.FN)) }

// Balanced returns the mean of recall and specificity.
func (b Binary) Balanced() float64 { return (b.Recall() + b.Specificity()) / 2 }

// MCC returns Matthews's correlation coefficient.
func (b Binary) MCC() float64 {
	tp, fn, fp, tn := float64(b.TP), float64(b.FN), float64(b.FP), float64(b.TN)
	return div(tp*tn-fp*fn, math.Sqrt((tp+fp)*(tp+fn)*(tn+fp)*(tn+fn)))
}

func div(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
