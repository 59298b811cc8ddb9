package partition

import (
	"math/bits"
)

// score(member, slice) = -log2(u) / w, lowest wins, u a uniform hash in (0, 1] of member and
// slice. So the winner of a slice is random, and a member's chance is its share of the weight.
// A change of one member changes one score per slice (weighted rendezvous hashing:
// Schindelhauer and Schomaker, "Weighted distributed hash tables", SPAA 2005).
//
// Peers on different architectures must agree on every bit, and Go may fuse floating point
// operations. So everything is computed in integers: -log2(u) in 7.57 fixed point, compared as
// a1*w2 < a2*w1 in 128 bits, without a division.

// memberDomain begins the text whose hash is a member's seed; part of profile 1.
const memberDomain = "echo-node member 1\n"

// memberSeed returns the number that identifies a member in every draw.
func memberSeed(id string) uint64 { return hashText(memberDomain, id) }

// draw returns the uniform 64-bit hash of a member (by its seed) and a slice (by its mix). It
// applies two rounds of the finaliser of splitmix64 (Steele, Lea, Flood, "Fast splittable
// pseudorandom number generators", OOPSLA 2014).
func draw(seed, mixed uint64) uint64 { return mix(seed ^ mixed) }

// mix is one round of the finaliser of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// stepWeights are weights in 1/2^16 of one unit of capacity: round(2^(16-step/2)).
var stepWeights = [MaxLoadStep + 1]uint64{
	65536, 46341, 32768, 23170, 16384, 11585, 8192, 5793, 4096,
	2896, 2048, 1448, 1024, 724, 512, 362, 256,
}

// baseWeight returns w of a member where distance does not count: 2^8 to 2^20.
func baseWeight(m Member) uint64 {
	capacity := min(max(m.Capacity, 1), MaxCapacity)
	step := min(max(m.LoadStep, 0), MaxLoadStep)
	return uint64(capacity) * stepWeights[step]
}

// logFraction is the number of bits after the point of a logarithm.
const logFraction = 57

// negLog2 returns -log2((h+1) / 2^64) in units of 2^-57, with an error of at most 8 units.
func negLog2(h uint64) uint64 {
	x := h + 1
	if x == 0 {
		return 0 // u is 1
	}
	zeros := bits.LeadingZeros64(x)
	m := x << zeros // x = m/2^63 * 2^(63-zeros), m/2^63 in [1, 2)
	// Split m = c * (1+r), c with nine bits from the table, 0 <= r < 2^-8.
	i := m >> 55 & 0xff
	hi, _ := bits.Mul64(m, logTable[i].inverse)
	var r uint64 // in 2^-63
	if hi > 1<<63 {
		r = hi - 1<<63
	}
	// ln(1+r) = r(1 - r(1/2 - r(1/3 - r(1/4 - r(1/5 - r(1/6 - r/7))))))
	t := uint64(one / 7)
	for n := uint64(6); n >= 1; n-- {
		t = one/n - mul63(r, t)
	}
	ln := mul63(r, t)                          // in 2^-63
	log := mul63(ln, log2e>>1)                 // in 2^-62
	frac := logTable[i].log + (log+1<<4)>>5    // in 2^-57
	return uint64(zeros+1)<<logFraction - frac // log2(x) = 63 - zeros + frac
}

const (
	one   = 1 << 63            // 1 in 2^-63
	log2e = 0xb8aa3b295c17f0bb // log2(e) in 2^-63, rounded down
)

// mul63 returns a*b for numbers in 2^-63, rounded down.
func mul63(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi<<1 | lo>>63
}

// logEntry is the logarithm of one step c of the table.
type logEntry struct {
	inverse uint64 // 2^64/c, rounded down
	log     uint64 // log2(c) in 2^-57, rounded
}

// logTable has the entries for c = 1 + i/256. It is computed from constants and never changes.
var logTable = makeLogTable()

// makeLogTable computes logTable.
func makeLogTable() (t [256]logEntry) {
	t[0] = logEntry{inverse: ^uint64(0)}
	for i := uint64(1); i < 256; i++ {
		c := (256 + i) << 55 // in 2^-63
		t[i].inverse, _ = bits.Div64(1<<63, 0, c)
		t[i].log = (log2Digits(c) + 1<<4) >> 5
	}
	return t
}

// log2Digits returns log2(y/2^63) for y/2^63 in [1, 2), in 2^-62. It computes one binary digit
// at a time: squaring doubles the logarithm.
func log2Digits(y uint64) uint64 {
	var out uint64
	for bit := uint64(1) << 61; bit > 0; bit >>= 1 {
		hi, lo := bits.Mul64(y, y) // in 2^-126: 1 is 2^62 in hi
		if hi >= 1<<63 {           // 2 or more
			out |= bit
			y = hi
		} else {
			y = hi<<1 | lo>>63
		}
	}
	return out
}

// floorLog returns a lower bound of negLog2 with one multiplication: -ln(u) >= 1-u. Most
// members that score for a slice are far from the best, and this bound is enough to see that.
func floorLog(h uint64) uint64 {
	// (1-u) * log2(e), with 1-u = (2^64-1-h)/2^64 and log2(e) rounded down in 2^-57, minus the
	// error of negLog2.
	hi, _ := bits.Mul64(^h, log2e>>6)
	if hi < 16 {
		return 0
	}
	return hi - 16
}

// lessScore reports whether the score a1/w1 is below a2/w2.
func lessScore(a1, w1, a2, w2 uint64) bool {
	hi1, lo1 := bits.Mul64(a1, w2)
	hi2, lo2 := bits.Mul64(a2, w1)
	return hi1 < hi2 || (hi1 == hi2 && lo1 < lo2)
}
