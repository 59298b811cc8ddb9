package dht

import (
	"context"
	"sync"

	ds "github.com/ipfs/go-datastore"
	dssync "github.com/ipfs/go-datastore/sync"

	"github.com/echo-node/echo-node/dht/guard"
)

// MaxRecords is the largest number of Kademlia records that this peer keeps for others.
const MaxRecords = 1 << 14

// records is a datastore in memory with at most most entries. If it is full, a new entry replaces
// an arbitrary one. That is safe, because peers publish their records again after each republish
// interval.
type records struct {
	ds.Batching
	most    int
	refused *guard.Tally

	mu   sync.Mutex
	keys map[ds.Key]struct{}
}

// newRecords makes an empty datastore. refused counts the entries that were replaced.
func newRecords(most int, refused *guard.Tally) *records {
	return &records{Batching: dssync.MutexWrap(ds.NewMapDatastore()), most: most, refused: refused,
		keys: map[ds.Key]struct{}{}}
}

// Put implements ds.Datastore.
func (r *records) Put(ctx context.Context, key ds.Key, value []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, there := r.keys[key]; !there && len(r.keys) >= r.most {
		for other := range r.keys {
			if err := r.Batching.Delete(ctx, other); err != nil {
				return err
			}
			delete(r.keys, other)
			r.refused.Add("record-displaced")
			break
		}
	}
	if err := r.Batching.Put(ctx, key, value); err != nil {
		return err
	}
	r.keys[key] = struct{}{}
	return nil
}

// Delete implements ds.Datastore.
func (r *records) Delete(ctx context.Context, key ds.Key) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.keys, key)
	return r.Batching.Delete(ctx, key)
}

// Batch implements ds.Batching. The batch writes through Put and Delete, so the limit holds for it
// too.
func (r *records) Batch(context.Context) (ds.Batch, error) { return ds.NewBasicBatch(r), nil }
