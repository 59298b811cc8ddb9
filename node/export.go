package node

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Export calls fn for every record of the swarm after the cursor, and returns
// who is missing. Records come in store order (slice, site, Key), whoever holds
// them, and a cursor is the Key of the last: what was given stays given, and
// what is still to come comes, when slices change hands between two exports. An
// error of fn ends it.
func (n *Node) Export(ctx context.Context, e api.Export, fn func(rec store.Record, cursor string) error) ([]api.Missing, error) {
	after := partition.Key(e.Cursor)
	if e.Cursor != "" {
		if _, err := partition.KeyFromWire(e.Cursor); err != nil {
			return nil, fmt.Errorf("%w: cursor: %w", api.ErrInvalid, err)
		}
	}
	assign := n.terr.assignment()
	_, view := n.terr.views()
	missing := []api.Missing{}
	open := map[string]*shelf{}
	for _, m := range view.Members() {
		if !e.Local || m.ID == n.id {
			open[m.ID] = &shelf{n: n, peer: m.ID, after: after}
		}
	}
	for {
		for id, s := range open {
			switch more, err := s.fill(ctx); {
			case err != nil:
				missing = append(missing, api.Missing{Peer: id, Reason: n.reason(ctx, id, err), Slices: len(assign[id])})
				delete(open, id)
			case !more:
				delete(open, id)
			}
		}
		if ctx.Err() != nil || len(open) == 0 {
			return missing, ctx.Err()
		}
		if rec := n.least(open); wanted(rec, e) {
			if err := fn(rec, string(rec.Key)); err != nil {
				return missing, err
			}
		}
	}
}

// least takes the first record in store order off the shelves; of copies, the
// owner's.
func (n *Node) least(open map[string]*shelf) store.Record {
	var first *shelf
	for _, s := range open {
		if first == nil || n.compare(s.page[0].Key, first.page[0].Key) < 0 {
			first = s
		}
	}
	rec := first.page[0]
	owner := n.terr.owner(n.store.SliceOf(rec.Key))
	for id, s := range open {
		if s.page[0].Key == rec.Key {
			if id == owner {
				rec = s.page[0]
			}
			s.page = s.page[1:]
		}
	}
	return rec
}

// compare is the order of store.Records.
func (n *Node) compare(a, b partition.Key) int {
	return cmp.Or(cmp.Compare(n.store.SliceOf(a), n.store.SliceOf(b)), strings.Compare(string(a.Site()), string(b.Site())), strings.Compare(string(a), string(b)))
}

// shelf is one peer's records, read page by page.
type shelf struct {
	n     *Node
	peer  string
	after partition.Key // the last read
	page  []store.Record
	ended bool
}

// fill sees that page is not empty; false is the end.
func (s *shelf) fill(ctx context.Context) (bool, error) {
	if len(s.page) > 0 || s.ended {
		return len(s.page) > 0, nil
	}
	a, err := s.n.recordsOf(ctx, s.peer, string(s.after))
	if err == nil {
		err = s.take(a)
	}
	return len(s.page) > 0, err
}

// take checks the Keys of another peer, and that they go forward: else an
// export might never end.
func (s *shelf) take(a *wire.RecordsAnswer) error {
	for _, b := range a.GetRecords() {
		var rec store.Record
		if err := json.Unmarshal(b, &rec); err != nil {
			return fmt.Errorf("a record of %s: %w", s.peer, err)
		}
		if _, err := partition.KeyFromWire(string(rec.Key)); err != nil {
			return fmt.Errorf("a record of %s: %w", s.peer, err)
		}
		if s.after != "" && s.n.compare(rec.Key, s.after) <= 0 {
			return errors.New("its records are not in order")
		}
		s.page, s.after = append(s.page, rec), rec.Key
	}
	s.ended = len(s.page) == 0
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

func (n *Node) recordsOf(ctx context.Context, peer, after string) (*wire.RecordsAnswer, error) {
	if peer == n.id {
		return n.serveRecords(&wire.Records{After: after})
	}
	resp, err := n.call(ctx, peer, &wire.Request{Body: &wire.Request_Records{Records: &wire.Records{After: after}}})
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
	return (e.Kind == "" || r.Kind == e.Kind) && (e.Lang == "" || r.Lang == e.Lang) && (e.Site == "" || string(r.Key.Site()) == siteText(e.Site)) &&
		(e.Since.IsZero() || !at.Before(e.Since)) && (e.Until.IsZero() || at.Before(e.Until))
}
