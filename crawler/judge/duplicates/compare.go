package duplicates

import "slices"

// Reason is why a text is in its group. The constants are ordered from the strongest to the
// weakest.
type Reason string

// The reasons.
const (
	// Representative is the reason of the earliest text of the group.
	Representative Reason = "representative"
	// ByExact means the same text, byte for byte, except for white space at the ends.
	ByExact Reason = "exact"
	// ByOfficial means the same text after official marks are removed.
	ByOfficial Reason = "official"
	// BySimhash means at most Options.Distance bits apart; Distance counts bits. Equal word sets
	// after the marks are removed have distance 0.
	BySimhash Reason = "simhash"
	// ByEdit means the same words except for a few. Distance counts words that were replaced, added
	// or left out (two ideographs are a word).
	ByEdit Reason = "edit"
)

// rank orders reasons, the strongest first.
func (r Reason) rank() int {
	return slices.Index([]Reason{Representative, ByExact, ByOfficial, BySimhash, ByEdit}, r)
}

// Options define what counts as a copy. The program uses the zero value.
type Options struct {
	// Distance is the largest Hamming distance, in bits, at which two fingerprints are near. 0
	// means 3 (the paper's value), negative means 0.
	Distance int
	// MinTokens is the number of distinct features below which a text matches only exactly. 0 means
	// 3, negative means 1.
	MinTokens int
	// Paper turns off everything that is not in the paper: verification and the search for edits.
	Paper bool
}

// DefaultDistance and DefaultMinTokens are the values that zero Options mean.
const (
	DefaultDistance  = 3
	DefaultMinTokens = 3
)

// MaxDistance is the largest usable Options.Distance. Larger values mean MaxDistance.
const MaxDistance = 16

func (o Options) withDefaults() Options {
	switch {
	case o.Distance == 0:
		o.Distance = DefaultDistance
	case o.Distance < 0:
		o.Distance = 0
	}
	o.Distance = min(o.Distance, MaxDistance)
	switch {
	case o.MinTokens == 0:
		o.MinTokens = DefaultMinTokens
	case o.MinTokens < 0:
		o.MinTokens = 1
	}
	return o
}

// Match describes how two texts are copies of each other.
type Match struct {
	Reason   Reason
	Distance int  // bits or words, see Reason
	Same     bool // the same words in the same order
}

// Compare reports whether a and b are copies, and how. It is symmetric and depends only on the two.
func (o Options) Compare(a, b Fingerprint) (Match, bool) { return o.withDefaults().compare(&a, &b) }

// compare is Compare with the defaults of o already set.
func (o Options) compare(a, b *Fingerprint) (Match, bool) {
	if a.Features == 0 || b.Features == 0 {
		return Match{}, false // only marks: there is no message
	}
	if a.Content == b.Content {
		if a.Official || b.Official {
			return Match{ByOfficial, 0, true}, true
		}
		return Match{ByExact, 0, true}, true
	}
	if a.Features < o.MinTokens || b.Features < o.MinTokens {
		return Match{}, false
	}
	if sameWords(a.Units, b.Units) {
		return Match{BySimhash, 0, true}, true
	}
	bits := Distance(a.Bits, b.Bits)
	if o.Paper {
		return Match{BySimhash, bits, false}, bits <= o.Distance
	}
	return o.verify(a, b, bits)
}

// sameWords reports whether a and b are the same words in the same order.
func sameWords(a, b []Unit) bool {
	return slices.EqualFunc(a, b, func(u, v Unit) bool { return u.word() == v.word() })
}

// verify compares the words of two texts that are not the same.
func (o Options) verify(a, b *Fingerprint, bits int) (Match, bool) {
	near := bits <= o.Distance
	allowed := budget(min(weight(a.Units), weight(b.Units)))
	if !near && abs(weight(a.Units)-weight(b.Units)) > max(allowed, maxComment) {
		return Match{}, false // the cheap test first: it rejects most candidates
	}
	edits, aligned := alignment(a.Units, b.Units, allowed)
	if !aligned {
		edits, aligned = comment(a.Units, b.Units)
	}
	switch {
	case aligned && swaps(a.Units, b.Units):
		return Match{}, false
	case aligned && near:
		return Match{BySimhash, bits, false}, true
	case aligned:
		return Match{ByEdit, (edits + 1) / 2, false}, true
	case near && reordered(a.Units, b.Units):
		return Match{BySimhash, bits, false}, true
	}
	return Match{}, false
}

// budget returns how many half words may differ, for the weight in half words of the shorter text.
// It allows one word from 8 words on, two from 14, three from 22, then a tenth, at most 16. Shorter
// texts that differ by one word are mostly no copies, but common phrases. In a sample of manuals
// and program texts, most pairs that one word in 6 or 7 distinguishes mean different things.
func budget(weight int) int {
	words := weight / 2
	switch {
	case words < 8:
		return 0
	case words < 14:
		return 2
	case words < 22:
		return 4
	}
	return 2 * min(16, max(3, words/10))
}

// A comment added at one end may have up to 3 words if the text has at least 8.
const (
	maxComment   = 2 * 3
	minCommented = 2 * 8
)

// weight returns the weight of units in half words.
func weight(units []Unit) int {
	total := 0
	for _, u := range units {
		total += u.weight()
	}
	return total
}

// comment reports whether one of a and b is the other with a comment before or after it. edits is
// the comment's weight.
func comment(a, b []Unit) (edits int, ok bool) {
	if len(a) > len(b) {
		a, b = b, a
	}
	if weight(a) < minCommented {
		return 0, false
	}
	for _, cut := range [...]struct{ text, added []Unit }{
		{b[:len(a)], b[len(a):]},
		{b[len(b)-len(a):], b[:len(b)-len(a)]},
	} {
		w := weight(cut.added)
		if w <= maxComment && sameWords(a, cut.text) && !slices.ContainsFunc(cut.added, isNegation) {
			return w, true
		}
	}
	return 0, false
}

func isNegation(u Unit) bool { return u.is(unitNegation) }

// alignment returns the edit distance of a and b in half words, and whether it is at most allowed.
// A replaced unit costs the weight of the heavier of the two. A negation may not be added, left out
// or replaced.
func alignment(a, b []Unit, allowed int) (int, bool) {
	if allowed == 0 || abs(weight(a)-weight(b)) > allowed {
		return 0, false
	}
	a, b = trimEqual(a, b)
	if len(a)+len(b) > maxChanged*(allowed+1) {
		return 0, false
	}
	const never = 1 << 20
	cost := func(u Unit) int {
		if u.is(unitNegation) {
			return never
		}
		return u.weight()
	}
	// The rows of the usual table for edit distance, but only the band that allowed can reach.
	row := make([]int, len(b)+1)
	for j, u := range b {
		row[j+1] = row[j] + cost(u)
	}
	for i, u := range a {
		diagonal := row[0]
		row[0] += cost(u)
		best := row[0]
		low, high := max(0, i-allowed), min(len(b), i+allowed+1)
		if low > 0 {
			diagonal, row[low] = row[low], never
		}
		for j := low; j < high; j++ {
			v := b[j]
			step := diagonal
			if u.word() != v.word() {
				step += max(cost(u), cost(v))
			}
			diagonal = row[j+1]
			row[j+1] = min(step, diagonal+cost(u), row[j]+cost(v))
			best = min(best, row[j+1])
		}
		if best > allowed {
			return 0, false
		}
	}
	return row[len(b)], row[len(b)] <= allowed
}

// maxChanged limits the length of the middle parts that are aligned, per allowed half word.
const maxChanged = 1 << 12

// trimEqual removes the common beginning and end from a and b.
func trimEqual(a, b []Unit) ([]Unit, []Unit) {
	for len(a) > 0 && len(b) > 0 && a[0].word() == b[0].word() {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1].word() == b[len(b)-1].word() {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return a, b
}

// swaps reports whether a has a number, or a name, that b does not have, while b has one that a
// does not have. 20 degrees is not 21, Lisboa is not Porto.
func swaps(a, b []Unit) bool {
	onlyA, onlyB := difference(a, b)
	for _, class := range [...]Unit{unitNumber, unitName} {
		is := func(u Unit) bool { return u.is(class) }
		if slices.ContainsFunc(onlyA, is) && slices.ContainsFunc(onlyB, is) {
			return true
		}
	}
	return false
}

// difference returns the units of a that are not in b, and the reverse. Both count as multisets.
func difference(a, b []Unit) (onlyA, onlyB []Unit) {
	a, b = trimEqual(a, b)
	a, b = slices.Clone(a), slices.Clone(b)
	byWord := func(u, v Unit) int { return int(u.word()) - int(v.word()) }
	slices.SortFunc(a, byWord)
	slices.SortFunc(b, byWord)
	for len(a) > 0 && len(b) > 0 {
		switch c := byWord(a[0], b[0]); {
		case c < 0:
			onlyA, a = append(onlyA, a[0]), a[1:]
		case c > 0:
			onlyB, b = append(onlyB, b[0]), b[1:]
		default:
			a, b = a[1:], b[1:]
		}
	}
	return append(onlyA, a...), append(onlyB, b...)
}

// reordered reports whether two near texts that do not align are the same words in another order or
// repeated. Their sets share four fifths, every negation is between the same words, and no number
// or name was swapped.
func reordered(a, b []Unit) bool {
	shared, total := overlap(a, b)
	return 5*shared >= 4*total && negated(a) == negated(b) && !swaps(a, b)
}

// overlap returns the sizes of the intersection and the union of two sets of units.
func overlap(a, b []Unit) (shared, total int) {
	set := make(map[Unit]uint8, len(a)+len(b))
	for _, u := range a {
		set[u.word()] |= 1
	}
	for _, u := range b {
		set[u.word()] |= 2
	}
	for _, in := range set {
		if in == 3 {
			shared++
		}
	}
	return shared, len(set)
}

// negated returns a sum over the word pairs that negations are between. Order and repetition of
// these places do not count.
func negated(units []Unit) uint64 {
	around := func(i int) uint64 {
		if i < 0 || i >= len(units) {
			return 0
		}
		return uint64(units[i].word())
	}
	seen := make(map[uint64]bool)
	total := uint64(0)
	for i, u := range units {
		place := around(i-1)<<32 | around(i+1)
		if u.is(unitNegation) && !seen[place] {
			seen[place] = true
			total += mix(place + 1)
		}
	}
	return total
}

func abs(n int) int { return max(n, -n) }
