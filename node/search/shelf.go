package search

import (
	"context"
	"errors"
	"fmt"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/strictjson"
	"github.com/echo-node/echo-node/store"
)

// maxForeignPages is the maximum number of pages in a row that contain nothing the peer owns. Such
// pages can be correct: this peer may not know yet that the other peer owns a slice.
const maxForeignPages = 16

// shelf reads the records of one peer, page by page.
type shelf struct {
	en      *Engine
	peer    string
	after   spot // the last item read
	page    []shelved
	ended   bool
	foreign int // pages in a row with nothing that the peer owns

	slice  partition.Slice // the only slice to read; 0 = all
	covers func(from, to spot, ended bool, whole map[partition.Slice]bool)

	captures bool // whether to request captures
	items    bool
	only     string // the only kind of items to request
	of       spot   // the Key of the captures read last
	count    int    // number of captures of that Key; size is their bytes
	size     int
}

// shelved is one item of a shelf: a record, a capture, or an item of an account (items.go).
type shelved struct {
	spot
	record  store.Record
	capture store.Capture
}

// maxCapturedBytes is the maximum size of all captures of one Key on the wire, as JSON. Each
// version has a body in base64 or a record, and each capture has headers.
const maxCapturedBytes = store.MaxVersions*max(store.MaxRecordBytes, store.MaxBodyBytes/3*4) +
	store.MaxCaptures*(64<<10)

// fill makes sure that page is not empty. It returns false at the end.
func (s *shelf) fill(ctx context.Context) (bool, error) {
	for len(s.page) == 0 && !s.ended {
		q := &wire.Records{Captures: s.captures, Leaves: s.items, Only: s.only}
		if s.slice != 0 {
			q.Slices = []uint64{uint64(s.slice)}
		}
		a, err := s.en.recordsOf(ctx, s.peer, s.after, q)
		if err == nil {
			err = s.take(a)
		}
		if err != nil {
			return false, err
		}
	}
	return len(s.page) > 0, nil
}

// take checks the Keys of another peer, and that they go forward; otherwise an export might never
// end. It keeps only items of slices that the peer owns, both by its own statement and by what this
// peer knows.
func (s *shelf) take(a *wire.RecordsAnswer) error {
	whole := map[partition.Slice]bool{}
	for _, w := range a.GetWhole() {
		if sl := partition.Slice(w); s.en.o.Quorum.Owner(sl) == s.peer {
			whole[sl] = true
		}
	}
	from := s.after
	for i, b := range a.GetRecords() {
		x, text, err := s.read(a, i, b)
		if err != nil {
			return fmt.Errorf("a record of %s: %w", s.peer, err)
		}
		k, err := partition.KeyFromWire(text)
		if err != nil {
			return fmt.Errorf("a record of %s: %w", s.peer, err)
		}
		in := uint64(0)
		if i < len(a.GetSlices()) {
			in = a.Slices[i]
		}
		x.key = k
		if x.in, err = s.en.swarm.SliceFrom(in, k); err != nil {
			return fmt.Errorf("a record of %s: %w", s.peer, err)
		}
		if s.after.key != "" && x.spot.compare(s.after) <= 0 {
			return errors.New("its records are not in order")
		}
		if err := s.bounded(x, len(b)); err != nil {
			return err
		}
		if s.slice != 0 && x.in != s.slice {
			return fmt.Errorf("a record of %s: %w", s.peer, call.ErrForeign)
		}
		if s.after = x.spot; whole[x.in] {
			s.page = append(s.page, x)
		}
	}
	s.ended = len(a.GetRecords()) == 0
	if s.foreign++; s.ended || len(s.page) > 0 {
		s.foreign = 0
	} else if s.foreign > maxForeignPages {
		return fmt.Errorf("%d pages of %s in a row with nothing that it owns: %w", s.foreign, s.peer, call.ErrForeign)
	}
	if s.covers != nil {
		s.covers(from, s.after, s.ended, whole)
	}
	return nil
}

// read returns item i of a, and the Key that the item claims to belong to.
func (s *shelf) read(a *wire.RecordsAnswer, i int, b []byte) (x shelved, key string, err error) {
	if i < len(a.GetParts()) {
		x.part = string(a.Parts[i])
	}
	if x.part == "" {
		err = strictjson.Unmarshal(b, &x.record)
		x.record.Captures = nil // they come separately
		return x, string(x.record.Key), err
	}
	if isItem(x.part) && s.items {
		err = readItem(&x.record, x.part, b)
		return x, string(x.record.Key), err
	}
	if !s.captures {
		return x, "", call.ErrForeign
	}
	err = strictjson.Unmarshal(b, &x.capture)
	return x, string(x.capture.Key), err
}

// bounded limits the number and the size of the captures of one Key.
func (s *shelf) bounded(x shelved, size int) error {
	if x.part == "" || isItem(x.part) {
		return nil
	}
	if whole := (spot{in: x.in, key: x.key}); whole != s.of {
		s.of, s.count, s.size = whole, 0, 0
	}
	s.count, s.size = s.count+1, s.size+size
	if s.count > store.MaxCaptures || s.size > maxCapturedBytes {
		return fmt.Errorf("too many captures of %s", x.key)
	}
	return nil
}

// recordsOf requests the page of peer's records that follows after. peer may be this peer itself.
func (en *Engine) recordsOf(ctx context.Context, peer string, after spot,
	q *wire.Records) (*wire.RecordsAnswer, error) {
	q.After, q.AfterPart = string(after.key), []byte(after.part)
	if after.key != "" {
		q.AfterSlice = call.SliceOn(after.in)
	}
	if peer == en.o.ID {
		return en.ServeRecords(q)
	}
	resp, err := en.swarm.Call(ctx, peer, &wire.Request{Body: &wire.Request_Records{Records: q}})
	if err != nil {
		return nil, err
	}
	if a := resp.GetRecords(); a != nil {
		return a, nil
	}
	return nil, call.ErrForeign
}
