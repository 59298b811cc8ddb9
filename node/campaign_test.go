package node

import (
	"testing"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Who is told of a lease comes back when that has run out; who met a rival waits
// longer each time, to a limit, and never as long as another by rule.
func TestRetries(t *testing.T) {
	r, now := retries{}, time.Now()
	const leased, rival = partition.Slice(1), partition.Slice(2)
	longest := time.Duration(0)
	for range 10 {
		r.tried([]partition.Slice{leased, rival}, map[partition.Slice]time.Duration{leased: 700 * time.Millisecond}, now)
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
