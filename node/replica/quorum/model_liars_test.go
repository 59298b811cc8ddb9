package quorum

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// liars are peers of the model that keep none of the slices they talk about. They are members
// that were never replicas, and former replicas, as far as the receiver knows. They claim
// slices in gossip, responses, lease requests and ballots, for the present fork and for new
// ones. They also vouch for each other.
var liars = []string{"X", "Y", "Z"}

func isLiar(id string) bool { return slices.Contains(liars, id) }

// isLie reports whether c is a lie. In worlds with liars no peer adopts, and every other lie
// names a liar as a replica.
func isLie(c ReplicaSet) bool { return c.Epoch > 0 || slices.ContainsFunc(c.Replicas, isLiar) }

// lies runs for the whole life of a world, also after the faults end.
func (w *world) lies() {
	w.after(w.between(20*time.Millisecond, 400*time.Millisecond), w.lies)
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	s := w.slices[w.rng.IntN(len(w.slices))]
	from := liars[w.rng.IntN(len(liars))]
	former := ""
	if w.chance(30) {
		former = w.nodes[w.rng.IntN(len(w.nodes))].id
	}
	n.step(0, fmt.Sprintf("%s%s lies to %s", from, former, n.id), func() {
		// A former replica, as far as n knows.
		sl := &n.m.slots[n.slot(s)]
		if former != "" && former != n.id && !sl.set.Has(former) &&
			!slices.ContainsFunc(sl.under, func(u ReplicaSet) bool { return u.Has(former) }) {
			from = former
		}
		n.hearLie(s, from, w.lie(n, s, from))
	})
}

// lie returns a ReplicaSet that gives s to liars.
func (w *world) lie(n *node, s partition.Slice, from string) ReplicaSet {
	cur := n.m.ReplicaSet(s)
	replicas := []string{from}
	for _, id := range liars[:w.rng.IntN(len(liars)+1)] {
		if id != from {
			replicas = append(replicas, id)
		}
	}
	if !slices.ContainsFunc(replicas, isLiar) {
		replicas = append(replicas, liars[0])
	}
	if w.chance(30) && !slices.Contains(replicas, n.id) {
		replicas = append(replicas, n.id)
	}
	var c ReplicaSet
	switch w.rng.IntN(5) {
	case 0:
		c = cur.Next(from, replicas, uint64(w.rng.IntN(100)))
	case 1:
		c = cur.Adopted(from, 0)
	case 2:
		c = cur.Adopted(from, 0).Next(from, replicas, 3)
	case 3:
		c = cur.Next(from, replicas, 0)
		c.Gen, c.Starts = cur.Gen+1<<w.rng.IntN(63), nil
	case 4:
		c = ReplicaSet{Epoch: cur.Epoch + 1<<w.rng.IntN(63), Fork: from, Owner: from, Replicas: []string{from},
			Starts: []Start{{}}}
	}
	return c
}

// hearLie delivers a lie in one of the possible messages.
func (n *node) hearLie(s partition.Slice, from string, c ReplicaSet) {
	now := n.clock()
	switch n.w.rng.IntN(5) {
	case 0:
		n.m.Hear(from, now, SliceReplicas{s, c})
	case 1:
		n.m.Grant(from, Ask{Count: 1, List: []SliceReplicas{{s, c}}}, now)
	case 2:
		n.m.Grant(from, Ask{Count: 1, News: []SliceReplicas{{s, c}}}, now)
	case 3:
		n.prepare(Proposal{Slice: s, Base: c, Ballot: Ballot{1 << n.w.rng.IntN(62), from}})
	case 4:
		n.accept(Proposal{Slice: s, Base: c, Ballot: Ballot{1 << n.w.rng.IntN(62), from},
			Next: c.Next(from, c.Replicas, 0)})
	}
	if st := n.m.Follows(s, from, c); st.OK && isLiar(from) && !isLie(n.m.ReplicaSet(s)) {
		n.w.broken("%s would follow %s in %s", n.id, from, s)
	}
}

// checkLies checks liars that are no replicas. They take a slice from no peer that knows a
// running replica, and never from a majority.
func (w *world) checkLies() {
	if !w.liars {
		return
	}
	for _, n := range w.nodes {
		for _, s := range w.slices {
			c := n.m.ReplicaSet(s)
			if !isLie(c) {
				continue
			}
			w.stats["deceived"]++
			// Allowed only where all known replicas were gone for a long time.
			sl := &n.m.slots[n.slot(s)]
			if len(sl.under) == 0 || sl.set.Hearsay == 0 {
				w.broken("%s believes a liar: %v on %v", n.id, c, sl.under)
			}
			if slices.ContainsFunc(n.m.Acting(n.clock()), func(a partition.Slice) bool { return a == s }) {
				w.broken("%s acts by a lie: %v", n.id, c)
			}
		}
	}
	for _, s := range w.slices {
		var newest ReplicaSet
		for _, c := range w.checks.newest[s] {
			if !isLie(c) && (len(newest.Replicas) == 0 || c.Compare(newest) > 0) {
				newest = c
			}
		}
		deceived := 0
		for _, id := range newest.Replicas {
			sl := &w.byID(id).m.slots[w.byID(id).slot(s)]
			if isLie(sl.set) && slices.ContainsFunc(sl.under,
				func(u ReplicaSet) bool { return u.Compare(newest) == 0 }) {
				deceived++ // it was a replica; a newcomer that has lost its founder never was
			}
		}
		if deceived >= newest.Quorum() {
			w.logKnown(s)
			w.broken("%d replicas of %v of %s believe a liar", deceived, newest, s)
		}
	}
}

// TestModelLiars checks that liars that are no replicas change no ReplicaSet that a majority
// knows, make no peer act, and delay nothing.
func TestModelLiars(t *testing.T) {
	first, count := runs(t, 200)
	deceived := 0
	for seed := first; seed < first+count; seed++ {
		w := runModel(seed, false, keepRules, false, liarsToo)
		deceived += w.stats["deceived"]
		if w.fault == "" {
			continue
		}
		w = runModel(seed, false, keepRules, true, liarsToo)
		t.Fatalf("seed %d (ECHO_MODEL=%d,1): %s\n%s", seed, seed, w.fault,
			strings.Join(w.trace[max(0, len(w.trace)-400):], "\n"))
	}
	t.Logf("%d checks at which somebody who had lost all replicas was deceived", deceived)
}

// liarsToo starts the liars of a world.
func liarsToo(w *world) {
	w.liars = true
	w.after(w.between(0, time.Second), w.lies)
}
