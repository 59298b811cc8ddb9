package quorum

import (
	"maps"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Whose word counts. A ReplicaSet carries no proof, so what this peer knows itself
// decides who is believed:
//
//   - A replica of the ReplicaSet known here is believed about what came after it.
//   - Of a fork that began without a majority, that is by an adoption or by
//     hearsay, the ReplicaSet that was left is remembered (slot.under). Its replicas
//     are believed about how that went on: what they agreed on wins over the fork,
//     unless the fork was begun by one of those who agreed.
//   - A majority of the replicas of what is known, or of what was left, is believed
//     when it says something else for denyFor. Who left for hearsay what it kept
//     counts itself for what was left.
//   - Everybody else's word is hearsay. It changes nothing, but Doubts then lists
//     whom to ask; only when all replicas of what is known here are gone, as the
//     caller says, does Confirm take a ReplicaSet that a majority of its own replicas
//     says is in force.
//
// Who has something from hearsay says so with it (ReplicaSet.Heard).
const (
	denyFor     = 10 * time.Second // a majority says something else, so that nobody answers from yesterday
	wordLasts   = 30 * time.Second // a word that is not repeated counts no longer
	maxSpeakers = 16               // peers whose words about one slice are remembered
	maxUnder    = 8                // ReplicaSets that were left, of one slice
)

// word is what a peer says of a slice, other than what is known here.
type word struct {
	set         ReplicaSet
	since, last time.Time // it has said so, or something of the same fork
}

// Hear takes the words of from, at now, and answers the slices of which it
// changed what is known here.
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

// hear takes the word of from that c is in force in slot i, and says whether
// that changed the ReplicaSet known here.
func (m *Machine) hear(i int, c ReplicaSet, from string, now time.Time) bool {
	before := m.slots[i].set
	if from == m.self || from == "" || c.Validate() != nil {
		return false
	}
	if n := len(m.slots[i].under); n > 0 && before.Epoch > 0 && before.Gen == 0 && from == before.Fork &&
		!c.SameFork(before) {
		// Who had that fork alone has left it, so there is none.
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
		return false // it is left, which not all may know
	}
	if c.Gen == 0 && from == c.Fork { // it is in force again, or an older word of its left it
		sl := &m.slots[i]
		sl.dead = slices.DeleteFunc(slices.Clone(sl.dead), func(f fork) bool { return f == c.fork() })
	}
	for j := range m.slots[i].under {
		if m.returned(i, j, c, from) {
			return m.slots[i].set.Compare(before) != 0
		}
	}
	if c.Compare(before) > 0 && before.Has(from) && before.counts(c) && before.follows(c) == nil {
		if c.Heard = 0; before.Heard > 0 { // what follows from hearsay is hearsay
			c.Heard = c.Gen + 1
		}
		m.take(i, c, m.left(i, c))
		return true
	}
	m.note(i, c, from, now)
	return m.outvoted(i, now)
}

// returned hears from about what came of the jth ReplicaSet that was left, and says
// whether from is believed.
func (m *Machine) returned(i, j int, c ReplicaSet, from string) bool {
	sl := &m.slots[i]
	u := sl.under[j]
	if !u.Has(from) || c.Compare(u) <= 0 || !u.counts(c) || u.follows(c) != nil {
		return false
	}
	heard := u.Heard
	if !c.SameFork(u) {
		if u.Heard > 0 {
			heard = c.Gen + 1
		}
		next := sl.set
		if j+1 < len(sl.under) {
			next = sl.under[j+1]
		}
		// Of two forks the higher wins, but none that was begun beside the replicas
		// wins over theirs.
		theirs := next.SameFork(u) || u.Has(next.Fork)
		if c.SameFork(sl.set) || theirs {
			if c.Compare(sl.set) <= 0 {
				return false
			}
		}
		c.Heard = heard
		m.take(i, c, slices.Clone(sl.under[:j+1]))
		return true
	}
	c.Heard = heard
	// What of the same fork is known beyond u is hearsay.
	last := j
	for last+1 < len(sl.under) && sl.under[last+1].SameFork(u) {
		last++
	}
	next := sl.set
	if last+1 < len(sl.under) {
		next = sl.under[last+1]
	}
	switch {
	case next.SameFork(u) && c.same(next): // as was heard
		sl.set.Heard = heard
		sl.under = slices.Clone(sl.under[:j])
		m.dirty[i] = true
	case next.SameFork(u) && c.Gen >= next.Gen, !next.SameFork(u) && !c.Has(next.Fork) && c.Gen >= sl.under[last].Gen:
		m.take(i, c, slices.Clone(sl.under[:j]))
	default: // what was heard goes further, or the fork is one of c's own replicas'
		sl.under = slices.Clone(sl.under)
		if c.Gen >= sl.under[last].Gen {
			sl.under = slices.Delete(sl.under, j+1, last+1)
		}
		sl.under[j] = m.named(c)
		m.dirty[i] = true
	}
	return true
}

// left is what c stands on when it takes the place of slot i's ReplicaSet.
func (m *Machine) left(i int, c ReplicaSet) []ReplicaSet {
	sl := &m.slots[i]
	if c.SameFork(sl.set) {
		return sl.under
	}
	return under(append(slices.Clone(sl.under), sl.set), c)
}

// under are those of all that c, of another fork, can have come from.
func under(all []ReplicaSet, c ReplicaSet) []ReplicaSet {
	all = slices.DeleteFunc(all, func(u ReplicaSet) bool { return u.Epoch >= c.Epoch })
	return all[max(0, len(all)-maxUnder):]
}

// differs says whether the word of from that c is in force may come to count: it
// is newer than what is known, or of one who keeps what is known or was left.
func (sl *slot) differs(from string, c ReplicaSet) bool {
	return c.Compare(sl.set) > 0 || sl.set.Has(from) && !c.SameFork(sl.set) ||
		!c.SameFork(sl.set) &&
			slices.ContainsFunc(sl.under, func(u ReplicaSet) bool { return u.Has(from) && u.Compare(c) <= 0 })
}

// note remembers the word of from about slot i if it may come to count.
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
		for id := range sl.words { // some other: who speaks often does not drive out all others
			delete(sl.words, id)
			break
		}
	}
	sl.words[from] = w
	m.doubted[i] = true
}

// outvoted follows a majority of the replicas of slot i's ReplicaSet to another fork,
// or one of the replicas of what was left, back to that or on to another fork.
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
			if u.Heard > 0 {
				c.Heard = c.Gen + 1
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
		c.Heard = c.Gen + 1
		for j, u := range sl.under {
			if u.SameFork(c) {
				if on = slices.Clone(sl.under[:j]); u.Compare(c) >= 0 { // they lag behind
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

// say is how many replicas of a ReplicaSet have said for denyFor, and say now, that one
// is in force that is is true of.
func (sl *slot) say(of ReplicaSet, now time.Time, is func(ReplicaSet) bool) int {
	n := 0
	for _, k := range of.Replicas {
		if w, ok := sl.words[k]; ok && is(w.set) && now.Sub(w.since) >= denyFor && now.Sub(w.last) < denyFor/2 {
			n++
		}
	}
	return n
}

// deserted says whether this peer keeps the jth ReplicaSet that was left and left it for
// hearsay, as all others who keep it seemed gone. One that is back and never left it
// may then count on this peer: else the two would wait for each other.
func (m *Machine) deserted(sl *slot, j int) bool {
	u, next := sl.under[j], sl.set
	if j+1 < len(sl.under) {
		next = sl.under[j+1]
	}
	return next.Heard > 0 && !next.SameFork(u) && u.Has(m.self) && !u.Has(next.Fork)
}

// elsewhere is the fork, neither that of u nor the one known here, to which a
// majority of the replicas of u went by their own knowledge.
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

// Confirm takes what was only heard where nobody is left to ask: all replicas of
// the ReplicaSet known here are gone, as gone says, or have left it themselves, and
// of the ReplicaSet that was heard a majority says that it is in force. first tells
// gone that nothing but the first ReplicaSet is known here. What alone is a majority
// of a ReplicaSet knows better than anybody what became of it.
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
			// A replica takes nobody's word that the others left: they might be deceived.
			left := spoke && w.set.Compare(cur) > 0 && !cur.Has(m.self)
			return k != m.self && !left && !gone(k, first)
		}) {
			continue
		}
		if c, ok := m.confirmed(i); ok {
			c.Heard = c.Gen + 1
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

// confirmed is the newest ReplicaSet heard of slot i that a majority of its own
// replicas says is in force, or an earlier one of its fork.
func (m *Machine) confirmed(i int) (best ReplicaSet, ok bool) {
	sl := &m.slots[i]
	for _, w := range sl.words {
		c := w.set
		if c.Compare(sl.set) <= 0 || sl.set.follows(c) != nil || ok && c.Compare(best) <= 0 {
			continue
		}
		n := 0
		for _, k := range c.Replicas {
			// This peer may have been made a replica without having heard of it.
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

// InDoubt says whether something was heard that does not count, and is not known.
func (m *Machine) InDoubt() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.doubted) > 0
}

// Doubted says whether something was heard of s that does not count, and is not known.
func (m *Machine) Doubted(s partition.Slice) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	i, ok := m.index[s]
	return ok && m.doubted[i] && len(m.slots[i].words) > 0
}

// Doubts says whom to ask about which slices: about those of which something was
// heard, who keeps them by what is known here and by what was heard.
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

// Left says of which slices a ReplicaSet was left without its replicas' word, and who
// they are: one that is back may know how it went on.
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
