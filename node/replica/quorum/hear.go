package quorum

import (
	"maps"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Which statements count. A ReplicaSet carries no proof, so this peer's own knowledge decides
// which peers it believes:
//
//   - A replica of the ReplicaSet known here is believed about what came after it.
//   - A fork may begin without a majority, by an adoption or by hearsay. Then slot.under keeps
//     the ReplicaSet that was left. Its replicas are believed about how its chain continued.
//     What they agreed on wins over the fork, unless one of those who agreed began the fork.
//   - A majority of the replicas of the known ReplicaSet, or of one that was left, is believed
//     when it says something else for denyFor. If this peer left a ReplicaSet that it kept
//     because of hearsay, it counts itself for the one it left.
//   - A statement from any other peer is hearsay. It changes nothing, but Doubts then lists the
//     peers to ask. Confirm accepts hearsay only when the caller says that all replicas of the
//     known ReplicaSet are gone. Then a majority of the reported ReplicaSet's own replicas must
//     say that it is in force.
//
// A peer that knows something from hearsay says so with it (ReplicaSet.Hearsay).
const (
	// how long a majority must say so; excludes answers from old knowledge
	denyFor     = 10 * time.Second
	wordLasts   = 30 * time.Second // a statement that is not repeated expires after this time
	maxSpeakers = 16               // peers whose statements about one slice are remembered
	maxUnder    = 8                // ReplicaSets of one slice that were left and are remembered
)

// word is a statement of a peer about a slice that differs from what is known here.
type word struct {
	set         ReplicaSet
	since, last time.Time // when it first and last stated this, or something of the same fork
}

// Hear processes the statements of the peer from, received at now. It returns the slices whose
// known ReplicaSet changed.
func (m *Machine) Hear(from string, now time.Time, all ...SliceReplicas) []partition.Slice {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []partition.Slice
	for _, c := range all {
		if i, ok := m.index[c.Slice]; ok && m.hear(i, c.ReplicaSet, from, now) {
			out = append(out, c.Slice)
		}
	}
	return out
}

// hear processes the statement of from that c is in force in slot i. It reports whether the
// ReplicaSet known here changed.
func (m *Machine) hear(i int, c ReplicaSet, from string, now time.Time) bool {
	before := m.slots[i].set
	if from == m.self || from == "" || c.Validate() != nil {
		return false
	}
	if n := len(m.slots[i].under); n > 0 && before.Epoch > 0 && before.Gen == 0 && from == before.Fork &&
		!c.SameFork(before) {
		// The only peer that had this fork has left it, so the fork is gone.
		m.take(i, m.slots[i].under[n-1], slices.Clone(m.slots[i].under[:n-1]))
		sl := &m.slots[i]
		if sl.dead = append(sl.dead, before.fork()); len(sl.dead) > maxPast {
			sl.dead = sl.dead[1:]
		}
		m.hear(i, c, from, now)
		return true
	}
	if c.Gen == 0 && from != c.Fork &&
		(c.Fork == m.self && !c.SameFork(before) || slices.Contains(m.slots[i].dead, c.fork())) {
		return false // the fork was left; not all peers may know that yet
	}
	if c.Gen == 0 && from == c.Fork { // it is in force again, or an older statement had left it
		sl := &m.slots[i]
		sl.dead = slices.DeleteFunc(slices.Clone(sl.dead), func(f fork) bool { return f == c.fork() })
	}
	for j := range m.slots[i].under {
		if m.returned(i, j, c, from) {
			return m.slots[i].set.Compare(before) != 0
		}
	}
	if c.Compare(before) > 0 && before.Has(from) && before.counts(c) && before.follows(c) == nil {
		if c.Hearsay = 0; before.Hearsay > 0 { // a successor of hearsay is hearsay
			c.Hearsay = c.Gen + 1
		}
		m.take(i, c, m.left(i, c))
		return true
	}
	m.note(i, c, from, now)
	return m.outvoted(i, now)
}

// returned processes the statement of from about what followed the jth ReplicaSet that was
// left. It reports whether from is believed.
func (m *Machine) returned(i, j int, c ReplicaSet, from string) bool {
	sl := &m.slots[i]
	u := sl.under[j]
	if !u.Has(from) || c.Compare(u) <= 0 || !u.counts(c) || u.follows(c) != nil {
		return false
	}
	heard := u.Hearsay
	if !c.SameFork(u) {
		if u.Hearsay > 0 {
			heard = c.Gen + 1
		}
		next := sl.set
		if j+1 < len(sl.under) {
			next = sl.under[j+1]
		}
		// Of two forks the higher wins. But a fork that began without these replicas does not
		// win over a fork of theirs.
		theirs := next.SameFork(u) || u.Has(next.Fork)
		if c.SameFork(sl.set) || theirs {
			if c.Compare(sl.set) <= 0 {
				return false
			}
		}
		c.Hearsay = heard
		m.take(i, c, slices.Clone(sl.under[:j+1]))
		return true
	}
	c.Hearsay = heard
	// Everything known of the same fork beyond u is hearsay.
	last := j
	for last+1 < len(sl.under) && sl.under[last+1].SameFork(u) {
		last++
	}
	next := sl.set
	if last+1 < len(sl.under) {
		next = sl.under[last+1]
	}
	switch {
	case next.SameFork(u) && c.same(next): // the hearsay was right
		sl.set.Hearsay = heard
		sl.under = slices.Clone(sl.under[:j])
		m.dirty[i] = true
	case next.SameFork(u) && c.Gen >= next.Gen, !next.SameFork(u) && !c.Has(next.Fork) && c.Gen >= sl.under[last].Gen:
		m.take(i, c, slices.Clone(sl.under[:j]))
	default: // the hearsay goes further, or one of c's own replicas began the fork
		sl.under = slices.Clone(sl.under)
		if c.Gen >= sl.under[last].Gen {
			sl.under = slices.Delete(sl.under, j+1, last+1)
		}
		sl.under[j] = m.named(c)
		m.dirty[i] = true
	}
	return true
}

// left returns the ReplicaSets that were left once c replaces slot i's ReplicaSet.
func (m *Machine) left(i int, c ReplicaSet) []ReplicaSet {
	sl := &m.slots[i]
	if c.SameFork(sl.set) {
		return sl.under
	}
	return under(append(slices.Clone(sl.under), sl.set), c)
}

// under returns those of all from which c, of another fork, can have come. It returns at most
// the newest maxUnder.
func under(all []ReplicaSet, c ReplicaSet) []ReplicaSet {
	all = slices.DeleteFunc(all, func(u ReplicaSet) bool { return u.Epoch >= c.Epoch })
	return all[max(0, len(all)-maxUnder):]
}

// differs reports whether the statement of from that c is in force may count later. It may if c
// is newer than what is known, or if from is a replica of the known ReplicaSet or of one that
// was left.
func (sl *slot) differs(from string, c ReplicaSet) bool {
	return c.Compare(sl.set) > 0 || sl.set.Has(from) && !c.SameFork(sl.set) ||
		!c.SameFork(sl.set) &&
			slices.ContainsFunc(sl.under, func(u ReplicaSet) bool { return u.Has(from) && u.Compare(c) <= 0 })
}

// note remembers the statement of from about slot i if it may count later.
func (m *Machine) note(i int, c ReplicaSet, from string, now time.Time) {
	sl := &m.slots[i]
	if !sl.differs(from, c) {
		delete(sl.words, from)
		return
	}
	w := word{set: m.named(c), since: now, last: now}
	if old, ok := sl.words[from]; ok && old.set.SameFork(c) && now.Sub(old.last) < wordLasts {
		w.since = old.since
	}
	if sl.words == nil {
		sl.words = map[string]word{}
	}
	if _, ok := sl.words[from]; !ok && len(sl.words) >= maxSpeakers {
		// drop a random one, so that a frequent speaker does not drive out all others
		for id := range sl.words {
			delete(sl.words, id)
			break
		}
	}
	sl.words[from] = w
	m.doubted[i] = true
}

// outvoted follows a majority of the replicas of slot i's ReplicaSet to another fork. It also
// follows a majority of the replicas of a ReplicaSet that was left, back to that one or on to
// another fork.
func (m *Machine) outvoted(i int, now time.Time) bool {
	sl := &m.slots[i]
	if len(sl.words) == 0 {
		return false
	}
	for j, u := range sl.under {
		sayers := sl.say(u, now, func(c ReplicaSet) bool { return c.Compare(u) == 0 })
		if m.deserted(sl, j) {
			sayers++
		}
		if sayers >= u.Quorum() {
			m.take(i, u, slices.Clone(sl.under[:j]))
			return true
		}
		if c, ok := sl.elsewhere(u, now); ok {
			if u.Hearsay > 0 {
				c.Hearsay = c.Gen + 1
			}
			m.take(i, c, slices.Clone(sl.under[:j+1]))
			return true
		}
	}
	for _, k := range sl.set.Replicas {
		w, ok := sl.words[k]
		if !ok || w.set.SameFork(sl.set) || sl.say(sl.set, now, w.set.SameFork) < sl.set.Quorum() {
			continue
		}
		c, on := w.set, under(append(slices.Clone(sl.under), sl.set), w.set)
		c.Hearsay = c.Gen + 1
		for j, u := range sl.under {
			if u.SameFork(c) {
				if on = slices.Clone(sl.under[:j]); u.Compare(c) >= 0 { // these replicas lag behind
					c = u
				}
				break
			}
		}
		m.take(i, c, on)
		return true
	}
	return false
}

// say counts the replicas of the ReplicaSet "of" that state a ReplicaSet for which is returns
// true. They must have stated it for denyFor, and again within denyFor/2.
func (sl *slot) say(of ReplicaSet, now time.Time, is func(ReplicaSet) bool) int {
	n := 0
	for _, k := range of.Replicas {
		if w, ok := sl.words[k]; ok && is(w.set) && now.Sub(w.since) >= denyFor && now.Sub(w.last) < denyFor/2 {
			n++
		}
	}
	return n
}

// deserted reports whether this peer keeps the jth ReplicaSet that was left, and left it for
// hearsay because all its other replicas seemed gone. A replica that is back and never left it
// may then count on this peer. Otherwise the two would wait for each other.
func (m *Machine) deserted(sl *slot, j int) bool {
	u, next := sl.under[j], sl.set
	if j+1 < len(sl.under) {
		next = sl.under[j+1]
	}
	return next.Hearsay > 0 && !next.SameFork(u) && u.Has(m.self) && !u.Has(next.Fork)
}

// elsewhere returns the fork to which a majority of the replicas of u moved by their own
// knowledge. It is neither the fork of u nor the one known here.
func (sl *slot) elsewhere(u ReplicaSet, now time.Time) (best ReplicaSet, ok bool) {
	for _, k := range u.Replicas {
		c := sl.words[k].set
		if len(c.Replicas) == 0 || c.SameFork(u) || c.SameFork(sl.set) || c.Compare(u) <= 0 || !u.counts(c) ||
			u.follows(c) != nil {
			continue
		}
		if ok && c.Compare(best) <= 0 {
			continue
		}
		if sl.say(u, now, func(d ReplicaSet) bool { return d.SameFork(c) && u.counts(d) }) >= u.Quorum() {
			best, ok = c, true
		}
	}
	return best, ok
}

// Confirm accepts hearsay when no replica is left to ask. All replicas of the known ReplicaSet
// must be gone, according to gone, or must have left it themselves. And a majority of the
// reported ReplicaSet must say that it is in force. first tells gone that only the first
// ReplicaSet is known here. A peer that alone is a majority of the known ReplicaSet accepts
// nothing: it knows best what became of it.
func (m *Machine) Confirm(now time.Time, gone func(replica string, first bool) bool) []partition.Slice {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []partition.Slice
	for i := range m.doubted {
		sl := &m.slots[i]
		maps.DeleteFunc(sl.words, func(_ string, w word) bool { return now.Sub(w.last) >= wordLasts })
		if len(sl.words) == 0 {
			delete(m.doubted, i)
			continue
		}
		cur := sl.set
		if cur.Has(m.self) && cur.Quorum() == 1 {
			continue
		}
		first := cur.Epoch == 0 && cur.Gen == 0
		if slices.ContainsFunc(cur.Replicas, func(k string) bool {
			w, spoke := sl.words[k]
			// A replica ignores statements that the others left: they might be deceived.
			left := spoke && w.set.Compare(cur) > 0 && !cur.Has(m.self)
			return k != m.self && !left && !gone(k, first)
		}) {
			continue
		}
		if c, ok := m.confirmed(i); ok {
			c.Hearsay = c.Gen + 1
			all := append(slices.Clone(sl.under), cur)
			if !c.SameFork(cur) {
				all = under(all, c)
			}
			m.take(i, c, all[max(0, len(all)-maxUnder):])
			out = append(out, m.slices[i])
		}
	}
	return out
}

// confirmed returns the newest ReplicaSet reported for slot i that a majority of its own
// replicas says is in force. Their statements must name it or a later one of its fork.
func (m *Machine) confirmed(i int) (best ReplicaSet, ok bool) {
	sl := &m.slots[i]
	for _, w := range sl.words {
		c := w.set
		if c.Compare(sl.set) <= 0 || sl.set.follows(c) != nil || ok && c.Compare(best) <= 0 {
			continue
		}
		n := 0
		for _, k := range c.Replicas {
			// This peer may have become a replica without knowing it.
			if v, spoke := sl.words[k]; k == m.self || spoke && v.set.SameFork(c) && v.set.Gen >= c.Gen {
				n++
			}
		}
		if n >= c.Quorum() {
			best, ok = c, true
		}
	}
	return best, ok
}

// InDoubt reports whether a statement was received that does not count and is not known.
func (m *Machine) InDoubt() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.doubted) > 0
}

// Doubted reports whether a statement about s was received that does not count.
func (m *Machine) Doubted(s partition.Slice) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	i, ok := m.index[s]
	return ok && m.doubted[i] && len(m.slots[i].words) > 0
}

// Doubts returns the peers to ask, each with the slices to ask about. For every slice in doubt
// it lists the replicas of the known, the left and the reported ReplicaSets.
func (m *Machine) Doubts() map[string][]partition.Slice {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := map[string][]partition.Slice{}
	for _, i := range slices.Sorted(maps.Keys(m.doubted)) {
		sl := &m.slots[i]
		asked := map[string]bool{m.self: true}
		ask := func(c ReplicaSet) {
			for _, k := range c.Replicas {
				if !asked[k] {
					asked[k] = true
					out[k] = append(out[k], m.slices[i])
				}
			}
		}
		ask(sl.set)
		for _, u := range sl.under {
			ask(u)
		}
		for _, w := range sl.words {
			ask(w.set)
		}
	}
	return out
}

// Left returns, for each replica of a ReplicaSet that was left without its replicas' consent,
// the slices concerned. A replica that is back may know how the chain continued.
func (m *Machine) Left() map[string][]partition.Slice {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := map[string][]partition.Slice{}
	for i := range m.slots {
		for _, u := range m.slots[i].under {
			for _, k := range u.Replicas {
				if n := len(out[k]); k != m.self && (n == 0 || out[k][n-1] != m.slices[i]) {
					out[k] = append(out[k], m.slices[i])
				}
			}
		}
	}
	return out
}
