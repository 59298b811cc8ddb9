package archive

import (
	"errors"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// Record writes the latest record of k and logs the change.
func (t *Batch) Record(id format.SiteID, k partition.Key, body []byte) error {
	if err := t.Sized(id, k, body); err != nil {
		return err
	}
	row := format.KeyRow(format.TabRecord, id, k)
	_, c, err := t.s.engine.DB.Get(row)
	if err == nil {
		err = c.Close()
	} else if engine.IsAbsent(err) {
		n, cerr := t.Count(id)
		if cerr != nil {
			return cerr
		}
		n.Records++
		err = nil
	}
	if err != nil {
		return err
	}
	if err := t.Rows.Set(row, body, nil); err != nil {
		return err
	}
	t.Name(id.Slice, format.NameRecord, row[9:], len(body), time.Time{})
	if err := t.Where(id.Slice, k); err != nil {
		return err
	}
	return t.Change(k)
}

// Record returns the latest record of k, or ErrNotExist.
func (s *Archive) Record(k partition.Key) (store.Record, error) {
	r, _, err := s.Find(k)
	return r, err
}

// Find returns the latest record of k and its slice. This is the hash slice of k, or in geo mode
// the slice in which k was crawled.
func (s *Archive) Find(k partition.Key) (store.Record, partition.Slice, error) {
	if err := s.engine.Enter(); err != nil {
		return store.Record{}, 0, err
	}
	defer s.engine.Leave()
	id := s.engine.IDOf(k)
	v, err := s.engine.Get(format.KeyRow(format.TabRecord, id, k))
	if errors.Is(err, store.ErrNotExist) {
		if id.Slice, err = s.engine.WhereIs(k); err == nil {
			v, err = s.engine.Get(format.KeyRow(format.TabRecord, id, k))
		}
	}
	if err != nil {
		return store.Record{}, 0, fmt.Errorf("store: record of %s: %w", k, err)
	}
	r, err := s.engine.Packer.DecodeRecord(v)
	if err != nil {
		return store.Record{}, 0, fmt.Errorf("store: record of %s: %w", k, err)
	}
	if err := s.Had(id.Slice, &r); err != nil {
		return store.Record{}, 0, fmt.Errorf("store: record of %s: %w", k, err)
	}
	return r, id.Slice, nil
}

// Where returns the slice of the record and the posts of k, if there are any. It does not read
// them.
func (s *Archive) Where(k partition.Key) (partition.Slice, error) {
	if err := s.engine.Enter(); err != nil {
		return 0, err
	}
	defer s.engine.Leave()
	id := s.engine.IDOf(k)
	if s.engine.Charter().Mode != partition.ModeGeo {
		return id.Slice, nil
	}
	_, c, err := s.engine.DB.Get(format.KeyRow(format.TabRecord, id, k))
	if err == nil {
		return id.Slice, c.Close()
	}
	at, err := s.engine.WhereIs(k)
	if errors.Is(err, store.ErrNotExist) {
		return id.Slice, nil // posts have no TabWhere row in a hash slice
	}
	if err != nil {
		return 0, fmt.Errorf("store: slice of the record of %s: %w", k, err)
	}
	return at, nil
}
