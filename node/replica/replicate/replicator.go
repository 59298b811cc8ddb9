// Package replicate sends the logs of owned slices, chunk by chunk, to their other replicas. It
// sends copies to peers that are about to become replicas (I4, I6).
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

// Limits of replication.
const (
	MaxReplicateBytes  = 1 << 20   // bytes of rows in one message, about
	MaxReplicateChunks = 1024      // slices in one message
	maxChunkBytes      = 256 << 10 // bytes of rows in one chunk, about
	replicateBackoff   = 5 * time.Second
	replicateLater     = 500 * time.Millisecond // retry delay for a replica that was not ready
)

// messageSlack is the space that a message between peers needs beside rows or records. The line
// below does not compile if a log chunk or a record plus this space would not fit a frame.
const (
	messageSlack = 256 << 10
	_            = uint(wire.MaxFrame - messageSlack - max(store.MaxLogChunkBytes, store.MaxRecordBytes))
)

// Options are the arguments of New. All are required.
type Options struct {
	Self      string // this peer
	Quorum    *quorum.Machine
	Store     *db.Store
	Placement *placement.Placement
	Peers     message.Peers
	Logger    *slog.Logger
}

// Words applies the reports of a peer about slices, as far as they count. The error comes from the
// store alone.
type Words interface {
	Hear(from string, words []quorum.SliceReplicas) error
}

// Replicator sends the logs of owned slices to their other replicas. It sends copies to learners,
// which are peers that are about to become replicas (I4, I6). It tracks what has arrived.
//
// Each peer has one lane, which sends one message at a time. Rows committed while a message is
// under way go with the next one. So the replicas, too, sync once for many commits.
type Replicator struct {
	o Options

	mu       sync.Mutex
	slices   map[partition.Slice]*replication
	lanes    map[string]*replicaLane
	progress chan struct{} // closed when something arrives
	ctx      context.Context
	running  sync.WaitGroup
	words    Words
	fail     chan error
}

// replication is the state of one owned slice.
type replication struct {
	to    map[string]*copyProgress // replicas and learners
	learn map[string]bool          // learners
	// mark is the oldest position that is not known to be at a majority, and since is the time from
	// which the log has it. since is zero if there is no such position.
	mark  uint64
	since time.Time
	waits []commitWait
}

// commitWait is one wait of Committed. done is closed when a majority has the log up to pos.
type commitWait struct {
	pos  uint64
	done chan struct{}
}

// copyProgress is the state of a peer's copy, as the peer last reported it.
type copyProgress struct {
	known bool   // the peer reported it under the present ReplicaSet
	head  uint64 // the peer has the log durably up to here
	// The state of a copy under way. First come the pages from cursor on. Then paged is true and
	// the log after copied is sent. Pages are read at different moments, so only the end of that
	// log makes the copy whole.
	copying, paged bool
	cursor         []byte
	copied         uint64
}

// reaches reports whether the copy is whole and has the log up to pos. p may be nil.
func (p *copyProgress) reaches(pos uint64) bool {
	return p != nil && p.known && !p.copying && p.head >= pos
}

// replicaLane sends the messages for one peer.
type replicaLane struct {
	peer   string
	todo   map[partition.Slice]bool
	wake   chan struct{}
	failed int // failures in a row
}

// New returns the Replicator of a peer that owns nothing yet. Changed tells it about owned slices.
func New(o Options) *Replicator {
	return &Replicator{o: o, slices: map[partition.Slice]*replication{}, lanes: map[string]*replicaLane{},
		progress: make(chan struct{}), fail: make(chan error, 1)}
}

// Run replicates until ctx ends or the store fails.
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

// lane returns the lane of peer and starts it if it is new. r.mu is held.
func (r *Replicator) lane(peer string) *replicaLane {
	l := r.lanes[peer]
	if l == nil {
		l = &replicaLane{peer: peer, todo: map[partition.Slice]bool{}, wake: make(chan struct{}, 1)}
		r.lanes[peer] = l
		r.start(l)
	}
	return l
}

// add puts s on the lane's list and wakes the lane. The Replicator's mu is held.
func (l *replicaLane) add(s partition.Slice) {
	l.todo[s] = true
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Logged is store.Options.Logged: the log of s has grown and is durable.
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

// follow advances the mark of s. r.mu is held.
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

// Committed returns a channel that is closed when a majority of the replicas has the present log of
// s, or when another peer owns s. It returns nil if that is already so.
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

// release closes the waits whose position has arrived, or all waits if another peer owns the slice.
// r.mu is held.
func (r *Replicator) release(s partition.Slice, sh *replication, all bool) {
	sh.waits = slices.DeleteFunc(sh.waits, func(w commitWait) bool {
		if !all && !r.has(s, w.pos) {
			return false
		}
		close(w.done)
		return true
	})
}

// Changed applies a new ReplicaSet of s. It asks every replica for its progress again.
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
	sh.to, sh.since = map[string]*copyProgress{}, time.Time{} // no row is this peer's yet
	for _, k := range c.Replicas {
		if delete(sh.learn, k); k != r.o.Self {
			sh.to[k] = &copyProgress{}
		}
	}
	for k := range sh.learn {
		sh.to[k] = &copyProgress{}
	}
	r.release(s, sh, false) // there may be no other replica left
	for peer := range sh.to {
		r.lane(peer).add(s)
	}
	r.tell()
}

// SetLearners sets the peers that are about to become replicas of s.
func (r *Replicator) SetLearners(s partition.Slice, learners []string) {
	if len(learners) > 0 && !r.HasLearners(s) {
		// Do this before a copy starts, so that the log has what the copy misses. Do it before
		// taking r.mu, because the store may call Logged under the slice's lock.
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

// Counts reports whether peer is a replica or a learner of s.
func (r *Replicator) Counts(s partition.Slice, peer string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	sh := r.slices[s]
	return sh != nil && sh.to[peer] != nil
}

// HasLearners reports whether s has a learner.
func (r *Replicator) HasLearners(s partition.Slice) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	sh := r.slices[s]
	return sh != nil && len(sh.learn) > 0
}

// WithLearners returns the slices that have learners.
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

// At returns the log position up to which peer has s. It returns false if peer has no whole copy.
func (r *Replicator) At(s partition.Slice, peer string) (uint64, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sh := r.slices[s]
	if sh == nil || sh.to[peer] == nil || !sh.to[peer].known || sh.to[peer].copying {
		return 0, false
	}
	return sh.to[peer].head, true
}

// tell wakes all that wait for progress. r.mu is held.
func (r *Replicator) tell() {
	close(r.progress)
	r.progress = make(chan struct{})
}

// arrived reports whether a majority of the replicas of s, including this peer, has the log up to
// pos.
func (r *Replicator) arrived(s partition.Slice, pos uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.has(s, pos)
}

// has is arrived for a caller that holds r.mu.
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

// Await waits until a majority has each slice's log up to its position. It returns the slices that
// are late when ctx ends or when none of them is owned any more.
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

// RetryAll makes every lane check all slices, because a peer is back.
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

// Doubt makes the Replicator ask peer for its progress in s again, because peer reports that its
// copy is not whole.
func (r *Replicator) Doubt(s partition.Slice, peer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if sh := r.slices[s]; sh != nil && sh.to[peer] != nil && sh.to[peer].known && !sh.to[peer].copying {
		*sh.to[peer] = copyProgress{}
		r.lane(peer).add(s)
	}
}

// Progress returns a channel that is closed when something arrives at a replica or the replicas of
// a slice change.
func (r *Replicator) Progress() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.progress
}
