package format

import (
	"time"

	"github.com/echo-node/echo-node/store"
)

// Next is the state of a Key after c. fetched always grows: by it the replicas
// of the slice tell the newer state, and ReadLog a later one.
func (k KeyState) Next(c store.Commit) KeyState {
	k.State, k.At, k.Attempts = c.Next.State, c.Next.At.UTC(), c.Next.Attempts
	if k.State == store.StatePending && k.At.IsZero() {
		k.At = c.Now.UTC()
	}
	k.Reason = store.Clip(c.Next.Reason, store.MaxReason)
	if c.Next.History != nil {
		k.History = string(c.Next.History)
	}
	last := k.Fetched
	k.Fetched = c.Now.UTC().Truncate(store.Tick)
	if r := c.Record; r != nil {
		if at := r.FetchedAt.UTC().Truncate(store.Tick); at.After(k.Fetched) {
			k.Fetched = at
		}
		k.Etag, k.Modified, k.Digest = r.ETag, r.Modified, r.Digest
		if len(k.Etag) > store.MaxHeader { // half a validator would validate nothing
			k.Etag = ""
		}
		if len(k.Modified) > store.MaxHeader {
			k.Modified = ""
		}
	}
	if !k.Fetched.After(last) {
		k.Fetched = last.Add(store.Tick)
	}
	return k
}

// BucketOf orders the due index: rows of one bucket are read by priority, the
// buckets by time. Wide enough that priority decides among the links of one
// sitting, small enough that none waits for good.
func BucketOf(at time.Time) uint64 {
	sec := max(at.Unix(), 0)
	return uint64(sec - sec%int64(Bucket/time.Second))
}

const Bucket = time.Hour
