package node

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Steps of the agreement that come while another is written down are all taken
// before any of them is written, and none returns before it is.
func TestStepsAreWrittenTogether(t *testing.T) {
	n := openNode(t, Options{})
	const steps = 8
	written := func(s partition.Slice) bool {
		_, err := n.store.Meta(metaKeep + s.String())
		if err != nil && !errors.Is(err, store.ErrNotExist) {
			t.Error(err)
		}
		return err == nil
	}
	n.deciding.RLock() // something is written down
	var all sync.WaitGroup
	taken := 0 // under deciding
	for i := range steps {
		s := n.slices[i]
		next := n.quorum.ReplicaSet(s).Next("other", []string{"other"}, 0)
		all.Go(func() {
			err := n.decide(func() {
				for _, before := range n.slices[:steps] {
					if written(before) {
						t.Errorf("step %d of %d: one is written before all are taken", taken, steps)
					}
				}
				n.quorum.Learn(quorum.SliceReplicas{Slice: s, ReplicaSet: next})
				taken++
			})
			if err != nil {
				t.Error(err)
			}
			if !written(s) {
				t.Error("a step returned that is not written")
			}
		})
	}
	for waiting := 0; waiting < steps; time.Sleep(time.Millisecond) {
		n.decisions.Lock()
		waiting = len(n.undecided)
		n.decisions.Unlock()
	}
	n.deciding.RUnlock()
	all.Wait()
	if taken != steps {
		t.Errorf("%d steps taken of %d", taken, steps)
	}
}
