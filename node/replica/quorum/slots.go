package quorum

import (
	"iter"
	"maps"
	mathbits "math/bits"
	"slices"
	"time"
)

// slot is what this peer knows of one slice.
type slot struct {
	set ReplicaSet
	// ReplicaSets left without a majority of their replicas, oldest first; see hear.go
	under    []ReplicaSet
	promised Ballot
	accepted Ballot
	proposal ReplicaSet // the ReplicaSet that accepted is about
	copied   copied
	gone     []fork // forks whose copy was here and was given up for another fork's

	adopted uint64 // the last epoch that this peer began
	// votes about successors of ReplicaSets that this peer kept and left for another fork
	past []vote

	// The following fields are lost in a crash.
	hash    uint64    // of set
	since   uint64    // clock when set was learned
	resting bool      // the owner starts no fetch: a hand-over is near
	sealed  bool      // the owner acknowledges nothing: a hand-over is under way
	seen    uint64    // the highest ballot that refused one of this peer's
	idle    time.Time // owned, and not acted in since; see Lost
	fed     time.Time // when its owner last replicated something here
	bereft  time.Time // owned without a copy since then; see Bereft
	words   map[string]word
	dead    []fork // forks that their only replica has left
}

// vote is what this peer promised and accepted, as a replica, about the successor of a
// ReplicaSet. The peer then left that ReplicaSet for another fork. If the ReplicaSet comes
// back, the vote still holds. About earlier ReplicaSets of the fork it promises nothing.
type vote struct {
	Epoch    uint64     `json:"e,omitempty"`
	Fork     string     `json:"f,omitempty"`
	Gen      uint64     `json:"n"`
	Promised Ballot     `json:"p"`
	Accepted Ballot     `json:"a"`
	Proposal ReplicaSet `json:"x"`
}

// fork identifies a fork.
type fork struct {
	Epoch uint64 `json:"e,omitempty"`
	Fork  string `json:"f,omitempty"`
}

func (c ReplicaSet) fork() fork { return fork{c.Epoch, c.Fork} }

const maxPast = 8 // votes, and forks given up, of one slice

// lost reports whether this peer gave up the copy that others may count on: it left the fork
// and came back.
func (sl *slot) lost() bool {
	return !sl.copied.of(sl.set) && slices.Contains(sl.gone, sl.set.fork())
}

// setCopied records which log the copy follows now. If it gives up a copy of a fork other than
// the one known here, others may have counted on that copy.
func (sl *slot) setCopied(now copied) {
	old, here := sl.copied.fork(), now.fork()
	sl.gone = slices.DeleteFunc(slices.Clone(sl.gone), func(f fork) bool {
		return now.Has && f == here ||
			sl.copied.Has && f == old
	})
	if sl.copied.Has && (now.Has && old != here || !now.Has && sl.diverged()) {
		sl.gone = append(sl.gone, old)
	}
	sl.gone = sl.gone[max(0, len(sl.gone)-maxPast):]
	sl.copied = now
}

// copied says which log this peer's copy of a slice follows. The rows are those of generation
// Gen of the fork, up to the log's head.
type copied struct {
	Has   bool   `json:"h,omitempty"`
	Epoch uint64 `json:"e,omitempty"`
	Fork  string `json:"f,omitempty"`
	Gen   uint64 `json:"n,omitempty"`
}

func (c copied) fork() fork { return fork{c.Epoch, c.Fork} }

func (c copied) of(d ReplicaSet) bool { return c.Has && c.Epoch == d.Epoch && c.Fork == d.Fork }

// ahead reports whether the copy is of a later generation of d's fork than d. Then the
// knowledge of this peer went back.
func (c copied) ahead(d ReplicaSet) bool { return c.of(d) && c.Gen > d.Gen }

// diverged reports whether this peer has a copy of a fork other than the one it knows.
func (sl *slot) diverged() bool { return sl.copied.Has && !sl.copied.of(sl.set) }

func copyOf(c ReplicaSet) copied { return copied{true, c.Epoch, c.Fork, c.Gen} }

// put makes sl the state of slot i. The caller holds m.mu for writing. Nothing else replaces a
// ReplicaSet in m.slots.
func (m *Machine) put(i int, sl slot) {
	old := m.slots[i]
	m.slots[i] = sl
	m.digest ^= old.hash ^ sl.hash
	if old.set.Owner != sl.set.Owner {
		if had := m.owned[old.set.Owner]; had != nil {
			if had.set(i, false); had.empty() {
				delete(m.owned, old.set.Owner)
			}
		}
		if m.owned[sl.set.Owner] == nil {
			m.owned[sl.set.Owner] = newBits(len(m.slots))
		}
		m.owned[sl.set.Owner].set(i, true)
	}
	m.kept.set(i, sl.set.Has(m.self))
}

// bits is a set of slots. A geo swarm has many thousand slices, and most questions are about
// one peer's share.
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

// and adds to b the slots that are in both x and y.
func (b bits) and(x, y bits) {
	for j := range b {
		b[j] |= x[j] & y[j]
	}
}

// all iterates over the members in order.
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

// named returns c with one shared string for each id. There are many slices and few peers, and
// comparing a string with itself is fast. The caller holds m.mu for writing.
func (m *Machine) named(c ReplicaSet) ReplicaSet {
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
	c.Replicas = slices.Clone(c.Replicas)
	for i, k := range c.Replicas {
		c.Replicas[i] = name(k)
	}
	return c
}

const maxNames = 10_000 // above this number the map is emptied and filled again

// learn makes c the ReplicaSet of slot i if it is newer. This peer itself saw c decided.
func (m *Machine) learn(i int, c ReplicaSet) bool {
	cur := m.slots[i].set
	if c.Compare(cur) <= 0 || c.Validate() != nil {
		return false
	}
	c.Hearsay = 0
	if c.SameFork(cur) {
		c.Hearsay = cur.Hearsay
	}
	m.take(i, c, m.left(i, c))
	return true
}

// take makes c the ReplicaSet of slot i, with under as the ReplicaSets that were left. The
// promises of the slot were about the successor of the old ReplicaSet.
func (m *Machine) take(i int, c ReplicaSet, under []ReplicaSet) {
	m.clock++
	c = m.named(c)
	old := m.slots[i]
	now := slot{set: c, under: under, hash: c.hash(m.slices[i]), since: m.clock, copied: old.copied, gone: old.gone,
		dead: old.dead, adopted: old.adopted, fed: old.fed}
	if c.SameFork(old.set) {
		now.words = old.words
		maps.DeleteFunc(now.words, func(_ string, w word) bool {
			return w.set.SameFork(c) && w.set.Gen <= c.Gen && len(under) == len(old.under)
		})
	}
	now.past = old.past
	if !(c.SameFork(old.set) && c.Gen > old.set.Gen) {
		now.past = append(slices.Clone(old.past), vote{old.set.Epoch, old.set.Fork, old.set.Gen, old.promised,
			old.accepted, old.proposal})
		now.past = now.past[max(0, len(now.past)-maxPast):]
	}
	for _, v := range now.past {
		switch {
		case v.Epoch != c.Epoch || v.Fork != c.Fork || v.Gen < c.Gen:
		case v.Gen == c.Gen:
			now.promised, now.accepted, now.proposal = v.Promised, v.Accepted, v.Proposal
		default: // its successor was decided already
			now.promised = Ballot{maxBallot, m.self}
		}
	}
	m.put(i, now)
	m.dirty[i] = true
	// An owner that stays continues its log. A new owner continues its copy if the copy ends
	// where the generation begins. Otherwise the copy is cut first (Follow, Copied), and the
	// owner acts after that.
	if c.Owner == m.self && old.copied.of(c) {
		stays := old.copied == copyOf(old.set) && old.set.Owner == m.self && old.set.Gen+1 == c.Gen &&
			old.set.SameFork(c)
		head, ok := m.aligned(i)
		if stays || ok && head == m.head(m.slices[i]) {
			m.slots[i].copied = copyOf(c)
		}
	}
}
