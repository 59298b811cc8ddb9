package archive

import (
	"fmt"
	"slices"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// RecordOf is the record of k as it was before this batch, nil when there is none.
func (t *Batch) RecordOf(id format.SiteID, k partition.Key) (*store.Record, error) {
	v, err := t.s.engine.Get(format.KeyRow(format.TabRecord, id, k))
	if err != nil {
		return nil, engine.IgnoreAbsent(err)
	}
	r, err := t.s.engine.Packer.DecodeRecord(v)
	return &r, err
}

// FileRecord is the record of the file k in sl.
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

// Had fills in the digests of the files that r, of an account in sl, names and that
// were had.
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

// fileSize is what a record of a file counts as.
type fileSize struct{ Files, Bytes int64 }

func SizeOf(r *store.Record) fileSize {
	if r.Digest == "" {
		return fileSize{}
	}
	return fileSize{1, max(r.Size, 0)}
}

// Sized counts the file k, whose record this batch makes body, nil for none.
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
