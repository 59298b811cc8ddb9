package node

import (
	"fmt"
	"math"
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

func newTestPlacement(self string) *placement {
	c := testCharter()
	return newPlacement(c.Slices(), c.Replicas, self, time.Minute, false)
}

// shares counts the slices that each member should own.
func shares(t *placement) map[string]int {
	out := map[string]int{}
	for _, s := range testCharter().Slices() {
		if r := t.ranked(s); len(r) > 0 {
			out[r[0]]++
		}
	}
	return out
}

// A restart moves nothing: a vanished member keeps its place for orphanAfter.
func TestVanishedMemberKeepsItsPlace(t *testing.T) {
	tr := newTestPlacement("a")
	tr.setView(members("a", "b", "c"), t0)
	before := shares(tr)
	if tr.setView(members("a", "c"), t0.Add(time.Second)) {
		t.Fatal("the effective view changed when b vanished")
	}
	if got := shares(tr); got["b"] != before["b"] || got["b"] == 0 {
		t.Fatalf("b has %d slices, had %d", got["b"], before["b"])
	}
	if got := tr.absent(); len(got) != 1 || got[0].Member.ID != "b" || tr.alive("b") || !tr.vanished("b") ||
		!tr.alive("c") {
		t.Fatalf("absent: %v", got)
	}
	if tr.expire(t0.Add(time.Minute)) {
		t.Fatal("b was dropped too early")
	}
	if !tr.expire(t0.Add(61 * time.Second)) {
		t.Fatal("b was not dropped")
	}
	if got := shares(tr); got["b"] != 0 {
		t.Fatalf("b still has %d slices", got["b"])
	}
	tr.setView(members("a", "b", "c"), t0.Add(2*time.Minute))
	if got := shares(tr); got["b"] != before["b"] {
		t.Fatal("b came back to another place")
	}
	tr.freeze()
	tr.setView(members("a"), t0.Add(3*time.Minute))
	tr.expire(t0.Add(time.Hour))
	if got := shares(tr); got["b"] != before["b"] {
		t.Fatal("a frozen placement follows the view")
	}
}

func TestPlacementSurvivesARestart(t *testing.T) {
	tr := newTestPlacement("a")
	tr.setView(members("a", "b", "c"), t0)
	b, err := tr.remember()
	if err != nil {
		t.Fatal(err)
	}
	again := newTestPlacement("a")
	if err := again.recall(b, t0.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	again.setView(members("a"), t0.Add(time.Hour)) // the first of a restarted swarm
	if d := cmp.Diff(shares(tr), shares(again)); d != "" {
		t.Fatal(d)
	}
	if got := again.addrs(); len(got) != 2 || got[0] != "/ip4/127.0.0.1/tcp/1/p2p/b" {
		t.Fatalf("addresses: %v", got)
	}
	for name, bad := range map[string]string{"no JSON": "{", "another version": `{"v":9}`,
		"the version before": `{"v":1,"held":"AA=="}`} {
		if err := newTestPlacement("a").recall([]byte(bad), t0); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// A hundred new identities at once take over nothing at once: eight come to
// count, the rest wait, and a swarm that has grown lets in as many as it is.
func TestHundredNewIdentities(t *testing.T) {
	tr := newTestPlacement("a")
	tr.setView(members("a", "b", "c"), t0)
	all := []string{"a", "b", "c"}
	for i := range 100 {
		all = append(all, fmt.Sprint("new", i))
	}
	count := func() int { _, v := tr.views(); return v.Len() }
	now := t0.Add(time.Minute)
	tr.setView(members(all...), now)
	if count() != 11 || tr.newcomersWaiting() != 92 {
		t.Fatalf("%d count, %d wait", count(), tr.newcomersWaiting())
	}
	tr.expire(now.Add(29 * time.Second))
	if count() != 11 {
		t.Fatalf("%d count before half a minute", count())
	}
	tr.expire(now.Add(31 * time.Second))
	if count() != 22 {
		t.Fatalf("%d count after half a minute", count())
	}
	tr.setView(members("a", "b", "c"), now.Add(32*time.Second)) // they leave
	if n := len(tr.absent()); n != 19 {                         // who never counted is not missed
		t.Fatalf("%d are missed", n)
	}
	late := newPlacement(testCharter().Slices(), 3, "d", time.Minute, true)
	late.setView(members(all...), t0)
	if _, v := late.views(); v.Len() != 103 {
		t.Fatalf("a stranger sees %d of 103", v.Len())
	}
}

// A swarm at rest costs its peers next to nothing, however many slices it has:
// the planner looks at all of them four times a second.
func TestManySlicesAtRest(t *testing.T) {
	n := openNode(t, Options{Partition: partition.ModeGeo})
	if len(n.slices) < 10_000 {
		t.Fatalf("%d slices", len(n.slices))
	}
	if moves := n.plan(time.Now()); len(moves) != 0 {
		t.Fatalf("%d moves at rest", len(moves))
	}
	const few = 100
	if a := leastAllocs(few, func() { n.plan(time.Now()) }); a > few {
		t.Errorf("%.0f allocations to find that %d slices stay where they are", a, len(n.slices))
	}
	met := meetings{}
	if a := leastAllocs(few, func() {
		if err := n.adoptOrphans(time.Now(), met); err != nil {
			t.Error(err)
		}
	}); a > few {
		t.Errorf("%.0f allocations to find that no slice is an orphan", a)
	}
	if who := n.quorum.Replicas(); len(who) != 1 || who[0] != n.id {
		t.Errorf("kept by %v", who)
	}
	give(t, n, n.slices[7], "other")
	if who := n.quorum.Replicas(); len(who) != 2 {
		t.Errorf("kept by %v", who)
	}
}

// leastAllocs is how often f allocates. All of the process is counted, so it is the least of many runs: in one of
// them the rest of the peer does nothing. It ends with the first run that has no more than few.
func leastAllocs(few float64, f func()) float64 {
	least := math.Inf(1)
	for n := 0; n < 500 && least > few; n++ {
		least = min(least, testing.AllocsPerRun(1, f))
	}
	return least
}
