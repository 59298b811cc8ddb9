package node

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/node/replica/message"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Repair in the background (I6): an owner compares digests of its slices with
// the other replicas', one slice at a time, and both get what either lacks. Logs
// alone keep copies equal; this finds what they cannot, as rows above a cut, or
// a disk that lost some.
const (
	repairEvery = 5 * time.Second
	buckets     = 256
)

func (n *Node) runRepair(ctx context.Context) error {
	var at int
	for {
		if !call.Sleep(ctx, repairEvery, n.repairKick) {
			return ctx.Err()
		}
		for range len(n.slices) { // the next slice that can be compared
			s := n.slices[at%len(n.slices)]
			at++
			if !n.acts(s) {
				continue
			}
			compared, err := n.repair(ctx, s)
			if err != nil {
				return err
			}
			if compared {
				break
			}
		}
	}
}

// repair compares s with its other replicas. false: nobody could be compared.
func (n *Node) repair(ctx context.Context, s partition.Slice) (compared bool, err error) {
	for _, k := range n.quorum.ReplicaSet(s).Replicas {
		if k == n.id || !n.placement.Alive(k) {
			continue
		}
		if at, ok := n.replicator.at(s, k); !ok || at != n.store.Log.LogHead(s) {
			continue // it is behind: the log says what it lacks
		}
		ours, err := n.store.Log.Digests(s)
		if err != nil {
			return compared, fmt.Errorf("repair: %w", err)
		}
		resp, err := n.call(ctx, k,
			&wire.Request{Body: &wire.Request_Compare{Compare: &wire.Compare{Slice: uint64(s)}}})
		if err != nil {
			n.log.Debug("repair", "peer", k, "slice", s, "err", err)
			continue
		}
		a := resp.GetCompare()
		compared = true
		if len(a.GetDigests()) != wire.MaxDigests || a.Head != n.store.Log.LogHead(s) {
			continue // something was written meanwhile
		}
		for b := range buckets {
			if binary.BigEndian.Uint64(a.Digests[8*b:]) == ours[b] {
				continue
			}
			if err := n.repairBucket(ctx, k, s, b); err != nil {
				return compared, err
			}
		}
	}
	return compared, nil
}

// repairBucket reconciles one bucket of a replica's copy with this one, then gives
// the replica what it has come to.
func (n *Node) repairBucket(ctx context.Context, replica string, s partition.Slice, bucket int) error {
	n.count.repaired.Add(1)
	n.log.Info("copies differ", "peer", replica, "slice", s, "bucket", bucket)
	for after := []byte(nil); ; {
		resp, err := n.call(ctx, replica,
			&wire.Request{Body: &wire.Request_Compare{Compare: &wire.Compare{Slice: uint64(s), Rows: true,
				Bucket: uint32(bucket), After: after}}})
		if err != nil {
			n.log.Debug("repair", "peer", replica, "slice", s, "err", err)
			return nil
		}
		a := resp.GetCompare()
		if err := n.repairRows(s, a.GetRows()); err != nil {
			if refused := n.refusedRows(replica, err); !call.IsRefusal(refused) {
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
		rows, next, err := n.store.Log.BucketRows(s, bucket, after, reconcilePage)
		if err != nil {
			return fmt.Errorf("repair: %w", err)
		}
		if len(rows) > 0 && !n.sendRows(ctx, replica, s, message.Rows(rows)) || len(next) == 0 {
			return nil
		}
		after = next
	}
}

// repairRows takes rows of s that its other replica has, as long as this peer acts there.
func (n *Node) repairRows(s partition.Slice, rows []*wire.Row) error {
	n.deciding.RLock()
	defer n.deciding.RUnlock() // after a panic as well: repair is begun again
	if !n.acts(s) {
		return nil
	}
	return n.importRows(s, message.RowsOf(rows))
}

// serveCompare answers an owner about this replica's copy.
func (n *Node) serveCompare(from string, m *wire.Compare) (*wire.CompareAnswer, error) {
	s := partition.Slice(m.Slice)
	if m.Drop != nil {
		return &wire.CompareAnswer{Drop: n.mayDrop(from, s, message.SetOf(m.Drop).ReplicaSet)}, nil
	}
	if n.lacking(s, from) {
		n.replicator.doubt(s, from)
		return nil, call.Busy("it is asked where its copy stands", time.Second)
	}
	if c := n.quorum.ReplicaSet(s); c.Owner != from || !n.quorum.Has(s) {
		return nil, call.Busy("no copy of that slice is kept here for you", time.Second)
	}
	a := &wire.CompareAnswer{Head: n.store.Log.LogHead(s)}
	if m.Rows {
		var rows []store.Row
		var err error
		rows, a.Next, err = n.store.BucketRows(s, int(m.Bucket), m.After, reconcilePage)
		a.Rows = message.Rows(rows)
		return a, err
	}
	d, err := n.store.Log.Digests(s)
	for _, x := range d {
		a.Digests = binary.BigEndian.AppendUint64(a.Digests, x)
	}
	return a, err
}
