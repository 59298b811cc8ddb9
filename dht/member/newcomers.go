package member

import (
	"cmp"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// NewcomerLimits limit how fast new identities start to count. The zero value is the default.
type NewcomerLimits struct {
	// Least is the number of new identities that may enter within a Window. If there are more
	// established members than that, their number is the limit. Default 4.
	Least int
	// Window is the time over which entries are counted. Default 30 s.
	Window time.Duration
	// Keep is how long an identity that is gone is still no newcomer. Default one hour.
	Keep time.Duration
	// MaxKnown is the largest number of identities remembered. Those gone for the longest time
	// are forgotten first. Default 8192.
	MaxKnown int
}

func (l *NewcomerLimits) fill() {
	setDefault(&l.Least, 4)
	setDefault(&l.Window, 30*time.Second)
	setDefault(&l.Keep, time.Hour)
	setDefault(&l.MaxKnown, 8192)
}

// Newcomers decides which live members count for ownership. An identity costs nothing, so a
// hundred identities that appear at once must not take anything over at once. They enter a few
// at a time, in the order in which they were first seen, and the rest wait. A swarm at most
// doubles in one Window, so its members have time to copy what moves.
//
// Newcomers is pure: time is an argument and must not go back. It is not safe for concurrent
// use.
type Newcomers struct {
	limits  NewcomerLimits
	self    string
	entered map[string]entry
	waiting map[string]time.Time // since when each one waits
	recent  []time.Time          // times of the entries within the last Window, in order
	last    partition.View       // of the last Allow: its members were live until now
}

// entry is an identity that counts or counted.
type entry struct {
	at   time.Time // when it entered
	seen time.Time // when it was last live
}

// NewNewcomers returns a Newcomers that knows this peer itself and the identities in trusted,
// which enter at once when they appear. trusted has the members that this peer knew in its last
// run. For a peer new in a swarm it has the whole first View, because the peer cannot
// distinguish old members from new ones.
func NewNewcomers(l NewcomerLimits, self string, trusted ...string) *Newcomers {
	l.fill()
	n := &Newcomers{limits: l, self: self, entered: map[string]entry{}, waiting: map[string]time.Time{}}
	n.Trust(time.Time{}, trusted...)
	return n
}

// Trust lets identities enter without waiting, now and when they appear later.
func (n *Newcomers) Trust(now time.Time, ids ...string) {
	for _, id := range ids {
		if _, ok := n.entered[id]; !ok {
			n.entered[id] = entry{seen: now} // established: not counted as an entry
		}
		delete(n.waiting, id)
	}
}

// Allow returns the members of live that count, and how many wait. Call it for each View, and
// again at the time that Next returns.
func (n *Newcomers) Allow(live partition.View, now time.Time) (partition.View, int) {
	n.forget(live, now)
	n.last = live
	var in []partition.Member
	var out []string
	established := 0
	for _, m := range live.Members() {
		e, ok := n.entered[m.ID]
		// A new identity waits, at first. It may enter below.
		if !ok && m.ID != n.self {
			if _, ok := n.waiting[m.ID]; !ok {
				n.waiting[m.ID] = now
			}
			out = append(out, m.ID)
			continue
		}
		if ok && e.seen.IsZero() {
			e.at = time.Time{} // trusted before it was ever seen
		}
		// Identities that entered within the last Window are not established. Otherwise the swarm
		// could grow more than twofold.
		if e.at.IsZero() || now.Sub(e.at) >= n.limits.Window {
			established++
		}
		e.seen = now
		n.entered[m.ID] = e
		in = append(in, m)
	}
	room := max(n.limits.Least, established) - len(n.recent)
	// Those that wait longest come first. Of equals, the smaller id does.
	slices.SortFunc(out, func(a, b string) int {
		return cmp.Or(n.waiting[a].Compare(n.waiting[b]), cmp.Compare(a, b))
	})
	for _, id := range out[:max(0, min(room, len(out)))] {
		m, _ := live.Find(id)
		n.entered[id] = entry{at: now, seen: now}
		n.recent = append(n.recent, now)
		delete(n.waiting, id)
		in = append(in, m)
	}
	return partition.NewView(in), len(n.waiting)
}

// Next returns when one of the waiting identities may enter. It returns the zero time if none
// waits, or if nothing entered within the last Window.
func (n *Newcomers) Next() time.Time {
	if len(n.waiting) == 0 || len(n.recent) == 0 {
		return time.Time{}
	}
	return n.recent[0].Add(n.limits.Window)
}

// forget drops old entries, identities that no longer wait, and identities gone for a long
// time.
func (n *Newcomers) forget(live partition.View, now time.Time) {
	old := 0
	for old < len(n.recent) && now.Sub(n.recent[old]) >= n.limits.Window {
		old++
	}
	n.recent = n.recent[old:]
	for id := range n.waiting {
		if _, ok := live.Find(id); !ok {
			delete(n.waiting, id)
		}
	}
	var gone []string
	for id, e := range n.entered {
		if id == n.self {
			continue
		}
		// It was live until now, even if nothing has changed since.
		if _, ok := n.last.Find(id); ok {
			e.seen = now
			n.entered[id] = e
		}
		if !e.seen.IsZero() && now.Sub(e.seen) >= n.limits.Keep {
			delete(n.entered, id)
			continue
		}
		if _, ok := live.Find(id); !ok {
			gone = append(gone, id)
		}
	}
	if over := len(n.entered) - n.limits.MaxKnown; over > 0 {
		slices.SortFunc(gone, func(a, b string) int {
			return cmp.Or(n.entered[a].seen.Compare(n.entered[b].seen), cmp.Compare(a, b))
		})
		for _, id := range gone[:min(over, len(gone))] {
			delete(n.entered, id)
		}
	}
}
