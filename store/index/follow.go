package index

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"syscall"

	index "github.com/blevesearch/bleve_index_api"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// batch is one write to the index that is being prepared.
type batch struct {
	b     *index.Batch
	docs  int // documents that it writes
	bytes int
	seen  map[doc]partition.Slice // the slice of each document; 0 = delete the document
}

func newBatch() *batch {
	return &batch{b: index.NewBatch(), seen: make(map[doc]partition.Slice)}
}

func (b *batch) full() bool {
	return b.docs >= batchDocs || b.bytes >= batchBytes || len(b.seen) >= batchChanges
}

// add adds the document of the record or post to b, or its deletion.
func (ix *Index) add(b *batch, d doc, sl partition.Slice, r *store.Record) {
	if r == nil || !indexed(r) {
		b.seen[d] = 0
		return
	}
	b.seen[d] = sl
	b.docs++
	b.bytes += len(r.Text) + len(r.Title)
	var p Fingerprint
	if ix.fingerprint != nil {
		p = ix.fingerprint(r)
	}
	out := newDocument(ix.words, r, sl, p)
	out.AddIDField()
	b.b.Update(out)
}

// indexed reports whether r is searchable.
func indexed(r *store.Record) bool {
	return !r.NoIndex && !r.Merged() && !r.Deleted && r.Kind != store.KindMedia
}

// advance writes new changes and a batch of missing documents. It returns false when there was
// nothing to do.
func (ix *Index) advance() (more bool, err error) {
	ix.step.Lock()
	defer ix.step.Unlock()
	ix.review()
	more, err = ix.follow()
	if errors.Is(err, store.ErrTrimmed) {
		ix.mu.Lock()
		defer ix.mu.Unlock()
		return true, ix.reset(err)
	}
	if err != nil {
		return false, err
	}
	moved, err := ix.move()
	return more || moved, err
}

// follow indexes the next changes of the slices that are in the index or being scanned.
func (ix *Index) follow() (more bool, err error) {
	changes, err := ix.st.Changes(ix.mark.Seq, batchChanges)
	if err != nil || len(changes) == 0 {
		return false, err
	}
	b, next := newBatch(), ix.mark
	for _, c := range changes {
		if b.full() {
			break
		}
		next.Seq = c.Seq
		d := docName(c.Key, c.Post)
		if _, ok := b.seen[d]; ok {
			continue // already read in its present state
		}
		if err := ix.changed(b, d); err != nil {
			return false, err
		}
	}
	if err := ix.write(b, next); err != nil {
		return false, err
	}
	if ix.saved-ix.trimmed >= trimEvery {
		ix.trimmed = ix.saved
		return true, ix.st.TrimChanges(ix.saved)
	}
	return true, nil
}

// changed adds the present state of a document. A change in a slice that is not followed costs only
// this look-up. That matters because most rows that a replica stores are of slices that another
// peer answers for.
func (ix *Index) changed(b *batch, d doc) error {
	k, _ := d.split()
	sl, err := ix.st.Archive.Where(k)
	if err != nil {
		return err
	}
	if !ix.included(sl) {
		if ix.st.Charter().Mode == partition.ModeGeo {
			ix.add(b, d, 0, nil) // its record may have been in another slice
		}
		return nil
	}
	r, sl, err := ix.find(d)
	switch {
	case errors.Is(err, store.ErrNotExist):
		ix.add(b, d, 0, nil)
	case err != nil:
		return err
	case !ix.included(sl): // the slice was removed in the meantime
		ix.add(b, d, 0, nil)
	default:
		ix.add(b, d, sl, &r)
	}
	return nil
}

// find reads the record or post of a document from the store.
func (ix *Index) find(d doc) (store.Record, partition.Slice, error) {
	k, post := d.split()
	if post != "" {
		return ix.st.Accounts.Post(k, post)
	}
	return ix.st.Archive.Find(k)
}

// write makes b, the mark and the slices that became whole durable in one write. Then it updates
// the document counts. When no document changes, the rest stays in memory for up to trimEvery
// changes: after a crash, skipped changes can be skipped again, and an empty slice is found empty
// again.
func (ix *Index) write(b *batch, next mark, whole ...partition.Slice) error {
	before, err := ix.present(b)
	if err != nil {
		return err
	}
	idle := ix.marked && next.In == ix.mark.In && next.From == ix.mark.From && next.Posts == ix.mark.Posts &&
		next.Post == ix.mark.Post
	for k, now := range b.seen {
		if old, ok := before[k]; ok && now == 0 {
			b.b.Delete(string(k))
			idle = false
		} else if now != 0 || old != 0 {
			idle = false
		}
	}
	have := ix.have
	if len(whole) > 0 {
		have = maps.Clone(have)
		for _, sl := range whole {
			have[sl] = true
		}
		ix.packed = nil
	}
	if idle && next.Seq-ix.saved < trimEvery {
		ix.mark = next
		ix.complete(have, len(whole))
		return nil
	}
	if next.Have = ix.packed; next.Have == nil {
		next.Have = pack(have)
	}
	v, err := json.Marshal(next)
	if err != nil {
		return err
	}
	b.b.SetInternal([]byte(markKey), v)
	ix.expect(b)
	if err := ix.scorch.Batch(b.b); err != nil {
		if strings.Contains(err.Error(), syscall.ENOSPC.Error()) { // bleve does not wrap it
			return fmt.Errorf("write: %w: free space on its disk, then start again; what is not indexed yet will be: %w", store.ErrFull, err)
		}
		return fmt.Errorf("write: %w", err)
	}
	ix.mark, ix.marked, ix.packed, ix.saved = next, true, next.Have, next.Seq
	ix.wrote.Add(int64(b.docs))
	ix.mu.Lock()
	for k, now := range b.seen {
		if old := before[k]; old != now {
			ix.count(old, -1)
			ix.count(now, 1)
		}
	}
	ix.mu.Unlock()
	ix.complete(have, len(whole))
	return nil
}

// expect adds an entry to docs for each slice whose documents the batch adds, before a search can
// see one. narrow treats a slice without an entry as empty.
func (ix *Index) expect(b *batch) {
	for _, sl := range b.seen {
		if _, ok := ix.docs[sl]; ok || sl == 0 { // no other goroutine writes docs
			continue
		}
		ix.mu.Lock()
		ix.docs[sl] = 0
		ix.mu.Unlock()
	}
}

// complete sets the searched slices to have and wakes the callers that wait for new ones.
func (ix *Index) complete(have map[partition.Slice]bool, news int) {
	defer ix.seq.Store(ix.mark.Seq)
	if news == 0 {
		return
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.setHave(have)
	close(ix.progress)
	ix.progress = make(chan struct{})
}

func (ix *Index) count(sl partition.Slice, n int) {
	if sl == 0 {
		return
	}
	if ix.docs[sl] += uint64(n); ix.docs[sl] == 0 {
		delete(ix.docs, sl)
	}
}

// present returns which documents of b exist, and the slice of each. Only this goroutine writes the
// index.
func (ix *Index) present(b *batch) (map[doc]partition.Slice, error) {
	if len(b.seen) == 0 {
		return nil, nil
	}
	r, err := ix.scorch.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	values, err := r.DocValueReader([]string{fieldSlice})
	if err != nil {
		return nil, err
	}
	out := make(map[doc]partition.Slice, len(b.seen))
	for k := range b.seen {
		id, err := r.InternalID(string(k))
		if err != nil {
			return nil, err
		}
		if id == nil {
			continue
		}
		if err := values.VisitDocValues(id, func(_ string, term []byte) { out[k] = parseSlice(term) }); err != nil {
			return nil, err
		}
	}
	return out, nil
}
