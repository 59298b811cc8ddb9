package replica

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
)

// Hand-over of slices (I4, I5, I7). The owner drives it:
//
//  1. The ranking of members says that other peers should keep the slice. The owner sends them a
//     copy and the log after it, and goes on serving.
//  2. When they have caught up, the owner rests the slice: no new fetch starts. It waits for the
//     fetches under way.
//  3. It seals the slice: nothing is acknowledged. It waits until the new replicas have the end of
//     the log.
//  4. It proposes the next ReplicaSet, and the replicas accept it. The new owner acts as soon as
//     the replicas lease the slice to it. It first waits out the delay of each site.
//
// A crash at any point leaves the old ReplicaSet in force, or leaves an accepted proposal that the
// next candidate finishes.
const (
	planEvery  = 250 * time.Millisecond
	planSlices = 2048             // the most slices handed over at once
	restLimit  = 20 * time.Second // how long to wait for the fetches under way
	sealLimit  = 3 * time.Second  // how long to wait for the end of the log
	// ownerStays is how long a slice in use stays with its new owner. Each change of owner costs
	// its sites their delay. A peer that took the slice from a dead owner is seldom the first of
	// the ranking.
	ownerStays = 3 * time.Second
)

// Handover moves the slices owned here to the peers that the Placement names.
type Handover struct {
	o         Options
	agreement *Agreement
	elections *Elections

	viewChanged chan struct{}
	resting     map[partition.Slice]time.Time // only for Run: since when no fetch starts there
	moving      atomic.Int64                  // owned slices that other peers should keep
	leaving     atomic.Bool
}

// NewHandover returns the Handover of a peer.
func NewHandover(o Options, a *Agreement, e *Elections) *Handover {
	return &Handover{o: o, agreement: a, elections: e, viewChanged: make(chan struct{}, 1)}
}

// Moving returns the number of slices owned here that other peers should keep.
func (h *Handover) Moving() int { return int(h.moving.Load()) }

// ViewChanged stores the new effective view of the Placement. Links and slices then follow it.
func (h *Handover) ViewChanged() error {
	b, err := h.o.Placement.Remember()
	if err == nil {
		err = h.o.Store.SetMeta(MetaPlacement, b)
	}
	if err != nil {
		return err
	}
	h.o.Rest.Reread()
	select {
	case h.viewChanged <- struct{}{}:
	default:
	}
	return nil
}

// move is the next ReplicaSet that the owner wants for one slice.
type move struct {
	slice    partition.Slice
	owner    string
	replicas []string
}

// Run hands slices over until their replicas and owners follow the ranking.
func (h *Handover) Run(ctx context.Context) error {
	tick := time.NewTicker(planEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-h.viewChanged:
		case <-tick.C:
		}
		if h.o.Placement.Expire(time.Now()) {
			if err := h.ViewChanged(); err != nil {
				return err
			}
		}
		if err := h.handOver(ctx, h.plan(time.Now())); err != nil {
			return err
		}
	}
}

// plan compares the replicas of each owned slice with the ranking. It starts copies to peers that
// are about to become replicas, and returns the moves that are possible now. It runs four times a
// second over thousands of slices. Nearly all of them are placed right and cost one comparison.
// Once the swarm is done, plan moves nothing more.
func (h *Handover) plan(now time.Time) []move {
	if h.o.Placement.Frozen() {
		h.moving.Store(0)
		return nil
	}
	var out []move
	moving := 0
	leaving := h.leaving.Load()
	learning := h.o.Replicator.WithLearners()
	misplaced := h.o.Quorum.OwnedBut(func(s partition.Slice, c quorum.ReplicaSet) bool {
		return !leaving && !learning[s] && h.o.Placement.Ranks(s, c.Owner, c.Replicas)
	})
	for _, s := range misplaced {
		if !h.o.Quorum.Acts(s, now) {
			continue
		}
		c := h.o.Quorum.ReplicaSet(s)
		want := h.o.Placement.Ranked(s)
		if leaving {
			want = append(slices.DeleteFunc(want, func(id string) bool { return id == h.o.Self }), h.o.Self)
		}
		h.o.Replicator.SetLearners(s, slices.DeleteFunc(slices.Clone(want), func(id string) bool {
			return c.Has(id) || !h.o.Placement.Alive(id)
		}))
		m, learning := h.wish(s, c, want)
		stays := m.owner == c.Owner && sameSet(m.replicas, c.Replicas)
		if !stays || learning {
			moving++
		}
		if m.owner != c.Owner && !leaving && h.o.Store.Log.LogHead(s) > 0 &&
			now.Sub(h.o.Crawler.Since(s)) < ownerStays {
			continue
		}
		if !stays && (!learning || leaving) {
			if out = append(out, m); len(out) == planSlices {
				break
			}
		}
	}
	h.moving.Store(int64(moving))
	return out
}

// wish returns the ReplicaSet that follows from want, limited to peers that have a whole copy.
// learning reports whether some peers need a copy first. A replica that vanished keeps its place
// while it is expected back, but a vanished peer is not given a new place.
func (h *Handover) wish(s partition.Slice, c quorum.ReplicaSet, want []string) (m move, learning bool) {
	m = move{slice: s, owner: c.Owner}
	live := 0
	for _, id := range want {
		switch {
		case id == h.o.Self, h.caughtUp(s, id) && h.o.Placement.Alive(id):
			m.replicas = append(m.replicas, id)
			live++
		case h.o.Placement.Alive(id) && !c.Has(id):
			learning = true
		case c.Has(id):
			m.replicas = append(m.replicas, id)
			learning = learning || h.o.Placement.Alive(id) // a seal would wait for it in vain
		}
	}
	if len(m.replicas) > h.o.Charter.Replicas { // leaving: this peer was added to the list
		m.replicas = m.replicas[:h.o.Charter.Replicas]
	}
	for _, id := range m.replicas {
		if id == h.o.Self || h.caughtUp(s, id) && h.o.Placement.Alive(id) {
			m.owner = id
			break
		}
	}
	if live < len(m.replicas)/2+1 || len(m.replicas) == 0 {
		return move{slice: s, owner: c.Owner, replicas: c.Replicas}, learning
	}
	// One of two replicas cannot work without the other. So when one of two leaves, the other
	// becomes the only replica.
	if h.leaving.Load() && m.owner != h.o.Self && len(m.replicas) == 2 {
		m.replicas = []string{m.owner}
	}
	return m, learning
}

// caughtUp reports whether id has s, except for at most near log positions.
func (h *Handover) caughtUp(s partition.Slice, id string) bool {
	const near = 64
	head, ok := h.o.Replicator.At(s, id)
	return ok && head+near >= h.o.Store.Log.LogHead(s)
}

// sameSet reports whether a and b have the same elements. Neither has an element twice.
func sameSet(a, b []string) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(x string) bool { return !slices.Contains(b, x) })
}

// handOver carries out moves.
func (h *Handover) handOver(ctx context.Context, moves []move) error {
	ready := h.rest(moves) // without moves, it wakes the slices that rested
	var used, empty []move
	for _, m := range ready {
		if h.o.Store.Log.LogHead(m.slice) > 0 {
			used = append(used, m)
		} else {
			empty = append(empty, m)
		}
	}
	return errors.Join(h.giveAway(ctx, used), h.giveAway(ctx, empty))
}

// giveAway carries out moves of slices that are at rest.
func (h *Handover) giveAway(ctx context.Context, ready []move) error {
	if len(ready) == 0 {
		return nil
	}
	for _, m := range ready {
		h.o.Quorum.Seal(m.slice)
	}
	h.agreement.AwaitAdmissions() // admissions that started before are in the log now
	ready = h.awaitReplicas(ctx, ready)
	var proposals []quorum.Proposal
	err := h.agreement.Decide(func() {
		for _, m := range ready {
			if p, ok := h.o.Quorum.Propose(m.slice, m.owner, m.replicas); ok {
				proposals = append(proposals, p)
			} else {
				h.o.Quorum.Wake(m.slice)
			}
		}
	})
	if err != nil {
		return err
	}
	h.o.Logger.Debug("hand-over", "slices", len(proposals))
	return h.elections.accept(ctx, proposals)
}

// rest stops fetching in the slices that get another owner. It returns the moves whose slices have
// no fetch under way, or have rested for restLimit. A move that keeps this owner needs no rest.
func (h *Handover) rest(moves []move) (ready []move) {
	now := time.Now()
	resting := map[partition.Slice]time.Time{}
	for _, m := range moves {
		if m.owner == h.o.Self {
			ready = append(ready, m)
			continue
		}
		since, was := h.resting[m.slice]
		if !was {
			since = now
		}
		resting[m.slice] = since
		h.o.Quorum.Rest(m.slice)
		if h.o.Crawler.Busy(m.slice) == 0 || now.Sub(since) > restLimit {
			ready = append(ready, m)
		}
	}
	for s := range h.resting {
		if _, still := resting[s]; !still {
			h.o.Quorum.Wake(s)
		}
	}
	h.resting = resting
	return ready
}

// awaitReplicas waits until the live replicas of each move have the whole log. After sealLimit it
// wakes the slices whose replicas do not, and returns the other moves.
func (h *Handover) awaitReplicas(ctx context.Context, moves []move) (ready []move) {
	ctx, cancel := context.WithTimeout(ctx, sealLimit)
	defer cancel()
	missing := func(m move) bool {
		head := h.o.Store.Log.LogHead(m.slice)
		have := 0
		for _, id := range m.replicas {
			at, ok := h.o.Replicator.At(m.slice, id)
			if id == h.o.Self || ok && at >= head {
				have++
			} else if id == m.owner || h.o.Placement.Alive(id) {
				return true
			}
		}
		return have < len(m.replicas)/2+1
	}
	for {
		progress := h.o.Replicator.Progress()
		if !slices.ContainsFunc(moves, missing) {
			return moves
		}
		select {
		case <-ctx.Done():
			for _, m := range moves {
				if missing(m) {
					h.o.Quorum.Wake(m.slice)
				} else {
					ready = append(ready, m)
				}
			}
			return ready
		case <-progress:
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Leave gives this peer's slices to the other replicas, so that it can stop without stopping the
// crawl anywhere. It works until ctx ends and returns how many slices are left.
func (h *Handover) Leave(ctx context.Context) int {
	live, _ := h.o.Placement.Views()
	if len(live.Members()) < 2 {
		return 0
	}
	h.leaving.Store(true)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for said := (time.Time{}); ; {
		left := len(h.o.Quorum.Owned())
		if left == 0 {
			return 0
		}
		if time.Since(said) >= time.Second {
			said = time.Now()
			h.o.Logger.Info("stopping: this peer's slices are handed to other peers", "left", left)
		}
		select {
		case <-ctx.Done():
			return left
		case <-tick.C:
		}
	}
}
