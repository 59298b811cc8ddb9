package duplicates

import "slices"

// span is a range of bits of a fingerprint: width bits, from bit low up.
type span struct{ low, width int }

func (s span) of(f uint64) uint64 { return f >> s.low & (1<<s.width - 1) }

// A bucket with more than crowded fingerprints is divided again, not compared pair by pair. It is
// not divided deeper than maxDepth, because each level visits the fingerprints k+1 times.
const (
	crowded  = 1024
	maxDepth = 3
)

// Near calls yield(i, j), i < j, once for every pair of fingerprints at most k bits apart, in no
// particular order. It is exact: two fingerprints that differ in at most k bits agree in at least
// one of k+1 blocks (Manku, Jain and Das Sarma 2007). For k = 3 these are four blocks of 16 bits. A
// crowded bucket is divided again by blocks of its other bits, up to maxDepth times. So common skew
// costs a factor, not a square. Equal fingerprints all pair with each other: pass distinct ones. k
// is 0 to 63.
func Near(fingerprints []uint64, k int, yield func(i, j int)) {
	n := nearer{fingerprints: fingerprints, k: k, yield: yield}
	ids := make([]int32, len(fingerprints))
	for i := range ids {
		ids[i] = int32(i)
	}
	n.split(ids, []span{{0, 64}}, nil)
}

// nearer is one call of Near.
type nearer struct {
	fingerprints []uint64
	k            int
	yield        func(i, j int)
}

// met is a block that was used to divide on the way down. A pair is reported only where no block
// before it agrees, so it is reported once.
type met struct {
	blocks []block
	at     int
}

// block is a set of spans that is compared as one value.
type block []span

func (b block) equal(f, g uint64) bool {
	for _, s := range b {
		if s.of(f) != s.of(g) {
			return false
		}
	}
	return true
}

func (b block) compare(f, g uint64) int {
	for _, s := range b {
		if x, y := s.of(f), s.of(g); x != y {
			if x < y {
				return -1
			}
			return 1
		}
	}
	return 0
}

// split divides the free bits into k+1 blocks. By each block it puts ids into buckets and handles
// the buckets.
func (n *nearer) split(ids []int32, free []span, path []met) {
	blocks := divide(free, n.k+1)
	for at, b := range blocks {
		here := append(path[:len(path):len(path)], met{blocks, at})
		sorted := slices.Clone(ids)
		slices.SortFunc(sorted, func(i, j int32) int { return b.compare(n.fingerprints[i], n.fingerprints[j]) })
		for from := 0; from < len(sorted); {
			to := from + 1
			for to < len(sorted) && b.equal(n.fingerprints[sorted[from]], n.fingerprints[sorted[to]]) {
				to++
			}
			n.bucket(sorted[from:to], others(blocks, at), here)
			from = to
		}
	}
}

// varying returns the bits of free in which ids differ. Bits in which all agree would give blocks
// that divide nothing.
func (n *nearer) varying(ids []int32, free []span) []span {
	mask := uint64(0)
	for _, i := range ids {
		mask |= n.fingerprints[i] ^ n.fingerprints[ids[0]]
	}
	var out []span
	for _, s := range free {
		for low := s.low; low < s.low+s.width; low++ {
			switch last := len(out) - 1; {
			case mask>>low&1 == 0:
			case last >= 0 && out[last].low+out[last].width == low:
				out[last].width++
			default:
				out = append(out, span{low, 1})
			}
		}
	}
	return out
}

// bucket reports the near pairs of ids, which agree on the last block of path.
func (n *nearer) bucket(ids []int32, free []span, path []met) {
	if len(ids) > crowded && len(path) < maxDepth {
		if left := n.varying(ids, free); width(left) > n.k {
			n.split(ids, left, path)
			return
		}
	}
	for x, i := range ids {
		f := n.fingerprints[i]
		for _, j := range ids[x+1:] {
			g := n.fingerprints[j]
			if Distance(f, g) <= n.k && first(path, f, g) {
				n.yield(int(min(i, j)), int(max(i, j)))
			}
		}
	}
}

// first reports whether f and g meet nowhere before path.
func first(path []met, f, g uint64) bool {
	for _, m := range path {
		for _, b := range m.blocks[:m.at] {
			if b.equal(f, g) {
				return false
			}
		}
	}
	return true
}

// divide cuts free into at most parts blocks of nearly equal width. None is empty.
func divide(free []span, parts int) []block {
	total := width(free)
	parts = min(parts, total)
	blocks := make([]block, 0, parts)
	for i := range parts {
		blocks = append(blocks, slice(free, total*i/parts, total*(i+1)/parts))
	}
	return blocks
}

// slice returns the bits from..to of free, counted through its spans.
func slice(free []span, from, to int) block {
	var out block
	for _, s := range free {
		lo, hi := max(from, 0), min(to, s.width)
		if lo < hi {
			out = append(out, span{s.low + lo, hi - lo})
		}
		from, to = from-s.width, to-s.width
	}
	return out
}

func width(spans []span) int {
	total := 0
	for _, s := range spans {
		total += s.width
	}
	return total
}

// others returns the spans of all blocks except the one at index at.
func others(blocks []block, at int) []span {
	var out []span
	for i, b := range blocks {
		if i != at {
			out = append(out, b...)
		}
	}
	return out
}
