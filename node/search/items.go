package search

import (
	"errors"
	"fmt"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/strictjson"
	"github.com/echo-node/echo-node/store"
)

// The parts of an export for one Key, besides its record, in this order. A part is a letter and the
// item's position among those of its kind. The letters sort after the classes of captures
// (Archive.Captures), which come first.
const (
	partEdges = 'F' // followed by the last account of the piece
	partGap   = 'J' // followed by store.Gap.Name
	partPost  = 'S' // followed by store.Record.Post
)

// edgesPiece is the maximum number of accounts of a list in one line of an export.
const edgesPiece = 500

func isItem(part string) bool { return part != "" && part[0] >= partEdges }

// withItems reports whether an export of kind contains anything besides records.
func withItems(kind string) bool { return kind == "" || onlyOf(kind) != "" }

// onlyOf returns kind if other peers are asked for that kind alone, and "" otherwise.
func onlyOf(kind string) string {
	switch kind {
	case store.KindPost, store.KindEdges, store.KindGap:
		return kind
	}
	return ""
}

// readItem decodes and checks an item that another peer sends with the given part.
func readItem(r *store.Record, part string, b []byte) error {
	if err := strictjson.Unmarshal(b, r); err != nil {
		return err
	}
	r.Captures = nil
	ok := false
	switch part[0] {
	case partEdges:
		ok = r.Kind == store.KindEdges && r.Gap == nil
	case partGap:
		ok = r.Kind == store.KindGap && r.Gap != nil && r.Gap.Key == r.Key
	case partPost:
		ok = r.Kind == store.KindPost && r.Post == part[1:] && r.Gap == nil
	}
	if !ok {
		return fmt.Errorf("a %.20q that is not what it is said to be: %w", r.Kind, call.ErrForeign)
	}
	return nil
}

// serveItems fills a page with everything stored of each Key, or with one kind of it.
func (en *Engine) serveItems(r *wire.Records, p *recordPage, sl partition.Slice) error {
	after := partition.Key(r.After)
	if len(r.AfterPart) > 0 { // in the middle of that Key
		if more, err := en.addKey(r, p, sl, after, string(r.AfterPart)); err != nil || !more {
			return err
		}
	}
	return en.o.Store.KeysFrom(sl, after, r.Only,
		func(sl partition.Slice, k partition.Key) (bool, error) { return en.addKey(r, p, sl, k, "") })
}

// addKey adds everything of k after part. It returns false when the page is full.
func (en *Engine) addKey(r *wire.Records, p *recordPage, sl partition.Slice, k partition.Key, part string) (more bool,
	err error) {
	if skip, ends := p.passes(sl); skip {
		return !ends, nil // its owner lists it
	}
	more = true
	if r.Captures && r.Only == "" && !isItem(part) {
		err = en.o.Store.Archive.Captures(sl, k, []byte(part), func(part []byte, c store.Capture) (bool, error) {
			var err error
			more, err = p.add(sl, k, part, c)
			return more, err
		})
	}
	for _, add := range []struct {
		kind   string
		letter byte
		add    func(p *recordPage, sl partition.Slice, k partition.Key, from string) (bool, error)
	}{{store.KindEdges, partEdges, en.addEdges}, {store.KindGap, partGap, en.addGaps},
		{store.KindPost, partPost, en.addPosts}} {
		if err != nil || !more || r.Only != "" && r.Only != add.kind || part != "" && part[0] > add.letter {
			continue
		}
		from := ""
		if part != "" && part[0] == add.letter {
			from = part[1:]
		}
		more, err = add.add(p, sl, k, from)
	}
	if err != nil || !more || r.Only != "" && r.Only != store.KindEdges {
		return more && err == nil, err
	}
	rec, in, err := en.o.Store.Archive.Find(k)
	if errors.Is(err, store.ErrNotExist) || err == nil && (in != sl || r.Only != "" && rec.Kind != r.Only) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return p.add(sl, k, nil, rec)
}

// addEdges adds a list in pieces; the first has the list's walks. A piece is written when it is
// full, and at the end.
func (en *Engine) addEdges(p *recordPage, sl partition.Slice, list partition.Key, from string) (more bool, err error) {
	if k := list.Kind(); k != partition.KindFollowers && k != partition.KindFollowing {
		return true, nil
	}
	piece := store.Record{V: store.RecordVersion, Key: list, Kind: store.KindEdges, Source: list.Service(),
		Peer: en.o.ID}
	err = en.o.Store.Accounts.Walks(sl, list, func(w store.Walk) (bool, error) {
		if piece.FetchedAt = w.At; from == "" {
			piece.Walks = append(piece.Walks, w)
		}
		return true, nil
	})
	if err != nil {
		return false, err
	}
	flush := func() (bool, error) {
		if len(piece.Edges)+len(piece.Walks) == 0 {
			return true, nil
		}
		part := []byte{partEdges}
		if m := len(piece.Edges); m > 0 {
			part = append(part, piece.Edges[m-1].To...)
		}
		more, err := p.add(sl, list, part, piece)
		piece.Edges, piece.Walks = nil, nil
		return more, err
	}
	more = true
	err = en.o.Store.Accounts.Edges(sl, list, partition.Key(from), func(e store.Edge) (bool, error) {
		if piece.Edges = append(piece.Edges, e); len(piece.Edges) < edgesPiece {
			return true, nil
		}
		var err error
		more, err = flush()
		return more, err
	})
	if err != nil || !more {
		return false, err
	}
	return flush()
}

// addGaps adds the gaps of k after the gap named from.
func (en *Engine) addGaps(p *recordPage, sl partition.Slice, k partition.Key, from string) (more bool, err error) {
	more = true
	err = en.o.Store.Accounts.Gaps(sl, k, func(g store.Gap) (bool, error) {
		if g.Name() <= from {
			return true, nil
		}
		var err error
		more, err = p.add(sl, k, append([]byte{partGap}, g.Name()...),
			store.Record{V: store.RecordVersion, Key: k, Kind: store.KindGap, FetchedAt: g.At, Source: g.Source,
				Peer: g.Peer, Gap: &g})
		return more, err
	})
	return more && err == nil, err
}

// addPosts adds the posts of k after the post from.
func (en *Engine) addPosts(p *recordPage, sl partition.Slice, k partition.Key, from string) (more bool, err error) {
	more = true
	err = en.o.Store.Accounts.Posts(sl, k, from, func(r store.Record) (bool, error) {
		var err error
		more, err = p.add(sl, k, append([]byte{partPost}, r.Post...), r)
		return more, err
	})
	return more && err == nil, err
}
