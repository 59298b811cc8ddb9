// Package replicate brings the logs of the slices owned here, chunk by chunk, to their other
// replicas, and copies to the peers that are about to keep them (I4, I6).
package replicate

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/placement"
	"github.com/echo-node/echo-node/node/replica/message"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// Limits of replicating.
const (
	MaxReplicateBytes  = 1 << 20   // rows of one message, about
	MaxReplicateChunks = 1024      // slices of one message
	maxChunkBytes      = 256 << 10 // rows of one chunk, about
	replicateBackoff   = 5 * time.Second
	replicateLater     = 500 * time.Millisecond // a replica that cannot take a slice yet is asked again
)

// messageSlack is what a message between peers has beside rows or records. The
// line under it does not compile when one of either would not fit a frame.
const (
	messageSlack = 256 << 10
	_            = uint(wire.MaxFrame - messageSlack - max(store.MaxLogChunkBytes, store.MaxRecordBytes))
)

// Options are what a Replicator works with. All are required.
type Options struct {
	Self      string // this peer
	Quorum    *quorum.Machine
	Store     *db.Store
	Placement *placement.Placement
	Peers     message.Peers
	Logger    *slog.Logger
}

// Words takes the word of a peer about slices, as far as it counts. The error is the store's alone.
type Words interface {
	Hear(from string, words []quorum.SliceReplicas) error
}

// Replicator brings the logs of the slices owned here to their other replicas, and
// copies to those who are about to keep (I4, I6), and knows what has arrived.
//
// One lane a peer, one message at a time: what is committed while one is under
// way goes with the next, so that replicas, too, sync once for many.
type Replicator struct {
	o Options

	mu       sync.Mutex
	slices   map[partition.Slice]*replication
	lanes    map[string]*replicaLane
	progress chan struct{} // closed when something arrived
	ctx      context.Context
	running  sync.WaitGroup
	words    Words
	fail     chan error
}

// replication is one owned slice.
type replication struct {
	to    map[string]*copyProgress // replicas and learners
	learn map[string]bool          // about to keep
	// mark is the oldest position known not to be at a majority, since when it is
	// here; the zero time when there is none.
	mark  uint64
	since time.Time
	waits []commitWait
}

// commitWait is closed when the log is at a majority up to pos.
type commitWait struct {
	pos  uint64
	done chan struct{}
}

// copyProgress is how far a peer's copy is, as it said last.
type copyProgress struct {
	known bool   // it said so under the present ReplicaSet
	head  uint64 // it has the log durably up to there
	// A copy under way: the pages from cursor on, then, paged, the log after
	// copied, the end of which makes the copy whole: pages are not of one moment.
	copying, paged bool
	cursor         []byte
	copied         uint64
}

// reaches says whether the copy is whole and has the log up to pos. p may be nil.
func (p *copyProgress) reaches(pos uint64) bool {
	return p != nil && p.known && !p.copying && p.head >= pos
}

type replicaLane struct {
	peer   string
	todo   map[partition.Slice]bool
	wake   chan struct{}
	failed int // in a row
}

// New makes the Replicator of a peer that owns nothing yet: Changed tells it what it owns.
func New(o Options) *Replicator {
	return &Replicator{o: o, slices: map[partition.Slice]*replication{}, lanes: map[string]*replicaLane{},
		progress: make(chan struct{}), fail: make(chan error, 1)}
}

// Run works until ctx ends or the store fails.
func (r *Replicator) Run(ctx context.Context, words Words) error {
	ctx, cancel := context.WithCancel(ctx)
	defer r.running.Wait()
	defer cancel()
	r.mu.Lock()
	r.ctx, r.words = ctx, words
	for _, l := range r.lanes {
		r.start(l)
	}
	r.mu.Unlock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-r.fail:
		return err
	}
}

// start runs a lane. r.mu is held.
func (r *Replicator) start(l *replicaLane) {
	ctx := r.ctx
	if ctx == nil || ctx.Err() != nil {
		return
	}
	r.running.Go(func() {
		if err := r.drive(ctx, l); err != nil && ctx.Err() == nil {
			select {
			case r.fail <- err:
			default:
			}
		}
	})
}

func (r *Replicator) lane(peer string) *replicaLane {
	l := r.lanes[peer]
	if l == nil {
		l = &replicaLane{peer: peer, todo: map[partition.Slice]bool{}, wake: make(chan struct{}, 1)}
		r.lanes[peer] = l
		r.start(l)
	}
	return l
}

func (l *replicaLane) add(s partition.Slice) {
	l.todo[s] = true
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Logged is store.Options.Logged: the log of s has grown, durably.
func (r *Replicator) Logged(s partition.Slice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if sh := r.slices[s]; sh != nil {
		r.follow(s, sh)
		for peer := range sh.to {
			r.lane(peer).add(s)
		}
	}
}

// follow moves the mark of s. r.mu is held.
func (r *Replicator) follow(s partition.Slice, sh *replication) {
	if !sh.since.IsZero() && !r.has(s, sh.mark) {
		return
	}
	if head := r.o.Store.Log.LogHead(s); r.has(s, head) {
		sh.since = time.Time{}
	} else {
		sh.mark, sh.since = head, time.Now()
	}
}

// Committed is closed when the log of s as it is now is at a majority of its
// replicas, or s is another's; nil when that is so already.
func (r *Replicator) Committed(s partition.Slice) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	sh, head := r.slices[s], r.o.Store.Log.LogHead(s)
	if sh == nil || r.has(s, head) {
		return nil
	}
	w := commitWait{pos: head, done: make(chan struct{})}
	sh.waits = append(sh.waits, w)
	return w.done
}

// release tells those whose position has arrived; all of them when the slice is
// another's. r.mu is held.
func (r *Replicator) release(s partition.Slice, sh *replication, all bool) {
	sh.waits = slices.DeleteFunc(sh.waits, func(w commitWait) bool {
		if !all && !r.has(s, w.pos) {
			return false
		}
		close(w.done)
		return true
	})
}

// Changed follows a new ReplicaSet of s: every replica is asked anew where it stands.
func (r *Replicator) Changed(s partition.Slice) {
	c := r.o.Quorum.ReplicaSet(s)
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.Owner != r.o.Self {
		if sh := r.slices[s]; sh != nil {
			r.release(s, sh, true)
		}
		delete(r.slices, s)
		r.tell()
		return
	}
	sh := r.slices[s]
	if sh == nil {
		sh = &replication{learn: map[string]bool{}}
		r.slices[s] = sh
	}
	sh.to, sh.since = map[string]*copyProgress{}, time.Time{} // until its log grows: nothing of it is this peer's yet
	for _, k := range c.Replicas {
		if delete(sh.learn, k); k != r.o.Self {
			sh.to[k] = &copyProgress{}
		}
	}
	for k := range sh.learn {
		sh.to[k] = &copyProgress{}
	}
	r.release(s, sh, false) // there may be no other replica any more
	for peer := range sh.to {
		r.lane(peer).add(s)
	}
	r.tell()
}

// SetLearners says who is about to keep s, beside its replicas.
func (r *Replicator) SetLearners(s partition.Slice, learners []string) {
	if len(learners) > 0 && !r.HasLearners(s) {
		// Before a copy begins: what it misses is in the log. And before r.mu: the
		// store may call logged under the slice's lock.
		r.o.Store.Log.SetLogged(true, s)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	sh := r.slices[s]
	if sh == nil {
		return
	}
	want := map[string]bool{}
	for _, id := range learners {
		want[id] = true
		if sh.to[id] == nil {
			sh.learn[id], sh.to[id] = true, &copyProgress{}
			r.lane(id).add(s)
		}
	}
	for id := range sh.learn {
		if !want[id] {
			delete(sh.learn, id)
			delete(sh.to, id)
		}
	}
}

// Counts says whether peer keeps s or is about to.
func (r *Replicator) Counts(s partition.Slice, peer string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	sh := r.slices[s]
	return sh != nil && sh.to[peer] != nil
}

// HasLearners says whether somebody is about to keep s.
func (r *Replicator) HasLearners(s partition.Slice) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	sh := r.slices[s]
	return sh != nil && len(sh.learn) > 0
}

// WithLearners are the slices that somebody is about to keep.
func (r *Replicator) WithLearners() map[partition.Slice]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[partition.Slice]bool{}
	for s, sh := range r.slices {
		if len(sh.learn) > 0 {
			out[s] = true
		}
	}
	return out
}

// At is up to where peer has s; false when it has no whole copy.
func (r *Replicator) At(s partition.Slice, peer string) (uint64, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sh := r.slices[s]
	if sh == nil || sh.to[peer] == nil || !sh.to[peer].known || sh.to[peer].copying {
		return 0, false
	}
	return sh.to[peer].head, true
}

// tell wakes who waits for progress. r.mu is held.
func (r *Replicator) tell() {
	close(r.progress)
	r.progress = make(chan struct{})
}

// arrived says whether a majority of the replicas of s, this peer among them, has
// its log up to pos.
func (r *Replicator) arrived(s partition.Slice, pos uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.has(s, pos)
}

// has is arrived with r.mu held.
func (r *Replicator) has(s partition.Slice, pos uint64) bool {
	c := r.o.Quorum.ReplicaSet(s)
	if c.Owner != r.o.Self {
		return false
	}
	sh, have := r.slices[s], 1
	for _, k := range c.Replicas {
		if k != r.o.Self && sh != nil && sh.to[k].reaches(pos) {
			have++
		}
	}
	return have >= c.Quorum()
}

// Await waits until a majority has each slice's log up to its position, and
// answers those of which it is not so when ctx ends or the slice is lost.
func (r *Replicator) Await(ctx context.Context, heads map[partition.Slice]uint64) (late map[partition.Slice]bool) {
	for {
		r.mu.Lock()
		progress := r.progress
		r.mu.Unlock()
		late = nil
		for s, pos := range heads {
			if !r.arrived(s, pos) {
				if late == nil {
					late = map[partition.Slice]bool{}
				}
				late[s] = true
			}
		}
		if late == nil {
			return nil
		}
		owned := false
		for s := range late {
			owned = owned || r.o.Quorum.Owner(s) == r.o.Self
		}
		if !owned {
			return late
		}
		select {
		case <-ctx.Done():
			return late
		case <-progress:
		}
	}
}

// RetryAll has every lane look at everything: a peer is back.
func (r *Replicator) RetryAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s, sh := range r.slices {
		for peer := range sh.to {
			r.lane(peer).add(s)
		}
	}
	for _, l := range r.lanes {
		l.failed = 0
	}
}

// Doubt has peer asked anew where its copy of s stands: it says that it is not whole.
func (r *Replicator) Doubt(s partition.Slice, peer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if sh := r.slices[s]; sh != nil && sh.to[peer] != nil && sh.to[peer].known && !sh.to[peer].copying {
		*sh.to[peer] = copyProgress{}
		r.lane(peer).add(s)
	}
}

// Progress is closed when something has arrived at a replica, or the replicas of a slice have changed.
func (r *Replicator) Progress() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.progress
}
