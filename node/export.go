package node

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/strictjson"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/index"
)

// Export calls fn for every record of the swarm after the cursor, and returns
// who is missing. Records come in store order (slice, site, Key), whoever holds
// them, and a cursor is the place of the last: what was given stays given, and
// what is still to come comes, when slices change hands between two exports. An
// error of fn ends it.
func (n *Node) Export(ctx context.Context, e api.Export, fn func(rec store.Record, cursor string) error) ([]api.Missing, error) {
	after, err := n.spotOf(e.Cursor)
	if err != nil {
		return nil, fmt.Errorf("%w: cursor: %w", api.ErrInvalid, err)
	}
	chosen, err := n.facets(e.Facets)
	if err != nil {
		return nil, err
	}
	facets, err := facetsFrom(chosen)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	assign := n.keep.Assignment()
	_, view := n.terr.views()
	missing := []api.Missing{}
	open := map[string]*shelf{}
	var of spot // the Key whose captures are at hand
	var captures []store.Capture
	for _, m := range view.Members() {
		if !e.Local || m.ID == n.id {
			open[m.ID] = &shelf{n: n, peer: m.ID, after: after, captures: e.Captures, leaves: withLeaves(e.Kind), only: onlyOf(e.Kind)}
		}
	}
	if !e.Local {
		missing = n.unasked(ctx, assign, open)
	}
	for {
		for id, s := range open {
			switch more, err := s.fill(ctx); {
			case err != nil:
				// It may have come to own slices meanwhile; of none, nothing is missing.
				if owned := max(len(assign[id]), len(n.keep.Assignment()[id])); owned > 0 {
					missing = append(missing, api.Missing{Peer: id, Reason: n.reason(ctx, id, err), Slices: owned})
				}
				delete(open, id)
			case !more:
				delete(open, id)
			}
		}
		if ctx.Err() != nil || len(open) == 0 {
			return missing, ctx.Err()
		}
		x := n.least(open)
		if whole := (spot{in: x.in, key: x.key}); whole != of {
			of, captures = whole, nil
		}
		if x.part != "" && !isLeaf(x.part) {
			captures = append(captures, x.capture)
			continue
		}
		if x.part == "" {
			x.record.Captures, captures = captures, nil
		}
		if wanted(x.record, e) && (chosen == nil || facets.Match(&x.record)) {
			if err := fn(x.record, x.cursor()); err != nil {
				return missing, err
			}
		}
	}
}

// unasked names the owners of slices of this zone that an export does not ask: they are no members now.
func (n *Node) unasked(ctx context.Context, assign map[string][]partition.Slice, asked map[string]*shelf) []api.Missing {
	missing := []api.Missing{}
	for _, id := range slices.Sorted(maps.Keys(assign)) {
		near := 0
		for _, s := range assign[id] {
			if !n.foreign(s) {
				near++
			}
		}
		if asked[id] == nil && near > 0 {
			missing = append(missing, api.Missing{Peer: id, Reason: n.reason(ctx, id, errVanished), Slices: near})
		}
	}
	return missing
}

// spot is a place in store order; the zero spot is before all. part is that of
// a capture, or then of a leaf (leaves.go), which come before the record of their Key.
type spot struct {
	in   partition.Slice
	key  partition.Key
	part string
}

// cursor is the Key alone in a hash slice, as it says where it is; else the
// slice, a space and the Key; and of a leaf a space and its part in base64.
func (s spot) cursor() string {
	if s.part != "" {
		return s.in.String() + " " + string(s.key) + " " + base64.RawURLEncoding.EncodeToString([]byte(s.part))
	}
	if s.in.IsHash() {
		return string(s.key)
	}
	return s.in.String() + " " + string(s.key)
}

// spotOf reads a cursor.
func (n *Node) spotOf(cursor string) (s spot, err error) {
	if cursor == "" {
		return spot{}, nil
	}
	text := cursor
	if slice, key, ok := strings.Cut(cursor, " "); ok {
		if s.in, err = partition.ParseSlice(slice); err != nil {
			return spot{}, err
		}
		key, part, _ := strings.Cut(key, " ")
		b, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil || len(b) > wire.MaxPart {
			return spot{}, fmt.Errorf("a part that is none: %.40q", part)
		}
		text, s.part = key, string(b)
	}
	if s.key, err = partition.KeyFromWire(text); err != nil {
		return spot{}, err
	}
	if s.in == 0 {
		s.in = n.store.SliceOf(s.key)
	}
	if !n.charter.MayHold(s.in, s.key) {
		return spot{}, fmt.Errorf("%s is not in %s", s.key, s.in)
	}
	return s, nil
}

// compare is the order of store.RecordsFrom.
func (s spot) compare(o spot) int {
	c := cmp.Or(cmp.Compare(s.in, o.in), strings.Compare(string(s.key.Site()), string(o.key.Site())), strings.Compare(string(s.key), string(o.key)))
	if c == 0 && (s.part == "") != (o.part == "") {
		return cmp.Compare(len(o.part), len(s.part))
	}
	return cmp.Or(c, strings.Compare(s.part, o.part))
}

// least takes the first record or capture in store order off the shelves; of copies, the
// owner's.
func (n *Node) least(open map[string]*shelf) shelved {
	var first *shelf
	for _, s := range open {
		if first == nil || s.page[0].spot.compare(first.page[0].spot) < 0 {
			first = s
		}
	}
	x := first.page[0]
	owner := n.keep.Owner(x.in)
	for id, s := range open {
		if s.page[0].spot == x.spot {
			if id == owner {
				x = s.page[0]
			}
			s.page = s.page[1:]
		}
	}
	return x
}

// shelf is one peer's records, read page by page.
type shelf struct {
	n     *Node
	peer  string
	after spot // the last read
	page  []shelved
	ended bool

	captures bool // they are asked for
	leaves   bool
	only     string // of the leaves
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
const maxCapturedBytes = store.MaxVersions*max(store.MaxRecordBytes, store.MaxBodyBytes/3*4) + store.MaxCaptures*(64<<10)

// fill sees that page is not empty; false is the end.
func (s *shelf) fill(ctx context.Context) (bool, error) {
	if len(s.page) > 0 || s.ended {
		return len(s.page) > 0, nil
	}
	a, err := s.n.recordsOf(ctx, s.peer, s.after, &wire.Records{Captures: s.captures, Leaves: s.leaves, Only: s.only})
	if err == nil {
		err = s.take(a)
	}
	return len(s.page) > 0, err
}

// take checks the Keys of another peer, and that they go forward: else an
// export might never end.
func (s *shelf) take(a *wire.RecordsAnswer) error {
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
		if x.in, err = s.n.sliceFrom(in, k); err != nil {
			return fmt.Errorf("a record of %s: %w", s.peer, err)
		}
		if s.after.key != "" && x.spot.compare(s.after) <= 0 {
			return errors.New("its records are not in order")
		}
		if err := s.bounded(x, len(b)); err != nil {
			return err
		}
		s.page, s.after = append(s.page, x), x.spot
	}
	s.ended = len(s.page) == 0
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
	if isLeaf(x.part) && s.leaves {
		err = readLeaf(&x.record, x.part, b)
		return x, string(x.record.Key), err
	}
	if !s.captures {
		return x, "", errForeign
	}
	err = strictjson.Unmarshal(b, &x.capture)
	return x, string(x.capture.Key), err
}

// bounded refuses captures of one Key without end.
func (s *shelf) bounded(x shelved, size int) error {
	if x.part == "" || isLeaf(x.part) {
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

// plain is JSON without the escapes that HTML would need: they sextuple a text
// of nothing but brackets, which then fits no frame.
func plain(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func (n *Node) recordsOf(ctx context.Context, peer string, after spot, q *wire.Records) (*wire.RecordsAnswer, error) {
	q.After, q.AfterPart = string(after.key), []byte(after.part)
	if after.key != "" {
		q.AfterSlice = sliceOn(after.in)
	}
	if peer == n.id {
		return n.serveRecords(q)
	}
	resp, err := n.call(ctx, peer, &wire.Request{Body: &wire.Request_Records{Records: q}})
	if err != nil {
		return nil, err
	}
	if a := resp.GetRecords(); a != nil {
		return a, nil
	}
	return nil, errForeign
}

func wanted(r store.Record, e api.Export) bool {
	at := r.FetchedAt
	if r.PublishedAt != nil {
		at = *r.PublishedAt
	}
	return (e.Kind == "" || r.Kind == e.Kind) && isLang(r.Lang, e.Lang) && (e.Site == "" || index.OfSite(r.Key, siteText(e.Site))) &&
		(e.Since.IsZero() || !at.Before(e.Since)) && (e.Until.IsZero() || at.Before(e.Until))
}

// isLang says whether lang is the language wanted, or a variety of it, as an
// index does: pt finds pt-BR. "" wants any.
func isLang(lang, wanted string) bool {
	lang, wanted = strings.ToLower(lang), strings.ToLower(wanted)
	return wanted == "" || lang == wanted || strings.HasPrefix(lang, wanted+"-")
}
