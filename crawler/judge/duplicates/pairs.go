package duplicates

import (
	"cmp"
	"slices"
	"strings"
)

// Ref identifies a text and gives its place in the order that decides which text represents a
// group.
type Ref struct {
	Time int64  `json:"time"`
	ID   string `json:"id"`
}

// Before reports whether r comes before s: the earlier time, then the shorter id (numeric ids grow
// with time), then the smaller id.
func (r Ref) Before(s Ref) bool { return r.compare(s) < 0 }

func (r Ref) compare(s Ref) int {
	return cmp.Or(cmp.Compare(r.Time, s.Time), cmp.Compare(len(r.ID), len(s.ID)), strings.Compare(r.ID, s.ID))
}

// Pair is two texts that Compare calls copies. A is before B.
type Pair struct {
	A, B Ref
	Match
}

// Ref returns p's place in the order.
func (p Fingerprint) Ref() Ref { return Ref{p.Time, p.ID} }

// Match compares p with the texts of bucket b and appends the pairs to dst. A block of the
// fingerprint pairs only texts whose whole fingerprints are near. Other texts meet in it by chance,
// and a peer with all texts would not compare them. A bucket needs to hold only one Fingerprint of each
// set of Same texts. Drop p when one of its pairs says Same and p is not the earlier of the two.
func (o Options) Match(dst []Pair, b Bucket, p Fingerprint, held []Fingerprint) []Pair {
	o = o.withDefaults()
	for i := range held {
		m, ok := o.compare(&p, &held[i])
		if ok && (m.Same || !b.block() || Distance(p.Bits, held[i].Bits) <= o.Distance) {
			dst = append(dst, newPair(p.Ref(), held[i].Ref(), m))
		}
	}
	return dst
}

func newPair(a, b Ref, m Match) Pair {
	if b.Before(a) {
		a, b = b, a
	}
	return Pair{a, b, m}
}

// Pairs returns the pairs of fingerprints that meet in a bucket which owns accepts (nil: all), each at
// most once. Of Same texts it returns only the pairs with the earliest one, and only the earliest
// is compared with others. Several owners, each with all fingerprints of its buckets, together find the
// pairs that one owner of all buckets finds. Pairs sorts fingerprints in place.
func (o Options) Pairs(fingerprints []Fingerprint, owns func(Bucket) bool) []Pair {
	found := o.withDefaults().links(fingerprints, owns)
	out := make([]Pair, 0, len(found))
	for _, l := range found {
		out = append(out, Pair{fingerprints[l.a].Ref(), fingerprints[l.b].Ref(), l.Match})
	}
	return out
}

// link is a Pair by index, a < b.
type link struct {
	a, b int32
	Match
}

// finder finds the links among fingerprints, which must be in order.
type finder struct {
	Options
	fingerprints []Fingerprint
	owns         func(Bucket) bool
	heads        []int32 // the earliest of each set of Same texts, in order
	links        []link
}

// links sorts fingerprints in place and returns the links among them, in order and each once. owns limits
// the buckets; nil means all.
func (o Options) links(fingerprints []Fingerprint, owns func(Bucket) bool) []link {
	slices.SortFunc(fingerprints, func(p, q Fingerprint) int {
		return cmp.Or(p.Ref().compare(q.Ref()), cmp.Compare(p.Content, q.Content), cmp.Compare(p.Bits, q.Bits))
	})
	f := finder{Options: o, fingerprints: fingerprints, owns: owns}
	f.foldSame()
	f.nearBits()
	if !o.Paper {
		f.bands()
	}
	slices.SortFunc(f.links, func(k, l link) int { return cmp.Or(cmp.Compare(k.a, l.a), cmp.Compare(k.b, l.b)) })
	return slices.CompactFunc(f.links, func(k, l link) bool { return k.a == l.a && k.b == l.b })
}

// compare links the texts at a and b if they are copies.
func (f *finder) compare(a, b int32) {
	if m, ok := f.Options.compare(&f.fingerprints[a], &f.fingerprints[b]); ok {
		f.links = append(f.links, link{min(a, b), max(a, b), m})
	}
}

// keyed is a text and the value that it is sorted by.
type keyed struct {
	key uint64
	at  int32
}

// runs sorts entries and calls yield for each run of two or more with the same key.
func runs(entries []keyed, yield func(key uint64, run []keyed)) {
	slices.SortFunc(entries, func(x, y keyed) int { return cmp.Or(cmp.Compare(x.key, y.key), cmp.Compare(x.at, y.at)) })
	for from := 0; from < len(entries); {
		to := from + 1
		for to < len(entries) && entries[to].key == entries[from].key {
			to++
		}
		if to > from+1 {
			yield(entries[from].key, entries[from:to])
		}
		from = to
	}
}

// foldSame links every text to the earliest Same one, by hash, in linear time. A hundred thousand
// equal texts cost a hundred thousand comparisons.
func (f *finder) foldSame() {
	entries := make([]keyed, 0, len(f.fingerprints))
	var buf []byte
	var key uint64
	for i := range f.fingerprints {
		p := &f.fingerprints[i]
		if p.Features == 0 {
			continue
		}
		key, buf = p.same(p.Features < f.MinTokens, buf)
		entries = append(entries, keyed{key, int32(i)})
	}
	copied := make([]bool, len(f.fingerprints))
	runs(entries, func(_ uint64, run []keyed) {
		for _, e := range run[1:] {
			before := len(f.links)
			f.compare(run[0].at, e.at)
			copied[e.at] = len(f.links) > before
		}
	})
	for i := range f.fingerprints {
		if p := &f.fingerprints[i]; !copied[i] && p.Features >= f.MinTokens && p.Features > 0 {
			f.heads = append(f.heads, int32(i))
		}
	}
	f.links = slices.DeleteFunc(f.links, func(l link) bool { return !f.ownsSame(l.a) })
}

// ownsSame reports whether one of the buckets of the text at a is owned here.
func (f *finder) ownsSame(a int32) bool {
	return f.owns == nil || slices.ContainsFunc(f.Buckets(nil, f.fingerprints[a]), f.owns)
}

// nearBits compares the heads whose fingerprints are near.
func (f *finder) nearBits() {
	entries := make([]keyed, 0, len(f.heads))
	for _, h := range f.heads {
		entries = append(entries, keyed{f.fingerprints[h].Bits, h})
	}
	var distinct []uint64
	holders := make(map[uint64][]keyed) // of fingerprints with more than one text
	runs(entries, func(key uint64, run []keyed) { holders[key] = run })
	for i, e := range entries { // runs sorted them
		if i == 0 || e.key != entries[i-1].key {
			distinct = append(distinct, e.key)
		}
	}
	at := func(bits uint64) []keyed {
		if run, ok := holders[bits]; ok {
			return run
		}
		i, _ := slices.BinarySearchFunc(entries, bits, func(e keyed, b uint64) int { return cmp.Compare(e.key, b) })
		return entries[i : i+1]
	}
	for key, run := range holders {
		if f.ownsBlock(key, key) {
			f.crowd(run)
		}
	}
	Near(distinct, f.Distance, func(i, j int) {
		if f.ownsBlock(distinct[i], distinct[j]) {
			f.between(at(distinct[i]), at(distinct[j]))
		}
	})
}

// ownsBlock reports whether a block in which the fingerprints p and q meet is owned here.
func (f *finder) ownsBlock(p, q uint64) bool {
	if f.owns == nil {
		return true
	}
	for i, b := range divide([]span{{0, 64}}, f.Distance+1) {
		if b.equal(p, q) && f.owns(bucket(tableBlock+i, b[0].of(p))) {
			return true
		}
	}
	return false
}

// bands compares the heads that meet in a band of the min-hash.
func (f *finder) bands() {
	entries := make([]keyed, 0, len(f.heads))
	var features []uint32
	for i := range Bands {
		entries = entries[:0]
		for _, h := range f.heads {
			features = minFeatures(features[:0], f.fingerprints[h].Units)
			entries = append(entries, keyed{uint64(bucket(tableBand+i, band(features, i))), h})
		}
		runs(entries, func(key uint64, run []keyed) {
			if f.owns == nil || f.owns(Bucket(key)) {
				f.crowd(run)
			}
		})
	}
}

// A bucket of up to fullBucket texts has each text compared with every other. In a larger bucket
// each text is compared with its neighbours, in several orders that place copies close together.
const (
	fullBucket = 512
	neighbours = 48
)

// crowd compares the texts of one bucket. It depends only on the content of the bucket, so every
// owner gets the same result.
func (f *finder) crowd(run []keyed) {
	if len(run) <= fullBucket {
		for i, x := range run {
			for _, y := range run[i+1:] {
				f.compare(x.at, y.at)
			}
		}
		return
	}
	sorted := slices.Clone(run)
	for _, order := range f.orders() {
		for i, e := range sorted {
			sorted[i].key = order(&f.fingerprints[e.at])
		}
		slices.SortFunc(sorted,
			func(x, y keyed) int { return cmp.Or(cmp.Compare(x.key, y.key), cmp.Compare(x.at, y.at)) })
		for i, x := range sorted {
			for _, y := range sorted[i+1 : min(len(sorted), i+1+neighbours)] {
				f.compare(x.at, y.at)
			}
		}
	}
}

// orders returns the orders for the texts of a crowded bucket: by the first words, by the last
// words, and by the fingerprint from its high half and from its low half. An edit leaves one of the
// ends unchanged.
func (f *finder) orders() []func(*Fingerprint) uint64 {
	ends := func(at func(units []Unit, i int) Unit) func(*Fingerprint) uint64 {
		return func(p *Fingerprint) uint64 {
			key := uint64(0)
			for i := range 8 {
				key <<= 8
				if i < len(p.Units) {
					key |= uint64(at(p.Units, i)>>unitClasses) & 0xff
				}
			}
			return key
		}
	}
	return []func(*Fingerprint) uint64{
		ends(func(u []Unit, i int) Unit { return u[i] }),
		ends(func(u []Unit, i int) Unit { return u[len(u)-1-i] }),
		func(p *Fingerprint) uint64 { return p.Bits },
		func(p *Fingerprint) uint64 { return p.Bits<<32 | p.Bits>>32 },
	}
}

// between compares every text of one fingerprint with every text of another. If these are too many,
// it compares each text with the first text of the other.
func (f *finder) between(xs, ys []keyed) {
	if len(xs)*len(ys) > fullBucket*fullBucket/2 {
		for _, x := range xs {
			f.compare(x.at, ys[0].at)
		}
		for _, y := range ys {
			f.compare(xs[0].at, y.at)
		}
		return
	}
	for _, x := range xs {
		for _, y := range ys {
			f.compare(x.at, y.at)
		}
	}
}
