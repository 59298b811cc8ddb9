package index

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// wishes are the slices that should be in the index. They have their own lock, because a search may
// hold mu for its whole duration.
type wishes struct {
	mu    sync.Mutex
	kept  map[partition.Slice]bool
	lost  map[partition.Slice]time.Time // when it was last kept
	asked map[partition.Slice]time.Time // when a caller last waited for it
	news  bool                          // something above changed since the writer read it
	wake  chan struct{}                 // a change
	kick  chan struct{}                 // a change that a caller waits for
}

func newWishes(kept []partition.Slice) *wishes {
	w := &wishes{kept: make(map[partition.Slice]bool, len(kept)), lost: make(map[partition.Slice]time.Time),
		asked: make(map[partition.Slice]time.Time), wake: make(chan struct{}, 1), kick: make(chan struct{}, 1)}
	for _, sl := range kept {
		w.kept[sl] = true
	}
	w.tell(w.wake)
	return w
}

// tell requests a new comparison and wakes the reader of c. The caller holds w.mu.
func (w *wishes) tell(c chan<- struct{}) {
	w.news = true
	select {
	case c <- struct{}{}:
	default:
	}
}

// take copies the wishes, once after each change. lost are the slices that may stay. Slices whose
// time in lost or asked is older than linger are forgotten.
func (w *wishes) take(linger time.Duration) (want, lost map[partition.Slice]bool, news bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.news {
		return nil, nil, false
	}
	w.news = false
	now := time.Now()
	old := func(_ partition.Slice, at time.Time) bool { return now.Sub(at) >= linger }
	maps.DeleteFunc(w.lost, old)
	maps.DeleteFunc(w.asked, old)
	want, lost = maps.Clone(w.kept), make(map[partition.Slice]bool, len(w.lost))
	for sl := range w.asked {
		want[sl] = true
	}
	for sl := range w.lost {
		lost[sl] = true
	}
	return want, lost, true
}

// again calls tell with w.mu held.
func (w *wishes) again() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tell(w.wake)
}

// Keep sets the slices that this peer answers queries for, and replaces those of the previous call.
// Run or Flush reads missing ones from the store. A slice that is no longer kept stays for
// Options.Linger, because it may come back, unless it is empty.
func (ix *Index) Keep(sls []partition.Slice) {
	w := ix.wishes
	w.mu.Lock()
	defer w.mu.Unlock()
	kept, now := make(map[partition.Slice]bool, len(sls)), time.Now()
	for _, sl := range sls {
		kept[sl] = true
	}
	for sl := range w.kept {
		if !kept[sl] {
			w.lost[sl] = now
		}
	}
	w.kept = kept
	w.tell(w.wake)
}

// Await adds slices that are not kept to the index, for Options.Linger from now. It waits until all
// of sls are searched or ctx ends. It needs Run. A slice may be removed again at any time:
// Stats.Missing and Result.Missing report what an answer lacks.
func (ix *Index) Await(ctx context.Context, sls []partition.Slice) error {
	for told := false; ; told = true {
		ix.mu.RLock()
		progress, lacking := ix.progress, ix.lacking(sls)
		ix.mu.RUnlock()
		if len(lacking) == 0 {
			return nil
		}
		if !told {
			ix.wishes.ask(lacking)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ix.done:
			return ErrClosed
		case <-progress:
		}
	}
}

// ask notes that a caller waits for sls, and wakes the writer.
func (w *wishes) ask(sls []partition.Slice) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for now := time.Now(); len(sls) > 0; sls = sls[1:] {
		w.asked[sls[0]] = now
	}
	w.tell(w.kick)
}

// Waiting returns how many of the kept slices are not searched yet. It does not wait for batches or
// searches.
func (ix *Index) Waiting() int {
	ix.wishes.mu.Lock()
	kept := ix.wishes.kept // replaced, never changed
	ix.wishes.mu.Unlock()
	have, n := *ix.searched.Load(), 0
	for sl := range kept {
		if !have[sl] {
			n++
		}
	}
	return n
}

// lacking returns the slices of sls that are not indexed completely. The caller holds mu.
func (ix *Index) lacking(sls []partition.Slice) (out []partition.Slice) {
	for _, sl := range sls {
		if !ix.have[sl] {
			out = append(out, sl)
		}
	}
	return out
}

// included reports whether changes of sl are followed. The caller holds step.
func (ix *Index) included(sl partition.Slice) bool { return ix.have[sl] || sl == ix.mark.In && sl != 0 }

// review compares the slices in the index with the wishes. A slice to remove is no longer searched
// at once; the next writes delete its documents. The caller holds step.
func (ix *Index) review() {
	want, lost, news := ix.wishes.take(ix.linger)
	if !news {
		return
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	stays := func(sl partition.Slice) bool {
		return want[sl] || lost[sl] && ix.docs[sl] > 0
	}
	have := make(map[partition.Slice]bool, len(ix.have))
	for sl := range ix.have {
		if stays(sl) {
			have[sl] = true
		}
	}
	if len(have) < len(ix.have) {
		ix.setHave(have)
		ix.packed = nil
	}
	if ix.mark.In != 0 && !stays(ix.mark.In) {
		ix.mark.enter(0)
	}
	ix.todo = ix.todo[:0]
	for sl := range want {
		if !ix.have[sl] && sl != ix.mark.In {
			ix.todo = append(ix.todo, sl)
		}
	}
	slices.Sort(ix.todo)
	ix.gone = ix.gone[:0]
	for sl, n := range ix.docs {
		if n > 0 && !ix.included(sl) {
			ix.gone = append(ix.gone, sl)
		}
	}
}

// unsettled reports whether slices are still to be read or removed. The caller holds step.
func (ix *Index) unsettled() bool {
	ix.wishes.mu.Lock()
	defer ix.wishes.mu.Unlock()
	return ix.wishes.news || ix.mark.In != 0 || len(ix.todo)+len(ix.gone) > 0
}

// move writes one batch of the work that review found. It returns false when there was nothing to
// do. Slices to remove come first, so a slice that is then read begins without a document. The
// caller holds step.
func (ix *Index) move() (more bool, err error) {
	if len(ix.gone) > 0 {
		return true, ix.evict(ix.gone[0])
	}
	if ix.mark.In == 0 && len(ix.todo) == 0 {
		return false, nil
	}
	return true, ix.scan()
}

// evict deletes documents of sl.
func (ix *Index) evict(sl partition.Slice) (err error) {
	b := newBatch()
	r, err := ix.scorch.Reader()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	c, err := openCursor(context.Background(), r, fieldSlice, sliceTerm(sl), false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	for c.ok && !b.full() {
		id, err := r.ExternalID(c.doc.ID)
		if err != nil {
			return err
		}
		b.seen[doc(id)] = 0
		if err := c.next(); err != nil {
			return err
		}
	}
	if !c.ok {
		ix.gone = ix.gone[1:]
	}
	return ix.write(b, ix.mark)
}

// scan reads the next records of slices to add. Changes that happen in the meantime are also read
// from the change log.
func (ix *Index) scan() error {
	b, next := newBatch(), ix.mark
	var whole []partition.Slice
	for !b.full() {
		if next.In == 0 {
			if len(ix.todo) == 0 {
				break
			}
			next.enter(ix.todo[0])
			ix.todo = ix.todo[1:]
		}
		ended, err := ix.fill(b, &next)
		if err != nil {
			return err
		}
		if ended {
			whole = append(whole, next.In)
			next.enter(0)
		}
	}
	return ix.write(b, next, whole...)
}

// enter starts the scan of a slice.
func (m *mark) enter(sl partition.Slice) { m.In, m.From, m.Posts, m.Post = sl, "", false, "" }

// fill adds records of the scanned slice, then its posts. ended reports that there are no more.
func (ix *Index) fill(b *batch, next *mark) (ended bool, err error) {
	ended = true
	if !next.Posts {
		err := ix.st.Archive.SliceRecords(next.In, next.From, func(r store.Record) (bool, error) {
			ix.add(b, docOf(&r), next.In, &r)
			next.From = r.Key
			ended = !b.full()
			return ended, nil
		})
		if err != nil || !ended {
			return false, err
		}
		next.Posts, next.From = true, ""
	}
	err = ix.st.Accounts.SlicePosts(next.In, next.From, next.Post, func(r store.Record) (bool, error) {
		ix.add(b, docOf(&r), next.In, &r)
		next.From, next.Post = r.Key, r.Post
		ended = !b.full()
		return ended, nil
	})
	return ended && err == nil, err
}

// pack encodes slices: the number of zero bits that all of them end with, then the sorted numbers
// without these bits, each as the difference to the one before.
func pack(sls map[partition.Slice]bool) []byte {
	zeros := 63
	for sl := range sls {
		zeros = min(zeros, bits.TrailingZeros64(uint64(sl)))
	}
	out, last := []byte{byte(zeros)}, uint64(0)
	for _, sl := range slices.Sorted(maps.Keys(sls)) {
		n := uint64(sl) >> zeros
		out = binary.AppendUvarint(out, n-last)
		last = n
	}
	return out
}

// unpack is the inverse of pack.
func unpack(b []byte) (map[partition.Slice]bool, error) {
	out := make(map[partition.Slice]bool)
	if len(b) == 0 || b[0] > 63 {
		return nil, errors.New("no list of slices")
	}
	zeros, last := b[0], uint64(0)
	for b = b[1:]; len(b) > 0; {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			return nil, fmt.Errorf("a list of slices that ends after %d", len(out))
		}
		last, b = last+n, b[size:]
		out[partition.Slice(last<<zeros)] = true
	}
	return out, nil
}

// parseSlice is the inverse of sliceTerm.
func parseSlice(term []byte) partition.Slice {
	n, _ := strconv.ParseUint(string(term), 16, 64) // written by sliceTerm
	return partition.Slice(n)
}
