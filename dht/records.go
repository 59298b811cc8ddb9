package dht

import (
	"context"
	"sync"

	ds "github.com/ipfs/go-datastore"
	dssync "github.com/ipfs/go-datastore/sync"

	"github.com/echo-node/echo-node/dht/guard"
)

// MaxRecords is the most records of Kademlia that are kept for others.
const MaxRecords = 1 << 14

// records is a datastore in memory with so many entries at most. A new one takes
// the place of any: what counts is published again every republish.
type records struct {
	ds.Batching
	most    int
	refused *guard.Tally

	mu   sync.Mutex
	keys map[ds.Key]struct{}
}

func newRecords(most int, refused *guard.Tally) *records {
	return &records{Batching: dssync.MutexWrap(ds.NewMapDatastore()), most: most, refused: refused,
		keys: map[ds.Key]struct{}{}}
}

// Put is ds.Datastore's.
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

// Delete is ds.Datastore's.
func (r *records) Delete(ctx context.Context, key ds.Key) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.keys, key)
	return r.Batching.Delete(ctx, key)
}

// Batch is ds.Batching's.
func (r *records) Batch(context.Context) (ds.Batch, error) { return ds.NewBasicBatch(r), nil }
