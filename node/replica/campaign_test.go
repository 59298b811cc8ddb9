package replica

import (
	"testing"
	"time"

	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/node/replica/replicate"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// No site waits in slices that were never written to. So a peer campaigns first for slices that
// have rows, and waits longer for empty ones.
func TestEmptySlicesCanWait(t *testing.T) {
	n := newRig(t, swarm())
	k := mustKey(t, "http://127.99.0.1:9009/")
	holds := n.o.Store.SliceOf(k)
	n.o.Store.Log.SetLogged(true, holds)
	if _, err := n.o.Store.Queue.Admit([]store.Admission{{Key: k}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	n.enter("here")
	var all []partition.Slice
	for _, s := range n.o.Slices {
		if s != holds {
			all = append(all, s)
		}
	}
	used, empty := replicate.InUse(n.o.Store, append(all, holds))
	if len(used) != 1 || used[0] != holds || len(empty) != len(all) {
		t.Fatalf("%d used, %d empty of %d", len(used), len(empty), len(all)+1)
	}
	dead := quorum.ReplicaSet{Owner: "dead", Replicas: []string{"dead", "here", n.o.Self}}
	for what, c := range map[string]quorum.ReplicaSet{"a dead owner": dead,
		"its own": {Owner: n.o.Self, Replicas: []string{n.o.Self}}} {
		first, later := n.elections.patience(holds, c, false), n.elections.patience(all[0], c, false)
		if later-first != campaignEmpty {
			t.Errorf("%s: patience %s where something is, %s where nothing is", what, first, later)
		}
	}
}

// A candidate that is refused because of a lease tries again when the lease has run out. A
// candidate that met a rival waits longer each time, up to a limit, plus a random time.
func TestRetries(t *testing.T) {
	r, now := retries{}, time.Now()
	const leased, rival = partition.Slice(1), partition.Slice(2)
	longest := time.Duration(0)
	for range 10 {
		r.tried([]partition.Slice{leased, rival}, map[partition.Slice]time.Duration{leased: 700 * time.Millisecond},
			now)
		if got := r[leased].at.Sub(now); got != 700*time.Millisecond {
			t.Fatalf("again in %s where a lease lasts 700ms", got)
		}
		wait := r[rival].at.Sub(now)
		if least := min(max(longest, campaignEvery), campaignBackoff); wait < least || wait > 2*campaignBackoff {
			t.Fatalf("again in %s, want %s to %s", wait, least, 2*campaignBackoff)
		}
		longest = r[rival].wait
	}
	if longest != campaignBackoff {
		t.Errorf("the wait ends at %s, want %s", longest, campaignBackoff)
	}
	r.forget(now.Add(time.Second))
	if len(r) != 2 {
		t.Error("forgotten too early")
	}
	if r.forget(now.Add(time.Minute)); len(r) > 0 {
		t.Error("never forgotten")
	}
}

// Campaigns run concurrently, each slice in one at a time. Campaigns for empty slices start only
// when no other campaign runs.
func TestCampaignsBesideEachOther(t *testing.T) {
	c := &campaigns{after: retries{}, running: map[partition.Slice]bool{}}
	now := time.Now()
	if got := c.begin(c.free([]partition.Slice{1, 2}, now), []partition.Slice{9}); len(got) != 2 {
		t.Fatalf("%v", got)
	}
	if got := c.begin(c.free([]partition.Slice{1, 2, 3}, now), []partition.Slice{9}); len(got) != 1 || got[0] != 3 {
		t.Fatalf("a slice waits for the campaign of another, or has two: %v", got)
	}
	if got := c.begin(nil, []partition.Slice{9}); len(got) > 0 {
		t.Fatalf("empty slices beside others: %v", got)
	}
	c.end([]partition.Slice{1, 2, 3}, nil, now)
	if got := c.free([]partition.Slice{1, 2, 3}, now); len(got) > 0 {
		t.Fatalf("again at once: %v", got)
	}
	if got := c.begin(nil, []partition.Slice{9}); len(got) != 1 {
		t.Fatalf("empty slices, when nothing runs: %v", got)
	}
}
