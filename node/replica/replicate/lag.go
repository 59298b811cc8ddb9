package replicate

import (
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// currentFor is how long committed rows of a slice may take to reach a majority before no further
// fetch starts there. An owner that is cut off holds its leases for seconds, and its successor
// repeats what it fetches meanwhile. So it stops at the first sign: this delay, or that the last
// messages to a majority of the replicas failed.
const currentFor = 500 * time.Millisecond

// Current reports whether committed rows of s reach a majority, so that the next ones can be
// expected to do so too.
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

// rested forgets the failures of a lane that has nothing to send. Such a lane would not notice that
// its peer is reachable again, and Current would stay false.
func (r *Replicator) rested(l *replicaLane) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.failed = 0
}

// Lagging returns the number of owned slices of which a live replica lacks a part of the log.
func (r *Replicator) Lagging(owned []partition.Slice) (n int) {
	type slice struct {
		replicas []string
		head     uint64
	}
	all := make([]slice, len(owned)) // read before taking r.mu, because other calls wait for it
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
