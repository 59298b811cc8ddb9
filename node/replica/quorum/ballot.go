package quorum

import (
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Proposal asks a replica of Base to accept Next as its successor under Ballot;
// as a Prepare, Next is unset.
type Proposal struct {
	Slice  partition.Slice
	Base   ReplicaSet
	Ballot Ballot
	Next   ReplicaSet
}

// Promise answers a Prepare or an Accept.
type Promise struct {
	Slice    partition.Slice
	By       string // the replica that answers
	OK       bool
	Promised Ballot        // when not OK: to somebody else
	Leased   time.Duration // when not OK: how much longer to the owner; > 0
	Newer    *ReplicaSet   // when not OK: Base has a successor already
	// To a Prepare that is OK: what was accepted before, and this replica's copy.
	Accepted Ballot
	Proposal ReplicaSet
	Copied   bool
	Head     uint64 // of its log, as far as it is also Base's; or UnknownHead
}

// UnknownHead is the Head of a copy so old that Base does not say how much of it
// is also Base's: it may have all that was acknowledged.
const UnknownHead = 1<<64 - 1

// maxBallot is the highest that counts: there is always one above.
const maxBallot = 1 << 62

// Prepare answers a candidate. From an OK on, this replica takes nothing from
// the owner of Base any more (Follows).
func (m *Machine) Prepare(p Proposal, now time.Time) Promise {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, out := m.consider(p, now)
	if !out.OK {
		return out
	}
	sl := &m.slots[i]
	if p.Ballot.N < 2 || p.Ballot.Compare(sl.promised) <= 0 {
		return Promise{Slice: p.Slice, By: m.self, Promised: sl.promised}
	}
	sl.promised = p.Ballot
	m.dirty[i] = true
	out.Accepted, out.Proposal = sl.accepted, sl.proposal
	out.Head, out.Copied = m.aligned(i)
	if !out.Copied && (sl.copied.of(sl.set) || sl.lost()) {
		out.Head, out.Copied = UnknownHead, true
	}
	return out
}

// Accept answers a proposal.
func (m *Machine) Accept(p Proposal, now time.Time) Promise {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, out := m.consider(p, now)
	if !out.OK {
		return out
	}
	sl := &m.slots[i]
	if p.Ballot.N < 1 || p.Ballot.Compare(sl.promised) < 0 || p.Ballot.N == 1 && p.Ballot.By != p.Base.Owner ||
		p.Next.Validate() != nil || p.Next.Compare(p.Base) <= 0 || !p.Next.SameFork(p.Base) ||
		p.Next.Gen != p.Base.Gen+1 {
		return Promise{Slice: p.Slice, By: m.self, Promised: sl.promised}
	}
	p.Next.Heard = 0
	sl.promised, sl.accepted, sl.proposal = p.Ballot, p.Ballot, p.Next
	m.dirty[i] = true
	return out
}

// consider is what Prepare and Accept have in common.
func (m *Machine) consider(p Proposal, now time.Time) (int, Promise) {
	out := Promise{Slice: p.Slice, By: m.self}
	i, ok := m.index[p.Slice]
	if !ok || p.Base.Validate() != nil || !p.Base.Has(p.Ballot.By) || p.Ballot.N > maxBallot {
		return 0, out
	}
	m.hear(i, p.Base, p.Ballot.By, now)
	sl := &m.slots[i]
	if sl.set.Compare(p.Base) != 0 {
		c := sl.set
		out.Newer = &c
		return i, out
	}
	if !sl.set.Has(m.self) {
		return i, out
	}
	if p.Ballot.By != sl.set.Owner {
		if until := m.bound(i, now); !until.IsZero() {
			out.Leased = until.Sub(now)
			return i, out
		}
	}
	out.OK = true
	return i, out
}

// aligned is up to where this peer's copy of slice i is that of its ReplicaSet.
func (m *Machine) aligned(i int) (uint64, bool) {
	sl := &m.slots[i]
	if !sl.copied.of(sl.set) {
		return 0, false
	}
	return sl.set.common(sl.copied.Gen, m.head(m.slices[i]))
}

// Propose begins, as the owner, the change of s to the given owner and replicas.
// The slice must be sealed and all that was acknowledged be at its new replicas.
// The proposal is this peer's own acceptance, to be made durable and then sent;
// nothing is acted on in s until it is decided. false when it cannot be.
func (m *Machine) Propose(s partition.Slice, owner string, replicas []string) (Proposal, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, ok := m.index[s]
	if !ok {
		return Proposal{}, false
	}
	sl := &m.slots[i]
	b := Ballot{1, m.self}
	if sl.set.Owner != m.self || sl.accepted.N > 0 || b.Compare(sl.promised) < 0 || !sl.sealed {
		return Proposal{}, false
	}
	head, ok := m.aligned(i)
	if !ok {
		return Proposal{}, false
	}
	next := sl.set.Next(owner, replicas, head)
	if next.Validate() != nil {
		return Proposal{}, false
	}
	sl.promised, sl.accepted, sl.proposal = b, b, next
	m.dirty[i] = true
	return Proposal{s, sl.set, b, next}, true
}

// Unfinished are the proposals that this peer made as owner and that are not
// decided: they are sent again, as they are, until they are.
func (m *Machine) Unfinished() []Proposal {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var out []Proposal
	for i := range m.owned[m.self].all() {
		sl := &m.slots[i]
		if sl.accepted == (Ballot{1, m.self}) && sl.promised == sl.accepted {
			out = append(out, Proposal{m.slices[i], sl.set, sl.accepted, sl.proposal})
		}
	}
	return out
}

// Campaign is a Prepare with a higher ballot than this peer has seen, of itself
// for s. false when it keeps no whole copy, which no owner can do without.
func (m *Machine) Campaign(s partition.Slice) (Proposal, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	i, ok := m.index[s]
	if !ok {
		return Proposal{}, false
	}
	sl := &m.slots[i]
	if _, whole := m.aligned(i); !whole || !sl.set.Has(m.self) {
		return Proposal{}, false
	}
	return Proposal{Slice: s, Base: sl.set, Ballot: Ballot{max(sl.promised.N, sl.seen, 1) + 1, m.self}}, true
}

// Free says whether this replica's own promise to p can be given: no lease that
// it granted or holds stands against it.
func (m *Machine) Free(p Proposal, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, out := m.consider(p, now)
	return out.OK
}

// Refused notes the ballot that a replica of s has promised to instead of this
// peer's: the next Campaign goes above it.
func (m *Machine) Refused(s partition.Slice, b Ballot) {
	if b.N >= maxBallot {
		return // nobody promises that
	}
	m.flag(s, func(sl *slot) { sl.seen = max(sl.seen, b.N) })
}

// Choose takes the promises that a Prepare got, this peer's own among them, one
// of each replica, and says what may be proposed. The owner is to be who has the longest log of those
// that promised: this peer, or another, which then need not campaign against it.
// false: no majority, or none of those whose copies can be compared.
func (m *Machine) Choose(p Proposal, promises []Promise) (Proposal, bool) {
	head, whole, ok := m.headOf(p)
	if !ok {
		return p, false
	}
	n, known, longest, owner := 0, 0, head, m.self
	var best Promise
	for _, r := range promises {
		if !r.OK {
			continue
		}
		n++
		if r.Accepted.Compare(best.Accepted) > 0 {
			best = r
		}
		if r.Copied && r.Head == UnknownHead {
			continue
		}
		known++
		if r.Copied && r.Head > longest {
			longest, owner = r.Head, r.By
		}
	}
	if n < p.Base.Quorum() {
		return p, false
	}
	if best.Accepted.N > 0 { // may have been decided
		p.Next = best.Proposal
		return p, true
	}
	if known < p.Base.Quorum() && !whole || !p.Base.Has(owner) {
		return p, false
	}
	p.Next = p.Base.Next(owner, p.Base.Replicas, longest)
	return p, true
}

// headOf is up to where this peer's copy is that of p.Base. whole says that all
// that was ever acknowledged is in it, as in its owner's who has written nothing else.
func (m *Machine) headOf(p Proposal) (head uint64, whole, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	i, known := m.index[p.Slice]
	if !known || m.slots[i].set.Compare(p.Base) != 0 {
		return 0, false, false
	}
	head, ok = m.aligned(i)
	return head, p.Base.Owner == m.self && m.slots[i].copied == copyOf(p.Base), ok
}

// Decided says whether a majority of the replicas of p.Base accepted p; by are
// those that did.
func (p Proposal) Decided(by []string) bool {
	n := 0
	for _, k := range p.Base.Replicas {
		if slices.Contains(by, k) {
			n++
		}
	}
	return n >= p.Base.Quorum()
}
