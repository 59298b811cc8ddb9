package quorum

import (
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Progress is how a replica stands to a chunk of log that a peer replicates.
type Progress struct {
	OK       bool
	Newer    *ReplicaSet // the replicator's ReplicaSet is old
	Behind   bool        // the replicator's ReplicaSet is newer than what is known here
	Diverged bool        // a copy of another fork is here, to be reconciled first
	Whole    bool        // a whole copy is here; else a snapshot is needed
	Cut      bool        // first cut the log above Head, which a dead generation wrote, and note it (Machine.Copied)
	Head     uint64      // where the copy stands in the replicator's log
}

// Follows says whether this peer may take what from replicates of s under the ReplicaSet
// that is called (epoch, fork, gen) of c. A peer that is no replica takes it as
// well: it is about to be one.
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
		// The copy is of an earlier generation until that is noted: what is written
		// above Head before would be taken for that generation's.
		out.Cut = head < m.head(s) || sl.copied.Gen != sl.set.Gen
	}
	return out
}

// Copied notes that this peer's copy of s is, from its log's head on, that of
// the newest ReplicaSet: after a snapshot, a cut, or as a new owner.
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

// Fed notes that s was replicated to this peer at now.
func (m *Machine) Fed(s partition.Slice, now time.Time) { m.flag(s, func(sl *slot) { sl.fed = now }) }

// Uncut lists the owned slices whose log has to be cut here before they are
// acted in, with the position to cut at: it is what an earlier generation wrote.
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

// Lost lists the slices kept here that need a new owner, whose lease has run out
// at this replica at least wait(slice, ReplicaSet) ago. A slice that this peer owns
// and could not act in for that long, or that a replica does not follow, is
// listed too: it campaigns for itself, as others may have made promises that
// they do not fulfil. Of such a one wait is told that it is spurned.
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
			// A hand-over that waits for who does not follow is no excuse: it is
			// begun again and again, and nothing is acknowledged meanwhile.
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

// spurned says whether a replica that leases slices to this peer refuses slice i.
func (m *Machine) spurned(i int, now time.Time) bool {
	for _, k := range m.slots[i].set.Replicas {
		if h, ok := m.held[k]; ok && before(now, h.until) && h.refused[m.slices[i]] {
			return true
		}
	}
	return false
}

// Bereft lists the slices that this peer has owned for wait without a copy, as it
// gave its copy up for another fork and came back. It holds up everybody else, so
// it is to adopt them: whoever has a copy reconciles it with what is here.
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

// Adopt makes this peer the only replica of an orphan, in a new fork, with what
// it has of the slice. The caller knows that its replicas are gone. false when
// the ReplicaSet is not base any more.
func (m *Machine) Adopt(s partition.Slice, base ReplicaSet) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, ok := m.index[s]
	if !ok || m.slots[i].set.Compare(base) != 0 {
		return false
	}
	// A fork that it began and left is another than the one that it begins now.
	base.Epoch = max(base.Epoch, m.slots[i].adopted)
	// What is here is reconciled by being here: whatever log it came from, the new
	// fork's begins above it.
	if !m.learn(i, base.Adopted(m.self, m.head(s))) {
		return false
	}
	m.slots[i].setCopied(copyOf(m.slots[i].set))
	m.slots[i].adopted = m.slots[i].set.Epoch
	return true
}

// Robbed lists the slices that this peer keeps for another owner and has no whole copy of,
// as it lost or gave up the one that it may be counted on for.
func (m *Machine) Robbed() []partition.Slice {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.where(m.kept, func(i int) bool { return m.slots[i].set.Owner != m.self && m.slots[i].lost() })
}

// Lose notes that rows of this peer's copy of s were lost. It may be counted on for what
// it has no more: a candidate is told that it may have had all of it (slot.lost), and it owns
// nothing, until the copy is whole again.
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
