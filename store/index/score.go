package index

import (
	"math"

	"github.com/echo-node/echo-node/partition"
)

// The constants of BM25; see the package comment.
const (
	k1          = 1.2
	b           = 0.75
	textLength  = 500 // words: the reference length of a text
	titleLength = 8
	titleWeight = 0.75
)

// Stats contains what a score needs to know about all documents that a query searches. The zero
// Stats describe no documents.
type Stats struct {
	Docs uint64            `json:"docs"`
	DF   map[string]uint64 `json:"df"` // by word of the query: documents that contain it
	// Missing are the slices of Query.Slices that are not indexed completely. They are not counted.
	Missing []partition.Slice `json:"-"`
}

// Merge returns the sum of s and o, which must describe disjoint documents. It is commutative and
// associative, and changes neither s nor o.
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

// add returns x + y, or the maximum on overflow: Stats come from other peers.
func add(x, y uint64) uint64 {
	if x+y < x {
		return math.MaxUint64
	}
	return x + y
}

// weight returns the inverse document frequency of a word, which is never negative.
func (s Stats) weight(word string) float64 {
	df := float64(s.DF[word])
	n := math.Max(float64(s.Docs), df)
	return math.Log(1 + (n-df+0.5)/(df+0.5))
}

// part returns BM25's term of one word in one field. The conversions forbid fused multiply-add,
// which would give other bits on other processors.
func part(freq, length, reference float64) float64 {
	norm := float64(b * length / reference)
	return freq * (k1 + 1) / float64(freq+float64(k1*float64(1-b+norm)))
}

// lengthOf inverts bleve's norm, which is 1/sqrt(words) in single precision. It is exact up to a
// million words, more than MaxTextBytes holds.
func lengthOf(norm float64) float64 {
	if norm <= 0 {
		return 0
	}
	return math.Round(1 / (norm * norm))
}
