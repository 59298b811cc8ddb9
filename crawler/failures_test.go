package crawler

import (
	"fmt"
	"testing"
)

// The newest failures are kept, newest first, and at most maxFailures.
func TestFailuresAreARing(t *testing.T) {
	for _, n := range []int{0, 1, maxFailures - 1, maxFailures, maxFailures + 1, 3*maxFailures + 7} {
		c := &Crawler{}
		for i := range n {
			c.counts.failure(Failure{Reason: fmt.Sprint(i)})
		}
		got := c.Failures()
		if len(got) != min(n, maxFailures) {
			t.Fatalf("%d of %d are kept", len(got), n)
		}
		for i, f := range got {
			if f.Reason != fmt.Sprint(n-1-i) {
				t.Fatalf("of %d, number %d is %s", n, i, f.Reason)
			}
		}
	}
}
