package quorum

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/strictjson"
)

// The times of leases. See the package comment.
const (
	LeaseGrant = 5 * time.Second // a replica grants
	LeaseHold  = 4 * time.Second // the owner counts, from its asking
	LeaseRenew = time.Second     // how often the owner asks
)

// Machine is one peer's part in the agreement about all slices. Safe for
// concurrent use; but what it returns in Dirty must be durable before an answer
// that follows from it leaves, so the caller makes each step and its write one.
type Machine struct {
	self    string
	founder string
	started time.Time
	head    func(partition.Slice) uint64 // position of this peer's log

	mu      sync.RWMutex
	slices  []partition.Slice
	index   map[partition.Slice]int
	slots   []slot
	owned   map[string]bits      // slots by owner
	kept    bits                 // slots kept here
	every   bits                 // all
	digest  uint64               // of all ReplicaSets
	clock   uint64               // counts changes of ReplicaSets, for what a lease covers
	granted map[string]time.Time // to whom slices are leased here, until when
	held    map[string]held      // from whom, until when
	dirty   map[int]bool
	doubted map[int]bool // slots with words

	everybody   []string // see Replicas
	everybodyAt uint64   // clock
	names       map[string]string
}

// held is a lease from one replica.
type held struct {
	until   time.Time
	clock   uint64 // covers slices whose ReplicaSet is not younger
	refused map[partition.Slice]bool
}

// Options of New.
type Options struct {
	Self    string
	Founder string
	Slices  []partition.Slice
	Started time.Time
	// Head is the position of this peer's own log of a slice. It is called with
	// locks held and must not call back.
	Head func(partition.Slice) uint64
}

// New is a Machine that knows the first ReplicaSets only. Load gives it what an
// earlier run made durable.
func New(o Options) *Machine {
	m := &Machine{self: o.Self, founder: o.Founder, started: o.Started, head: o.Head, slices: o.Slices,
		index: make(map[partition.Slice]int, len(o.Slices)),
		slots: make([]slot, len(o.Slices)), owned: map[string]bits{}, kept: newBits(len(o.Slices)),
		every: newBits(len(o.Slices)), granted: map[string]time.Time{}, held: map[string]held{},
		dirty: map[int]bool{}, doubted: map[int]bool{},
		names: map[string]string{}}
	first := m.named(First(o.Founder))
	for i, s := range o.Slices {
		m.index[s] = i
		sl := slot{set: first, hash: first.hash(s)}
		if o.Founder == o.Self {
			sl.copied = copyOf(first)
		}
		m.put(i, sl)
		m.every.set(i, true)
	}
	return m
}

// row is a slot as it is stored.
type row struct {
	V        int          `json:"v"`
	Config   ReplicaSet   `json:"c"`
	Promised *Ballot      `json:"p,omitempty"`
	Accepted *Ballot      `json:"a,omitempty"`
	Proposal *ReplicaSet  `json:"x,omitempty"`
	Copied   copied       `json:"r"`
	Under    []ReplicaSet `json:"u,omitempty"` // version 1 was without this and the next three
	Past     []vote       `json:"y,omitempty"`
	Adopted  uint64       `json:"d,omitempty"`
	Gone     []fork       `json:"g,omitempty"`
}

const rowVersion = 1

// AsideError says that a row was not believed: Load has put the last good ReplicaSet
// of that slice in its place.
type AsideError struct {
	Slice partition.Slice
	Why   error
	Now   ReplicaSet
}

func (e *AsideError) Error() string {
	return fmt.Sprintf("quorum: slice %s: what was stored is impossible: %v; "+
		"generation %d of epoch %d of owner %s is used",
		e.Slice, e.Why, e.Now.Gen, e.Now.Epoch, e.Now.Owner)
}

func (e *AsideError) Unwrap() error { return e.Why }

// Load restores one slice's row. A ReplicaSet that no peer makes is put aside, with
// an AsideError, for the last good one: what it stood on, or the first. The copy
// stays, to be reconciled with the owner's. Other errors restore nothing.
func (m *Machine) Load(s partition.Slice, b []byte) error {
	var r row
	if err := strictjson.Unmarshal(b, &r); err != nil {
		return &AsideError{s, err, m.ReplicaSet(s)}
	}
	if r.V != rowVersion {
		return fmt.Errorf("quorum: slice %s: format version %d, this program knows %d", s, r.V, rowVersion)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	i, ok := m.index[s]
	if !ok {
		return fmt.Errorf("quorum: slice %s is none of the swarm's", s)
	}
	why := r.Config.Validate()
	good := slices.DeleteFunc(r.Under, func(u ReplicaSet) bool { return u.Validate() != nil })
	good = good[max(0, len(good)-maxUnder):]
	if why != nil {
		r.Config, r.Promised, r.Accepted, r.Proposal = First(m.founder), nil, nil, nil
		if n := len(good); n > 0 {
			r.Config, good = good[n-1], good[:n-1]
		}
		if r.Copied.Has && r.Config.Owner == m.self { // reconciled by being here, as in Adopt
			r.Copied = copyOf(r.Config)
		}
	}
	if r.Proposal != nil && r.Proposal.Validate() != nil {
		r.Accepted, r.Proposal = nil, nil
	}
	for j := range good {
		good[j] = m.named(good[j])
	}
	m.clock++
	r.Config = m.named(r.Config)
	sl := slot{set: r.Config, under: good, hash: r.Config.hash(s), since: m.clock, copied: r.Copied,
		past: r.Past[max(0, len(r.Past)-maxPast):], gone: r.Gone[max(0, len(r.Gone)-maxPast):], adopted: r.Adopted}
	if r.Promised != nil {
		sl.promised = *r.Promised
	}
	if r.Accepted != nil && r.Proposal != nil {
		sl.accepted, sl.proposal = *r.Accepted, *r.Proposal
	}
	m.put(i, sl)
	if why == nil {
		return nil
	}
	m.dirty[i] = true
	return &AsideError{s, why, r.Config}
}

// Dirty are the rows that changed since the last call, by slice.
func (m *Machine) Dirty() map[partition.Slice][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.dirty) == 0 {
		return nil
	}
	out := make(map[partition.Slice][]byte, len(m.dirty))
	for i := range m.dirty {
		sl := &m.slots[i]
		r := row{V: rowVersion, Config: sl.set, Copied: sl.copied, Under: sl.under, Past: sl.past, Adopted: sl.adopted,
			Gone: sl.gone}
		if sl.promised.N > 0 {
			r.Promised = &sl.promised
		}
		if sl.accepted.N > 0 {
			r.Accepted, r.Proposal = &sl.accepted, &sl.proposal
		}
		b, err := json.Marshal(r)
		if err != nil {
			panic("quorum: a row does not marshal: " + err.Error()) // strings and numbers always do
		}
		out[m.slices[i]] = b
	}
	clear(m.dirty)
	return out
}

// ReplicaSet is the newest ReplicaSet known here.
func (m *Machine) ReplicaSet(s partition.Slice) ReplicaSet {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if i, ok := m.index[s]; ok {
		c := m.slots[i].set
		c.Heard = 0
		return c
	}
	return ReplicaSet{}
}

// Owner is the owner by the newest ReplicaSet known here; "" of a slice that the
// swarm does not have.
func (m *Machine) Owner(s partition.Slice) string { return m.ReplicaSet(s).Owner }

// Slices lists all slices of the swarm, in order. It must not be changed.
func (m *Machine) Slices() []partition.Slice { return m.slices }

// Has says whether a whole copy of s is here, of the newest fork known.
func (m *Machine) Has(s partition.Slice) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	i, ok := m.index[s]
	return ok && m.slots[i].copied.of(m.slots[i].set)
}

// Acts says whether this peer may acknowledge links of s now; Fetches, whether
// it may begin a fetch there.
func (m *Machine) Acts(s partition.Slice, now time.Time) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	i, ok := m.index[s]
	return ok && m.acts(i, now)
}

// Fetches says whether this peer may begin a fetch in s now.
func (m *Machine) Fetches(s partition.Slice, now time.Time) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	i, ok := m.index[s]
	return ok && !m.slots[i].resting && m.acts(i, now)
}

func (m *Machine) acts(i int, now time.Time) bool {
	sl := &m.slots[i]
	return sl.set.Owner == m.self && sl.copied == copyOf(sl.set) && sl.accepted.N == 0 && sl.promised.N <= 1 &&
		!sl.sealed && m.leased(i, now)
}

// leased says whether a majority of the replicas leases slice i to this peer.
func (m *Machine) leased(i int, now time.Time) bool {
	sl := &m.slots[i]
	n := 0
	for _, k := range sl.set.Replicas {
		if k == m.self {
			n++
			continue
		}
		h, ok := m.held[k]
		if ok && sl.since <= h.clock && !h.refused[m.slices[i]] && before(now, h.until) {
			n++
		}
	}
	return n >= sl.set.Quorum()
}

// before is by both clocks: one of them runs while a machine is suspended.
func before(now, until time.Time) bool {
	return now.Before(until) && now.Round(0).Before(until.Round(0))
}

// where lists the slices of in that cond is true of.
func (m *Machine) where(in bits, cond func(i int) bool) []partition.Slice {
	var out []partition.Slice
	for i := range in.all() {
		if cond(i) {
			out = append(out, m.slices[i])
		}
	}
	return out
}

// Acting lists the slices of which Fetches is true.
func (m *Machine) Acting(now time.Time) []partition.Slice {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.where(m.owned[m.self], func(i int) bool { return !m.slots[i].resting && m.acts(i, now) })
}

// Active counts the slices of ss of which Acts is true.
func (m *Machine) Active(ss []partition.Slice, now time.Time) (n int) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, s := range ss {
		if i, ok := m.index[s]; ok && m.acts(i, now) {
			n++
		}
	}
	return n
}

// Owned lists the slices that this peer owns, acting or not; Kept those that it
// keeps, owned ones among them.
func (m *Machine) Owned() []partition.Slice {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.where(m.owned[m.self], func(int) bool { return true })
}

// OwnedBut lists the owned slices that right is not true of. right is called
// with locks held and must not call back.
func (m *Machine) OwnedBut(right func(s partition.Slice, c ReplicaSet) bool) []partition.Slice {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.where(m.owned[m.self], func(i int) bool { return !right(m.slices[i], m.slots[i].set) })
}

// Replicas lists everybody who keeps a slice, in no order. It must not be
// changed.
func (m *Machine) Replicas() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.everybody != nil && m.everybodyAt == m.clock {
		return m.everybody
	}
	seen := map[string]bool{}
	for i := range m.slots {
		for _, k := range m.slots[i].set.Replicas {
			seen[k] = true
		}
	}
	m.everybody, m.everybodyAt = slices.Collect(maps.Keys(seen)), m.clock
	return m.everybody
}

// Kept lists the slices that this peer keeps.
func (m *Machine) Kept() []partition.Slice {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.where(m.kept, func(int) bool { return true })
}

// Diverged lists the slices of which a copy of another fork than the newest is
// here: its rows have to be reconciled with the winner's before they are forgotten.
func (m *Machine) Diverged() []partition.Slice {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.where(m.every, m.diverged)
}

func (m *Machine) diverged(i int) bool {
	return m.slots[i].diverged() || m.slots[i].copied.ahead(m.slots[i].set) && !m.slots[i].set.Has(m.self)
}

// restoredFork names the fork of a copy that no ReplicaSet leads to; no peer has such an id.
const restoredFork = "restored"

// Diverged notes that rows of s are here of which no ReplicaSet tells: those of a backup.
func (m *Machine) MarkDiverged(s partition.Slice) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i, ok := m.index[s]; ok && !m.slots[i].copied.Has {
		m.slots[i].copied = copied{Has: true, Fork: restoredFork}
		m.dirty[i] = true
	}
}

// Surplus lists the slices of which a copy is here that is nobody's need: of the
// newest fork, not kept here, and nothing was replicated to it for a while, as is
// to those who are about to keep. All of it that was acknowledged is at the
// replicas.
func (m *Machine) Surplus(now time.Time) []partition.Slice {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.where(m.every, func(i int) bool {
		sl := &m.slots[i]
		return sl.copied.of(sl.set) && !sl.copied.ahead(sl.set) && !sl.set.Has(m.self) &&
			now.Sub(sl.fed) > surplusAfter &&
			(sl.set.Heard == 0 || !slices.ContainsFunc(sl.under, func(u ReplicaSet) bool { return u.Has(m.self) }))
	})
}

const surplusAfter = 30 * time.Second

// ForgetSurplus is Forget, unless base is not in force any more or something of
// s was replicated here after asked: then the copy may be counted on.
func (m *Machine) ForgetSurplus(s partition.Slice, base ReplicaSet, asked time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, ok := m.index[s]
	if !ok || m.slots[i].set.Compare(base) != 0 || m.slots[i].set.Has(m.self) || !m.slots[i].fed.Before(asked) ||
		m.slots[i].accepted.N > 0 {
		return false
	}
	m.slots[i].copied = copied{}
	m.dirty[i] = true
	return true
}

// InForce says whether c is in force for s, by what is known here, and this
// peer, its owner, has no successor under way.
func (m *Machine) InForce(s partition.Slice, c ReplicaSet) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	i, ok := m.index[s]
	return ok && m.slots[i].set.Owner == m.self && m.slots[i].set.Compare(c) == 0 && m.slots[i].accepted.N == 0 &&
		m.slots[i].promised.N <= 1
}

// Forget notes that the copy of s was dropped here, or reconciled with the winner.
func (m *Machine) Forget(s partition.Slice) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i, ok := m.index[s]; ok && m.slots[i].copied.Has {
		m.slots[i].setCopied(copied{})
		m.dirty[i] = true
	}
}

// Stands names the time for which nothing else than now is known here of s. A copy
// of another fork does not change in it.
func (m *Machine) Stands(s partition.Slice) uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if i, ok := m.index[s]; ok {
		return m.slots[i].since
	}
	return 0
}

// ForgetDiverged notes that the copy of s, of another fork, was reconciled with the
// winner since stands was asked for. It does nothing, and says so, when something
// else was known here in between: the copy may have changed, or may be counted on.
func (m *Machine) ForgetDiverged(s partition.Slice, stands uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, ok := m.index[s]
	if !ok || m.slots[i].since != stands || !m.diverged(i) {
		return false
	}
	m.slots[i].setCopied(copied{})
	m.dirty[i] = true
	return true
}

// Assignment is every slice's owner as known here, for a scatter.
func (m *Machine) Assignment() map[string][]partition.Slice {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := make(map[string][]partition.Slice, len(m.owned))
	for owner, in := range m.owned {
		out[owner] = m.where(in, func(int) bool { return true })
	}
	return out
}

// Rest and Seal prepare the hand-over of s; Wake ends both, unless a proposal
// was made in the meantime, which nothing ends but a decision.
func (m *Machine) Rest(s partition.Slice) { m.flag(s, func(sl *slot) { sl.resting = true }) }

// Seal stops acknowledging in s.
func (m *Machine) Seal(s partition.Slice) { m.flag(s, func(sl *slot) { sl.sealed = true }) }

// Wake ends Rest and Seal.
func (m *Machine) Wake(s partition.Slice) {
	m.flag(s, func(sl *slot) { sl.resting, sl.sealed = false, false })
}

func (m *Machine) flag(s partition.Slice, set func(*slot)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i, ok := m.index[s]; ok {
		set(&m.slots[i])
	}
}

// Learn takes ReplicaSets that this peer itself saw decided, and answers which of
// them were new. Only what is newer than what is known counts. For what others
// say see Hear.
func (m *Machine) Learn(all ...SliceReplicas) []partition.Slice {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []partition.Slice
	for _, c := range all {
		if i, ok := m.index[c.Slice]; ok && m.learn(i, c.ReplicaSet) {
			out = append(out, c.Slice)
		}
	}
	return out
}

// SliceReplicas is a slice with its ReplicaSet.
type SliceReplicas struct {
	Slice partition.Slice
	ReplicaSet
}

// Digest is of all ReplicaSets known here: equal digests, equal knowledge.
func (m *Machine) Digest() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.digest
}

// Known are up to limit ReplicaSets beyond the first ones, of slices after the
// given one, in order, for a peer that knows less.
func (m *Machine) Known(after partition.Slice, limit int) []SliceReplicas {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var out []SliceReplicas
	for i, s := range m.slices {
		if s <= after || m.slots[i].set.Gen == 0 && m.slots[i].set.Epoch == 0 {
			continue
		}
		if out = append(out, SliceReplicas{s, m.slots[i].set}); len(out) == limit {
			break
		}
	}
	return out
}

// Of are this peer's words about the given slices, the first ReplicaSets among them.
func (m *Machine) Of(ss ...partition.Slice) []SliceReplicas {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := make([]SliceReplicas, 0, len(ss))
	for _, s := range ss {
		if i, ok := m.index[s]; ok {
			out = append(out, SliceReplicas{s, m.slots[i].set})
		}
	}
	return out
}
