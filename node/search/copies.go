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

// Copies across peers. The index of a slice's owner puts each text into the buckets in which it can
// meet its copies. A peer that looks for the copies of a text (duplicates.go) sends its fingerprint
// to the owners of all slices, as for a query. Each owner compares it with the texts in the same
// buckets, as its store has them now. Its response has the fingerprints of the copies, and the peer
// then asks for the copies of these.
//
// So each bucket is divided among all owners instead of having one owner of its own. A page costs
// no message, no row besides its record, and nothing to undo: a page that is deleted, changed or
// turns noindex is no longer found. What survives the loss of a peer is found at the peer that has
// it then. Replicas of a slice cannot differ in what they say about copies. The price is that a
// request goes to all owners, as each query does.

const (
	maxHunted    = 32      // fingerprints of one request; at most duplicates.MaxAsked in all
	maxFoundText = 2 << 20 // bytes of fingerprints of one response
)

// fingerprintOf returns the fingerprint by which r meets its copies, with all its words and without
// an ID. When r cannot have copies, why gives the reason. The result depends on the record alone. A
// change of these rules needs a new FingerprintVersion.
func fingerprintOf(r *store.Record) (p duplicates.Fingerprint, why string) {
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
		text = web.Fingerprinted(text)
	}
	p = duplicates.NewFingerprint(duplicates.Text{Text: text, Time: math.MaxInt64})
	if p.Features == 0 {
		return p, "it has no text of its own"
	}
	if r.PublishedAt != nil {
		p.Time = r.PublishedAt.Unix()
	}
	return p, ""
}

// FingerprintVersion is the version of the results of fingerprintOf and IndexFingerprint.
const FingerprintVersion = duplicates.FingerprintVersion<<8 | 1

// IndexFingerprint returns r's fingerprint in the form that the index stores.
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

// ServeCopies answers for the requested slices that this peer holds, and lists the others as
// missing.
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

// serveNamed adds the fingerprint of the record or post that the request names, if this peer has
// it.
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

// textOf returns the record of k, or the named post of it, and the slice that contains it.
func (en *Engine) textOf(k partition.Key, post string) (store.Record, partition.Slice, error) {
	if post != "" {
		return en.o.Store.Accounts.Post(k, post)
	}
	return en.o.Store.Archive.Find(k)
}

// serveMeeting answers with the copies of prints in the slices that this peer holds. Of several
// equal texts, only the first carries its words; the others have the same ones.
func (en *Engine) serveMeeting(ctx context.Context, prints [][]byte, held []partition.Slice,
	a *wire.CopiesAnswer) error {
	asked := make([]duplicates.Fingerprint, len(prints))
	var at []index.Meeting
	for i, b := range prints {
		p, err := duplicates.DecodeFingerprint(b)
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

// bucketsOf returns the buckets in which copies of p can be.
func bucketsOf(p duplicates.Fingerprint) (out []index.Meeting) {
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

// meetsOne reports whether p is a copy of at least one of asked.
func meetsOne(asked []duplicates.Fingerprint, p duplicates.Fingerprint) bool {
	for i := range asked {
		if _, ok := (duplicates.Options{}).Meets(asked[i], p); ok {
			return true
		}
	}
	return false
}

// clipped returns at most the first most bytes of s, in whole runes.
func clipped(s string, most int) string { return strings.ToValidUTF8(s[:min(len(s), most)], "") }

// wireCopy returns what a response says about a text besides its fingerprint.
func wireCopy(r *store.Record, sl partition.Slice) *wire.Copy {
	c := &wire.Copy{Key: string(r.Key), Post: r.Post, Slice: call.SliceOn(sl), Title: clipped(r.Title, wire.MaxText),
		Peer: r.Peer, FetchedMs: r.FetchedAt.UnixMilli()}
	if r.Merged() {
		c.Canonical = string(r.Canonical)
	}
	return c
}
