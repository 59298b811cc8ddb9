package quorum

import (
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Ask is an owner's request to one replica for a lease. Count and Digest cover the slices that
// the owner believes it owns and the other peer keeps. List has their ReplicaSets, or some of
// them. The owner sends it after the other peer said that its knowledge differs.
type Ask struct {
	Count  int
	Digest uint64
	List   []SliceReplicas
	// News is sent only without a List. It has the ReplicaSets that the replica's last lease
	// does not cover. If the replica lacks only these, it does not need the List.
	News []SliceReplicas

	clock uint64
	sent  time.Time
}

// Grant is the response to an Ask. If Differs is set, nothing is leased yet, and the owner asks
// again with the list. Refused has the slices of the list that are not leased. Newer has the
// newer ReplicaSets of slices in the list. If the list was complete, Newer also has the
// ReplicaSets of slices that the asking peer owns but did not list. That peer does not know yet
// that it owns them, and no other peer acts there.
type Grant struct {
	Differs bool
	Refused []partition.Slice
	Newer   []SliceReplicas
}

// maxNews is the largest number of ReplicaSets that an Ask has before the owner knows that the
// replica needs them.
const maxNews = 256

// maxUnlisted is the number of ReplicaSets in a Grant from which on it gets no more of those
// that were not asked for.
const maxUnlisted = 1024

// leasable reports whether this replica may lease slice i to owner, according to the slice's
// ReplicaSet: it has promised nothing to another peer.
func (m *Machine) leasable(i int, owner string) bool {
	sl := &m.slots[i]
	return sl.set.Owner == owner && sl.set.Has(m.self) && sl.accepted.N == 0 && sl.promised.N <= 1
}

// Lessors returns the peers from which this peer needs leases.
func (m *Machine) Lessors() []string {
	return m.lessors(func(int, string) bool { return true })
}

// Lacking returns those Lessors whose lease at now covers less than it could: it has run out,
// or an owned slice changed since.
func (m *Machine) Lacking(now time.Time) []string {
	return m.lessors(func(i int, replica string) bool {
		h := m.held[replica]
		return m.slots[i].since > h.clock || !before(now, h.until)
	})
}

// lessors returns the other replicas of the owned slices for which need returns true.
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

// AskFor returns a request for a lease from replica, sent at now.
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

// Grant responds to an owner's request at now.
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
	if a.List != nil && a.Count == len(a.List) { // the list is complete
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

// Granted processes a replica's response to a. It reports whether the list must be sent.
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
		return false // a newer response came before this one
	}
	m.held[replica] = held{until: a.sent.Add(LeaseHold), clock: a.clock, refused: refused}
	return false
}

// bound returns the time until which this replica may promise slice i to no peer except the
// owner. It returns the zero time when it may promise.
func (m *Machine) bound(i int, now time.Time) time.Time {
	owner := m.slots[i].set.Owner
	if owner == m.self {
		if m.slots[i].accepted.N == 0 && m.slots[i].promised.N <= 1 && m.leased(i, now) {
			return now.Add(LeaseHold)
		}
		return time.Time{}
	}
	if b := m.slots[i].promised; b.N > 1 && b.By != owner {
		return time.Time{} // its lease had run out then, and no new one was granted: see leasable
	}
	if until := m.granting(owner); now.Before(until) {
		return until
	}
	return time.Time{}
}

// granting returns the time until which owner may believe it has a lease from this replica.
// This replica does not know what it granted before it started.
func (m *Machine) granting(owner string) time.Time {
	until := m.started.Add(LeaseGrant)
	if g := m.granted[owner]; g.After(until) {
		until = g
	}
	return until
}
