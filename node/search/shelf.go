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

// maxForeignPages is how many pages in a row a peer may send with nothing in them that it owns:
// here one may not have heard yet that it does.
const maxForeignPages = 16

// shelf is one peer's records, read page by page.
type shelf struct {
	en      *Engine
	peer    string
	after   spot // the last read
	page    []shelved
	ended   bool
	foreign int // pages in a row with nothing that the peer owns

	slice  partition.Slice // what it is of alone; 0 = of all
	covers func(from, to spot, ended bool, whole map[partition.Slice]bool)

	captures bool // they are asked for
	items    bool
	only     string // of the items
	of       spot   // the Key of the captures read last
	count    int    // how many of it, and of how many bytes
	size     int
}

type shelved struct {
	spot
	record  store.Record
	capture store.Capture
}

// maxCapturedBytes is the most that the captures of one Key are together on
// their way, as JSON: of each version a body in base64 or a record, and heads.
const maxCapturedBytes = store.MaxVersions*max(store.MaxRecordBytes, store.MaxBodyBytes/3*4) +
	store.MaxCaptures*(64<<10)

// fill sees that page is not empty; false is the end.
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

// take checks the Keys of another peer, and that they go forward: else an
// export might never end. Only what the peer owns is put on the shelf, by its own
// word and by what is known here.
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

// read is item i of a, and the Key that it says it is of.
func (s *shelf) read(a *wire.RecordsAnswer, i int, b []byte) (x shelved, key string, err error) {
	if i < len(a.GetParts()) {
		x.part = string(a.Parts[i])
	}
	if x.part == "" {
		err = strictjson.Unmarshal(b, &x.record)
		x.record.Captures = nil // they come alone
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

// bounded refuses captures of one Key without end.
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
