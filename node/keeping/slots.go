package keeping

import (
	"iter"
	mathbits "math/bits"
	"slices"
	"time"
)

// slot is what is known of one slice.
type slot struct {
	config   Config
	promised Ballot
	accepted Ballot
	proposal Config // what accepted is of
	copied   copied

	// Volatile.
	hash    uint64    // of config
	since   uint64    // clock when config was learned
	resting bool      // the owner starts no fetch: a hand-over is near
	sealed  bool      // the owner acknowledges nothing: a hand-over is under way
	seen    uint64    // the highest ballot that refused one of this peer's
	idle    time.Time // owned, and not acted in since; see Lost
	fed     time.Time // when its owner last shipped something here
}

// copied says whose log this peer's copy of a slice follows: its rows are those
// of generation Gen of that fork up to the log's head.
type copied struct {
	Has   bool   `json:"h,omitempty"`
	Epoch uint64 `json:"e,omitempty"`
	Fork  string `json:"f,omitempty"`
	Gen   uint64 `json:"n,omitempty"`
}

func (c copied) of(d Config) bool { return c.Has && c.Epoch == d.Epoch && c.Fork == d.Fork }

func copyOf(c Config) copied { return copied{true, c.Epoch, c.Fork, c.Gen} }

// put makes sl the state of slot i. m.mu is held for writing, and of m.slots
// nothing else sets a Config.
func (m *Machine) put(i int, sl slot) {
	old := m.slots[i]
	m.slots[i] = sl
	m.digest ^= old.hash ^ sl.hash
	if old.config.Owner != sl.config.Owner {
		if had := m.owned[old.config.Owner]; had != nil {
			if had.set(i, false); had.empty() {
				delete(m.owned, old.config.Owner)
			}
		}
		if m.owned[sl.config.Owner] == nil {
			m.owned[sl.config.Owner] = newBits(len(m.slots))
		}
		m.owned[sl.config.Owner].set(i, true)
	}
	m.kept.set(i, sl.config.Has(m.self))
}

// bits is a set of slots. A geo swarm has many thousand slices, of which most
// questions are about one peer's share.
type bits []uint64

func newBits(n int) bits { return make(bits, (n+63)/64) }

func (b bits) set(i int, in bool) {
	if in {
		b[i/64] |= 1 << (i % 64)
	} else {
		b[i/64] &^= 1 << (i % 64)
	}
}

func (b bits) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

func (b bits) empty() bool { return !slices.ContainsFunc(b, func(w uint64) bool { return w != 0 }) }

// and adds to b what is in both x and y.
func (b bits) and(x, y bits) {
	for j := range b {
		b[j] |= x[j] & y[j]
	}
}

// all are the members, in order.
func (b bits) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for j, w := range b {
			for ; w != 0; w &= w - 1 {
				if !yield(j*64 + mathbits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}

// named is c with each id the same string wherever it stands: there are many
// slices and few peers, and ids that are one string are compared at once.
// m.mu is held for writing.
func (m *Machine) named(c Config) Config {
	if len(m.names) > maxNames {
		clear(m.names)
	}
	name := func(id string) string {
		if known, ok := m.names[id]; ok {
			return known
		}
		m.names[id] = id
		return id
	}
	c.Owner = name(c.Owner)
	c.Keepers = slices.Clone(c.Keepers)
	for i, k := range c.Keepers {
		c.Keepers[i] = name(k)
	}
	return c
}

const maxNames = 10_000 // then they are gathered anew

// learn makes c the Config of slot i if it is newer. All promises were about
// the successor of the old one.
func (m *Machine) learn(i int, c Config) bool {
	sl := &m.slots[i]
	if c.Compare(sl.config) <= 0 || c.Validate() != nil {
		return false
	}
	m.clock++
	c = m.named(c)
	old := *sl
	m.put(i, slot{config: c, hash: c.hash(m.slices[i]), since: m.clock, copied: old.copied, fed: old.fed})
	m.dirty[i] = true
	// An owner that stays goes on with its log. A new one goes on with its copy
	// when that ends where the generation begins; else it has to be cut first
	// (Follow, Copied), and acts then.
	if c.Owner == m.self && old.copied.of(c) {
		stays := old.copied == copyOf(old.config) && old.config.Owner == m.self && old.config.Gen+1 == c.Gen
		head, ok := m.aligned(i)
		if stays || ok && head == m.head(m.slices[i]) {
			sl.copied = copyOf(c)
		}
	}
	return true
}
