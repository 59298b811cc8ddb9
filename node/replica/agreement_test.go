package replica

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Steps of the agreement that arrive while another one is being written are all run before any of
// them is written. None returns before it is written.
func TestStepsAreWrittenTogether(t *testing.T) {
	n := newRig(t, swarm())
	const steps = 8
	written := func(s partition.Slice) bool {
		_, err := n.o.Store.Meta(MetaSets + s.String())
		if err != nil && !errors.Is(err, store.ErrNotExist) {
			t.Error(err)
		}
		return err == nil
	}
	n.agreement.RLock() // simulates a write under way
	var all sync.WaitGroup
	taken := 0 // guarded by deciding
	for i := range steps {
		s := n.o.Slices[i]
		next := n.o.Quorum.ReplicaSet(s).Next("other", []string{"other"}, 0)
		all.Go(func() {
			err := n.agreement.Decide(func() {
				for _, before := range n.o.Slices[:steps] {
					if written(before) {
						t.Errorf("step %d of %d: one is written before all are taken", taken, steps)
					}
				}
				n.o.Quorum.Learn(quorum.SliceReplicas{Slice: s, ReplicaSet: next})
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
		n.agreement.decisions.Lock()
		waiting = len(n.agreement.undecided)
		n.agreement.decisions.Unlock()
	}
	n.agreement.RUnlock()
	all.Wait()
	if taken != steps {
		t.Errorf("%d steps taken of %d", taken, steps)
	}
}
