package quorum

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// knows returns a Machine of self that knows c of slice 1 for certain.
func knows(self string, c ReplicaSet) *Machine {
	m := New(Options{Self: self, Founder: "f", Slices: []partition.Slice{1}, Started: began,
		Head: func(partition.Slice) uint64 { return 0 }})
	m.take(0, c, nil)
	return m
}

func heard(c ReplicaSet) ReplicaSet { c.Hearsay = c.Gen + 1; return c }

// TestWhoseWordCounts tests each rule of hear.go, always at r, which is no replica.
func TestWhoseWordCounts(t *testing.T) {
	cur := abc()
	next := cur.Next("b", []string{"b", "c", "d"}, 6)
	far := cur
	for range 40 {
		far = far.Next("d", []string{"d", "e"}, 9)
	}
	wrongStart := next
	wrongStart.Starts = []Start{{4, 6}}
	tooFar := far
	tooFar.Gen = cur.Gen + MaxGenStep + 1
	tooFar.Starts = []Start{{tooFar.Gen, 9}}
	epochs := ReplicaSet{Epoch: MaxEpochStep + 1, Fork: "a", Owner: "a", Replicas: []string{"a"},
		Starts: []Start{{0, 5}}}
	for name, x := range map[string]struct {
		from string
		c    ReplicaSet
		want bool
	}{
		"a replica of the next":           {"b", next, true},
		"the owner of the next":           {"a", next, true},
		"a replica of one far on":         {"c", far, true},
		"a replica that is none in it":    {"a", far, true},
		"a replica that adopted":          {"a", cur.Adopted("a", 5), true},
		"a replica of another's adoption": {"b", cur.Adopted("a", 5), true},
		"who keeps only the next":         {"d", next, false},
		"a stranger":                      {"x", next, false},
		"a stranger that adopted":         {"x", cur.Adopted("x", 5), false},
		"a former replica, the founder":   {"f", next, false},
		"nobody":                          {"", next, false},
		"itself, over the wire":           {"r", next, false},
		"a replica of an older one": {"a", ReplicaSet{Gen: 2, Owner: "a", Replicas: []string{"a"},
			Starts: []Start{{2, 0}}}, false},
		"a replica of what it knows":        {"a", cur, false},
		"a replica with an impossible log":  {"a", wrongStart, false},
		"a replica too many generations on": {"a", tooFar, false},
		"a replica too many epochs on":      {"a", epochs, false},
		"a replica without a beginning":     {"a", ReplicaSet{Gen: 9, Owner: "a", Replicas: []string{"a"}}, false},
		"a replica, of hearsay":             {"b", heard(far), false},
		"a replica, of hearsay that is known": {"b",
			func() ReplicaSet { c := far; c.Hearsay = cur.Gen + 1; return c }(), true},
		"a replica, of a fork from hearsay": {"b", heard(cur.Adopted("x", 5)), false},
		"a replica, adopted with two replicas": {"a",
			ReplicaSet{Epoch: 1, Fork: "a", Owner: "a", Replicas: []string{"a", "b"}, Starts: []Start{{0, 5}}}, false},
		"a replica, a fork of nobody's": {"a", ReplicaSet{Epoch: 1, Gen: 1, Owner: "a", Replicas: []string{"a"},
			Starts: []Start{{1, 5}}}, false},
		"a replica, beyond all generations": {"a", ReplicaSet{Gen: 1 << 62, Owner: "a", Replicas: []string{"a"},
			Starts: []Start{{1 << 62, 5}}}, false},
		"a replica, beyond all epochs": {"a", ReplicaSet{Epoch: 1 << 62, Fork: "a", Owner: "a",
			Replicas: []string{"a"}, Starts: []Start{{0, 5}}}, false},
		"a replica that gives the slice to us": {"a", cur.Next("r", []string{"r"}, 6), true},
	} {
		m := knows("r", cur)
		got := m.Hear(x.from, began, SliceReplicas{1, x.c})
		if believed := len(got) == 1 && m.ReplicaSet(1).same(x.c); believed != x.want || !believed &&
			!m.ReplicaSet(1).same(cur) {
			t.Errorf("%s: believed %v, knows %+v", name, believed, m.ReplicaSet(1))
		}
	}
}

// TestHearsay checks that a statement of a peer that is no replica is accepted only when all
// replicas are gone. Then a majority of the named replicas must confirm it. A replica that is
// back undoes it.
func TestHearsay(t *testing.T) {
	cur := abc()
	c := cur.Next("x", []string{"x", "y", "z"}, 9)
	gone := func(string, bool) bool { return true }
	m := knows("r", cur)
	confirm := func(what string, gone func(string, bool) bool, want bool) {
		t.Helper()
		if got := len(m.Confirm(began, gone)) == 1; got != want {
			t.Fatalf("%s: taken %v", what, got)
		}
	}
	m.Hear("x", began, SliceReplicas{1, c})
	m.Hear("w", began, SliceReplicas{1, c})
	confirm("one of three, and a stranger", gone, false)
	if !m.InDoubt() || !m.Doubted(1) || len(m.Doubts()["a"]) != 1 || len(m.Doubts()["y"]) != 1 {
		t.Fatalf("nobody is asked: %v", m.Doubts())
	}
	m.Hear("y", began, SliceReplicas{1, c})
	confirm("a replica is there", func(k string, _ bool) bool { return k != "b" }, false)
	confirm("two of three, and all are gone", gone, true)
	if got := m.Of(1)[0]; got.Hearsay != c.Gen+1 || len(m.Left()["b"]) != 1 {
		t.Fatalf("it is passed on as certain: %+v", got)
	}
	other := knows("s", cur) // s learns it from a peer that has it from hearsay
	if other.Hear("b", began, m.Of(1)...); !other.ReplicaSet(1).same(cur) {
		t.Fatal("hearsay counts at third hand")
	}
	truth := cur.Next("b", []string{"b", "c"}, 6)
	if m.Hear("b", began, SliceReplicas{1, truth}); !m.ReplicaSet(1).same(truth) || m.Of(1)[0].Hearsay != 0 {
		t.Fatalf("a replica that is back is not believed: %+v", m.ReplicaSet(1))
	}
}

// TestHearsayUndoneByAMajority: the replicas of the ReplicaSet that was left say for a while
// that it is in force unchanged.
func TestHearsayUndoneByAMajority(t *testing.T) {
	cur, m := abc(), knows("r", abc())
	lie := cur.Adopted("x", 0)
	m.Hear("x", began, SliceReplicas{1, lie})
	if m.Confirm(began, func(string, bool) bool { return true }); !m.ReplicaSet(1).same(lie) {
		t.Fatal("not taken")
	}
	for at := time.Duration(0); at <= denyFor; at += time.Second {
		if !m.ReplicaSet(1).same(lie) {
			t.Fatalf("undone after %s", at)
		}
		m.Hear("a", began.Add(at), SliceReplicas{1, cur})
		if at < denyFor {
			m.Hear("b", began.Add(at), SliceReplicas{1, cur})
		}
	}
	if m.Hear("b", began.Add(denyFor), SliceReplicas{1, cur}); !m.ReplicaSet(1).same(cur) {
		t.Fatalf("a majority is not believed: %+v", m.ReplicaSet(1))
	}
}

// TestSoleReplicaKnows checks that a peer that alone is a majority of a ReplicaSet believes no
// hearsay.
func TestSoleReplicaKnows(t *testing.T) {
	m := knows("f", First("f"))
	for _, c := range []ReplicaSet{First("f").Next("x", []string{"x"}, 0), First("f").Adopted("x", 0)} {
		m.Hear("x", began, SliceReplicas{1, c})
		if got := m.Confirm(began, func(string, bool) bool { return true }); len(got) > 0 ||
			m.ReplicaSet(1).Owner != "f" {
			t.Errorf("believed %+v", c)
		}
	}
}

// TestForksMeet checks what happens after a network cut. The majority's chain wins over an
// adoption made at the same time. Of two adoptions by replicas the higher wins.
func TestForksMeet(t *testing.T) {
	base := abc()
	agreed := base.Next("b", []string{"b", "c", "d"}, 6) // without a, which was cut off
	adopted := base.Adopted("a", 5)
	m := knows("a", base)
	m.Learn(SliceReplicas{1, adopted})
	if m.Hear("b", began, SliceReplicas{1, agreed}); !m.ReplicaSet(1).same(agreed) {
		t.Errorf("the adopter knows %+v", m.ReplicaSet(1))
	}
	m = knows("d", agreed)
	if m.Hear("a", began, SliceReplicas{1, adopted}); !m.ReplicaSet(1).same(agreed) {
		t.Errorf("the majority's side knows %+v", m.ReplicaSet(1))
	}
	m = knows("r", base)
	m.Hear("b", began, SliceReplicas{1, base.Adopted("b", 5)})
	m.Hear("a", began, SliceReplicas{1, adopted})
	if m.ReplicaSet(1).Fork != "b" {
		t.Errorf("of two adoptions %q won", m.ReplicaSet(1).Fork)
	}
}

// TestReturnedReplica checks a replica that gave up its copy for another fork and comes back.
// Others may have counted on the copy, so a candidate does not treat it as having nothing.
func TestReturnedReplica(t *testing.T) {
	base := abc()
	m := knows("b", base)
	m.Copied(1)
	m.Hear("c", began, SliceReplicas{1, base.Adopted("c", 5)})
	if !slices.Equal(m.Diverged(), []partition.Slice{1}) {
		t.Fatal("no diverged copy")
	}
	m.Forget(1)
	next := base.Next("a", base.Replicas[:2], 6)
	if m.Hear("a", began, SliceReplicas{1, next}); !m.ReplicaSet(1).same(next) {
		t.Fatalf("knows %+v", m.ReplicaSet(1))
	}
	for range 2 {
		if r := m.Prepare(Proposal{Slice: 1, Base: next, Ballot: m.ballotAbove("a")}, afterStart); !r.OK || !r.Copied ||
			r.Head != UnknownHead {
			t.Fatalf("%+v", r)
		}
		again := knows("b", base) // after a restart
		if err := again.Load(1, m.Dirty()[1]); err != nil {
			t.Fatal(err)
		}
		m = again
	}
}

func (m *Machine) ballotAbove(by string) Ballot { return Ballot{m.slots[0].promised.N + 2, by} }

// TestLoadPutsAside checks that the last good ReplicaSet replaces an impossible row, and that
// its copy is neither forgotten nor dropped.
func TestLoadPutsAside(t *testing.T) {
	const good = `{"n":3,"o":"b","k":["b","c"],"s":[{"g":3,"p":5}]}`
	for name, x := range map[string]struct{ row, owner string }{
		"epoch":          {`{"v":1,"c":{"e":4611686018427387904,"f":"x","n":0,"o":"x","k":["x"]},"r":{"h":true,"n":57}}`, "f"},
		"generation":     {`{"v":1,"c":{"n":4611686018427387904,"o":"x","k":["x"]},"r":{"h":true,"n":57}}`, "f"},
		"no replicas":    {`{"v":1,"c":{"n":1,"o":"x"},"r":{"h":true,"n":57}}`, "f"},
		"what was left":  {`{"v":1,"c":{"n":4611686018427387904,"o":"x","k":["x"]},"r":{"h":true,"n":57},"u":[` + good + `]}`, "b"},
		"both are wrong": {`{"v":1,"c":{"n":1},"r":{"h":true,"n":57},"u":[{"n":1}]}`, "f"},
	} {
		m := knows("r", abc())
		var aside *AsideError
		if err := m.Load(1, []byte(x.row)); !errors.As(err, &aside) || aside.Now.Owner != x.owner ||
			m.Owner(1) != x.owner {
			t.Errorf("%s: %v, owner %s", name, err, m.Owner(1))
			continue
		}
		if len(m.Surplus(began.Add(time.Hour))) > 0 || len(m.Diverged()) != 1 {
			t.Errorf("%s: surplus %v, diverged %v", name, m.Surplus(began.Add(time.Hour)), m.Diverged())
		}
		if err := knows("r", abc()).Load(1, m.Dirty()[1]); err != nil {
			t.Errorf("%s: put aside again: %v", name, err)
		}
	}
	m := knows("f", abc()) // the first owner continues with what it has
	var aside *AsideError
	if err := m.Load(1, []byte(`{"v":1,"c":{"n":1},"r":{"h":true,"n":57}}`)); !errors.As(err, &aside) ||
		!m.Acts(1, afterStart) {
		t.Errorf("%v, acts %v", err, m.Acts(1, afterStart))
	}
	if err := m.Load(1, []byte(`{"v":9}`)); err == nil || errors.As(err, &aside) && aside.Why == nil {
		t.Errorf("a later version: %v", err)
	}
}

// TestWordsAreBounded checks that the number of remembered statements about one slice is
// limited, however many peers send them.
func TestWordsAreBounded(t *testing.T) {
	m := knows("r", abc())
	for i := range 100 {
		from := fmt.Sprint("x", i)
		m.Hear(from, began, SliceReplicas{1, abc().Next(from, []string{from}, 9)})
	}
	if n := len(m.slots[0].words); n != maxSpeakers {
		t.Errorf("%d words of one slice are kept, want %d", n, maxSpeakers)
	}
}
