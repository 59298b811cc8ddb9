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

// Hand-over of slices (I4, I5, I7): the owner drives.
//
// When the ranking of members says that others should keep a slice, its owner
// replicates them a copy and the log behind it, while it goes on serving. When they
// have caught up it rests the slice (no new fetch begins), waits for the fetches
// under way, seals it (nothing is acknowledged), waits until its new replicas
// have the last of the log, and has the next ReplicaSet accepted. The new owner acts
// as soon as the replicas lease the slice to it, and waits out the delay of each
// site.
//
// A crash at any point leaves the old ReplicaSet in force, or an accepted proposal
// that is finished by whoever comes next.
const (
	planEvery  = 250 * time.Millisecond
	planSlices = 2048             // handed over at once
	restLimit  = 20 * time.Second // for the fetches under way
	sealLimit  = 3 * time.Second  // for the last of the log
	// ownerStays is how long a slice that came stays with its owner, when it is in use:
	// each change of owner costs its sites their delay, and who has just taken it
	// from a dead one is seldom the first of the ranking.
	ownerStays = 3 * time.Second
)

// Handover has the slices owned here kept by whom the Placement says.
type Handover struct {
	o         Options
	agreement *Agreement
	elections *Elections

	viewChanged chan struct{}
	resting     map[partition.Slice]time.Time // Run's alone: since when nothing new is fetched there
	moving      atomic.Int64                  // owned slices that others should keep
	leaving     atomic.Bool
}

// NewHandover makes a Handover.
func NewHandover(o Options, a *Agreement, e *Elections) *Handover {
	return &Handover{o: o, agreement: a, elections: e, viewChanged: make(chan struct{}, 1)}
}

// Moving is how many slices owned here others should keep.
func (h *Handover) Moving() int { return int(h.moving.Load()) }

// ViewChanged acts on a new effective view of the Placement: it is written down, and links and slices go by it.
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

// move is one slice's next ReplicaSet as its owner wants it.
type move struct {
	slice    partition.Slice
	owner    string
	replicas []string
}

// Run has the slices kept by whom the ranking says.
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

// plan compares who keeps each owned slice with who should. It has those taught
// who are about to keep, and answers what can be moved now. It runs four times a
// second over thousands of slices, nearly all of which are kept as they should:
// they cost one comparison. Once the swarm is done nothing is to move any more,
// whatever was about to.
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

// wish is the ReplicaSet that follows from want, as far as the peers of it have a
// whole copy; learning says that some need one first. A peer that vanished keeps
// its place among the replicas while it is expected back, and is not given one.
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
			learning = learning || h.o.Placement.Alive(id) // sealed, the slice would wait for it in vain
		}
	}
	if len(m.replicas) > h.o.Charter.Replicas { // leaving: this peer came on top
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
	// Two replicas cannot do without each other: who leaves one of two leaves it
	// to the other alone.
	if h.leaving.Load() && m.owner != h.o.Self && len(m.replicas) == 2 {
		m.replicas = []string{m.owner}
	}
	return m, learning
}

// caughtUp says whether id has s but for what is on its way.
func (h *Handover) caughtUp(s partition.Slice, id string) bool {
	const near = 64
	head, ok := h.o.Replicator.At(s, id)
	return ok && head+near >= h.o.Store.Log.LogHead(s)
}

func sameSet(a, b []string) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(x string) bool { return !slices.Contains(b, x) })
}

// handOver makes moves.
func (h *Handover) handOver(ctx context.Context, moves []move) error {
	ready := h.rest(moves) // with no moves, what rested goes on
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

// giveAway makes moves of slices that are at rest.
func (h *Handover) giveAway(ctx context.Context, ready []move) error {
	if len(ready) == 0 {
		return nil
	}
	for _, m := range ready {
		h.o.Quorum.Seal(m.slice)
	}
	h.agreement.AwaitAdmissions() // those that began before are in the log now
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

// rest stops fetching in the slices that get another owner and answers those in
// which no fetch is under way. What does not come to rest in time goes on.
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

// awaitReplicas waits until the live ones of each move's replicas have the whole
// log, and wakes those slices of which they do not.
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

// Leave gives this peer's slices to the other replicas, so that it can stop
// without the crawl stopping anywhere; until ctx ends. It answers how many it
// could not give away.
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
