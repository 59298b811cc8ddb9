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

// What an export has of a Key beside its record: the parts of an answer, in this
// order, each a letter and where it is among those of its kind. The letters are
// above the classes of captures (store.Captures), which come first.
const (
	partEdges = 'F' // then the last account of the piece
	partGap   = 'J' // then store.Gap.Name
	partPost  = 'S' // then store.Record.Post
)

// edgesPiece is how many accounts of a list one line of an export has.
const edgesPiece = 500

func isItem(part string) bool { return part != "" && part[0] >= partEdges }

// withItems says whether an export of kind has anything but records in it.
func withItems(kind string) bool { return kind == "" || onlyOf(kind) != "" }

// onlyOf is the kind that alone is asked for of the other peers.
func onlyOf(kind string) string {
	switch kind {
	case store.KindPost, store.KindEdges, store.KindGap:
		return kind
	}
	return ""
}

// readItem reads what another peer sends under a part.
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

// serveItems fills a page with all that there is of Keys, or with one kind of it.
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

// addKey adds what there is of k after part; false when the page is full.
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

// addEdges adds a list in pieces, the first with its walks. The piece that is
// not full yet is written with the next account, or at the end.
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

func (en *Engine) addPosts(p *recordPage, sl partition.Slice, k partition.Key, from string) (more bool, err error) {
	more = true
	err = en.o.Store.Accounts.Posts(sl, k, from, func(r store.Record) (bool, error) {
		var err error
		more, err = p.add(sl, k, append([]byte{partPost}, r.Post...), r)
		return more, err
	})
	return more && err == nil, err
}
