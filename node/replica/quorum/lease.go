package quorum

import (
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Ask is an owner's request for a lease, to one replica. Count and Digest are of
// the slices that the owner believes it owns and the other keeps; List are
// their ReplicaSets, or some of them, when the other had answered that it believes
// something else.
type Ask struct {
	Count  int
	Digest uint64
	List   []SliceReplicas
	// News, without a List, are those of the ReplicaSets that the replica's last lease
	// does not cover: when it has heard of no other, it need not be told them all.
	News []SliceReplicas

	clock uint64
	sent  time.Time
}

// Grant answers an Ask. When Differs is set nothing is leased yet: ask again
// with the list. Refused are slices of the list that are not leased, Newer the
// ReplicaSets of those of them that have a newer one, and, when the list was whole,
// of slices that are the asker's by what is known here and not in it: it has not
// heard that it owns them, and nobody else will act there.
type Grant struct {
	Differs bool
	Refused []partition.Slice
	Newer   []SliceReplicas
}

// maxNews is how many ReplicaSets an Ask has at most before it is known that the
// replica needs them.
const maxNews = 256

// maxUnlisted is how many ReplicaSets a Grant has at most when it adds those that
// were not asked for.
const maxUnlisted = 1024

// leasable says whether slice i, by its ReplicaSet, may be leased to owner by this
// replica: it has promised nobody else anything.
func (m *Machine) leasable(i int, owner string) bool {
	sl := &m.slots[i]
	return sl.set.Owner == owner && sl.set.Has(m.self) && sl.accepted.N == 0 && sl.promised.N <= 1
}

// Lessors are the peers that this one needs leases from.
func (m *Machine) Lessors() []string {
	return m.lessors(func(int, string) bool { return true })
}

// Lacking are those of the Lessors whose lease at now covers less than it could:
// it has run out, or an owned slice changed since.
func (m *Machine) Lacking(now time.Time) []string {
	return m.lessors(func(i int, replica string) bool {
		h := m.held[replica]
		return m.slots[i].since > h.clock || !before(now, h.until)
	})
}

// lessors are the other replicas of the owned slices for which need is true.
func (m *Machine) lessors(need func(i int, replica string) bool) []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	seen := map[string]bool{m.self: true}
	var out []string
	for i := range m.owned[m.self].all() {
		for _, k := range m.slots[i].set.Replicas {
			if !seen[k] && need(i, k) {
				seen[k] = true
				out = append(out, k)
			}
		}
	}
	return out
}

// AskFor makes a request for a lease from replica, sent at now.
func (m *Machine) AskFor(replica string, list bool, now time.Time) Ask {
	m.mu.RLock()
	defer m.mu.RUnlock()
	a := Ask{clock: m.clock, sent: now}
	last := m.held[replica].clock
	for i := range m.owned[m.self].all() {
		if sl := &m.slots[i]; sl.set.Has(replica) {
			a.Count++
			a.Digest ^= sl.hash
			switch {
			case list:
				a.List = append(a.List, SliceReplicas{m.slices[i], sl.set})
			case sl.since > last:
				a.News = append(a.News, SliceReplicas{m.slices[i], sl.set})
			}
		}
	}
	if len(a.News) > maxNews {
		a.News = nil
	}
	return a
}

// Grant answers an owner's request at now.
func (m *Machine) Grant(owner string, a Ask, now time.Time) Grant {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a.List == nil {
		for _, c := range a.News {
			if i, ok := m.index[c.Slice]; ok {
				m.hear(i, c.ReplicaSet, owner, now)
			}
		}
		count, digest := 0, uint64(0)
		for i := range m.owned[owner].all() {
			if m.leasable(i, owner) {
				count++
				digest ^= m.slots[i].hash
			}
		}
		if count != a.Count || digest != a.Digest {
			return Grant{Differs: true}
		}
	}
	var g Grant
	listed := newBits(len(m.slots))
	for _, c := range a.List {
		i, ok := m.index[c.Slice]
		if !ok {
			continue
		}
		listed.set(i, true)
		m.hear(i, c.ReplicaSet, owner, now)
		if m.slots[i].set.Compare(c.ReplicaSet) != 0 {
			g.Newer = append(g.Newer, SliceReplicas{c.Slice, m.slots[i].set})
		}
		if m.slots[i].set.Compare(c.ReplicaSet) != 0 || !m.leasable(i, owner) {
			g.Refused = append(g.Refused, c.Slice)
		}
	}
	if a.List != nil && a.Count == len(a.List) { // all of it
		for i := range m.owned[owner].all() {
			if len(g.Newer) >= maxUnlisted {
				break
			}
			if !listed.has(i) && m.slots[i].set.Has(m.self) {
				g.Newer = append(g.Newer, SliceReplicas{m.slices[i], m.slots[i].set})
			}
		}
	}
	m.granted[owner] = now.Add(LeaseGrant)
	return g
}

// Granted takes a replica's answer to a. It says whether the list has to be sent.
func (m *Machine) Granted(replica string, a Ask, g Grant) (list bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range g.Newer {
		if i, ok := m.index[c.Slice]; ok {
			m.hear(i, c.ReplicaSet, replica, a.sent)
		}
	}
	if g.Differs {
		return a.List == nil
	}
	refused := make(map[partition.Slice]bool, len(g.Refused))
	for _, s := range g.Refused {
		refused[s] = true
	}
	if old, ok := m.held[replica]; ok && old.clock > a.clock {
		return false // an answer that was overtaken
	}
	m.held[replica] = held{until: a.sent.Add(LeaseHold), clock: a.clock, refused: refused}
	return false
}

// bound says until when this replica may promise nobody but the owner anything
// about slice i; the zero time when it may.
func (m *Machine) bound(i int, now time.Time) time.Time {
	owner := m.slots[i].set.Owner
	if owner == m.self {
		if m.slots[i].accepted.N == 0 && m.slots[i].promised.N <= 1 && m.leased(i, now) {
			return now.Add(LeaseHold)
		}
		return time.Time{}
	}
	if b := m.slots[i].promised; b.N > 1 && b.By != owner {
		return time.Time{} // its lease had run out then, and there was none since: see leasable
	}
	if until := m.granting(owner); now.Before(until) {
		return until
	}
	return time.Time{}
}

// granting is until when owner may believe to have a lease from this replica,
// which does not know what it granted before it started.
func (m *Machine) granting(owner string) time.Time {
	until := m.started.Add(LeaseGrant)
	if g := m.granted[owner]; g.After(until) {
		until = g
	}
	return until
}
