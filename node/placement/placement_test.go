package placement

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

func newTestPlacement(self string) *Placement {
	c := testCharter()
	return New(c.Slices(), c.Replicas, self, time.Minute, false)
}

// shares returns how many slices each member should own.
func shares(t *Placement) map[string]int {
	out := map[string]int{}
	for _, s := range testCharter().Slices() {
		if r := t.Ranked(s); len(r) > 0 {
			out[r[0]]++
		}
	}
	return out
}

// A restart moves nothing: a vanished member keeps its place for orphanAfter.
func TestVanishedMemberKeepsItsPlace(t *testing.T) {
	tr := newTestPlacement("a")
	tr.SetView(members("a", "b", "c"), t0)
	before := shares(tr)
	if tr.SetView(members("a", "c"), t0.Add(time.Second)) {
		t.Fatal("the effective view changed when b vanished")
	}
	if got := shares(tr); got["b"] != before["b"] || got["b"] == 0 {
		t.Fatalf("b has %d slices, had %d", got["b"], before["b"])
	}
	if got := tr.Absent(); len(got) != 1 || got[0].Member.ID != "b" || tr.Alive("b") || !tr.Vanished("b") ||
		!tr.Alive("c") {
		t.Fatalf("absent: %v", got)
	}
	if tr.Expire(t0.Add(time.Minute)) {
		t.Fatal("b was dropped too early")
	}
	if !tr.Expire(t0.Add(61 * time.Second)) {
		t.Fatal("b was not dropped")
	}
	if got := shares(tr); got["b"] != 0 {
		t.Fatalf("b still has %d slices", got["b"])
	}
	tr.SetView(members("a", "b", "c"), t0.Add(2*time.Minute))
	if got := shares(tr); got["b"] != before["b"] {
		t.Fatal("b came back to another place")
	}
	tr.Freeze()
	tr.SetView(members("a"), t0.Add(3*time.Minute))
	tr.Expire(t0.Add(time.Hour))
	if got := shares(tr); got["b"] != before["b"] {
		t.Fatal("a frozen placement follows the view")
	}
}

func TestPlacementSurvivesARestart(t *testing.T) {
	tr := newTestPlacement("a")
	tr.SetView(members("a", "b", "c"), t0)
	b, err := tr.Remember()
	if err != nil {
		t.Fatal(err)
	}
	again := newTestPlacement("a")
	if err := again.Recall(b, t0.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	again.SetView(members("a"), t0.Add(time.Hour)) // the first peer of a restarted swarm
	if d := cmp.Diff(shares(tr), shares(again)); d != "" {
		t.Fatal(d)
	}
	if got := again.Addrs(); len(got) != 2 || got[0] != "/ip4/127.0.0.1/tcp/1/p2p/b" {
		t.Fatalf("addresses: %v", got)
	}
	for name, bad := range map[string]string{"no JSON": "{", "another version": `{"v":9}`,
		"the version before": `{"v":1,"held":"AA=="}`} {
		if err := newTestPlacement("a").Recall([]byte(bad), t0); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// A hundred new identities take over nothing at once. Eight are counted and the rest wait. A larger
// swarm counts as many new ones as it has members.
func TestHundredNewIdentities(t *testing.T) {
	tr := newTestPlacement("a")
	tr.SetView(members("a", "b", "c"), t0)
	all := []string{"a", "b", "c"}
	for i := range 100 {
		all = append(all, fmt.Sprint("new", i))
	}
	count := func() int { _, v := tr.Views(); return v.Len() }
	now := t0.Add(time.Minute)
	tr.SetView(members(all...), now)
	if count() != 11 || tr.NewcomersWaiting() != 92 {
		t.Fatalf("%d count, %d wait", count(), tr.NewcomersWaiting())
	}
	tr.Expire(now.Add(29 * time.Second))
	if count() != 11 {
		t.Fatalf("%d count before half a minute", count())
	}
	tr.Expire(now.Add(31 * time.Second))
	if count() != 22 {
		t.Fatalf("%d count after half a minute", count())
	}
	tr.SetView(members("a", "b", "c"), now.Add(32*time.Second)) // they leave
	if n := len(tr.Absent()); n != 19 {                         // uncounted members are not missed
		t.Fatalf("%d are missed", n)
	}
	late := New(testCharter().Slices(), 3, "d", time.Minute, true)
	late.SetView(members(all...), t0)
	if _, v := late.Views(); v.Len() != 103 {
		t.Fatalf("a stranger sees %d of 103", v.Len())
	}
}
