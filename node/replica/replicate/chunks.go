package replicate

import (
	"errors"
	"slices"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/replica/message"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/replog"
)

// sentChunk is a log chunk on its way, with the state from which it was made.
type sentChunk struct {
	slice partition.Slice
	set   quorum.ReplicaSet
	chunk *wire.Piece
	next  []byte        // the cursor after a page of a copy
	about *copyProgress // the response is applied only to this state
}

// chunkOf returns what l's peer needs next of s, and its size in bytes. It returns nil if the peer
// needs nothing. logs reads the log of s.
func (r *Replicator) chunkOf(l *replicaLane, s partition.Slice, logs *replog.LogReader) (*sentChunk, int, error) {
	c := r.o.Quorum.ReplicaSet(s)
	r.mu.Lock()
	sh := r.slices[s]
	var st copyProgress
	ok := sh != nil && sh.to[l.peer] != nil && c.Owner == r.o.Self
	var about *copyProgress
	if ok {
		about = sh.to[l.peer]
		st = *about
	}
	r.mu.Unlock()
	if !ok || !r.o.Quorum.Has(s) {
		return nil, 0, nil
	}
	p := &sentChunk{slice: s, set: c, about: about, chunk: &wire.Piece{Slice: uint64(s), Epoch: c.Epoch, Fork: c.Fork,
		Gen: c.Gen}}
	switch {
	case st.copying:
		n, err := r.pageOf(p, st, logs)
		if errors.Is(err, store.ErrTrimmed) {
			return nil, 0, r.copyAnew(l.peer, s)
		}
		return p, n, err
	case !st.known:
		p.chunk.Kind = wire.Piece_KIND_PROBE
		return p, 0, nil
	}
	log, err := logs.Read(s, st.head, maxChunkBytes)
	switch {
	case errors.Is(err, store.ErrGap):
		// The peer reports a position beyond its owner's log. Such a copy cannot belong to this
		// log. A new copy starts its log at the owner's position; the rows merge.
		r.o.Logger.Warn("a replica's log is longer than its owner's; copying the slice again", "peer", l.peer,
			"slice", s, "its head", st.head, "ours", r.o.Store.Log.LogHead(s))
		return nil, 0, r.copyAnew(l.peer, s)
	case errors.Is(err, store.ErrTrimmed):
		return nil, 0, r.copyAnew(l.peer, s)
	case err != nil:
		return nil, 0, err
	case log.To <= st.head:
		return nil, 0, nil
	}
	p.chunk.Kind, p.chunk.From, p.chunk.To = wire.Piece_KIND_TAIL, log.From, log.To
	p.chunk.Rows = message.Rows(log.Rows)
	return p, rowBytes(log.Rows), nil
}

// pageOf fills p with the next page of a copy, or with the log after it. It returns the size in
// bytes.
func (r *Replicator) pageOf(p *sentChunk, st copyProgress, logs *replog.LogReader) (int, error) {
	p.chunk.Kind = wire.Piece_KIND_COPY
	if !st.paged {
		rows, next, err := r.o.Store.Log.SliceRows(p.slice, st.cursor, maxChunkBytes)
		if err != nil {
			return 0, err
		}
		p.next, p.chunk.To, p.chunk.Rows = next, st.copied, message.Rows(rows)
		if len(next) > 0 || r.o.Store.Log.LogHead(p.slice) != st.copied {
			return rowBytes(rows), nil
		}
		p.chunk.Kind = wire.Piece_KIND_COPIED // nothing was written meanwhile
		return rowBytes(rows), nil
	}
	log, err := logs.Read(p.slice, st.copied, maxChunkBytes)
	if err != nil {
		return 0, err
	}
	rows := slices.DeleteFunc(log.Rows, store.Row.Sent) // sending a row again is harmless
	p.chunk.To, p.chunk.Rows = log.To, message.Rows(rows)
	if log.To >= r.o.Store.Log.LogHead(p.slice) {
		p.chunk.Kind = wire.Piece_KIND_COPIED
	}
	return rowBytes(rows), nil
}

// copyAnew starts a copy of s for peer. A row that is committed from now on is in the log after
// copied, or in the pages that are still to be read.
func (r *Replicator) copyAnew(peer string, s partition.Slice) error {
	head, err := r.o.Store.Log.LogDurable(s)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if sh := r.slices[s]; sh != nil && sh.to[peer] != nil {
		*sh.to[peer] = copyProgress{known: true, copying: true, copied: head}
		r.lane(peer).add(s)
	}
	return nil
}

func rowBytes(rows []store.Row) (n int) {
	for _, r := range rows {
		n += len(r.Key) + len(r.Value)
	}
	return n
}
