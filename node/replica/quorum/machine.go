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

// The durations of leases. See the package comment.
const (
	LeaseGrant = 5 * time.Second // what a replica grants
	LeaseHold  = 4 * time.Second // what the owner counts, from its request on
	LeaseRenew = time.Second     // how often the owner asks
)

// Machine is one peer's part in the agreement about all slices. It is safe for concurrent use.
// But what Dirty returns must be durable before a response that depends on it is sent. So the
// caller makes each step and its write atomic.
type Machine struct {
	self    string
	founder string
	started time.Time
	head    func(partition.Slice) uint64 // position of this peer's log

	mu     sync.RWMutex
	slices []partition.Slice
	index  map[partition.Slice]int
	slots  []slot
	owned  map[string]bits // slots by owner
	kept   bits            // slots kept here
	every  bits            // all slots
	digest uint64          // of all ReplicaSets
	// counts changes of ReplicaSets, so that leases know what they cover
	clock   uint64
	granted map[string]time.Time // peers to which this one leases slices, and until when
	held    map[string]held      // leases that this peer has, by lessor
	dirty   map[int]bool
	doubted map[int]bool // slots with words

	everybody   []string // see Replicas
	everybodyAt uint64   // the clock value of everybody
	names       map[string]string
}

// held is a lease from one replica.
type held struct {
	until   time.Time
	clock   uint64 // the lease covers slices whose ReplicaSet is not newer than this
	refused map[partition.Slice]bool
}

// Options are the arguments of New.
type Options struct {
	Self    string
	Founder string
	Slices  []partition.Slice
	Started time.Time
	// Head returns the position of this peer's own log of a slice. It is called with locks held
	// and must not call back.
	Head func(partition.Slice) uint64
}

// New returns a Machine that knows only the first ReplicaSets. Load restores what an earlier
// run made durable.
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

// row is the stored form of a slot.
type row struct {
	V        int         `json:"v"`
	Config   ReplicaSet  `json:"c"`
	Promised *Ballot     `json:"p,omitempty"`
	Accepted *Ballot     `json:"a,omitempty"`
	Proposal *ReplicaSet `json:"x,omitempty"`
	Copied   copied      `json:"r"`
	// version 1 was first without this field and the next three
	Under   []ReplicaSet `json:"u,omitempty"`
	Past    []vote       `json:"y,omitempty"`
	Adopted uint64       `json:"d,omitempty"`
	Gone    []fork       `json:"g,omitempty"`
}

const rowVersion = 1

// AsideError reports that a row was not accepted. Load has put the last good ReplicaSet of that
// slice in its place.
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

// Load restores one slice's row. It replaces a ReplicaSet that no peer can produce, and returns
// an AsideError. The replacement is the last good ReplicaSet: the newest one that was left, or
// the first. The copy stays, and is reconciled with the owner's. Any other error restores
// nothing.
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
		if r.Copied.Has && r.Config.Owner == m.self { // the rows need no reconciling, as in Adopt
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

// Dirty returns the rows that changed since the last call, by slice.
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
			// strings and numbers always marshal
			panic("quorum: a row does not marshal: " + err.Error())
		}
		out[m.slices[i]] = b
	}
	clear(m.dirty)
	return out
}

// ReplicaSet returns the newest ReplicaSet of s known here.
func (m *Machine) ReplicaSet(s partition.Slice) ReplicaSet {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if i, ok := m.index[s]; ok {
		c := m.slots[i].set
		c.Hearsay = 0
		return c
	}
	return ReplicaSet{}
}

// Owner returns the owner of s in the newest ReplicaSet known here. It returns "" for a slice
// that the swarm does not have.
func (m *Machine) Owner(s partition.Slice) string { return m.ReplicaSet(s).Owner }

// Slices returns all slices of the swarm, in order. The caller must not change it.
func (m *Machine) Slices() []partition.Slice { return m.slices }

// Has reports whether this peer has a whole copy of s, of the newest fork it knows.
func (m *Machine) Has(s partition.Slice) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	i, ok := m.index[s]
	return ok && m.slots[i].copied.of(m.slots[i].set)
}

// Acts reports whether this peer may acknowledge links of s now.
func (m *Machine) Acts(s partition.Slice, now time.Time) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	i, ok := m.index[s]
	return ok && m.acts(i, now)
}

// Fetches reports whether this peer may begin a fetch in s now.
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

// leased reports whether a majority of the replicas leases slice i to this peer.
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

// before compares both the monotonic and the wall clock, because only one of them runs while a
// machine is suspended.
func before(now, until time.Time) bool {
	return now.Before(until) && now.Round(0).Before(until.Round(0))
}

// where lists the slices of in for which cond returns true.
func (m *Machine) where(in bits, cond func(i int) bool) []partition.Slice {
	var out []partition.Slice
	for i := range in.all() {
		if cond(i) {
			out = append(out, m.slices[i])
		}
	}
	return out
}

// Acting lists the slices for which Fetches returns true.
func (m *Machine) Acting(now time.Time) []partition.Slice {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.where(m.owned[m.self], func(i int) bool { return !m.slots[i].resting && m.acts(i, now) })
}

// Active returns the number of slices of ss for which Acts returns true.
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

// Owned lists the slices that this peer owns, whether it acts in them or not. Kept also lists
// those that it keeps for other owners.
func (m *Machine) Owned() []partition.Slice {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.where(m.owned[m.self], func(int) bool { return true })
}

// OwnedBut lists the owned slices for which right returns false. right is called with locks
// held and must not call back.
func (m *Machine) OwnedBut(right func(s partition.Slice, c ReplicaSet) bool) []partition.Slice {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.where(m.owned[m.self], func(i int) bool { return !right(m.slices[i], m.slots[i].set) })
}

// Replicas lists all peers that keep a slice, in no order. The caller must not change the
// result.
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

// Diverged lists the slices whose copy here belongs to another fork than the newest, or is
// ahead of it. Its rows must be reconciled with the winner's before it is forgotten.
func (m *Machine) Diverged() []partition.Slice {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.where(m.every, m.diverged)
}

func (m *Machine) diverged(i int) bool {
	return m.slots[i].diverged() || m.slots[i].copied.ahead(m.slots[i].set) && !m.slots[i].set.Has(m.self)
}

// restoredFork is the fork of a copy that no ReplicaSet leads to. No peer has this id.
const restoredFork = "restored"

// MarkDiverged records that this peer has rows of s that belong to no known ReplicaSet, because
// they come from a backup.
func (m *Machine) MarkDiverged(s partition.Slice) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i, ok := m.index[s]; ok && !m.slots[i].copied.Has {
		m.slots[i].copied = copied{Has: true, Fork: restoredFork}
		m.dirty[i] = true
	}
}

// Surplus lists the slices whose copy here is not needed. The copy is of the newest fork, this
// peer is no replica, and nothing was replicated to it for surplusAfter. (The owner replicates
// to a peer that is about to become a replica.) The replicas have everything of such a copy
// that was acknowledged.
func (m *Machine) Surplus(now time.Time) []partition.Slice {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.where(m.every, func(i int) bool {
		sl := &m.slots[i]
		return sl.copied.of(sl.set) && !sl.copied.ahead(sl.set) && !sl.set.Has(m.self) &&
			now.Sub(sl.fed) > surplusAfter &&
			(sl.set.Hearsay == 0 || !slices.ContainsFunc(sl.under, func(u ReplicaSet) bool { return u.Has(m.self) }))
	})
}

const surplusAfter = 30 * time.Second

// ForgetSurplus forgets the copy of s like Forget. It returns false when base is not in force
// any more, or when something of s was replicated here after asked. Then others may count on
// the copy.
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

// InForce reports whether c is in force for s, as far as is known here. This peer must be the
// owner and must have no successor under way.
func (m *Machine) InForce(s partition.Slice, c ReplicaSet) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	i, ok := m.index[s]
	return ok && m.slots[i].set.Owner == m.self && m.slots[i].set.Compare(c) == 0 && m.slots[i].accepted.N == 0 &&
		m.slots[i].promised.N <= 1
}

// Forget records that the copy of s was dropped here, or reconciled with the winner.
func (m *Machine) Forget(s partition.Slice) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i, ok := m.index[s]; ok && m.slots[i].copied.Has {
		m.slots[i].setCopied(copied{})
		m.dirty[i] = true
	}
}

// Stands returns a number that changes whenever the known ReplicaSet of s changes. While it
// stays the same, a copy of another fork does not change.
func (m *Machine) Stands(s partition.Slice) uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if i, ok := m.index[s]; ok {
		return m.slots[i].since
	}
	return 0
}

// ForgetDiverged records that the copy of s, of another fork, was reconciled with the winner
// after the caller got stands from Stands. It returns false and changes nothing when the
// ReplicaSet changed in between: the copy may have changed, or may be counted on.
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

// Assignment returns every slice by its owner as known here, for a scatter.
func (m *Machine) Assignment() map[string][]partition.Slice {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := make(map[string][]partition.Slice, len(m.owned))
	for owner, in := range m.owned {
		out[owner] = m.where(in, func(int) bool { return true })
	}
	return out
}

// Rest and Seal prepare the hand-over of s. Wake ends both. But if a proposal was made in the
// meantime, only a decision ends that.
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

// Learn takes ReplicaSets that this peer itself saw decided, and returns the slices where they
// were new. Only a ReplicaSet newer than the known one counts. For statements of other peers
// see Hear.
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

// Digest returns a digest of all ReplicaSets known here. Equal digests mean equal knowledge.
func (m *Machine) Digest() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.digest
}

// Known returns up to limit ReplicaSets of slices after the given one, in order, for a peer
// that knows less. It skips the first ReplicaSets.
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

// Of returns the ReplicaSets known here of the given slices, also the first ones.
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
