package quorum

import (
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Progress says whether a replica can take a log chunk that a peer replicates.
type Progress struct {
	OK       bool
	Newer    *ReplicaSet // the replicator's ReplicaSet is old
	Behind   bool        // the replicator's ReplicaSet is newer than the one known here
	Diverged bool        // this peer has a copy of another fork, which must be reconciled first
	Whole    bool        // this peer has a whole copy; otherwise it needs a snapshot
	// first cut what a dead generation wrote above Head, then call Machine.Copied
	Cut  bool
	Head uint64 // the copy's position in the replicator's log
}

// Follows reports whether this peer may take what the peer from replicates of s under the
// ReplicaSet with the (Epoch, Fork, Gen) of c. A peer that is not a replica may take it as
// well, because it is about to become one.
func (m *Machine) Follows(s partition.Slice, from string, c ReplicaSet) Progress {
	m.mu.RLock()
	defer m.mu.RUnlock()
	i, ok := m.index[s]
	if !ok {
		return Progress{}
	}
	sl := &m.slots[i]
	switch x := sl.set.Compare(c); {
	case x > 0:
		newer := sl.set
		return Progress{Newer: &newer}
	case x < 0:
		return Progress{Behind: true}
	case sl.set.Owner != from || sl.accepted.N > 0 || sl.promised.N > 1:
		return Progress{}
	}
	out := Progress{OK: true}
	if sl.copied.Has && !sl.copied.of(sl.set) {
		out.Diverged = true
		return out
	}
	if head, whole := m.aligned(i); whole {
		out.Whole, out.Head = true, head
		// Until Copied is called, the copy belongs to an earlier generation. Entries written
		// above Head before that would count as that generation's.
		out.Cut = head < m.head(s) || sl.copied.Gen != sl.set.Gen
	}
	return out
}

// Copied records that this peer's copy of s belongs to the newest ReplicaSet from its log's
// head on. The caller calls it after a snapshot, after a cut, or as a new owner.
func (m *Machine) Copied(s partition.Slice) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, ok := m.index[s]
	if !ok {
		return
	}
	if now := copyOf(m.slots[i].set); m.slots[i].copied != now {
		m.slots[i].setCopied(now)
		m.dirty[i] = true
	}
}

// Fed records that the owner replicated s to this peer at now.
func (m *Machine) Fed(s partition.Slice, now time.Time) { m.flag(s, func(sl *slot) { sl.fed = now }) }

// Uncut returns the owned slices whose log must be cut here before this peer acts in them, with
// the position to cut at. An earlier generation wrote what is above it.
func (m *Machine) Uncut() map[partition.Slice]uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var out map[partition.Slice]uint64
	for i := range m.owned[m.self].all() {
		if sl := &m.slots[i]; sl.copied == copyOf(sl.set) {
			continue
		}
		if head, ok := m.aligned(i); ok {
			if out == nil {
				out = map[partition.Slice]uint64{}
			}
			out[m.slices[i]] = head
		}
	}
	return out
}

// Lost lists the slices kept here that need a new owner. The owner's lease from this replica
// ran out at least wait(slice, ReplicaSet) ago. The list also contains slices that this peer
// owns and could not act in for that long, or that a replica refuses to follow. This peer then
// campaigns for itself, because others may have made promises that they do not fulfil. For a
// slice that a replica refuses, wait gets spurned = true.
func (m *Machine) Lost(now time.Time,
	wait func(s partition.Slice, c ReplicaSet, spurned bool) time.Duration) []partition.Slice {
	m.mu.Lock()
	defer m.mu.Unlock()
	over := newBits(len(m.slots))
	for owner, in := range m.owned {
		if owner == m.self || now.After(m.granting(owner)) {
			over.and(in, m.kept)
		}
	}
	return m.where(over, func(i int) bool {
		sl := &m.slots[i]
		if !sl.copied.of(sl.set) {
			return false
		}
		since := m.granting(sl.set.Owner)
		spurned := false
		if sl.set.Owner == m.self {
			spurned = m.spurned(i, now)
			// A hand-over that waits for a replica that does not follow is no excuse: it starts
			// again and again, and nothing is acknowledged meanwhile.
			if !spurned && (m.acts(i, now) || sl.sealed && sl.accepted.N == 0) {
				sl.idle = time.Time{}
				return false
			}
			if sl.idle.IsZero() {
				sl.idle = now
			}
			since = sl.idle
		}
		return now.Sub(since) > wait(m.slices[i], sl.set, spurned)
	})
}

// spurned reports whether a replica that leases slices to this peer refuses slice i.
func (m *Machine) spurned(i int, now time.Time) bool {
	for _, k := range m.slots[i].set.Replicas {
		if h, ok := m.held[k]; ok && before(now, h.until) && h.refused[m.slices[i]] {
			return true
		}
	}
	return false
}

// Bereft lists the slices that this peer has owned for at least wait without a copy. It gave
// its copy up for another fork and came back. Meanwhile no other peer can act, so this peer
// must adopt them. Peers that have a copy reconcile it with what is here.
func (m *Machine) Bereft(now time.Time, wait time.Duration) []partition.Slice {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.where(m.owned[m.self], func(i int) bool {
		sl := &m.slots[i]
		switch {
		case !sl.lost():
			sl.bereft = time.Time{}
			return false
		case sl.bereft.IsZero():
			sl.bereft = now
		}
		return now.Sub(sl.bereft) >= wait
	})
}

// Adopt makes this peer the only replica of an orphan, in a new fork, with the rows it has. The
// caller knows that the slice's replicas are gone. Adopt returns false when base is not the
// present ReplicaSet any more.
func (m *Machine) Adopt(s partition.Slice, base ReplicaSet) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, ok := m.index[s]
	if !ok || m.slots[i].set.Compare(base) != 0 {
		return false
	}
	// The new fork must differ from every fork that this peer began before and left.
	base.Epoch = max(base.Epoch, m.slots[i].adopted)
	// The rows here need no reconciling: the log of the new fork begins above them, whichever
	// log they came from.
	if !m.learn(i, base.Adopted(m.self, m.head(s))) {
		return false
	}
	m.slots[i].setCopied(copyOf(m.slots[i].set))
	m.slots[i].adopted = m.slots[i].set.Epoch
	return true
}

// Robbed lists the slices of other owners that this peer keeps without a whole copy. It lost or
// gave up its copy, which others may still count on.
func (m *Machine) Robbed() []partition.Slice {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.where(m.kept, func(i int) bool { return m.slots[i].set.Owner != m.self && m.slots[i].lost() })
}

// Lose records that rows of this peer's copy of s were lost. Others may count on those rows. So
// this peer tells a candidate that it may have had everything (slot.lost). It owns nothing
// until the copy is whole again.
func (m *Machine) Lose(s partition.Slice) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, ok := m.index[s]
	if !ok || !m.slots[i].copied.Has {
		return
	}
	sl := &m.slots[i]
	old := sl.copied.fork()
	sl.copied = copied{}
	sl.gone = slices.DeleteFunc(slices.Clone(sl.gone), func(f fork) bool { return f == old })
	sl.gone = append(sl.gone, old)
	sl.gone = sl.gone[max(0, len(sl.gone)-maxPast):]
	m.dirty[i] = true
}
