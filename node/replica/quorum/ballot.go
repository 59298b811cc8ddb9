package quorum

import (
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Proposal asks a replica of Base to accept Next as the successor of Base under Ballot. In a
// Prepare request, Next is unset.
type Proposal struct {
	Slice  partition.Slice
	Base   ReplicaSet
	Ballot Ballot
	Next   ReplicaSet
}

// Promise is the response to a Prepare or an Accept request.
type Promise struct {
	Slice    partition.Slice
	By       string // the replica that responds
	OK       bool
	Promised Ballot        // when not OK: the ballot already promised to another peer
	Leased   time.Duration // when not OK: how long the owner's lease still lasts; > 0
	Newer    *ReplicaSet   // when not OK: the known successor of Base
	// In the response to a Prepare that is OK: what this replica accepted before, and the state
	// of its copy.
	Accepted Ballot
	Proposal ReplicaSet
	Copied   bool
	Head     uint64 // of its log, as far as Base shares it; or UnknownHead
}

// UnknownHead is the Head of a copy that is too old for Base to say how much of it they share.
// The copy may contain everything that was acknowledged.
const UnknownHead = 1<<64 - 1

// maxBallot is the highest ballot number that counts, so a higher number always exists.
const maxBallot = 1 << 62

// Prepare answers a candidate. After a response that is OK, this replica takes nothing more
// from the owner of Base (see Follows).
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

// Accept responds to a proposal.
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
	p.Next.Hearsay = 0
	sl.promised, sl.accepted, sl.proposal = p.Ballot, p.Ballot, p.Next
	m.dirty[i] = true
	return out
}

// consider does the checks that Prepare and Accept share.
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

// aligned returns the position up to which this peer's copy of slice i agrees with the log of
// the slice's ReplicaSet. ok is false when there is no such copy.
func (m *Machine) aligned(i int) (uint64, bool) {
	sl := &m.slots[i]
	if !sl.copied.of(sl.set) {
		return 0, false
	}
	return sl.set.common(sl.copied.Gen, m.head(m.slices[i]))
}

// Propose starts, at the owner, the change of s to the given owner and replicas. The slice must
// be sealed, and its new replicas must have everything that was acknowledged. The returned
// Proposal is also this peer's own acceptance: the caller makes it durable and then sends it.
// This peer does not act in s until the proposal is decided. Propose returns false when the
// change cannot be proposed.
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

// Unfinished returns the proposals that this peer made as owner and that are not decided. The
// caller sends them again, unchanged, until they are decided.
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

// Campaign returns a Prepare of this peer for s, with a higher ballot than any it has seen. It
// returns false when this peer has no whole copy, which an owner needs.
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

// Free reports whether this replica may give its own promise for p: no lease that it granted or
// holds prevents that.
func (m *Machine) Free(p Proposal, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, out := m.consider(p, now)
	return out.OK
}

// Refused records the ballot that a replica of s promised to another peer. The next Campaign
// uses a higher ballot.
func (m *Machine) Refused(s partition.Slice, b Ballot) {
	if b.N >= maxBallot {
		return // no honest replica promises such a ballot
	}
	m.flag(s, func(sl *slot) { sl.seen = max(sl.seen, b.N) })
}

// Choose takes the promises that a Prepare received, one per replica and with this peer's own,
// and returns what may be proposed. The new owner is the replica with the longest log among
// those that promised. That is this peer, or another one, which then need not campaign against
// this one. Choose returns false when there is no majority, or no majority of copies that can
// be compared.
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
	if best.Accepted.N > 0 { // this proposal may have been decided
		p.Next = best.Proposal
		return p, true
	}
	if known < p.Base.Quorum() && !whole || !p.Base.Has(owner) {
		return p, false
	}
	p.Next = p.Base.Next(owner, p.Base.Replicas, longest)
	return p, true
}

// headOf returns the position up to which this peer's copy agrees with the log of p.Base. whole
// reports that the copy contains everything that was ever acknowledged, as at an owner of
// p.Base that has written under no other ReplicaSet.
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

// Decided reports whether a majority of the replicas of p.Base accepted p. by lists the
// replicas that accepted it.
func (p Proposal) Decided(by []string) bool {
	n := 0
	for _, k := range p.Base.Replicas {
		if slices.Contains(by, k) {
			n++
		}
	}
	return n >= p.Base.Quorum()
}
