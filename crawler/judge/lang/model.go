package lang

import (
	"crypto/sha256"
	_ "embed" // the weights
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"sync"
)

//go:embed weights.bin
var embedded string

const (
	magic      = "echolang"
	free       = int(Classes) - 1 // Other has no weights: the others are relative to it
	maxBits    = 19               // log2 of the largest number of slots of a table: 4 MiB
	maxVariety = 22               // log2 of the largest number of weights of Varieties: 4 MiB
	headerSize = len(magic) + 4*(2+2*free+Buckets+1+Buckets+2)
)

// Buckets is the number of text lengths with a separate Params.Sharp.
const Buckets = 12

// Params are the trained numbers besides the table. All are integers, so every machine computes the
// same verdict.
type Params struct {
	Bits    uint32         // the table has 1<<Bits slots
	Unknown [free]int32    // weights of a feature that is not in the table
	Bias    [free]int32    // in the units of the weights times 256
	Sharp   [Buckets]int32 // by length: logit in 1/256 bit per unit of score, times 4096

	VarietyBits  uint32         // Varieties have 1<<VarietyBits weights
	VarietySharp [Buckets]int32 // as Sharp

	// A person's variety: the log-odds in 1/256 bit are Slope/4096 times a sum divided by the
	// square root of the number of texts. The sum is that of the texts' log-odds, with Offset added
	// to each.
	Slope, Offset int32
}

// Table holds the weights of the features that training chose. A slot is one byte of the feature's
// hash, which is never 0 in a used slot, and seven weights + 128.
type Table struct {
	slots []uint64
	shift uint
}

// NewTable returns a Table with 1<<bits slots, all free.
func NewTable(bits uint32) *Table {
	return &Table{slots: make([]uint64, 1<<bits), shift: 64 - uint(bits)}
}

// print8 returns the byte of a hash that identifies a feature in its slot. It is never 0.
func print8(h uint64) uint64 {
	p := h & 0xff
	return p | allIfNone(p)&1
}

// Put stores the weights of a feature in one of two slots. It returns false when both are used, or
// one has a feature with the same byte of the hash. Earlier features win, so put the important ones
// first.
func (t *Table) Put(hash uint64, weights [free]int8) bool {
	at := hash >> t.shift
	row := print8(hash)
	if t.slots[at]&0xff == row || t.slots[at^1]&0xff == row {
		return false
	}
	if t.slots[at] != 0 {
		if at ^= 1; t.slots[at] != 0 {
			return false
		}
	}
	for c, w := range weights {
		row |= uint64(byte(int(w)+128)) << (8 * (c + 1))
	}
	t.slots[at] = row
	return true
}

// Judge detects languages. It is immutable and safe for concurrent use.
type Judge struct {
	p      Params
	t      *Table
	v      *Varieties
	exp2   [256]uint32 // 2^(-i/256) in 1/2^30
	digest string

	rooms, memories sync.Pool // of *room, and of *memory[varietySum]
}

// Open returns the judge with the embedded weights.
func Open() (*Judge, error) { return Parse([]byte(embedded)) }

// Digest returns the SHA-256 of the weights in hex, which identifies them in reports.
func (j *Judge) Digest() string { return j.digest }

// Encode returns the weights as a file:
//
//	magic, WeightsVersion, Params (little-endian words), slots, weights of the varieties, SHA-256 of all that
func Encode(p Params, t *Table, v *Varieties) []byte {
	b := append(make([]byte, 0, headerSize+8*len(t.slots)+len(v.weights)+sha256.Size), magic...)
	put := func(v ...int32) {
		for _, v := range v {
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		}
	}
	put(WeightsVersion, int32(p.Bits))
	put(p.Unknown[:]...)
	put(p.Bias[:]...)
	put(p.Sharp[:]...)
	put(int32(p.VarietyBits))
	put(p.VarietySharp[:]...)
	put(p.Slope, p.Offset)
	for _, s := range t.slots {
		b = binary.LittleEndian.AppendUint64(b, s)
	}
	for _, w := range v.weights {
		b = append(b, byte(w))
	}
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// Parse parses what Encode wrote. It fails on all other input, on weights of another
// WeightsVersion, and when the digest does not match.
func Parse(b []byte) (*Judge, error) {
	if len(b) < headerSize+sha256.Size || string(b[:len(magic)]) != magic {
		return nil, errors.New("lang: not a file of weights")
	}
	body, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if got := sha256.Sum256(body); string(got[:]) != string(sum) {
		return nil, errors.New("lang: the weights do not match their digest")
	}
	rest := body[len(magic):]
	get := func() int32 {
		v := int32(binary.LittleEndian.Uint32(rest))
		rest = rest[4:]
		return v
	}
	fill := func(v []int32) {
		for i := range v {
			v[i] = get()
		}
	}
	if v := get(); v != WeightsVersion {
		return nil, fmt.Errorf("lang: weights of version %d, want %d", v, WeightsVersion)
	}
	j := &Judge{digest: hex.EncodeToString(sum)}
	p := &j.p
	p.Bits = uint32(get())
	fill(p.Unknown[:])
	fill(p.Bias[:])
	fill(p.Sharp[:])
	p.VarietyBits = uint32(get())
	fill(p.VarietySharp[:])
	p.Slope, p.Offset = get(), get()
	if p.Bits < 1 || p.Bits > maxBits || p.VarietyBits < 1 || p.VarietyBits > maxVariety ||
		len(rest) != 8<<p.Bits+1<<p.VarietyBits {
		return nil, fmt.Errorf("lang: %d bytes of weights do not fit a table of 2^%d slots and 2^%d weights of varieties", len(rest), p.Bits, p.VarietyBits)
	}
	j.t = NewTable(p.Bits)
	for i := range j.t.slots {
		j.t.slots[i] = binary.LittleEndian.Uint64(rest[8*i:])
	}
	j.v = NewVarieties(p.VarietyBits)
	for i, b := range rest[8<<p.Bits:] {
		j.v.weights[i] = int8(b)
	}
	// The last bit of math.Exp2 may differ between machines, the rounded value does not: see the
	// test.
	for i := range j.exp2 {
		j.exp2[i] = uint32(math.Round(math.Exp2(-float64(i)/256) * (1 << 30)))
	}
	return j, nil
}

// sums are the sums over the features of one text.
type sums struct {
	even, odd [4]int64 // sums of weights + 128, for classes 1 3 5 and 0 2 4 6
	known     int64
	total     int64
}

// packed holds the sums over a few features. The seven weights of a slot are added at once, as four
// sums of 16 bits in one word and three in another.
type packed struct {
	even, odd    uint64
	known, total uint16
}

// maxPacked is the number of features that can be added before the sums could overflow.
const maxPacked = 256

// sum looks up at most maxPacked features. It has no branch that depends on the result. A wrong
// branch prediction would wait for memory, one lookup after the other.
func (t *Table) sum(hashes []uint64) packed {
	const lanes = 0x00ff00ff00ff00ff
	p := packed{total: uint16(len(hashes))}
	known := uint64(0)
	for _, h := range hashes {
		at := h >> t.shift
		print := print8(h)
		one, other := t.slots[at], t.slots[at^1]
		isOne, isOther := allIfNone((one^print)&0xff), allIfNone((other^print)&0xff)
		row := one&isOne | other&isOther&^isOne
		known += (isOne | isOther) & 1
		p.even += row & (lanes &^ 0xff)
		p.odd += row >> 8 & lanes
	}
	p.known = uint16(known)
	return p
}

// allIfNone returns all bits if x is 0, and none for x from 1 to 1<<63.
func allIfNone(x uint64) uint64 { return uint64(int64(x-1) >> 63) }

func (a *sums) add(p packed) {
	a.known += int64(p.known)
	a.total += int64(p.total)
	for i := range 4 {
		a.even[i] += int64(p.even >> (16 * i) & 0xffff)
		a.odd[i] += int64(p.odd >> (16 * i) & 0xffff)
	}
}

// memory caches the result for words, so that a word that occurs again, in this text or a later
// one, is not looked up again. An entry holds the last word that was mapped to it. Each memory
// belongs to one Judge.
type memory[T any] [1 << 10]struct {
	word [maxKept]byte // as the text writes it
	n    uint8         // bytes of word; 0 if the entry is free
	own  T
}

// maxKept is the length of the longest word that is cached, in bytes.
const maxKept = 23

// of returns the entry for the word that next found, whose hash is whole. If known is false, the
// caller must store the result in own. own is nil for a word that is too long.
func (m *memory[T]) of(s *scanner, whole uint64) (own *T, known bool) {
	word := s.text[s.from:s.pos] // which is never empty
	if len(word) > maxKept {
		return nil, false
	}
	e := &m[(whole^whole>>23)%uint64(len(m))]
	if string(e.word[:e.n]) == word {
		return &e.own, true
	}
	e.n = uint8(copy(e.word[:], word))
	return &e.own, false
}

// room is the memory for scoring a text. It is reused through a pool. On the stack of a goroutine
// that judges one text, each room would make that stack grow and be copied.
type room struct {
	words  memory[packed]
	buf    [maxPerWord]uint64
	beside [maxPacked]uint64 // features of word pairs that are not summed yet
}

// take returns a T of the pool, or a new one.
func take[T any](pool *sync.Pool) *T {
	if v, ok := pool.Get().(*T); ok {
		return v
	}
	return new(T)
}

// own returns the sums of the features that the word found by next has by itself.
func (r *room) own(s *scanner, t *Table, whole uint64) packed {
	own, known := r.words.of(s, whole)
	if known {
		return *own
	}
	r.buf[0] = mix(kindWord | whole)
	p := t.sum(r.buf[:1+s.shape(r.buf[1:], 3)])
	if own != nil {
		*own = p
	}
	return p
}

// logits returns the logits in 1/256 bit, relative to Other. The score of a class is the sum of its
// weights divided by the square root of the number of features, plus its bias.
func (j *Judge) logits(a *sums) (out [Classes]int32) {
	if a.total == 0 {
		return out
	}
	root := rootOf(a.total)
	sharp := int64(j.p.Sharp[Bucket(int(a.total))])
	for c := range free {
		sum := a.odd[c/2]
		if c%2 == 1 {
			sum = a.even[c/2+1]
		}
		sum += -128*a.known + int64(j.p.Unknown[c])*(a.total-a.known)/256
		score := sum*65536/root + int64(j.p.Bias[c]) // in 1/256 unit of weight
		out[c] = int32(max(-1<<20, min(1<<20, score*sharp/4096)))
	}
	return out
}

// rootOf returns the square root of n, times 256. Its rounding is exact, so it is the same on every
// machine.
func rootOf(n int64) int64 { return int64(math.Sqrt(float64(n << 16))) }

// Bucket returns the length class of a text with n features, as an index of Params.Sharp.
func Bucket(n int) int {
	b := 0
	for n > 16 && b < Buckets-1 {
		n, b = n*2/3, b+1
	}
	return b
}

// softmax returns the probabilities for logits. It uses integers up to the last division.
func (j *Judge) softmax(logits *[Classes]int32) (p Scores) {
	top := logits[0]
	for _, l := range logits[1:] {
		top = max(top, l)
	}
	var e [Classes]uint64
	var sum uint64
	for c, l := range logits {
		if d := uint32(top - l); d < 30*256 {
			e[c] = uint64(j.exp2[d&255] >> (d >> 8))
		}
		sum += e[c]
	}
	for c := range p {
		p[c] = float64(e[c]) / float64(sum)
	}
	return p
}
