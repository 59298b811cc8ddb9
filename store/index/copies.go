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

// Copies. A document stands in the buckets in which it can meet its copies, as
// Options.Print has them; Meet finds who stands in the same. The buckets are a
// field like the others: they come and go with the text that they are of, in the
// same batch, move with the slice that it is in, and are made again with the index.
// What a bucket means, and who of those that meet is a copy, the caller knows.

// The fields of what copies are found by.
const (
	fieldBucket      = "bucket" // 16 hex digits, one for each
	fieldBits        = "bits"   // 16 hex digits, as value
	fieldFingerprint = "print"  // "y" of each document that has buckets
)

// Fingerprint is by what a document meets its copies.
type Fingerprint struct {
	Bits    uint64   // what Meeting.Near judges by
	Buckets []uint64 // at most MaxBuckets
}

// Caps of copies.
const (
	MaxBuckets  = 16   // of one document; those beyond are left out
	MaxMeetings = 1024 // of one Meet
	MaxMet      = 1000 // documents that one Meet finds
)

// Meeting is a bucket, and who of those in it is looked for, by their Print.Bits; nil:
// all of them.
type Meeting struct {
	Bucket uint64
	Near   func(bits uint64) bool
}

// Met is what Meet found.
type Met struct {
	More    bool              // there are others
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

// hex16 is n as 16 hex digits.
func hex16(n uint64) string {
	s := strconv.FormatUint(n, 16)
	return "0000000000000000"[len(s):] + s
}

// Fingerprints is how many documents of the index, whatever their slices, have a Print; 0
// when it cannot be read.
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

// Meet calls each for every document of sls that one of at finds, as the store has it
// now, in order of Key, then Post; of more than MaxMet for the first of them. An error
// of each ends it. ErrQuery: more than MaxMeetings. Cost: the documents of the
// buckets, and a record of the store for each that is found.
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
			continue // since it was indexed
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

// meet puts the names of those of one bucket into found.
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

// least keeps the MaxMet least names, each once.
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
