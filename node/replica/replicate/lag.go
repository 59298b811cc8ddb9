package replicate

import (
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// currentFor is how long what is committed in a slice may be on its way to a
// majority before no further fetch begins there. An owner that is cut off counts
// on its leases for seconds; what it fetches meanwhile is fetched again by its
// successor, so it had better stop at the first sign: this one, or that nothing of
// any slice has got through to a majority the last time that it was sent.
const currentFor = 500 * time.Millisecond

// Current says whether what was committed in s reaches a majority, and what is
// Committed next may be expected to.
func (r *Replicator) Current(s partition.Slice) bool {
	c := r.o.Quorum.ReplicaSet(s)
	r.mu.Lock()
	defer r.mu.Unlock()
	if sh := r.slices[s]; sh != nil && !sh.since.IsZero() && time.Since(sh.since) >= currentFor {
		return false
	}
	reached := 1
	for _, k := range c.Replicas {
		if l := r.lanes[k]; k != r.o.Self && (l == nil || l.failed == 0) {
			reached++
		}
	}
	return reached >= c.Quorum()
}

// rested forgets the failures of a lane that has nothing to send: it would not
// find out that its peer is reached again, and fresh would wait for that.
func (r *Replicator) rested(l *replicaLane) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.failed = 0
}

// Lagging counts the slices of which a live replica does not have all of the log.
func (r *Replicator) Lagging(owned []partition.Slice) (n int) {
	type slice struct {
		replicas []string
		head     uint64
	}
	all := make([]slice, len(owned)) // read before r.mu is held: others wait for that
	for i, s := range owned {
		all[i] = slice{r.o.Quorum.ReplicaSet(s).Replicas, r.o.Store.Log.LogHead(s)}
	}
	live, _ := r.o.Placement.Views()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, s := range owned {
		sh := r.slices[s]
		if slices.ContainsFunc(all[i].replicas, func(k string) bool {
			if k == r.o.Self {
				return false
			}
			if sh != nil && sh.to[k].reaches(all[i].head) {
				return false
			}
			_, alive := live.Find(k)
			return alive
		}) {
			n++
		}
	}
	return n
}
