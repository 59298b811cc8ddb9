package quorum

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Liars of the model keep nothing that they speak of: members that never kept it,
// and former replicas, by what those know who hear them. They say that slices are
// theirs, in words that are told, asked for, in leases, ballots and answers, of the
// present fork and of new ones, and vouch for each other.
var liars = []string{"X", "Y", "Z"}

func isLiar(id string) bool { return slices.Contains(liars, id) }

// isLie: in the worlds of liars nobody adopts, and every other lie has one of them.
func isLie(c ReplicaSet) bool { return c.Epoch > 0 || slices.ContainsFunc(c.Replicas, isLiar) }

// lies goes on for the whole life of a world, also when all else is well.
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
		// Who keeps it no more, by what n knows.
		sl := &n.m.slots[n.slot(s)]
		if former != "" && former != n.id && !sl.set.Has(former) &&
			!slices.ContainsFunc(sl.under, func(u ReplicaSet) bool { return u.Has(former) }) {
			from = former
		}
		n.hearLie(s, from, w.lie(n, s, from))
	})
}

// lie is a ReplicaSet that gives s to liars.
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

// hearLie brings a lie by one of the ways in.
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

// checkLies: who is no replica of a slice takes it from nobody who knows one that
// is there, and never from a majority.
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
			// Only where all who kept what it knew were gone for long.
			sl := &n.m.slots[n.slot(s)]
			if len(sl.under) == 0 || sl.set.Heard == 0 {
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
				deceived++ // it held it; a newcomer that has lost its founder never did
			}
		}
		if deceived >= newest.Quorum() {
			w.logKnown(s)
			w.broken("%d replicas of %v of %s believe a liar", deceived, newest, s)
		}
	}
}

// TestModelLiars: liars that keep nothing change no ReplicaSet that a majority holds,
// make nobody act, and hold nothing up.
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

// liarsToo has liars speak in a world.
func liarsToo(w *world) {
	w.liars = true
	w.after(w.between(0, time.Second), w.lies)
}
