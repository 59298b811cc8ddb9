package format

import (
	"time"

	"github.com/echo-node/echo-node/store"
)

// Next returns the state of a Key after c. Fetched always grows. The replicas of the slice use it
// to find the newer state, and ReadLog uses it to find a later one.
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
		if len(k.Etag) > store.MaxHeader { // a truncated validator is useless
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

// BucketOf returns the bucket of a time in the due index. Rows of one bucket are read by priority,
// and buckets by time. A bucket is long enough that priority decides among the links of one crawl
// session. It is short enough that no link waits forever.
func BucketOf(at time.Time) uint64 {
	sec := max(at.Unix(), 0)
	return uint64(sec - sec%int64(Bucket/time.Second))
}

// Bucket is the length of a bucket of the due index.
const Bucket = time.Hour
