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

// drive sends a lane's messages, one after the other.
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

// InUse parts slices into those in which something was ever written and the
// others, of which a geo swarm has thousands. What the former need comes first,
// and does not wait for the latter: there, a site may be waiting.
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

// gather makes the next message of a lane. rest says that there is more to do
// that cannot be done now.
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

// send replicates one message and takes the answers. It returns how long to wait
// before the next; the error is the store's.
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
	var outdone []sentChunk    // by the newer ones
	var bare []partition.Slice // of which the replica has no whole copy
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

// again puts back into the lane what its peer knows a newer replica set of, where its
// word does not count, and answers how many slices those are. It may yet come to know
// what counts, and nothing else would have it asked then.
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

// took notes a replica's answer to one chunk and whether its copy has moved; bare
// gets the slice when it has none. r.mu is held.
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
