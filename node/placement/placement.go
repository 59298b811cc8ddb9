// Package placement computes which peers should keep which slice, as this peer sees it. Package
// quorum decides which peers do keep it. The package is pure: time is an argument.
package placement

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/echo-node/echo-node/dht/member"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/strictjson"
)

// Placement ranks the members of a swarm for each slice. It is safe for concurrent use.
//
// The *effective view* is the live members plus those that vanished less than orphanAfter ago, so a
// restart moves nothing. The ranking of replicas uses the effective view. Identities that were
// never seen before are counted a few at a time (member.Newcomers). A hundred new identities cost
// an attacker nothing, so they must move nothing.
type Placement struct {
	self        string
	orphanAfter time.Duration

	mu        sync.RWMutex
	table     *partition.Table
	live      partition.View
	newcomers *member.Newcomers
	stranger  bool           // this peer has met no member of its swarm yet
	counted   partition.View // the live members that are counted
	waiting   int            // live members that are not counted yet
	gone      map[string]Gone
	came      map[string]time.Time // since when each live member is in the view
	effective partition.View
	frozen    bool
	zone      partition.Zone // vanished members of this zone are expected back
}

// Gone is a member that vanished, and the time since which it is not seen.
type Gone struct {
	Member partition.Member `json:"member"`
	Since  time.Time        `json:"since"`
}

// New returns the Placement of a peer that knows no other peer. A stranger in an existing swarm
// trusts its whole first view, because it cannot tell old members from new.
func New(slices []partition.Slice, replicas int, self string, orphanAfter time.Duration,
	stranger bool) *Placement {
	return &Placement{self: self, orphanAfter: orphanAfter, table: partition.NewTableOf(slices, replicas),
		gone: map[string]Gone{}, came: map[string]time.Time{},
		newcomers: member.NewNewcomers(member.NewcomerLimits{Least: newcomersAtOnce}, self), stranger: stranger,
		zone: partition.HashZone}
}

// newcomersAtOnce is how many new identities are counted within half a minute. If the swarm has
// more members than this, the number of members is the limit.
const newcomersAtOnce = 8

// SetView sets the newest live members and reports whether the effective view changed.
func (t *Placement) SetView(v partition.View, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stranger && v.Len() > 1 {
		t.stranger = false
		for _, m := range v.Members() {
			t.newcomers.Trust(now, m.ID)
		}
	}
	for _, m := range t.counted.Members() {
		if _, still := v.Find(m.ID); !still && t.zone.HasPeer(m.ID) {
			t.gone[m.ID] = Gone{Member: m, Since: now}
		}
	}
	came := make(map[string]time.Time, v.Len())
	for _, m := range v.Members() {
		came[m.ID] = now
		if since, was := t.came[m.ID]; was {
			came[m.ID] = since
		}
	}
	t.live, t.came = v, came
	return t.recompute(now)
}

// SetZone limits each slice's replicas to the members of its zone. Zones have the depth of this
// peer's own zone. The caller must call SetView afterwards.
func (t *Placement) SetZone(zone partition.Zone) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.zone != zone && !t.frozen {
		t.zone = zone
		t.table.SetDepth(zone.Depth())
	}
}

// Expire drops members that are gone for too long and reports whether the effective view changed.
func (t *Placement) Expire(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.recompute(now)
}

// recompute derives the effective view and reports whether it changed. t.mu is held.
func (t *Placement) recompute(now time.Time) bool {
	t.counted, t.waiting = t.newcomers.Allow(t.live, now)
	ms := append([]partition.Member(nil), t.counted.Members()...)
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
	if !t.frozen {
		t.table.Update(v)
	}
	return true
}

// Freeze stops updates of the ranking: the swarm is done and its peers are leaving.
func (t *Placement) Freeze() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.frozen = true
}

// Frozen reports whether Freeze was called.
func (t *Placement) Frozen() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.frozen
}

// Ranked returns the members that should keep s, the owner first.
func (t *Placement) Ranked(s partition.Slice) []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return append([]string(nil), t.table.Replicas(s)...)
}

// Ranks reports whether owner and replicas, in any order, are those that Ranked returns.
func (t *Placement) Ranks(s partition.Slice, owner string, replicas []string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.table.Ranks(s, owner, replicas)
}

// Views returns the live and the effective view.
func (t *Placement) Views() (live, effective partition.View) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.live, t.effective
}

// NewcomersWaiting returns the number of live members that are not counted yet.
func (t *Placement) NewcomersWaiting() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.waiting
}

// Alive reports whether id is a live member.
func (t *Placement) Alive(id string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	_, ok := t.live.Find(id)
	return ok
}

// Met returns for how long id has been a live member at now, and whether it is one.
func (t *Placement) Met(id string, now time.Time) (time.Duration, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	since, alive := t.came[id]
	return now.Sub(since), alive
}

// Vanished reports whether id vanished and is still expected back.
func (t *Placement) Vanished(id string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	_, gone := t.gone[id]
	return gone
}

// Absent returns the members that vanished and are still expected back.
func (t *Placement) Absent() []Gone {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var out []Gone
	for _, m := range t.effective.Members() {
		if g, ok := t.gone[m.ID]; ok {
			out = append(out, g)
		}
	}
	return out
}

// Addrs returns the members' last known addresses, with which a peer can find the swarm again.
func (t *Placement) Addrs() []string {
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

// memory is the part of a Placement that survives a restart.
type memory struct {
	V       int                `json:"v"`
	Members []partition.Member `json:"members"`
}

const memoryVersion = 2

// Remember encodes the members. A restarted peer expects them back for orphanAfter, so the first
// peer of a restarted swarm does not take all slices.
func (t *Placement) Remember() ([]byte, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return json.Marshal(memory{V: memoryVersion, Members: t.effective.Members()})
}

// Recall restores what Remember encoded. The members count as gone since now.
func (t *Placement) Recall(b []byte, now time.Time) error {
	var m memory
	if err := strictjson.Unmarshal(b, &m); err != nil {
		return fmt.Errorf("placement: %w", err)
	}
	if m.V != memoryVersion {
		return fmt.Errorf("placement: format version %d, this program knows %d", m.V, memoryVersion)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range m.Members {
		if x.ID != t.self {
			t.stranger = false
			t.newcomers.Trust(now, x.ID)
			t.gone[x.ID] = Gone{Member: x, Since: now}
		}
	}
	t.recompute(now)
	return nil
}
