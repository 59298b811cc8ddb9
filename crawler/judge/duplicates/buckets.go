package duplicates

import "math"

// Bucket names a set of texts that may be copies of each other. Its first byte is the table, the
// rest the value in that table.
type Bucket uint64

// The tables. The numbers are stored and sent, so they must never change.
const (
	tableSame  = 1  // texts that match only exactly, by content
	tableBlock = 16 // +i: block i of the fingerprint
	tableBand  = 64 // +i: band i of the min-hash
)

// Bands of the min-hash. Pairs that share a part j of their features meet with probability
// 1-(1-j^bandRows)^Bands: 0.999 at 7/8 (one word of 15 replaced), 0.97 at 10/13 (two), 0.06 at
// 3/10.
const (
	Bands    = 8
	bandRows = 4
)

// Table returns the table of b. Buckets of one table never overlap.
func (b Bucket) Table() int { return int(b >> 56) }

// block reports whether b is a block of the fingerprint.
func (b Bucket) block() bool { return b.Table() >= tableBlock && b.Table() <= tableBlock+MaxDistance }

// Slot maps buckets evenly to 64 bits. The result can be used like the hash of a Key, to find the
// slice by prefix.
func (b Bucket) Slot() uint64 { return mix(uint64(b) + 0x9e3779b97f4a7c15) }

// Buckets appends the buckets of p to dst. Two texts that Compare calls copies share at least one:
// always when they are near, otherwise with the probability of Bands. A text that is only marks has
// no bucket. A text too short to be compared word by word has one.
func (o Options) Buckets(dst []Bucket, p Fingerprint) []Bucket {
	o = o.withDefaults()
	if p.Features == 0 {
		return dst
	}
	if p.Features < o.MinTokens {
		return append(dst, bucket(tableSame, mix(p.Content)))
	}
	blocks := divide([]span{{0, 64}}, o.Distance+1)
	for i, b := range blocks {
		dst = append(dst, bucket(tableBlock+i, b[0].of(p.Bits)))
	}
	if o.Paper {
		return dst
	}
	features := minFeatures(nil, p.Units)
	for i := range Bands {
		dst = append(dst, bucket(tableBand+i, band(features, i)))
	}
	return dst
}

// bucket returns the Bucket of a table for the low 56 bits of value.
func bucket(table int, value uint64) Bucket {
	return Bucket(uint64(table)<<56 | value&(1<<56-1))
}

// minFeatures appends the features of the min-hash to dst: words and pairs of ideographs.
func minFeatures(dst []uint32, units []Unit) []uint32 {
	for i, u := range units {
		f := uint32(u.word())
		if u.is(unitHan) && i+1 < len(units) && units[i+1].is(unitHan) {
			f = uint32(mix(uint64(f)<<32 | uint64(units[i+1].word())))
		}
		dst = append(dst, f)
	}
	return dst
}

// band returns the value of band i. It combines the smallest hash of the features under each of the
// band's bandRows hash functions.
func band(features []uint32, i int) uint64 {
	var least [bandRows]uint64
	for r := range least {
		least[r] = math.MaxUint64
	}
	for _, f := range features {
		h := mix(uint64(f)<<8 | uint64(i))
		for r := range least {
			// Each row has a different odd factor; the high bits decide.
			least[r] = min(least[r], h*rowFactors[r]>>20)
		}
	}
	var value uint64
	for _, l := range least {
		value = mix(value ^ l)
	}
	return value
}

// rowFactors never change, because they are part of FingerprintVersion.
var rowFactors = [bandRows]uint64{0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0xd6e8feb86659fd93, 0xa0761d6478bd642f}

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
