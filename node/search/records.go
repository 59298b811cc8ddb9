package search

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// MaxRecordPage is the maximum number of records and captures in one page of an export.
// maxRecordBytes is the maximum of their bytes; a single larger item is allowed.
const (
	MaxRecordPage  = 256
	maxRecordBytes = 1 << 20
)

// recordPage is a page of an export that is being filled.
type recordPage struct {
	a           *wire.RecordsAnswer
	limit, size int
	mine        map[partition.Slice]quorum.ReplicaSet // what it may contain: owned here, whole copy
	end, last   partition.Slice                       // the last of mine, and of the last item
}

// passes reports whether a Key in sl is not for this page (skip), or ends the page (ends).
func (p *recordPage) passes(sl partition.Slice) (skip, ends bool) {
	_, mine := p.mine[sl]
	return !mine, sl > p.end
}

// startOf returns the slice where the answer to r begins; 0 = the first.
func (en *Engine) startOf(r *wire.Records) partition.Slice {
	switch {
	case r.AfterSlice != 0:
		return partition.Slice(r.AfterSlice)
	case r.After != "":
		return en.o.Store.SliceOf(partition.Key(r.After))
	case len(r.Slices) > 0:
		return partition.Slice(slices.Min(r.Slices))
	}
	return 0
}

// newPage begins an answer to r that starts in the slice start.
func (en *Engine) newPage(r *wire.Records, start partition.Slice) *recordPage {
	p := &recordPage{a: &wire.RecordsAnswer{}, limit: min(int(r.Limit), MaxRecordPage),
		mine: map[partition.Slice]quorum.ReplicaSet{}}
	if p.limit == 0 {
		p.limit = MaxRecordPage
	}
	only := make(map[uint64]bool, len(r.Slices))
	for _, sl := range r.Slices {
		only[sl] = true
	}
	for _, sl := range en.o.Quorum.Owned() {
		if sl >= start && en.o.Quorum.Has(sl) && (len(only) == 0 || only[uint64(sl)]) {
			p.mine[sl], p.end = en.o.Quorum.ReplicaSet(sl), max(p.end, sl)
		}
	}
	return p
}

// close lists the slices that the page contains completely. A slice that changed hands while the
// page was filled is left out: its new owner may have rows that are not in the page.
func (p *recordPage) close(en *Engine) *wire.RecordsAnswer {
	last := p.end
	if len(p.a.Records) > 0 {
		last = p.last
	}
	for _, sl := range slices.Sorted(maps.Keys(p.mine)) {
		if sl <= last && en.o.Quorum.Has(sl) && en.o.Quorum.ReplicaSet(sl).Compare(p.mine[sl]) == 0 {
			p.a.Whole = append(p.a.Whole, uint64(sl))
		}
	}
	return p.a
}

// add appends one item. It returns false when the item belongs on the next page. part names a
// capture or an item; it is nil for a record.
func (p *recordPage) add(sl partition.Slice, k partition.Key, part []byte, item any) (bool, error) {
	b, err := call.Plain(item)
	if err != nil {
		return false, err
	}
	a := p.a
	if len(a.Records) > 0 && (len(a.Records) == p.limit || p.size+len(b) > maxRecordBytes) {
		return false, nil
	}
	a.Records, a.Slices, a.Parts = append(a.Records, b), append(a.Slices, call.SliceOn(sl)), append(a.Parts, part)
	a.Next = string(k)
	p.size, p.last = p.size+len(b), sl
	return true, nil
}

// ServeRecords returns one page of the records in the slices owned here, with captures if
// requested.
func (en *Engine) ServeRecords(r *wire.Records) (*wire.RecordsAnswer, error) {
	start := en.startOf(r)
	p, serve := en.newPage(r, start), en.serveRows
	if r.Leaves {
		serve = en.serveItems
	}
	if err := serve(r, p, start); err != nil {
		return nil, fmt.Errorf("records: %w", err)
	}
	return p.close(en), nil
}

// serveRows fills a page with records, and with the captures of each if requested.
func (en *Engine) serveRows(r *wire.Records, p *recordPage, sl partition.Slice) error {
	each := func(sl partition.Slice, rec store.Record, part []byte) (more bool, err error) {
		if skip, ends := p.passes(sl); skip {
			return !ends, nil // its owner lists it
		}
		more = true
		if r.Captures {
			err = en.o.Store.Archive.Captures(sl, rec.Key, part, func(part []byte, c store.Capture) (bool, error) {
				var err error
				more, err = p.add(sl, rec.Key, part, c)
				return more, err
			})
		}
		if err != nil || !more {
			return false, err
		}
		return p.add(sl, rec.Key, nil, rec)
	}
	after := partition.Key(r.After)
	if len(r.AfterPart) > 0 { // in the middle of that Key
		rec, in, err := en.o.Store.Archive.Find(after)
		more := true
		if err == nil && in == sl {
			more, err = each(in, rec, r.AfterPart)
		}
		if err != nil && !errors.Is(err, store.ErrNotExist) || !more { // it may be gone by now
			return err
		}
	}
	return en.o.Store.Archive.RecordsFrom(sl, after, func(sl partition.Slice, rec store.Record) (bool, error) {
		return each(sl, rec, nil)
	})
}
