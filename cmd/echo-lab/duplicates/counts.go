package duplicates

import "github.com/echo-node/echo-node/crawler/judge/duplicates"

// CountSimhash is a 64-bit fingerprint with repetitions as weights: the variant against which
// the paper argues.
func CountSimhash(features []string) uint64 {
	var ones [64]int
	for _, f := range features {
		hash := duplicates.Hash(f)
		for i := range ones {
			ones[i] += int(hash >> i & 1)
		}
	}
	var out uint64
	for i, n := range ones {
		if 2*n > len(features) {
			out |= 1 << i
		}
	}
	return out
}

// countPairs returns the share of the planted pairs of each class whose CountSimhash values
// differ by at most the paper's bits.
func countPairs(texts []duplicates.Text, perClass int) []float64 {
	fingerprint := func(text duplicates.Text) uint64 {
		stripped, _ := duplicates.Strip(text.Text)
		return CountSimhash(duplicates.Tokens(stripped))
	}
	found := make([]int, len(classes()))
	for i := 0; i < len(texts); i += 3 { // a base, its copy, one of its topic
		if duplicates.Distance(fingerprint(texts[i]), fingerprint(texts[i+1])) <= paperBits {
			_, class, _ := parse(texts[i].ID)
			found[class]++
		}
	}
	out := make([]float64, len(found))
	for i, n := range found {
		out[i] = float64(n) / float64(perClass)
	}
	return out
}

// Example is the paper's example (section 2.4): "Chairman Mao great, great, great" and
// "Chairman Mao great".
type Example struct {
	Sets   int `json:"sets"`   // bits between the two if a word counts once
	Counts int `json:"counts"` // bits if a word counts as often as it occurs
}

// PaperExample measures the example.
func PaperExample() Example {
	long := []string{"毛主席", "伟大", "伟大", "伟大"}
	short := []string{"毛主席", "伟大"}
	return Example{
		Sets:   duplicates.Distance(duplicates.Simhash(long), duplicates.Simhash(short)),
		Counts: duplicates.Distance(CountSimhash(long), CountSimhash(short)),
	}
}
