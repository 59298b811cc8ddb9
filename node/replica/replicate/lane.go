package replicate

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/node/replica/message"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// drive sends the messages of one lane, one after the other.
func (r *Replicator) drive(ctx context.Context, l *replicaLane) error {
	for {
		chunks, rest, err := r.gather(l)
		if err != nil {
			return err
		}
		if len(chunks) > 0 {
			wait, err := r.send(ctx, l, chunks)
			if err != nil {
				return err
			}
			if wait > 0 && !call.Sleep(ctx, wait, nil) {
				return ctx.Err()
			}
			continue
		}
		if rest {
			if !call.Sleep(ctx, replicateLater, l.wake) {
				return ctx.Err()
			}
			continue
		}
		r.rested(l)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.wake:
		}
	}
}

// InUse splits slices into those that were ever written to and empty ones. A geo swarm has
// thousands of empty ones. The used slices come first and do not wait for the others, because sites
// may be waiting there.
func InUse(s *db.Store, all []partition.Slice) (used, empty []partition.Slice) {
	for _, sl := range all {
		if s.Log.LogHead(sl) > 0 {
			used = append(used, sl)
		} else {
			empty = append(empty, sl)
		}
	}
	return used, empty
}

// gather builds the next message of a lane. rest reports that some work remains that cannot be done
// now.
func (r *Replicator) gather(l *replicaLane) (out []sentChunk, rest bool, err error) {
	r.mu.Lock()
	todo := l.todo
	l.todo = map[partition.Slice]bool{}
	r.mu.Unlock()
	used, empty := InUse(r.o.Store, slices.Collect(maps.Keys(todo)))
	all := append(used, empty...)
	logs, err := r.o.Store.Log.LogReader(all...)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, logs.Close()) }()
	size, gone := 0, r.o.Placement.Vanished(l.peer)
	for _, s := range all {
		if gone || len(out) >= MaxReplicateChunks || size >= MaxReplicateBytes {
			r.mu.Lock()
			l.todo[s] = true
			r.mu.Unlock()
			continue
		}
		p, n, err := r.chunkOf(l, s, logs)
		if err != nil {
			return nil, false, err
		}
		switch {
		case p == nil:
		case len(out) > 0 && size+n > store.MaxLogChunkBytes: // it goes with the next message
			r.mu.Lock()
			l.todo[s] = true
			r.mu.Unlock()
		default:
			out, size = append(out, *p), size+n
		}
	}
	return out, gone && len(todo) > 0, nil
}

// send sends one message and applies the response. It returns how long to wait before the next one.
// The error comes from the store.
func (r *Replicator) send(ctx context.Context, l *replicaLane, ps []sentChunk) (time.Duration, error) {
	req := &wire.Ship{Pieces: make([]*wire.Piece, len(ps))}
	for i, p := range ps {
		req.Pieces[i] = p.chunk
	}
	resp, err := r.o.Peers.Call(ctx, l.peer, &wire.Request{Body: &wire.Request_Ship{Ship: req}})
	got := resp.GetShip().GetStances()
	for i := range ps {
		if err == nil && (len(got) != len(ps) || !message.OfSlice(got[i].Newer, ps[i].slice)) {
			err = call.ErrForeign
		}
	}
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, p := range ps {
			l.todo[p.slice] = true
		}
		l.failed++
		wait := min(replicateBackoff, 100*time.Millisecond<<min(l.failed, 6))
		var refusal *call.Refusal
		if errors.As(err, &refusal) {
			wait = min(replicateBackoff, max(wait, refusal.After))
		}
		r.o.Logger.Debug("replicate", "peer", l.peer, "chunks", len(ps), "err", err)
		return wait, nil
	}
	var behind []quorum.SliceReplicas
	var newer []quorum.SliceReplicas
	var outdone []sentChunk    // chunks for which the peer knows a newer ReplicaSet
	var bare []partition.Slice // slices of which the replica has no whole copy
	later, moved := 0, false
	r.mu.Lock()
	l.failed = 0
	for i, p := range ps {
		st := got[i]
		switch {
		case st.Newer != nil:
			newer, outdone = append(newer, message.SetOf(st.Newer)), append(outdone, p)
		case st.Behind:
			behind = append(behind, r.o.Quorum.Of(p.slice)...)
			l.todo[p.slice] = true
		case !st.Ok || st.Stray:
			later++
			l.todo[p.slice] = true
		default:
			moved = r.took(l, p, st, &bare) || moved
		}
	}
	if moved {
		r.tell()
	}
	r.mu.Unlock()
	for _, s := range bare {
		if err := r.copyAnew(l.peer, s); err != nil {
			return 0, err
		}
	}
	if len(behind) > 0 {
		if err := message.Tell(ctx, r.o.Peers, l.peer, behind); err != nil {
			r.o.Logger.Debug("telling configs", "peer", l.peer, "err", err)
		}
	}
	if len(newer) > 0 {
		if err := r.words.Hear(l.peer, newer); err != nil {
			return 0, err
		}
		later += r.again(l, outdone)
	}
	if later == len(ps) {
		return replicateLater, nil
	}
	return 0, nil
}

// again puts back the chunks whose slice has a newer ReplicaSet according to the peer, but whose
// report does not count here. It returns the number of their slices. The report may count later,
// and only a retry makes this peer ask then.
func (r *Replicator) again(l *replicaLane, ps []sentChunk) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range ps {
		if r.o.Quorum.ReplicaSet(p.slice).Compare(p.set) == 0 {
			l.todo[p.slice] = true
			n++
		}
	}
	return n
}

// took applies a replica's answer to one chunk and reports whether its copy has advanced. If the
// replica has no whole copy, took appends the slice to bare. r.mu is held.
func (r *Replicator) took(l *replicaLane, p sentChunk, got *wire.Stance, bare *[]partition.Slice) bool {
	sh := r.slices[p.slice]
	if sh == nil || sh.to[l.peer] != p.about || r.o.Quorum.ReplicaSet(p.slice).Compare(p.set) != 0 {
		return false
	}
	st := sh.to[l.peer]
	switch {
	case st.copying && p.chunk.Kind == wire.Piece_KIND_COPY:
		st.cursor, st.copied = p.next, p.chunk.To
		st.paged = st.paged || len(p.next) == 0
	case !got.Whole:
		*st = copyProgress{} // until copyAnew
		*bare = append(*bare, p.slice)
	default:
		*st = copyProgress{known: true, head: got.Head}
		r.follow(p.slice, sh)
		r.release(p.slice, sh, false)
	}
	l.add(p.slice)
	return !st.copying
}
