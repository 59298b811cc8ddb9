package index

import (
	"math"

	"github.com/echo-node/echo-node/partition"
)

// BM25's constants; see the package comment.
const (
	k1          = 1.2
	b           = 0.75
	textLength  = 500 // words: the reference a text's length is set against
	titleLength = 8
	titleWeight = 0.75
)

// Stats are what scores need to know of all the documents that a query is put
// to. The zero Stats are of no documents.
type Stats struct {
	Docs uint64            `json:"docs"`
	DF   map[string]uint64 `json:"df"` // documents with each word of the query
	// Missing are those of Query.Slices that are not in the index whole: nothing of
	// them is counted.
	Missing []partition.Slice `json:"-"`
}

// Merge is the sum of s and o, of disjoint documents. It is commutative and
// associative, and neither s nor o is changed.
func (s Stats) Merge(o Stats) Stats {
	out := Stats{Docs: add(s.Docs, o.Docs), DF: make(map[string]uint64, len(s.DF)+len(o.DF))}
	for w, n := range s.DF {
		out.DF[w] = n
	}
	for w, n := range o.DF {
		out.DF[w] = add(out.DF[w], n)
	}
	return out
}

// add stops at the top: Stats come from other peers.
func add(x, y uint64) uint64 {
	if x+y < x {
		return math.MaxUint64
	}
	return x + y
}

// weight is the inverse document frequency of a word, never below 0.
func (s Stats) weight(word string) float64 {
	df := float64(s.DF[word])
	n := math.Max(float64(s.Docs), df)
	return math.Log(1 + (n-df+0.5)/(df+0.5))
}

// part is BM25's term of one word in one field. The conversions forbid fused
// multiply-add, which would give other bits on other processors.
func part(freq, length, reference float64) float64 {
	norm := float64(b * length / reference)
	return freq * (k1 + 1) / float64(freq+float64(k1*float64(1-b+norm)))
}

// lengthOf undoes bleve's norm, 1/sqrt(words) in single precision: exact up to
// a million words, more than MaxTextBytes holds.
func lengthOf(norm float64) float64 {
	if norm <= 0 {
		return 0
	}
	return math.Round(1 / (norm * norm))
}
