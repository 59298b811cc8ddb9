package duplicates

import "slices"

// Limits of a Collector.
const (
	MaxCollected = 1000 // texts of one Collector
	MaxAsked     = 128  // different texts whose copies are requested
)

// Collector collects the texts that copies connect with one text, step by step, from peers that have
// parts of all texts. The caller takes texts from Next and asks each of these peers for the texts
// that meet them (Meets). It gives the found texts to Add, and repeats this until Next returns
// none. Then Groups returns the groups that one peer with all texts would find, because a group
// depends only on texts that copies connect with it. A Collector is not safe for concurrent use.
type Collector struct {
	opts         Options
	fingerprints []Fingerprint
	known        map[string]bool // by ID
	asked        map[uint64]bool // by Content, of the texts that Next returned or will return
	next         []Fingerprint
	cut          bool
}

// NewCollector returns the Collector of p.
func NewCollector(opts Options, p Fingerprint) *Collector {
	c := &Collector{opts: opts.withDefaults(), known: map[string]bool{}, asked: map[uint64]bool{}}
	c.Add(p)
	return c
}

// Add adds a text that was found. A text whose ID is known changes nothing.
func (c *Collector) Add(p Fingerprint) {
	switch {
	case c.known[p.ID] || p.Features == 0:
		return
	case len(c.fingerprints) == MaxCollected:
		c.cut = true
		return
	}
	c.known[p.ID] = true
	c.fingerprints = append(c.fingerprints, p)
	if c.asked[p.Content] { // equal texts have the same copies
		return
	}
	if len(c.asked) == MaxAsked {
		c.cut = true
		return
	}
	c.asked[p.Content] = true
	c.next = append(c.next, p)
}

// Next removes and returns up to n texts whose copies must be requested next. If it returns none,
// the Collector is complete.
func (c *Collector) Next(n int) []Fingerprint {
	out := c.next[:min(n, len(c.next))]
	c.next = c.next[len(out):]
	return out
}

// Cut reports whether a limit was hit, so that there may be more copies.
func (c *Collector) Cut() bool { return c.cut }

// Groups returns the groups of all texts that were added, in the order of their representatives.
func (c *Collector) Groups() []Group {
	g := NewGrouper(c.opts)
	g.fingerprints = slices.Clone(c.fingerprints)
	return g.Groups()
}

// Meets reports whether a peer with both p and q would link them: they share a bucket, and Compare
// calls them copies. It is symmetric.
func (o Options) Meets(p, q Fingerprint) (Match, bool) {
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

// Block reports whether b is a block of the fingerprint. In such a bucket, texts whose whole
// fingerprints are not near meet only by chance. In any other bucket all texts must be compared.
func (b Bucket) Block() bool { return b.block() }
