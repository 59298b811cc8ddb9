package archive

import (
	"fmt"
	"slices"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// RecordOf returns the record of k as it was before this batch, or nil.
func (t *Batch) RecordOf(id format.SiteID, k partition.Key) (*store.Record, error) {
	v, err := t.s.engine.Get(format.KeyRow(format.TabRecord, id, k))
	if err != nil {
		return nil, engine.IgnoreAbsent(err)
	}
	r, err := t.s.engine.Packer.DecodeRecord(v)
	return &r, err
}

// FileRecord returns the record of the file k in sl.
func (s *Archive) FileRecord(sl partition.Slice, k partition.Key) (r store.Record, err error) {
	v, err := s.engine.Get(format.KeyRow(format.TabRecord, format.SiteID{Slice: sl, Site: k.Site()}, k))
	if err != nil {
		return r, err
	}
	if r, err = s.engine.Packer.DecodeRecord(v); err != nil {
		return r, fmt.Errorf("record of %s: %w", k, err)
	}
	return r, nil
}

// Had sets the digests of the files that r names and that were fetched. r is a record of an account
// in sl.
func (s *Archive) Had(sl partition.Slice, r *store.Record) error {
	if len(r.Media) == 0 || r.Key.Kind() != partition.KindAccount || s.engine.Totals.NoFiles() {
		return nil
	}
	r.Media = slices.Clone(r.Media)
	for i := range r.Media {
		m := &r.Media[i]
		k, ok := m.File(r.Key)
		for hops := 0; ok && hops < 2; hops++ {
			f, err := s.FileRecord(sl, k)
			if engine.IgnoreAbsent(err) != nil {
				return err
			}
			m.Digest = f.Digest
			k, ok = f.Redirect, f.Redirect != ""
		}
	}
	return nil
}

// fileSize is how a record of a file is counted: as how many files and how many bytes.
type fileSize struct{ Files, Bytes int64 }

// SizeOf returns the fileSize of r. A file that was not fetched counts as zero.
func SizeOf(r *store.Record) fileSize {
	if r.Digest == "" {
		return fileSize{}
	}
	return fileSize{1, max(r.Size, 0)}
}

// Sized counts the file k. body is its record as this batch writes it, or nil when the batch
// deletes it.
func (t *Batch) Sized(id format.SiteID, k partition.Key, body []byte) error {
	if k.Kind() != partition.KindFile {
		return nil
	}
	was, ok := t.sizes[k]
	if !ok {
		r, err := t.s.FileRecord(id.Slice, k)
		if engine.IgnoreAbsent(err) != nil {
			return err
		}
		was = SizeOf(&r)
	}
	var now fileSize
	if body != nil {
		r, err := t.s.engine.Packer.DecodeRecord(body)
		if err != nil {
			return err
		}
		now = SizeOf(&r)
	}
	if t.sizes == nil {
		t.sizes = map[partition.Key]fileSize{}
	}
	t.sizes[k] = now
	n, err := t.Count(id)
	if err != nil {
		return err
	}
	n.Files += now.Files - was.Files
	n.Bytes += now.Bytes - was.Bytes
	return nil
}
