package duplicates

import (
	"math/bits"
	"slices"

	"github.com/go-faster/city"
)

// Hash returns the hash of one feature: CityHash64 of its UTF-8 bytes (version 1.1 of Google's
// function; the empty string gives 9ae16a3b2f90404f).
func Hash(feature string) uint64 { return city.Hash64([]byte(feature)) }

// Simhash returns the 64-bit fingerprint (Charikar 2002) of the set of features, each with weight
// 1. Order and repetition do not count. A bit is 0 if as many features have 1 as 0. Without
// features the fingerprint is 0.
func Simhash(features []string) uint64 {
	hashes := make([]uint64, 0, len(features))
	for _, f := range features {
		hashes = append(hashes, Hash(f))
	}
	return simhashSet(hashes)
}

// simhashSet returns the fingerprint of the distinct hashes. It sorts hashes in place.
func simhashSet(hashes []uint64) uint64 { return majority(distinct(hashes)) }

// distinct sorts hashes in place and removes duplicates. Many hashes are first distributed by their
// first byte. Hashes are so even that little is left to sort then. If an attacker made them uneven,
// the result is still right.
func distinct(hashes []uint64) []uint64 {
	const few = 64
	if len(hashes) <= few {
		slices.Sort(hashes)
		return slices.Compact(hashes)
	}
	var next, end [256]int
	for _, h := range hashes {
		end[h>>56]++
	}
	for i, sum := 0, 0; i < len(end); i++ {
		next[i] = sum
		sum += end[i]
		end[i] = sum
	}
	from := 0
	for i := range next {
		for next[i] < end[i] {
			h := hashes[next[i]]
			to := h >> 56
			if int(to) != i {
				hashes[next[i]] = hashes[next[to]]
				hashes[next[to]] = h
			}
			next[to]++
		}
		slices.Sort(hashes[from:end[i]])
		from = end[i]
	}
	return slices.Compact(hashes)
}

// majority returns the bits that are set in more than half of hashes.
func majority(hashes []uint64) uint64 {
	// Each word has eight counters of one byte: bit i of every byte of h is added to column i.
	// flush empties them before a byte can overflow.
	const bytes = 0x0101010101010101
	var columns [8]uint64
	var count [64]int
	flush := func() {
		for i, c := range columns {
			for b := range 8 {
				count[b*8+i] += int(c >> (8 * b) & 0xff)
			}
			columns[i] = 0
		}
	}
	for n, h := range hashes {
		for i := range columns {
			columns[i] += h >> i & bytes
		}
		if n%255 == 254 {
			flush()
		}
	}
	flush()
	var out uint64
	for i, c := range count {
		if 2*c > len(hashes) {
			out |= 1 << i
		}
	}
	return out
}

// Distance returns the Hamming distance of two fingerprints in bits.
func Distance(a, b uint64) int { return bits.OnesCount64(a ^ b) }
