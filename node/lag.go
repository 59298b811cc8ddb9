package node

import (
	"time"

	"github.com/echo-node/echo-node/partition"
)

// currentFor is how long what is committed in a slice may be on its way to a
// majority before no further fetch begins there. An owner that is cut off counts
// on its leases for seconds; what it fetches meanwhile is fetched again by its
// successor, so it had better stop at the first sign: this one, or that nothing of
// any slice has got through to a majority the last time that it was sent.
const currentFor = 500 * time.Millisecond

// current says whether what was committed in s reaches a majority, and what is
// committed next may be expected to.
func (r *replicator) current(s partition.Slice) bool {
	c := r.n.quorum.ReplicaSet(s)
	r.mu.Lock()
	defer r.mu.Unlock()
	if sh := r.slices[s]; sh != nil && !sh.since.IsZero() && time.Since(sh.since) >= currentFor {
		return false
	}
	reached := 1
	for _, k := range c.Replicas {
		if l := r.lanes[k]; k != r.n.id && (l == nil || l.failed == 0) {
			reached++
		}
	}
	return reached >= c.Quorum()
}

// rested forgets the failures of a lane that has nothing to send: it would not
// find out that its peer is reached again, and fresh would wait for that.
func (r *replicator) rested(l *replicaLane) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.failed = 0
}
