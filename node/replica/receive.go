package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/node/replica/message"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/replog"
)

// Receiver takes what other peers send: logs and copies of the slices that they own, rows of other
// copies, and reports about ReplicaSets.
type Receiver struct {
	o         Options
	agreement *Agreement
	received  receiving
}

// NewReceiver returns the Receiver of a peer.
func NewReceiver(o Options, a *Agreement) *Receiver { return &Receiver{o: o, agreement: a} }

// receiving applies one message of each sender at a time. A retried message may arrive while the
// first one is still being applied.
type receiving struct {
	mu sync.Mutex
	by map[string]*sync.Mutex
}

// lock waits until no other message of peer is being applied.
func (r *receiving) lock(peer string) (unlock func()) {
	r.mu.Lock()
	if r.by == nil {
		r.by = map[string]*sync.Mutex{}
	}
	m := r.by[peer]
	if m == nil {
		m = new(sync.Mutex)
		r.by[peer] = m
	}
	r.mu.Unlock()
	m.Lock()
	return m.Unlock
}

// ServeReplicate is the replica's side of replication. What it reports is durable. No promise to a
// candidate falls between the check and the write. So a candidate that gets a promise knows
// everything that was ever acknowledged here.
func (r *Receiver) ServeReplicate(from string, m *wire.Ship) (*wire.ShipAnswer, error) {
	if !r.o.Placement.Alive(from) {
		return nil, call.Busy("not a member in this peer's view yet", time.Second)
	}
	defer r.received.lock(from)()
	if err := r.cut(from, m.Pieces); err != nil {
		return nil, err
	}
	out, whole, err := r.apply(from, m.Pieces)
	if err != nil || len(whole) == 0 {
		return out, err
	}
	return out, r.finishCopies(from, m.Pieces, whole, out)
}

// chunkSet returns the identity of the ReplicaSet under which p was sent.
func chunkSet(p *wire.Piece) quorum.ReplicaSet {
	return quorum.ReplicaSet{Epoch: p.Epoch, Fork: p.Fork, Gen: p.Gen}
}

// cut removes what dead generations wrote from the logs that this peer is to follow.
func (r *Receiver) cut(from string, ps []*wire.Piece) error {
	needed := false
	for _, p := range ps {
		needed = needed || r.o.Quorum.Follows(partition.Slice(p.Slice), from, chunkSet(p)).Cut
	}
	if !needed {
		return nil
	}
	var failed error
	err := r.agreement.Decide(func() {
		for _, p := range ps {
			s := partition.Slice(p.Slice)
			st := r.o.Quorum.Follows(s, from, chunkSet(p))
			if !st.Cut {
				continue
			}
			if r.o.Store.Log.LogHead(s) != st.Head {
				if failed = r.o.Store.Log.ResetLog(s, st.Head); failed != nil {
					return
				}
			}
			r.o.Quorum.Copied(s)
		}
	})
	return errors.Join(failed, err)
}

// apply merges what can be merged at once. whole are the indices of chunks that end a copy.
func (r *Receiver) apply(from string, ps []*wire.Piece) (out *wire.ShipAnswer, whole []int, err error) {
	r.agreement.RLock()
	defer r.agreement.RUnlock()
	now := time.Now()
	out = &wire.ShipAnswer{Stances: make([]*wire.Stance, len(ps))}
	var chunks []store.LogChunk
	var at []int
	for i, p := range ps {
		s := partition.Slice(p.Slice)
		st := r.o.Quorum.Follows(s, from, chunkSet(p))
		w := &wire.Stance{Ok: st.OK && !st.Cut, Behind: st.Behind, Stray: st.Diverged, Whole: st.Whole, Head: st.Head}
		if st.Newer != nil {
			w.Newer = message.Set(s, *st.Newer)
		}
		out.Stances[i] = w
		if !w.Ok || w.Stray {
			continue
		}
		r.o.Quorum.Fed(s, now)
		switch p.Kind {
		case wire.Piece_KIND_TAIL:
			if st.Whole && st.Head == p.From && p.To > p.From {
				c := store.LogChunk{Slice: s, From: p.From, To: p.To, Rows: message.RowsOf(p.Rows)}
				chunks, at = append(chunks, c), append(at, i)
			}
		case wire.Piece_KIND_COPY, wire.Piece_KIND_COPIED:
			if err := r.importRows(s, message.RowsOf(p.Rows)); err != nil {
				return nil, nil, r.refusedRows(from, err)
			}
			if p.Kind == wire.Piece_KIND_COPIED {
				whole = append(whole, i)
			}
		}
	}
	if len(chunks) == 0 {
		return out, whole, nil
	}
	if err := r.applyLogs(now, chunks); err != nil {
		return nil, nil, r.refusedRows(from, err)
	}
	for j, i := range at {
		out.Stances[i].Head = chunks[j].To
	}
	return out, whole, nil
}

// applyLogs splits refused chunks in halves: each log chunk is within the limits, but all chunks
// together may expand beyond them.
func (r *Receiver) applyLogs(now time.Time, ps []store.LogChunk) error {
	return Halving(ps, func(ps []store.LogChunk) error { return r.o.Store.Log.ApplyLog(now, ps...) })
}

// importRows splits a refused page in halves: the expanded page has a limit, and the text of one
// site can expand a thousandfold.
func (r *Receiver) importRows(s partition.Slice, rows []store.Row) error {
	return Halving(rows, func(rows []store.Row) error { return r.o.Store.Log.ImportRows(s, rows) })
}

// bringRows takes the rows that a member that does not keep s may bring.
func (r *Receiver) bringRows(s partition.Slice, rows []store.Row, from string) error {
	by := replog.Bringer{Peer: from, Overrules: r.o.Rest.Overrules(from), Allow: r.o.Rest.MayAdmit}
	return Halving(rows, func(rows []store.Row) error {
		b, err := r.o.Store.Log.BringRows(s, rows, time.Now(), by)
		r.o.Counts.RowsLeft.Add(int64(b.Left))
		return err
	})
}

// Halving passes all to take at once. If they are refused with store.ErrRow, it passes them in
// halves, in order. A single refused item returns its error.
func Halving[T any](all []T, take func([]T) error) error {
	if len(all) == 0 {
		return nil
	}
	err := take(all)
	if len(all) == 1 || !errors.Is(err, store.ErrRow) {
		return err
	}
	half := len(all) / 2
	if err := Halving(all[:half], take); err != nil {
		return err
	}
	return Halving(all[half:], take)
}

// refusedRows separates errors of the sender's rows from errors of this peer's disk.
func (r *Receiver) refusedRows(from string, err error) error {
	if errors.Is(err, store.ErrRow) || errors.Is(err, store.ErrGap) {
		r.o.Counts.RefusedRows.Add(1)
		r.o.Logger.Warn("rows refused", "peer", from, "err", err)
		return &call.Refusal{Code: wire.Refusal_CODE_MALFORMED, Reason: err.Error(), After: time.Second}
	}
	return fmt.Errorf("replicate: %w", err)
}

// finishCopies records that copies are whole from now on.
func (r *Receiver) finishCopies(from string, ps []*wire.Piece, whole []int, out *wire.ShipAnswer) error {
	var failed error
	err := r.agreement.Decide(func() {
		for _, i := range whole {
			s := partition.Slice(ps[i].Slice)
			st := r.o.Quorum.Follows(s, from, chunkSet(ps[i]))
			if !st.OK || st.Diverged { // something was agreed: the owner sends it again
				out.Stances[i].Ok = false
				continue
			}
			if r.o.Store.Log.LogHead(s) != ps[i].To {
				if failed = r.o.Store.Log.ResetLog(s, ps[i].To); failed != nil {
					return
				}
			}
			r.o.Quorum.Copied(s)
			out.Stances[i].Whole, out.Stances[i].Head = true, ps[i].To
		}
	})
	return errors.Join(failed, err)
}

// ServeReplicaSets applies what a member reports as decided. It returns the ReplicaSets that the
// sender does not know, or those of the slices that the sender names. Reports from a host that is
// no member are refused.
func (r *Receiver) ServeReplicaSets(from string, m *wire.Configs) (*wire.ConfigsAnswer, error) {
	a := &wire.ConfigsAnswer{}
	if len(m.Decided) > 0 {
		words := message.SetsOf(m.Decided)
		if !r.o.Placement.Alive(from) {
			r.o.Counts.ReportsIgnored.Add(int64(len(words)))
			return nil, call.Busy("not a member in this peer's view yet", time.Second)
		}
		if err := r.agreement.Hear(from, words); err != nil {
			return nil, err
		}
		if m.Want && m.Digest != r.o.Quorum.Digest() {
			asked := make([]partition.Slice, len(words))
			for i, c := range words {
				asked[i] = c.Slice
			}
			a.Known = message.Sets(r.o.Quorum.Of(asked...))
		}
		return a, nil
	}
	if !m.Want || m.Digest == r.o.Quorum.Digest() {
		return a, nil
	}
	known := r.o.Quorum.Known(partition.Slice(m.After), wire.MaxConfigs/2)
	a.Known = message.Sets(known)
	if len(known) == wire.MaxConfigs/2 {
		a.Next = uint64(known[len(known)-1].Slice)
	}
	return a, nil
}

// ServeReconcile takes rows of another copy. The owner puts them into the log, so that a majority
// keeps them. Another replica takes them only from the owner. The owner takes all rows from a
// replica of the slice, and from another member only what bringRows accepts. A replica
// that comes back from another fork keeps its own rows. Without it there may be no majority, so its
// request does not wait for one.
func (r *Receiver) ServeReconcile(ctx context.Context, from string, m *wire.Unite) (*wire.UniteAnswer, error) {
	s := partition.Slice(m.Slice)
	r.agreement.RLock()
	c := r.o.Quorum.ReplicaSet(s)
	owns := r.agreement.Acts(s)
	ok := owns || c.Owner == from && r.o.Quorum.Has(s)
	var err error
	switch {
	case ok && owns && !c.Has(from):
		err = r.bringRows(s, message.RowsOf(m.Rows), from)
	case ok:
		err = r.importRows(s, message.RowsOf(m.Rows))
	}
	head := r.o.Store.Log.LogHead(s)
	r.agreement.RUnlock()
	switch {
	case err != nil:
		return nil, r.refusedRows(from, err)
	case !ok:
		return nil, call.Busy("that slice is not acted in here", time.Second)
	case owns && !c.Has(from) && r.o.Replicator.Await(ctx, map[partition.Slice]uint64{s: head}) != nil:
		return nil, call.Busy("no majority of the slice's replicas has it yet", time.Second)
	}
	if owns {
		r.o.Crawler.Wake(s)
	}
	return &wire.UniteAnswer{Ok: true}, nil
}
