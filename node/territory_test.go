package node

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/partition"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func testCharter() partition.Charter {
	c := partition.DefaultCharter("test", "founder")
	c.SliceBits = 6
	return c
}

func members(ids ...string) partition.View {
	var ms []partition.Member
	for _, id := range ids {
		ms = append(ms, partition.Member{ID: id, Capacity: 1, Addrs: []string{"/ip4/127.0.0.1/tcp/1"}})
	}
	return partition.NewView(ms)
}

// A restart moves nothing: a vanished member keeps its slices for orphanAfter.
func TestVanishedMemberKeepsItsSlices(t *testing.T) {
	tr := newTerritory(testCharter(), "a", time.Minute)
	tr.setView(members("a", "b", "c"), t0)
	before := tr.assignment()
	if tr.setView(members("a", "c"), t0.Add(time.Second)) {
		t.Fatal("the effective view changed when b vanished")
	}
	if got := tr.assignment(); len(got["b"]) != len(before["b"]) {
		t.Fatalf("b has %d slices, had %d", len(got["b"]), len(before["b"]))
	}
	if got := tr.absent(); len(got) != 1 || got[0].Member.ID != "b" {
		t.Fatalf("absent: %v", got)
	}
	if tr.expire(t0.Add(time.Minute)) {
		t.Fatal("b was dropped too early")
	}
	if !tr.expire(t0.Add(61 * time.Second)) {
		t.Fatal("b was not dropped")
	}
	if got := tr.assignment(); len(got["b"]) != 0 {
		t.Fatalf("b still has %d slices", len(got["b"]))
	}
	tr.setView(members("a", "b", "c"), t0.Add(2*time.Minute))
	if got := tr.assignment(); !slices.Equal(got["b"], before["b"]) {
		t.Fatal("b came back to other slices")
	}
}

// Only a peer that holds, owns and is not giving a slice away acts in it.
func TestActsOnlyWhereHeldAndOwned(t *testing.T) {
	tr := newTerritory(testCharter(), "a", time.Minute)
	tr.setView(members("a"), t0)
	if len(tr.acting()) != 0 || len(tr.awaited()) != 64 {
		t.Fatalf("before adoption: acts in %d, awaits %d", len(tr.acting()), len(tr.awaited()))
	}
	tr.adopt(tr.awaited()...)
	if len(tr.acting()) != 64 {
		t.Fatalf("acts in %d of 64", len(tr.acting()))
	}
	tr.setView(members("a", "b"), t0)
	kept := tr.keptFor("b")
	if len(kept) == 0 || len(kept) == 64 || len(tr.acting())+len(kept) != 64 {
		t.Fatalf("acts in %d, keeps %d for b", len(tr.acting()), len(kept))
	}
	s := kept[0]
	if tr.acts(s) || !tr.holds(s) {
		t.Fatal("acts in a slice of b, or forgot it")
	}
	if tr.released(s, "b") || !tr.release(s) {
		t.Fatal("cannot release")
	}
	if !tr.release(s) || !tr.released(s, "b") {
		t.Fatal("a second release is not known as one")
	}
	if tr.release(tr.acting()[0]) {
		t.Fatal("released a slice of its own")
	}
	tr.setView(members("a"), t0)
	tr.expire(t0.Add(2 * time.Minute)) // b is orphaned
	if !tr.acts(s) {
		t.Fatal("b went before it took over, and nobody acts in its slice")
	}
}

func TestTerritorySurvivesARestart(t *testing.T) {
	tr := newTerritory(testCharter(), "a", time.Minute)
	tr.setView(members("a", "b", "c"), t0)
	tr.adopt(tr.awaited()...)
	b, err := tr.remember()
	if err != nil {
		t.Fatal(err)
	}
	again := newTerritory(testCharter(), "a", time.Minute)
	if err := again.recall(b, t0.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	again.setView(members("a"), t0.Add(time.Hour)) // the first of a restarted swarm
	if !slices.Equal(again.acting(), tr.acting()) {
		t.Fatalf("acts in %d slices, did in %d", len(again.acting()), len(tr.acting()))
	}
	if got := again.addrs(); len(got) != 2 || got[0] != "/ip4/127.0.0.1/tcp/1/p2p/b" {
		t.Fatalf("addresses: %v", got)
	}
	for name, bad := range map[string]string{"no JSON": "{", "another version": `{"v":9}`, "another charter": `{"v":1,"held":"AA=="}`} {
		if err := newTerritory(testCharter(), "a", time.Minute).recall([]byte(bad), t0); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// In whatever order peers see joins, leaves and hand-overs, no two peers with
// the same view act in one slice, and with a completed hand-over each slice has
// exactly one peer that acts.
func TestTerritoriesNeverOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := []string{"a", "b", "c", "d"}
		ts := map[string]*territory{}
		alive := []string{"a"}
		ts["a"] = newTerritory(testCharter(), "a", time.Minute)
		ts["a"].setView(members("a"), t0)
		ts["a"].adopt(ts["a"].awaited()...)
		now := t0
		for step := range rapid.IntRange(1, 8).Draw(t, "steps") {
			now = now.Add(2 * time.Minute)
			if id := ids[rapid.IntRange(0, 3).Draw(t, fmt.Sprint("peer", step))]; !slices.Contains(alive, id) {
				alive = append(alive, id)
				ts[id] = newTerritory(testCharter(), id, time.Minute)
			}
			for _, id := range rapid.Permutation(alive).Draw(t, "order") {
				ts[id].setView(members(alive...), now)
			}
			for _, taker := range rapid.Permutation(alive).Draw(t, "takers") {
				for _, giver := range alive {
					for _, s := range ts[giver].keptFor(taker) {
						if giver == taker {
							continue
						}
						if rapid.IntRange(0, 3).Draw(t, "now?") == 0 {
							continue // another time
						}
						if !ts[giver].release(s) {
							t.Fatal("cannot release what is kept for another")
						}
						ts[taker].adopt(s)
						ts[giver].drop(s)
					}
				}
			}
			for _, s := range ts["a"].slices {
				var acting []string
				for _, id := range alive {
					if ts[id].acts(s) {
						acting = append(acting, id)
					}
				}
				if len(acting) > 1 {
					t.Fatalf("%v all act in %s", acting, s)
				}
			}
		}
	})
}
