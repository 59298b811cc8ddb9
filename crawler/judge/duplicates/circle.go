package duplicates

import "slices"

// Limits of a Circle.
const (
	MaxCircle = 1000 // texts of it
	MaxAsked  = 128  // different ones of them whose copies are asked for
)

// Circle gathers the texts that copies connect with one, step by step, from
// whoever has parts of all texts: each holder is asked for what Meets with one of
// Next, which is given to Add, until Next has no more. Then Groups are those that
// one would have found who had all texts: a group depends on nothing that copies
// do not connect it with. Not safe for concurrent use.
type Circle struct {
	opts   Options
	prints []Print
	known  map[string]bool // by ID
	asked  map[uint64]bool // by Content, of those that Next gave or will
	next   []Print
	cut    bool
}

// NewCircle makes the Circle of p.
func NewCircle(opts Options, p Print) *Circle {
	c := &Circle{opts: opts.withDefaults(), known: map[string]bool{}, asked: map[uint64]bool{}}
	c.Add(p)
	return c
}

// Add takes a text that was found; one that is known, by its ID, changes nothing.
func (c *Circle) Add(p Print) {
	switch {
	case c.known[p.ID] || p.Features == 0:
		return
	case len(c.prints) == MaxCircle:
		c.cut = true
		return
	}
	c.known[p.ID] = true
	c.prints = append(c.prints, p)
	if c.asked[p.Content] { // of equal texts one tells as much as all
		return
	}
	if len(c.asked) == MaxAsked {
		c.cut = true
		return
	}
	c.asked[p.Content] = true
	c.next = append(c.next, p)
}

// Next takes up to n texts whose copies are to be asked for next; none: that was
// all.
func (c *Circle) Next(n int) []Print {
	out := c.next[:min(n, len(c.next))]
	c.next = c.next[len(out):]
	return out
}

// Cut says that one of the limits was met, and there may be more copies.
func (c *Circle) Cut() bool { return c.cut }

// Groups are the groups of all texts added, in the order of their
// representatives.
func (c *Circle) Groups() []Group {
	g := NewGrouper(c.opts)
	g.prints = slices.Clone(c.prints)
	return g.Groups()
}

// Meets says whether p and q would be linked by whoever has both: they meet in a
// bucket, and Compare says that they are copies. It is symmetric.
func (o Options) Meets(p, q Print) (Match, bool) {
	o = o.withDefaults()
	m, ok := o.compare(&p, &q)
	if !ok || m.Same || Distance(p.Bits, q.Bits) <= o.Distance {
		return m, ok
	}
	if o.Paper {
		return Match{}, false
	}
	f, g := minFeatures(nil, p.Units), minFeatures(nil, q.Units)
	for i := range Bands {
		if band(f, i) == band(g, i) {
			return m, true
		}
	}
	return Match{}, false
}

// Block says whether b is a block of the fingerprint: texts whose whole fingerprints
// are not near meet in it by chance alone. In any other bucket whoever meets is to
// be compared.
func (b Bucket) Block() bool { return b.block() }
