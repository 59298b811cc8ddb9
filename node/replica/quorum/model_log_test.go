package quorum

import (
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// shipping is what an owner knows of its followers under one ReplicaSet.
type shipping struct {
	set     ReplicaSet
	durable map[string]uint64        // what followers reported as durable
	next    map[string]uint64        // where to replicate from
	refused map[string]time.Duration // since when followers neither follow nor give a reason
	session map[string]int           // after a drop, responses to earlier messages do not count
	acked   uint64
}

// replicating returns the replication state of s, a new one for each ReplicaSet. It returns nil
// when this peer may not replicate: it is not the owner, or its own log must be cut first.
func (n *node) replicating(s partition.Slice) *shipping {
	i := n.m.index[s]
	c := n.m.slots[i].set
	if c.Owner != n.id || n.m.slots[i].copied != copyOf(c) {
		return nil
	}
	sh := n.ships[s]
	if sh == nil || sh.set.Compare(c) != 0 {
		sh = &shipping{set: c, durable: map[string]uint64{}, next: map[string]uint64{},
			refused: map[string]time.Duration{}, session: map[string]int{}}
		n.ships[s] = sh
	}
	return sh
}

// write adds arriving links; each is checked and written in one step.
func (n *node) write(s partition.Slice) {
	for n.w.chance(n.w.writes) && n.w.checks.total < 150 && n.w.now < n.w.quiet && n.m.Acts(s, n.clock()) {
		n.w.checks.total++
		n.append(s, entry(n.w.checks.total))
	}
}

func (n *node) append(s partition.Slice, es ...entry) {
	c := &n.mem[n.slot(s)]
	c.log = append(c.log, es...)
	c.add(es...)
}

// replicate sends the followers the part of the log of s that they lack.
func (n *node) replicate(s partition.Slice) {
	sh := n.replicating(s)
	if sh == nil || n.w.chance(n.w.idle) {
		return
	}
	to := slices.Clone(sh.set.Replicas)
	if mv := n.moves[s]; mv != nil {
		for _, k := range mv.replicas {
			if !slices.Contains(to, k) {
				to = append(to, k)
			}
		}
	}
	for _, id := range to {
		if id != n.id {
			n.replicateTo(s, sh, n.w.byID(id))
		}
	}
	n.ack(s, sh)
}

// shipped is a follower's response.
type shipped struct {
	Progress
	durable uint64
}

func (n *node) replicateTo(s partition.Slice, sh *shipping, k *node) {
	log := n.mem[n.slot(s)].log[:n.durable(s)]
	from := min(sh.next[k.id], uint64(len(log)))
	if n.w.chance(20) {
		log = log[:from+uint64(n.w.rng.IntN(len(log)-int(from)+1))]
	}
	session := sh.session[k.id]
	call(n, k, "ship", func() shipped { return k.follow(s, n.id, sh.set, from, log[from:]) }, func(a shipped) {
		switch {
		case a.Newer != nil:
			n.m.Hear(k.id, n.clock(), SliceReplicas{s, *a.Newer})
		case a.Behind:
			n.tell(k, n.m.Of(s)...)
		case n.ships[s] != sh || sh.session[k.id] != session:
		case !a.OK:
			if sh.refused[k.id] == 0 {
				sh.refused[k.id] = n.w.now
			}
		case a.Diverged:
			delete(sh.refused, k.id)
		case !a.Whole:
			delete(sh.refused, k.id)
			n.snapshot(s, sh, k)
		default:
			delete(sh.refused, k.id)
			sh.next[k.id] = a.Head
			sh.durable[k.id] = max(sh.durable[k.id], a.durable)
		}
	})
}

// follow receives a log chunk that begins after from.
func (n *node) follow(s partition.Slice, owner string, c ReplicaSet, from uint64, es []entry) shipped {
	st := n.m.Follows(s, owner, c)
	if !st.OK || st.Diverged || !st.Whole {
		return shipped{Progress: st}
	}
	n.fed[s]++
	n.m.Fed(s, n.clock())
	if st.Cut {
		n.truncate(s, st.Head)
		n.m.Copied(s)
	}
	if from <= st.Head && from+uint64(len(es)) > st.Head {
		n.append(s, es[st.Head-from:]...)
		st.Head = from + uint64(len(es))
	}
	n.persist()
	if n.w.chance(70) {
		n.sync()
	}
	return shipped{st, n.durable(s)}
}

// snapshot gives k a whole copy. That takes a while, and much may have changed when it arrives.
func (n *node) snapshot(s partition.Slice, sh *shipping, k *node) {
	mine := n.disk[n.slot(s)]
	session := sh.session[k.id]
	call(n, k, "snapshot", func() shipped {
		st := k.m.Follows(s, n.id, sh.set)
		if !st.OK || st.Diverged || st.Whole {
			return shipped{}
		}
		n.w.stats["snapshots"]++
		c := &k.mem[k.slot(s)]
		c.log = slices.Clip(mine.log)
		c.add(mine.rows...)
		k.fed[s]++
		k.m.Fed(s, k.clock())
		k.m.Copied(s)
		k.persist()
		return shipped{st, k.durable(s)}
	}, func(a shipped) {
		if a.OK && n.ships[s] == sh && sh.session[k.id] == session {
			sh.durable[k.id] = max(sh.durable[k.id], a.durable)
			sh.next[k.id] = a.durable
		}
	})
}

// has returns how much of the log id has durably, as far as is known here. It returns false
// when id is not known to have a copy. An empty copy is a copy too.
func (n *node) has(s partition.Slice, sh *shipping, id string) (uint64, bool) {
	if id == n.id {
		return n.durable(s), true
	}
	d, ok := sh.durable[id]
	return min(d, n.durable(s)), ok
}

// ack marks as acknowledged what a majority has.
func (n *node) ack(s partition.Slice, sh *shipping) {
	var have []uint64
	for _, k := range sh.set.Replicas {
		d, _ := n.has(s, sh, k)
		have = append(have, d)
	}
	slices.Sort(have)
	to := have[len(have)-sh.set.Quorum()]
	for sh.acked < to {
		n.w.checks.ack(n.w, n, s, sh.set, sh.acked, n.mem[n.slot(s)].log[sh.acked])
		sh.acked++
	}
	n.waits = slices.DeleteFunc(n.waits, func(u *uniting) bool { return u.sent })
	for _, u := range n.waits {
		if u.s == s && !u.sent && u.fork == forkOf(sh.set) && u.upTo <= sh.acked {
			u.sent = true
			u.final()
		}
	}
}

// move is a change of owner or replicas that the owner has started.
type move struct {
	base     ReplicaSet
	owner    string
	replicas []string
	began    time.Duration
	sealed   bool
}

// move starts, continues or gives up a change.
func (n *node) move(s partition.Slice) {
	sh := n.replicating(s)
	mv := n.moves[s]
	if mv != nil && (sh == nil || mv.base.Compare(sh.set) != 0) {
		delete(n.moves, s)
		n.m.Wake(s)
		mv = nil
	}
	switch {
	case sh == nil:
	case mv == nil:
		n.planMove(s, sh)
	case n.w.now-mv.began > 12*time.Second:
		n.m.Wake(s)
		delete(n.moves, s)
	case !mv.sealed && n.reached(s, sh, mv, 3):
		n.m.Seal(s)
		mv.sealed = true
	case mv.sealed && n.reached(s, sh, mv, 0):
		if p, ok := n.m.Propose(s, mv.owner, mv.replicas); ok {
			n.persist()
			n.w.log("%s proposes %v for %s", n.id, p.Next, s)
			n.propose(p)
		} else {
			n.m.Wake(s)
		}
		delete(n.moves, s)
	}
}

func (n *node) planMove(s partition.Slice, sh *shipping) {
	w := n.w
	if !n.m.Acts(s, n.clock()) {
		return
	}
	mv := &move{base: sh.set, began: w.now}
	for _, k := range sh.set.Replicas {
		if since := sh.refused[k]; since > 0 && w.now-since > 3*time.Second {
			// It promised a peer that never came back. Only a new generation lets it follow
			// again.
			mv.owner, mv.replicas = n.id, sh.set.Replicas
		}
	}
	if mv.replicas == nil {
		if !w.faulty || !w.chance(3) {
			return
		}
		for _, i := range w.rng.Perm(len(w.nodes))[:1+w.rng.IntN(min(5, len(w.nodes)))] {
			mv.replicas = append(mv.replicas, w.nodes[i].id)
		}
		mv.owner = mv.replicas[0]
	}
	w.log("%s plans %s %v for %s", n.id, mv.owner, mv.replicas, s)
	n.m.Rest(s)
	n.moves[s] = mv
}

// reached reports whether the new owner and a majority of the new replicas lack at most slack
// of the log. Replicas that stay have everything acknowledged anyway, and the owner must not
// wait for them: those that promised another peer follow only in the next generation.
func (n *node) reached(s partition.Slice, sh *shipping, mv *move, slack uint64) bool {
	if mv.owner == n.id && slices.Equal(mv.replicas, sh.set.Replicas) {
		return true
	}
	head := n.m.head(s)
	have := 0
	for _, k := range mv.replicas {
		if d, ok := n.has(s, sh, k); ok && d+slack >= head {
			have++
		} else if k == mv.owner {
			return false
		}
	}
	return have >= len(mv.replicas)/2+1
}

// drop forgets a surplus copy if its owner agrees.
func (n *node) drop(s partition.Slice) {
	if n.w.rule == dropSurplus {
		n.forget(s)
		return
	}
	c, fed := n.m.ReplicaSet(s), n.fed[s]
	k := n.w.byID(c.Owner)
	call(n, k, "may drop", func() bool { return k.mayDrop(s, n.id, c) }, func(ok bool) {
		if ok && n.fed[s] == fed && n.m.ReplicaSet(s).Compare(c) == 0 && slices.Contains(n.m.Surplus(n.clock()), s) {
			n.forget(s)
		}
	})
}

// mayDrop reports whether this owner of s does not count on the copy of id. It will not count
// on it before it has replicated to id again.
func (n *node) mayDrop(s partition.Slice, id string, c ReplicaSet) bool {
	sh := n.replicating(s)
	mv := n.moves[s]
	if sh == nil || sh.set.Compare(c) != 0 || n.m.slots[n.m.index[s]].accepted.N > 0 ||
		mv != nil && slices.Contains(mv.replicas, id) {
		return false
	}
	sh.session[id]++
	delete(sh.durable, id)
	delete(sh.next, id)
	return true
}

func (n *node) forget(s partition.Slice) {
	n.m.Forget(s)
	n.forgot(s, n.m.ReplicaSet(s).Has(n.id))
}

func (n *node) forgot(s partition.Slice, keeps bool) {
	n.w.stats["dropped"]++
	n.w.log("%s forgets %s", n.id, s)
	old := n.mem[n.slot(s)]
	n.mem[n.slot(s)] = copyState{}
	if keeps {
		n.mem[n.slot(s)].rows = slices.Clip(old.rows)
	}
	n.persist()
}

// uniting records that the rows of another peer's fork were merged here.
type uniting struct {
	s     partition.Slice
	fork  string
	upTo  uint64
	sent  bool
	final func()
}

func forkOf(c ReplicaSet) string { return string(rune('0'+c.Epoch)) + c.Fork }

// reconcile sends the rows of a diverged copy to the winner's owner. It forgets the copy when
// those rows are acknowledged.
func (n *node) reconcile(s partition.Slice) {
	c := n.m.ReplicaSet(s)
	k := n.w.byID(c.Owner)
	if k == n {
		return
	}
	rows, stands := slices.Clip(n.mem[n.slot(s)].rows), n.m.Stands(s)
	inc := n.inc
	n.w.send(n, k, 0, "unite", func() {
		sh := k.replicating(s)
		if sh == nil || sh.set.Compare(c) != 0 || !k.m.Acts(s, k.clock()) {
			return
		}
		have := k.mem[k.slot(s)].rows
		for _, e := range rows {
			if !slices.Contains(have, e) || !slices.Contains(k.mem[k.slot(s)].log, e) {
				k.append(s, e)
			}
		}
		u := &uniting{s: s, fork: forkOf(c), upTo: k.m.head(s), final: func() {
			k.w.send(k, n, inc, "united", func() {
				if old := n.m.ReplicaSet(s); n.m.ForgetDiverged(s, stands) {
					n.w.stats["united"]++
					n.forgot(s, old.Has(n.id))
				}
			})
		}}
		// A replica keeps the rows, so that two peers have them. Otherwise there may be no
		// majority.
		if c.Has(n.id) {
			k.sync()
			u.sent = true
			u.final()
			return
		}
		k.waits = append(k.waits, u)
	})
}
