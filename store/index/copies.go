package index

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	index "github.com/blevesearch/bleve_index_api"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Copies. A document is in the buckets in which it can meet its copies, as Options.Fingerprint
// returns them; Meet finds the documents that share a bucket. Buckets are a field like the others:
// they are written and deleted in the same batch as the text, move with its slice, and are rebuilt
// with the index. Only the caller knows what a bucket means and which documents are really copies.

// The fields used to find copies.
const (
	fieldBucket      = "bucket" // 16 hex digits, one term for each bucket
	fieldBits        = "bits"   // 16 hex digits, as value
	fieldFingerprint = "print"  // "y" for each document that has buckets
)

// Fingerprint contains the values by which a document meets its copies.
type Fingerprint struct {
	Bits    uint64   // the argument of Meeting.Near
	Buckets []uint64 // at most MaxBuckets
}

// Limits of copies.
const (
	MaxBuckets  = 16   // of one document; further ones are ignored
	MaxMeetings = 1024 // of one call of Meet
	MaxMet      = 1000 // documents that one call of Meet finds
)

// Meeting selects documents of one bucket. Near selects them by their Fingerprint.Bits; nil selects
// all.
type Meeting struct {
	Bucket uint64
	Near   func(bits uint64) bool
}

// Met is the result of Meet.
type Met struct {
	More    bool              // there are more than MaxMet
	Missing []partition.Slice // as in Stats
}

// addFingerprint adds the fields of p to a document.
func addFingerprint(p Fingerprint, word, value func(field, term string)) {
	for _, b := range p.Buckets[:min(len(p.Buckets), MaxBuckets)] {
		word(fieldBucket, hex16(b))
	}
	if len(p.Buckets) > 0 {
		value(fieldBits, hex16(p.Bits))
		word(fieldFingerprint, "y")
	}
}

// hex16 returns n as 16 hex digits.
func hex16(n uint64) string {
	s := strconv.FormatUint(n, 16)
	return "0000000000000000"[len(s):] + s
}

// Fingerprints returns how many documents of the index, of all slices, have a Fingerprint. It
// returns 0 when the index cannot be read.
func (ix *Index) Fingerprints() (n int64) {
	err := ix.read(func(r index.IndexReader) error {
		c, err := openCursor(context.Background(), r, fieldFingerprint, "y", false)
		if err != nil {
			return err
		}
		n = int64(c.r.Count())
		return c.close()
	})
	if err != nil {
		ix.log.Debug("prints are not counted", "error", err)
		return 0
	}
	return n
}

// Meet calls each for every document of sls that one of at finds, with the record that the store
// has now. The documents come in order of Key, then Post; if there are more than MaxMet, only the
// first of them come. An error of each ends the call. Meet returns ErrQuery for more than
// MaxMeetings meetings. Cost: the documents of the buckets, and a record of the store for each
// document found.
func (ix *Index) Meet(ctx context.Context, sls []partition.Slice, at []Meeting,
	each func(store.Record, partition.Slice) error) (met Met, err error) {
	if len(at) > MaxMeetings {
		return met, fmt.Errorf("%w: %d buckets, at most %d", ErrQuery, len(at), MaxMeetings)
	}
	var found least
	err = ix.read(func(r index.IndexReader) error {
		q, missing := ix.whole(Query{Slices: sls})
		met.Missing = missing
		wanted := make(map[partition.Slice]bool, len(q.Slices))
		for _, sl := range q.Slices {
			wanted[sl] = true
		}
		values, err := r.DocValueReader([]string{fieldSlice, fieldBits})
		for _, m := range at {
			if err == nil {
				err = meet(ctx, r, values, wanted, m, &found)
			}
		}
		return err
	})
	if err != nil {
		return met, err
	}
	docs := found.sorted()
	met.More = found.more
	for _, d := range docs {
		if err := ctx.Err(); err != nil {
			return met, err
		}
		r, sl, err := ix.find(d)
		if errors.Is(err, store.ErrNotExist) || err == nil && !indexed(&r) {
			continue // deleted or changed since it was indexed
		}
		if err == nil {
			err = each(r, sl)
		}
		if err != nil {
			return met, fmt.Errorf("index: meet: %w", err)
		}
	}
	return met, nil
}

// meet adds the names of the matching documents of one bucket to found.
func meet(ctx context.Context, r index.IndexReader, values index.DocValueReader, wanted map[partition.Slice]bool,
	m Meeting, found *least) (err error) {
	c, err := openCursor(ctx, r, fieldBucket, hex16(m.Bucket), false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	for i := 0; c.ok; i++ {
		if i%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		ok := false
		near := m.Near == nil
		err := values.VisitDocValues(c.doc.ID, func(field string, term []byte) {
			switch field {
			case fieldSlice:
				ok = wanted[parseSlice(term)]
			case fieldBits:
				bits, err := strconv.ParseUint(string(term), 16, 64)
				near = near || err == nil && m.Near(bits)
			}
		})
		if err == nil && ok && near {
			var name string
			if name, err = r.ExternalID(c.doc.ID); err == nil {
				found.add(doc(name))
			}
		}
		if err == nil {
			err = c.next()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// least keeps the MaxMet smallest names, each once.
type least struct {
	docs []doc
	more bool
}

func (l *least) add(d doc) {
	if l.docs = append(l.docs, d); len(l.docs) >= 4*MaxMet {
		l.sorted()
	}
}

func (l *least) sorted() []doc {
	slices.Sort(l.docs)
	if l.docs = slices.Compact(l.docs); len(l.docs) > MaxMet {
		l.docs, l.more = l.docs[:MaxMet], true
	}
	return l.docs
}
