package quorum

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/echo-node/echo-node/partition"
)

// checks records what happened, to check later events against it.
type checks struct {
	total    int // number of entries written
	configs  map[configKey]ReplicaSet
	newest   map[partition.Slice]map[string]ReplicaSet // by fork
	acked    map[partition.Slice]map[string][]entry    // by fork, at its position
	promises map[promiseKey]promised
	clocks   map[string]uint64
}

type configKey struct {
	s     partition.Slice
	epoch uint64
	fork  string
	gen   uint64
}

type promiseKey struct {
	node string
	base configKey
}

type promised struct{ promised, accepted Ballot }

func keyOf(s partition.Slice, c ReplicaSet) configKey { return configKey{s, c.Epoch, c.Fork, c.Gen} }

func (x *checks) init() {
	x.configs, x.promises, x.clocks = map[configKey]ReplicaSet{}, map[promiseKey]promised{}, map[string]uint64{}
	x.newest, x.acked = map[partition.Slice]map[string]ReplicaSet{}, map[partition.Slice]map[string][]entry{}
}

func (w *world) broken(format string, args ...any) {
	if w.fault == "" {
		w.fault = fmt.Sprintf("after %.3f s: ", w.now.Seconds()) + fmt.Sprintf(format, args...)
	}
}

// prepared checks that a replica's promises only rise, also across restarts, and that it
// reports what it accepted.
func (x *checks) prepared(w *world, n *node, p Proposal, r Promise) {
	// A peer that was deceived about a name may learn the truth later.
	if !r.OK || w.liars && isLie(p.Base) {
		return
	}
	k := promiseKey{n.id, keyOf(p.Slice, p.Base)}
	old := x.promises[k]
	if p.Ballot.Compare(old.promised) <= 0 {
		w.broken("%s promised %v after %v", n.id, p.Ballot, old.promised)
	}
	if r.Accepted != old.accepted {
		w.broken("%s accepted %v but says %v", n.id, old.accepted, r.Accepted)
	}
	x.promises[k] = promised{p.Ballot, old.accepted}
}

// accepted checks that no replica accepts a ballot below its promise.
func (x *checks) accepted(w *world, n *node, p Proposal, r Promise) {
	// A peer that was deceived about a name may learn the truth later.
	if !r.OK || w.liars && isLie(p.Base) {
		return
	}
	k := promiseKey{n.id, keyOf(p.Slice, p.Base)}
	if old := x.promises[k]; p.Ballot.Compare(old.promised) < 0 {
		w.broken("%s accepted %v after it promised %v", n.id, p.Ballot, old.promised)
	}
	x.promises[k] = promised{p.Ballot, p.Ballot}
}

// ack checks and records that entry e at position pos (from 0) of the log of s was acknowledged
// under c.
func (x *checks) ack(w *world, n *node, s partition.Slice, c ReplicaSet, pos uint64, e entry) {
	if x.acked[s] == nil {
		x.acked[s] = map[string][]entry{}
	}
	all := x.acked[s][forkOf(c)]
	switch {
	case pos < uint64(len(all)):
		if all[pos] != e {
			w.broken("%s acknowledged %d at %d of %s, where %d was", n.id, e, pos, s, all[pos])
		}
	case pos == uint64(len(all)):
		x.acked[s][forkOf(c)] = append(all, e)
		w.stats["acked"]++
		w.log("%s acknowledges %d at %d of %s under %v", n.id, e, pos, s, c)
	default:
		w.broken("%s acknowledged at %d of %s, beyond %d", n.id, pos, s, len(all))
	}
}

// check runs after every step.
func (w *world) check() {
	x := &w.checks
	for _, n := range w.nodes {
		if at, ok := x.clocks[n.id]; n.up && (!ok || at != n.m.clock) {
			x.clocks[n.id] = n.m.clock
			for _, s := range w.slices {
				x.known(w, n, s, n.m.ReplicaSet(s))
			}
		}
	}
	w.checkLies()
	for _, s := range w.slices {
		w.checkActing(s)
		w.checkKept(s)
	}
}

// known checks that two peers that know a ReplicaSet by the same name know the same one.
func (x *checks) known(w *world, n *node, s partition.Slice, c ReplicaSet) {
	if w.liars && isLie(c) {
		return // a lie; see checkLies
	}
	old, ok := x.configs[keyOf(s, c)]
	if ok && !reflect.DeepEqual(old, c) {
		w.broken("%s knows %v of %s, others %v", n.id, c, s, old)
	}
	if ok {
		return
	}
	x.configs[keyOf(s, c)] = c
	if x.newest[s] == nil {
		x.newest[s] = map[string]ReplicaSet{}
	}
	if old, ok := x.newest[s][forkOf(c)]; !ok || c.Compare(old) > 0 {
		x.newest[s][forkOf(c)] = c
	}
}

// checkActing checks that at most one peer acts in a slice and fork, and that it has everything
// that was ever acknowledged there.
func (w *world) checkActing(s partition.Slice) {
	acting := ""
	var fork ReplicaSet
	for _, n := range w.nodes {
		if !n.up || !n.m.Acts(s, n.clock()) {
			continue
		}
		c := n.m.ReplicaSet(s)
		if acting != "" && fork.SameFork(c) {
			w.broken("%s and %s act in %s", acting, n.id, s)
		}
		acting, fork = n.id, c
		if !holds(n.mem[n.slot(s)].log, w.checks.acked[s][forkOf(c)]) {
			w.broken("%s acts in %s with %v and lacks what was acknowledged: %v", n.id, s, n.mem[n.slot(s)].log,
				w.checks.acked[s][forkOf(c)])
		}
	}
}

func holds(log, acked []entry) bool {
	return len(log) >= len(acked) && slices.Equal(log[:len(acked)], acked)
}

// checkKept checks that everything acknowledged in a fork is durable at a majority of the
// replicas of its newest ReplicaSet. Replicas that left the fork for another one do not count:
// they took their rows along (checkHealed), and promise nothing more in it.
func (w *world) checkKept(s partition.Slice) {
	for fork, c := range w.checks.newest[s] {
		acked := w.checks.acked[s][fork]
		if len(acked) == 0 {
			continue
		}
		have, left := 0, 0
		for _, id := range c.Replicas {
			k := w.byID(id)
			sl := &k.m.slots[k.slot(s)]
			switch {
			case holds(k.disk[k.slot(s)].log, acked):
				have++
			case w.adopt && (!sl.set.SameFork(c) || sl.lost() || sl.promised.N == maxBallot):
				left++
			}
		}
		if have+left < c.Quorum() {
			w.logKnown(s)
			w.broken("only %d replicas of %v of %s have what was acknowledged, %d left it: %v", have, c, s, left, acked)
		}
	}
}

// newestUp returns the newest ReplicaSet that any running peer knows, and how many of its
// replicas are running.
func (w *world) newestUp(s partition.Slice) (c ReplicaSet, up int) {
	for _, n := range w.nodes {
		if d := n.m.ReplicaSet(s); n.up && (len(c.Replicas) == 0 || d.Compare(c) > 0) {
			c = d
		}
	}
	for _, k := range c.Replicas {
		if w.byID(k).up {
			up++
		}
	}
	return c, up
}

// checkHealed checks the state some time after the faults ended.
func (w *world) checkHealed() {
	for _, s := range w.slices {
		c, up := w.newestUp(s)
		if up < c.Quorum() {
			continue // a majority of one or two may be down
		}
		owner := w.byID(c.Owner)
		log := owner.mem[owner.slot(s)].log
		if !owner.up || !owner.m.Fetches(s, owner.clock()) {
			w.broken("%s does not fetch in %s, which it owns by %v", owner.id, s, c)
			w.logKnown(s)
		}
		for _, n := range w.nodes {
			if !n.up {
				continue
			}
			if d := n.m.ReplicaSet(s); d.Compare(c) != 0 {
				w.broken("%s knows %v of %s, %s knows %v", n.id, d, s, c.Owner, c)
				w.logKnown(s)
			}
			if slices.Contains(n.m.Diverged(), s) {
				w.broken("%s still has a diverged copy of %s", n.id, s)
				w.logKnown(s)
			}
			if !c.Has(n.id) {
				continue
			}
			copy := n.mem[n.slot(s)]
			if !slices.Equal(copy.log, log) {
				w.broken("%s has %v of %s, its owner %v", n.id, copy.log, s, log)
			}
			for fork, acked := range w.checks.acked[s] {
				for _, e := range acked {
					if !slices.Contains(copy.rows, e) {
						w.broken("%s keeps %s without %d, which was acknowledged in fork %q", n.id, s, e, fork)
					}
				}
			}
		}
	}
}

func (w *world) logKnown(s partition.Slice) {
	for _, n := range w.nodes {
		sl := &n.m.slots[n.slot(s)]
		w.log("%s (up %v) knows %v on %v, promised %v accepted %v, copied %v lost %v, heard %v", n.id, n.up, sl.set,
			sl.under, sl.promised, sl.accepted, sl.copied, sl.gone, sl.words)
	}
}
