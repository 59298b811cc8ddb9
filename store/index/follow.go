package index

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"

	index "github.com/blevesearch/bleve_index_api"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// batch is one write to the index being made.
type batch struct {
	b     *index.Batch
	bytes int
	seen  map[partition.Key]bool // true = there is a document
}

func newBatch() *batch { return &batch{b: index.NewBatch(), seen: make(map[partition.Key]bool)} }

func (b *batch) full() bool { return len(b.seen) >= batchDocs || b.bytes >= batchBytes }

// add puts the record in, or takes its Key out.
func (ix *Index) add(b *batch, k partition.Key, r *store.Record) {
	if b.seen[k] = r != nil && !r.NoIndex; !b.seen[k] {
		b.b.Delete(string(k))
		return
	}
	b.bytes += len(r.Text) + len(r.Title)
	d := newDocument(ix.analyzer, r, ix.st.SliceOf(k))
	d.AddIDField()
	b.b.Update(d)
}

// advance writes one batch; false when there was nothing to do.
func (ix *Index) advance() (more bool, err error) {
	ix.step.Lock()
	defer ix.step.Unlock()
	if ix.mark.Scan {
		return true, ix.scan()
	}
	more, err = ix.follow()
	if errors.Is(err, store.ErrTrimmed) {
		ix.mu.Lock()
		defer ix.mu.Unlock()
		return true, ix.reset(err)
	}
	return more, err
}

// scan takes the next records of a rebuild. Those changed since it began come
// again with the change log.
func (ix *Index) scan() error {
	b, next := newBatch(), ix.mark
	next.Scan = false
	err := ix.st.Records(ix.mark.From, func(r store.Record) (bool, error) {
		ix.add(b, r.Key, &r)
		next.From = r.Key
		next.Scan = b.full()
		return !next.Scan, nil
	})
	if err != nil {
		return err
	}
	if !next.Scan {
		next.From = ""
	}
	return ix.write(b, next)
}

func (ix *Index) follow() (more bool, err error) {
	changes, err := ix.st.Changes(ix.mark.Seq, 2*batchDocs)
	if err != nil || len(changes) == 0 {
		return false, err
	}
	b, next := newBatch(), ix.mark
	for _, c := range changes {
		if b.full() {
			break
		}
		next.Seq = c.Seq
		if _, ok := b.seen[c.Key]; ok {
			continue // read once, as it is now
		}
		r, err := ix.st.Record(c.Key)
		switch {
		case errors.Is(err, store.ErrNotExist):
			ix.add(b, c.Key, nil)
		case err != nil:
			return false, err
		default:
			ix.add(b, c.Key, &r)
		}
	}
	if err := ix.write(b, next); err != nil {
		return false, err
	}
	if next.Seq-ix.trimmed >= trimEvery {
		ix.trimmed = next.Seq
		return true, ix.st.TrimChanges(next.Seq)
	}
	return true, nil
}

// write makes b and the mark durable as one, then counts its documents.
func (ix *Index) write(b *batch, next mark) error {
	v, err := json.Marshal(next)
	if err != nil {
		return err
	}
	b.b.SetInternal([]byte(markKey), v)
	before, err := ix.present(b)
	if err != nil {
		return err
	}
	if err := ix.scorch.Batch(b.b); err != nil {
		if strings.Contains(err.Error(), syscall.ENOSPC.Error()) { // bleve does not wrap it
			return fmt.Errorf("write: %w: free space on its disk, then start again; what is not indexed yet will be: %w", store.ErrFull, err)
		}
		return fmt.Errorf("write: %w", err)
	}
	ix.mark = next
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for k, now := range b.seen {
		if sl := ix.st.SliceOf(k); now && !before[k] {
			ix.docs[sl]++
		} else if !now && before[k] {
			ix.docs[sl]--
		}
	}
	return nil
}

// present says which Keys of b have a document. Only this goroutine writes.
func (ix *Index) present(b *batch) (map[partition.Key]bool, error) {
	r, err := ix.scorch.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	out := make(map[partition.Key]bool, len(b.seen))
	for k := range b.seen {
		id, err := r.InternalID(string(k))
		if err != nil {
			return nil, err
		}
		out[k] = id != nil
	}
	return out, nil
}
