package search

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/echo-node/echo-node/crawler/judge/duplicates"
	"github.com/echo-node/echo-node/crawler/web"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/index"
)

// Copies across peers. Each text stands, in the index of the owner of its slice, in the
// buckets in which it can meet its copies. Who wants the copies of a text (circle.go)
// asks the owners of all slices, as for a query, with its print; each compares what
// stands in the same buckets, as the store has it now, and answers with the prints of
// the copies, whose copies are asked for in turn.
//
// So a bucket is in as many parts as there are owners, instead of having one of its
// own. A page costs no message, no row beside its record, and nothing to undo: what is
// deleted, noindex or changed is not found any more from then on, what survives the
// loss of a peer is found by whoever has it then, and what a slice's replicas made
// apart cannot differ in what they say of copies. The price is that a question goes to
// all owners, as each query does.

const (
	maxHunted    = 32      // prints of one question; at most duplicates.MaxAsked in all
	maxFoundText = 2 << 20 // bytes of prints of one answer
)

// fingerprintOf is by what r meets its copies, with all its words and without a name;
// or why there are none. It is a function of the record alone: what decides here
// is part of index.Options.PrintVersion.
func fingerprintOf(r *store.Record) (p duplicates.Print, why string) {
	text := r.Text
	switch {
	case r.Deleted:
		return p, "it is deleted at its service"
	case r.NoIndex:
		return p, "its site does not want it indexed"
	case r.Kind == store.KindPost:
	case r.Kind != store.KindPage:
		return p, "a " + r.Kind + " is nobody's copy"
	case r.Copies == "":
		return p, "it has no text of its own that is long enough"
	default:
		text = web.Printed(text)
	}
	p = duplicates.NewPrint(duplicates.Text{Text: text, Time: math.MaxInt64})
	if p.Features == 0 {
		return p, "it has no text of its own"
	}
	if r.PublishedAt != nil {
		p.Time = r.PublishedAt.Unix()
	}
	return p, ""
}

// FingerprintVersion is that of what printOf and indexPrint make of a record.
const FingerprintVersion = duplicates.PrintVersion<<8 | 1

// IndexFingerprint is r's print as the index has it.
func IndexFingerprint(r *store.Record) (out index.Fingerprint) {
	p, why := fingerprintOf(r)
	if why != "" {
		return out
	}
	out.Bits = p.Bits
	var buckets [index.MaxBuckets]duplicates.Bucket
	for _, b := range (duplicates.Options{}).Buckets(buckets[:0], p) {
		out.Buckets = append(out.Buckets, uint64(b))
	}
	return out
}

// ServeCopies answers for the asked slices that are held here, and names the others.
func (en *Engine) ServeCopies(ctx context.Context, w *wire.Copies) (*wire.CopiesAnswer, error) {
	if w.Zone != 0 {
		return en.serveZoneCopies(ctx, w)
	}
	a := &wire.CopiesAnswer{}
	var held []partition.Slice
	for _, s := range w.Slices {
		if sl := partition.Slice(s); en.o.Quorum.Has(sl) {
			held = append(held, sl)
			a.Stale = a.Stale || !en.acts(sl) // it may lack what the owner wrote last
		} else {
			a.Missing = append(a.Missing, s)
		}
	}
	if len(held) == 0 {
		return a, nil
	}
	var err error
	if len(w.Prints) == 0 {
		err = en.serveNamed(w, held, a)
	} else {
		a.Stale = a.Stale || Lag(en.o.Store, en.o.Index) > 0
		err = en.serveMeeting(ctx, w.Prints, held, a)
	}
	if err != nil {
		return nil, fmt.Errorf("copies: %w", err)
	}
	return a, nil
}

// serveNamed answers with the print of the record or the post that is asked for by
// name, if it is here.
func (en *Engine) serveNamed(w *wire.Copies, held []partition.Slice,
	a *wire.CopiesAnswer) error {
	k, err := partition.KeyFromWire(w.Key)
	if err != nil {
		return call.Malformed(err)
	}
	r, sl, err := en.textOf(k, w.Post)
	if errors.Is(err, store.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, s := range held {
		if s == sl {
			p, why := fingerprintOf(&r)
			c := wireCopy(&r, sl)
			if c.Why = why; why == "" {
				c.Print = p.Append(nil)
			}
			a.Found = append(a.Found, c)
		}
	}
	return nil
}

// textOf is the record of k or, of a post, that one, and the slice that it is in.
func (en *Engine) textOf(k partition.Key, post string) (store.Record, partition.Slice, error) {
	if post != "" {
		return en.o.Store.Accounts.Post(k, post)
	}
	return en.o.Store.Archive.Find(k)
}

// serveMeeting answers with the copies of prints in the slices held here. Of texts
// that are equal the first has its words; those of the others are the same.
func (en *Engine) serveMeeting(ctx context.Context, prints [][]byte, held []partition.Slice,
	a *wire.CopiesAnswer) error {
	asked := make([]duplicates.Print, len(prints))
	var at []index.Meeting
	for i, b := range prints {
		p, err := duplicates.DecodePrint(b)
		if err != nil {
			return call.Malformed(err)
		}
		asked[i] = p
		at = append(at, bucketsOf(p)...)
	}
	wait, cancel := context.WithTimeout(ctx, en.o.indexWait())
	defer cancel()
	if err := en.o.Index.Await(wait, held); err != nil && wait.Err() == nil {
		return err
	}
	size, told := 0, map[uint64]bool{} // by content
	met, err := en.o.Index.Meet(ctx, held, at, func(r store.Record, sl partition.Slice) error {
		p, why := fingerprintOf(&r)
		if why != "" || !meetsOne(asked, p) {
			return nil
		}
		if told[p.Content] {
			p.Units = nil
		}
		told[p.Content] = true
		c := wireCopy(&r, sl)
		c.Print = p.Append(nil)
		if size += len(c.Print); size > maxFoundText {
			return errEnough
		}
		a.Found = append(a.Found, c)
		return nil
	})
	if errors.Is(err, errEnough) {
		met.More, err = true, nil
	}
	a.More, a.Missing = met.More, call.AppendSlices(a.Missing, met.Missing)
	return err
}

// bucketsOf are where p is looked for.
func bucketsOf(p duplicates.Print) (out []index.Meeting) {
	near := func(bits uint64) bool { return duplicates.Distance(bits, p.Bits) <= duplicates.DefaultDistance }
	for _, b := range (duplicates.Options{}).Buckets(nil, p) {
		m := index.Meeting{Bucket: uint64(b)}
		if b.Block() {
			m.Near = near
		}
		out = append(out, m)
	}
	return out
}

func meetsOne(asked []duplicates.Print, p duplicates.Print) bool {
	for i := range asked {
		if _, ok := (duplicates.Options{}).Meets(asked[i], p); ok {
			return true
		}
	}
	return false
}

// clipped is the first most bytes of s at most, in whole runes.
func clipped(s string, most int) string { return strings.ToValidUTF8(s[:min(len(s), most)], "") }

// wireCopy is what is said of a text beside its print.
func wireCopy(r *store.Record, sl partition.Slice) *wire.Copy {
	c := &wire.Copy{Key: string(r.Key), Post: r.Post, Slice: call.SliceOn(sl), Title: clipped(r.Title, wire.MaxText),
		Peer: r.Peer, FetchedMs: r.FetchedAt.UnixMilli()}
	if r.Merged() {
		c.Canonical = string(r.Canonical)
	}
	return c
}
