package db

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// A caller whose answer says that a Key is due finds it in the queue, although others update the
// queue's head at the same time. The rows come in the same order as from the start of the queue.
func TestTheFrontOfAQueueHidesNothing(t *testing.T) {
	s := newStore(t)
	const writers, each = 4, 8
	var all []partition.Key
	for n := range writers * each {
		all = append(all, key("a.example", n))
	}
	admit(t, s, all...)
	sl, site := s.SliceOf(all[0]), all[0].Site()
	var wg sync.WaitGroup
	for n := range writers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(5, uint64(n)))
			for range 300 {
				k := all[n*each+rng.IntN(each)]
				at := epoch().Add(time.Duration(rng.IntN(2000)-1000) * 20 * time.Minute)
				if rng.IntN(3) == 0 {
					at = time.Time{}
				}
				if err := s.Commit(store.Commit{Key: k, Now: epoch(), Next: store.Next{State: store.StateDone,
					At: at}}); err != nil {
					t.Error(err)
					return
				}
				rows, _, err := s.Queue.PendingOf(sl, site, nil, len(all))
				if err != nil {
					t.Error(err)
					return
				}
				found := false
				for i, d := range rows {
					found = found || d.Key == k && d.At.Equal(at)
					if i > 0 && d.At.Truncate(time.Hour).Before(rows[i-1].At.Truncate(time.Hour)) {
						t.Errorf("%s stands behind %s", d.At, rows[i-1].At)
					}
				}
				if found == at.IsZero() {
					t.Errorf("%s at %s is in the queue: %t", k, at, found)
				}
			}
		})
	}
	wg.Wait()
	audit(t, s)
}

// A queue whose rows are taken from the front and come back at the end, as the queue of accounts
// does.
func BenchmarkPendingOfAWorkedQueue(b *testing.B) {
	s := create(b, vfs.NewMem())
	defer closeStore(b, s)
	var all []partition.Key
	for n := range 100 {
		all = append(all, key("a.example", n))
	}
	admit(b, s, all...)
	at := epoch()
	for n := range 20_000 {
		at = at.Add(time.Minute)
		commit(b, s, store.Commit{Key: all[n%len(all)], Now: at, Next: store.Next{State: store.StateDone,
			At: at.Add(2 * time.Hour)}})
	}
	b.ResetTimer()
	for range b.N {
		if rows, _, err := s.Queue.PendingOf(s.SliceOf(all[0]), all[0].Site(), nil, 16); err != nil || len(rows) != 16 {
			b.Fatal(len(rows), err)
		}
	}
}
