package node

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

// placement is who should keep which slice as this peer sees it; who does keep
// it is package quorum's. It is pure: time is an argument. Safe for concurrent
// use.
//
// The *effective view* is the live members plus those that vanished less than
// orphanAfter ago: a restart moves nothing. The ranking of replicas is computed
// over it. Identities never seen before come to count a few at a time
// (member.Newcomers): to make a hundred costs nothing, and must move nothing.
type placement struct {
	self        string
	orphanAfter time.Duration

	mu        sync.RWMutex
	table     *partition.Table
	live      partition.View
	newcomers *member.Newcomers
	stranger  bool           // has met nobody of its swarm yet
	counted   partition.View // the live ones that count
	waiting   int            // live ones that do not count yet
	gone      map[string]goneMember
	came      map[string]time.Time // since when those of live are there
	effective partition.View
	frozen    bool
	zone      partition.Zone // whose members are waited for when they vanish
}

type goneMember struct {
	Member partition.Member `json:"member"`
	Since  time.Time        `json:"since"`
}

// newPlacement is that of a peer that knows nobody; a stranger in a swarm that
// has others takes the whole first view for the swarm, as it cannot tell old
// members from new.
func newPlacement(slices []partition.Slice, replicas int, self string, orphanAfter time.Duration,
	stranger bool) *placement {
	return &placement{self: self, orphanAfter: orphanAfter, table: partition.NewTableOf(slices, replicas),
		gone: map[string]goneMember{}, came: map[string]time.Time{},
		newcomers: member.NewNewcomers(member.NewcomerLimits{Least: newcomersAtOnce}, self), stranger: stranger,
		zone: partition.HashZone}
}

// newcomersAtOnce is how many identities never seen before come to count within
// half a minute, or as many as there are members when these are more.
const newcomersAtOnce = 8

// setView takes the newest live members and reports whether the effective view
// changed.
func (t *placement) setView(v partition.View, now time.Time) bool {
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
			t.gone[m.ID] = goneMember{Member: m, Since: now}
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

// setZone confines each slice's replicas to the members of its zone, of the depth
// of this peer's own. The caller follows with setView.
func (t *placement) setZone(zone partition.Zone) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.zone != zone && !t.frozen {
		t.zone = zone
		t.table.SetDepth(zone.Depth())
	}
}

// expire drops members gone for too long and reports whether that changed the
// effective view.
func (t *placement) expire(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.recompute(now)
}

func (t *placement) recompute(now time.Time) bool {
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

// freeze stops the ranking from following the view: the swarm is done and its
// peers are leaving.
func (t *placement) freeze() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.frozen = true
}

func (t *placement) isFrozen() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.frozen
}

// ranked are the members that should keep s, the owner first.
func (t *placement) ranked(s partition.Slice) []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return append([]string(nil), t.table.Replicas(s)...)
}

// ranks says whether owner and replicas, in any order, are those of ranked.
func (t *placement) ranks(s partition.Slice, owner string, replicas []string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.table.Ranks(s, owner, replicas)
}

// views returns the live and the effective view.
func (t *placement) views() (live, effective partition.View) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.live, t.effective
}

// newcomersWaiting is how many live members do not count yet.
func (t *placement) newcomersWaiting() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.waiting
}

// alive says whether id is a live member.
func (t *placement) alive(id string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	_, ok := t.live.Find(id)
	return ok
}

// met says for how long id has been a live member at now.
func (t *placement) met(id string, now time.Time) (time.Duration, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	since, alive := t.came[id]
	return now.Sub(since), alive
}

// vanished says whether id is absent.
func (t *placement) vanished(id string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	_, gone := t.gone[id]
	return gone
}

// absent lists the members that vanished and are still expected back.
func (t *placement) absent() []goneMember {
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
func (t *placement) addrs() []string {
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

// memory is the part of a placement that survives a restart.
type memory struct {
	V       int                `json:"v"`
	Members []partition.Member `json:"members"`
}

const memoryVersion = 2

// remember encodes who the members were: a restarted peer presumes them for
// orphanAfter, so that the first of a restarted swarm does not take everything.
func (t *placement) remember() ([]byte, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return json.Marshal(memory{V: memoryVersion, Members: t.effective.Members()})
}

// recall restores what remember encoded; the members count as gone since now.
func (t *placement) recall(b []byte, now time.Time) error {
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
			t.gone[x.ID] = goneMember{Member: x, Since: now}
		}
	}
	t.recompute(now)
	return nil
}
