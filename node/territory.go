package node

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// territory is what this peer owns, holds and awaits. It is pure: time is an
// argument, and what changed is the answer. Safe for concurrent use.
//
// The *effective view* is the live members plus those that vanished less than
// orphanAfter ago: a restart moves nothing. Ownership is computed over it.
//
// A slice is *held* from the moment all its rows that anybody has are here
// (adopt) until its new owner has them (drop). It is fetched and admitted into
// only while it is held and owned. It is *releasing* while its new owner reads
// its rows; should it be owned here again meanwhile, it no longer is, and what
// the other read is not believed to be all.
type territory struct {
	self        string
	orphanAfter time.Duration

	mu        sync.RWMutex
	slices    []partition.Slice
	index     map[partition.Slice]int
	table     *partition.Table
	live      partition.View
	gone      map[string]goneMember
	effective partition.View
	held      []bool
	releasing []bool
	frozen    bool
}

type goneMember struct {
	Member partition.Member `json:"member"`
	Since  time.Time        `json:"since"`
}

func newTerritory(c partition.Charter, self string, orphanAfter time.Duration) *territory {
	t := &territory{self: self, orphanAfter: orphanAfter, slices: c.Slices(), table: partition.NewTable(c),
		gone: map[string]goneMember{}, index: map[partition.Slice]int{}}
	for i, s := range t.slices {
		t.index[s] = i
	}
	t.held = make([]bool, len(t.slices))
	t.releasing = make([]bool, len(t.slices))
	return t
}

// setView takes the newest live members and reports whether the effective view
// changed.
func (t *territory) setView(v partition.View, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.live.Members() {
		if _, still := v.Find(m.ID); !still {
			t.gone[m.ID] = goneMember{Member: m, Since: now}
		}
	}
	t.live = v
	return t.recompute(now)
}

// expire drops members gone for too long and reports whether that changed the
// effective view.
func (t *territory) expire(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.recompute(now)
}

func (t *territory) recompute(now time.Time) bool {
	ms := append([]partition.Member(nil), t.live.Members()...)
	for id, g := range t.gone {
		if _, back := t.live.Find(id); back || id == t.self || now.Sub(g.Since) >= t.orphanAfter {
			delete(t.gone, id)
			continue
		}
		ms = append(ms, g.Member)
	}
	v := partition.NewView(ms)
	if v.Digest() == t.effective.Digest() && len(ms) == len(t.effective.Members()) {
		return false
	}
	t.effective = v
	if t.frozen {
		return true
	}
	t.table.Update(v)
	for i, s := range t.slices {
		if t.releasing[i] && t.table.Owner(s) == t.self {
			t.releasing[i] = false // it changes here again: the new owner has to read it anew
		}
	}
	return true
}

// freeze stops ownership from following the view: the swarm is done and its
// peers are leaving.
func (t *territory) freeze() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.frozen = true
}

// acts says whether this peer may admit into and fetch from s now.
func (t *territory) acts(s partition.Slice) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	i, ok := t.index[s]
	return ok && t.held[i] && t.table.Owner(s) == t.self
}

// holds says whether all rows of s are here.
func (t *territory) holds(s partition.Slice) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	i, ok := t.index[s]
	return ok && t.held[i]
}

func (t *territory) owner(s partition.Slice) string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.table.Owner(s)
}

func (t *territory) keepers(s partition.Slice) []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return append([]string(nil), t.table.Keepers(s)...)
}

// acting lists the slices that acts is true of.
func (t *territory) acting() []partition.Slice {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.filter(func(i int, s partition.Slice) bool {
		return t.held[i] && t.table.Owner(s) == t.self
	})
}

// awaited lists the slices owned but not held.
func (t *territory) awaited() []partition.Slice {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.filter(func(i int, s partition.Slice) bool { return !t.held[i] && t.table.Owner(s) == t.self })
}

// keptFor lists the slices held here that id owns.
func (t *territory) keptFor(id string) []partition.Slice {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.filter(func(i int, s partition.Slice) bool { return t.held[i] && t.table.Owner(s) == id })
}

func (t *territory) filter(keep func(int, partition.Slice) bool) []partition.Slice {
	var out []partition.Slice
	for i, s := range t.slices {
		if keep(i, s) {
			out = append(out, s)
		}
	}
	return out
}

// release marks s as being read by its new owner. It is false when s is not
// held or is owned here after all.
func (t *territory) release(s partition.Slice) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, known := t.index[s]
	if !known || !t.held[i] || t.table.Owner(s) == t.self {
		return false
	}
	t.releasing[i] = true
	return true
}

// released says whether nothing was done in s since id, its owner, began to
// read it.
func (t *territory) released(s partition.Slice, id string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	i, ok := t.index[s]
	return ok && t.held[i] && t.releasing[i] && t.table.Owner(s) == id
}

// adopt marks slices as held; drop as no longer held.
func (t *territory) adopt(ss ...partition.Slice) { t.mark(true, ss) }
func (t *territory) drop(ss ...partition.Slice)  { t.mark(false, ss) }

func (t *territory) mark(held bool, ss []partition.Slice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range ss {
		if i, ok := t.index[s]; ok {
			t.held[i], t.releasing[i] = held, false
		}
	}
}

// assignment is every slice's owner, for a scatter.
func (t *territory) assignment() map[string][]partition.Slice {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := map[string][]partition.Slice{}
	for _, s := range t.slices {
		o := t.table.Owner(s)
		out[o] = append(out[o], s)
	}
	return out
}

// views returns the live and the effective view.
func (t *territory) views() (live, effective partition.View) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.live, t.effective
}

// vanished says whether id is absent.
func (t *territory) vanished(id string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	_, gone := t.gone[id]
	return gone
}

// absent lists the members that vanished and still keep their slices.
func (t *territory) absent() []goneMember {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var out []goneMember
	for _, m := range t.effective.Members() {
		if g, ok := t.gone[m.ID]; ok {
			out = append(out, g)
		}
	}
	return out
}

// addrs are the members' last known addresses, to find the swarm again by.
func (t *territory) addrs() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var out []string
	for _, m := range t.effective.Members() {
		if m.ID == t.self {
			continue
		}
		for _, a := range m.Addrs {
			if !strings.Contains(a, "/p2p/") {
				a += "/p2p/" + m.ID
			}
			out = append(out, a)
		}
	}
	return out
}

// memory is the part of a territory that survives a restart.
type memory struct {
	V       int                `json:"v"`
	Held    []byte             `json:"held"` // one bit a slice, in charter order
	Members []partition.Member `json:"members"`
}

const memoryVersion = 1

// remember encodes what must survive a restart: what is held, and who the
// members were (a restarted peer presumes them for orphanAfter, so that the
// first of a restarted swarm does not take everything). The slices of also are
// about to be held.
func (t *territory) remember(also ...partition.Slice) ([]byte, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	m := memory{V: memoryVersion, Held: make([]byte, (len(t.held)+7)/8), Members: t.effective.Members()}
	for i, h := range t.held {
		if h {
			m.Held[i/8] |= 1 << (i % 8)
		}
	}
	for _, s := range also {
		if i, ok := t.index[s]; ok {
			m.Held[i/8] |= 1 << (i % 8)
		}
	}
	return json.Marshal(m)
}

// recall restores what remember encoded; the members count as gone since now.
func (t *territory) recall(b []byte, now time.Time) error {
	var m memory
	if err := json.Unmarshal(b, &m); err != nil {
		return fmt.Errorf("territory: %w", err)
	}
	if m.V != memoryVersion {
		return fmt.Errorf("territory: format version %d, this program knows %d", m.V, memoryVersion)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if want := (len(t.held) + 7) / 8; len(m.Held) != want {
		return fmt.Errorf("territory: %d bytes of held slices, the charter has %d", len(m.Held), want)
	}
	for i := range t.held {
		t.held[i] = m.Held[i/8]&(1<<(i%8)) != 0
	}
	for _, x := range m.Members {
		if x.ID != t.self {
			t.gone[x.ID] = goneMember{Member: x, Since: now}
		}
	}
	t.recompute(now)
	return nil
}
