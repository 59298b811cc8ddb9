package replica

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/node/replica/message"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Repair runs in the background (I6). An owner compares digests of its slices with the other
// replicas', one slice at a time, and each side gets the rows that it lacks. Logs normally keep
// copies equal. Repair finds what logs cannot: rows above a cut, or rows that a disk lost.
const (
	repairEvery = 5 * time.Second
	buckets     = 256
)

// Repairs compares the copies of slices owned here with those of their other replicas. It also
// answers such requests of other owners.
type Repairs struct {
	o         Options
	agreement *Agreement
	receiver  *Receiver
}

// NewRepairs returns the Repairs of a peer.
func NewRepairs(o Options, a *Agreement, r *Receiver) *Repairs {
	return &Repairs{o: o, agreement: a, receiver: r}
}

// Run compares one slice every repairEvery, until ctx ends.
func (r *Repairs) Run(ctx context.Context) error {
	var at int
	for {
		if !call.Sleep(ctx, repairEvery, nil) {
			return ctx.Err()
		}
		for range len(r.o.Slices) { // the next slice that can be compared
			s := r.o.Slices[at%len(r.o.Slices)]
			at++
			if !r.agreement.Acts(s) {
				continue
			}
			compared, err := r.repair(ctx, s)
			if err != nil {
				return err
			}
			if compared {
				break
			}
		}
	}
}

// repair compares s with its other replicas. compared is false if no replica could be compared.
func (r *Repairs) repair(ctx context.Context, s partition.Slice) (compared bool, err error) {
	for _, k := range r.o.Quorum.ReplicaSet(s).Replicas {
		if k == r.o.Self || !r.o.Placement.Alive(k) {
			continue
		}
		if at, ok := r.o.Replicator.At(s, k); !ok || at != r.o.Store.Log.LogHead(s) {
			continue // it is behind, and the log will bring what it lacks
		}
		ours, err := r.o.Store.Log.Digests(s)
		if err != nil {
			return compared, fmt.Errorf("repair: %w", err)
		}
		resp, err := r.o.Peers.Call(ctx, k,
			&wire.Request{Body: &wire.Request_Compare{Compare: &wire.Compare{Slice: uint64(s)}}})
		if err != nil {
			r.o.Logger.Debug("repair", "peer", k, "slice", s, "err", err)
			continue
		}
		a := resp.GetCompare()
		compared = true
		if len(a.GetDigests()) != wire.MaxDigests || a.Head != r.o.Store.Log.LogHead(s) {
			continue // something was written meanwhile
		}
		for b := range buckets {
			if binary.BigEndian.Uint64(a.Digests[8*b:]) == ours[b] {
				continue
			}
			if err := r.repairBucket(ctx, k, s, b); err != nil {
				return compared, err
			}
		}
	}
	return compared, nil
}

// repairBucket merges one bucket of a replica's copy into this peer's copy, then sends the result
// to the replica.
func (r *Repairs) repairBucket(ctx context.Context, replica string, s partition.Slice, bucket int) error {
	r.o.Counts.Repaired.Add(1)
	r.o.Logger.Info("copies differ", "peer", replica, "slice", s, "bucket", bucket)
	for after := []byte(nil); ; {
		resp, err := r.o.Peers.Call(ctx, replica,
			&wire.Request{Body: &wire.Request_Compare{Compare: &wire.Compare{Slice: uint64(s), Rows: true,
				Bucket: uint32(bucket), After: after}}})
		if err != nil {
			r.o.Logger.Debug("repair", "peer", replica, "slice", s, "err", err)
			return nil
		}
		a := resp.GetCompare()
		if err := r.repairRows(s, a.GetRows()); err != nil {
			if refused := r.receiver.refusedRows(replica, err); !call.IsRefusal(refused) {
				return refused
			}
			return nil
		}
		if len(a.GetNext()) == 0 || bytes.Compare(a.Next, after) <= 0 {
			break
		}
		after = a.Next
	}
	for after := []byte(nil); ; {
		rows, next, err := r.o.Store.Log.BucketRows(s, bucket, after, reconcilePage)
		if err != nil {
			return fmt.Errorf("repair: %w", err)
		}
		if len(rows) > 0 && !sendRows(ctx, r.o, replica, s, rows) || len(next) == 0 {
			return nil
		}
		after = next
	}
}

// repairRows merges rows of s from another replica, as long as this peer acts in s.
func (r *Repairs) repairRows(s partition.Slice, rows []*wire.Row) error {
	r.agreement.RLock()
	defer r.agreement.RUnlock() // also after a panic, because repair starts again
	if !r.agreement.Acts(s) {
		return nil
	}
	return r.receiver.importRows(s, message.RowsOf(rows))
}

// ServeCompare answers an owner's request to compare this replica's copy.
func (r *Repairs) ServeCompare(from string, m *wire.Compare) (*wire.CompareAnswer, error) {
	s := partition.Slice(m.Slice)
	if m.Drop != nil {
		return &wire.CompareAnswer{Drop: r.mayDrop(from, s, message.SetOf(m.Drop).ReplicaSet)}, nil
	}
	if r.Lacking(s, from) {
		r.o.Replicator.Doubt(s, from)
		return nil, call.Busy("it is asked where its copy stands", time.Second)
	}
	if c := r.o.Quorum.ReplicaSet(s); c.Owner != from || !r.o.Quorum.Has(s) {
		return nil, call.Busy("no copy of that slice is kept here for you", time.Second)
	}
	a := &wire.CompareAnswer{Head: r.o.Store.Log.LogHead(s)}
	if m.Rows {
		var rows []store.Row
		var err error
		rows, a.Next, err = r.o.Store.Log.BucketRows(s, int(m.Bucket), m.After, reconcilePage)
		a.Rows = message.Rows(rows)
		return a, err
	}
	d, err := r.o.Store.Log.Digests(s)
	for _, x := range d {
		a.Digests = binary.BigEndian.AppendUint64(a.Digests, x)
	}
	return a, err
}

// mayDrop reports whether peer may drop its copy of s because this peer has it. The owner confirms
// that no successor is under way and that peer's copy does not count. Another replica confirms that
// its own copy is whole.
func (r *Repairs) mayDrop(peer string, s partition.Slice, c quorum.ReplicaSet) bool {
	if r.o.Quorum.Owner(s) == r.o.Self {
		return r.o.Quorum.InForce(s, c) && !r.o.Replicator.Counts(s, peer)
	}
	own := r.o.Quorum.ReplicaSet(s)
	return own.Compare(c) == 0 && own.Has(r.o.Self) && r.o.Quorum.Has(s)
}
