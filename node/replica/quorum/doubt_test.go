package quorum

import (
	"slices"
	"testing"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// saysOn repeats the statement of from that c is in force for longer than denyFor.
func saysOn(m *Machine, from string, c ReplicaSet) {
	for at := began; at.Before(began.Add(denyFor + 2*time.Second)); at = at.Add(time.Second) {
		m.Hear(from, at, SliceReplicas{1, c})
	}
}

// TestCopyReconciledBefore checks that a copy of another fork is forgotten only after a
// response about that very copy. While the response is under way, the known ReplicaSet may go
// to another fork and back. The copy that is here then is not the copy that was sent.
func TestCopyReconciledBefore(t *testing.T) {
	base := abc()
	winner := base.Adopted("c", 5)
	m := knows("b", base)
	m.Copied(1)
	m.Hear("c", began, SliceReplicas{1, winner})
	stands := m.Stands(1)
	if !m.Adopt(1, winner) { // something new is written to its copy
		t.Fatal("did not adopt")
	}
	// The agreed ReplicaSet wins,
	m.Hear("a", began, SliceReplicas{1, base.Next("a", base.Replicas[:2], 6)})
	m.take(0, winner, []ReplicaSet{base}) // and is left again
	if !slices.Equal(m.Diverged(), []partition.Slice{1}) {
		t.Fatal("no diverged copy")
	}
	if m.ForgetDiverged(1, stands) || !m.slots[0].copied.Has {
		t.Error("a copy was forgotten for the answer about another")
	}
	if !m.ForgetDiverged(1, m.Stands(1)) || m.slots[0].copied.Has || len(m.Diverged()) > 0 {
		t.Error("a copy that was reconciled is still here")
	}
	if m.ForgetDiverged(1, m.Stands(1)) {
		t.Error("forgot what was not here")
	}
}

// TestForkInForceAgain checks what happens when a late, old statement says that a fork was
// left. Once the fork's only replica says otherwise, others' statements about it count again.
func TestForkInForceAgain(t *testing.T) {
	base := abc()
	adopted := base.Adopted("a", 5)
	m := knows("r", base)
	m.Hear("a", began, SliceReplicas{1, adopted})
	m.Hear("a", began, SliceReplicas{1, base}) // sent before a adopted the slice
	if !m.ReplicaSet(1).same(base) {
		t.Fatalf("knows %+v", m.ReplicaSet(1))
	}
	m.Hear("b", began, SliceReplicas{1, adopted})
	if !m.ReplicaSet(1).same(base) {
		t.Fatal("a fork that was left is believed from another")
	}
	next := base.Next("b", []string{"b", "c"}, 6) // a is no replica of it
	m.Hear("b", began, SliceReplicas{1, next})
	m.Hear("a", began, SliceReplicas{1, adopted})
	if m.Hear("b", began, SliceReplicas{1, adopted}); !m.ReplicaSet(1).same(adopted) {
		t.Errorf("knows %+v", m.ReplicaSet(1))
	}
}

// TestDeserter has two replicas; one believed hearsay when the other seemed gone. When the
// other is back and says that nothing was left, it counts on the one that left.
func TestDeserter(t *testing.T) {
	base := ReplicaSet{Gen: 3, Owner: "a", Replicas: []string{"a", "b"}, Starts: []Start{{3, 5}}}
	fork := base.Adopted("c", 5)
	m := knows("a", base)
	m.Hear("c", began, SliceReplicas{1, fork})
	if m.Confirm(began, func(string, bool) bool { return true }); m.ReplicaSet(1).Fork != "c" {
		t.Fatalf("knows %+v", m.ReplicaSet(1))
	}
	if m.Hear("b", began, SliceReplicas{1, base}); m.ReplicaSet(1).Fork != "c" {
		t.Fatal("came back at the first word")
	}
	if saysOn(m, "b", base); !m.ReplicaSet(1).same(base) {
		t.Errorf("knows %+v", m.ReplicaSet(1))
	}
	m = knows("a", base) // the peer that adopted the slice keeps the fork
	m.Adopt(1, base)
	if saysOn(m, "b", base); m.ReplicaSet(1).Fork != "a" {
		t.Errorf("gave up what it adopted: %+v", m.ReplicaSet(1))
	}
}

// TestReplicasElsewhere checks that a peer follows the replicas of a ReplicaSet that was left
// to another fork, though that fork is lower. It does not do so for hearsay.
func TestReplicasElsewhere(t *testing.T) {
	base := ReplicaSet{Gen: 2, Owner: "a", Replicas: []string{"c", "a"}, Starts: []Start{{2, 5}}}
	mine := ReplicaSet{Epoch: 1, Fork: "c", Gen: 2, Owner: "b", Replicas: []string{"b"}, Starts: []Start{{2, 5}}}
	theirs := base.Adopted("a", 5)
	for name, x := range map[string]struct {
		from []string
		c    ReplicaSet
		want bool
	}{
		"all of them":        {[]string{"a", "c"}, theirs, true},
		"one of two":         {[]string{"a"}, theirs, false},
		"one and a stranger": {[]string{"a", "x"}, theirs, false},
		"all, of hearsay":    {[]string{"a", "c"}, heard(theirs), false},
		"all, too far on": {[]string{"a", "c"}, ReplicaSet{Epoch: MaxEpochStep + 1, Fork: "a", Owner: "a",
			Replicas: []string{"a"}, Starts: []Start{{0, 5}}}, false},
		"strangers, together": {[]string{"x", "y"}, theirs, false},
	} {
		m := knows("b", base)
		m.take(0, mine, []ReplicaSet{base})
		for at := began; at.Before(began.Add(denyFor + 2*time.Second)); at = at.Add(time.Second) {
			for _, from := range x.from {
				m.Hear(from, at, SliceReplicas{1, x.c})
			}
		}
		if got := m.ReplicaSet(1).same(x.c); got != x.want {
			t.Errorf("%s: followed %v, want %v: %+v", name, got, x.want, m.ReplicaSet(1))
		}
	}
}
