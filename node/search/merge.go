package search

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
)

// mergeHits merges the answers of several peers into one ranking. It sorts by score, then Key, then
// Post. A hit that two peers return is kept once, with the better score. It returns the window
// [offset, offset+limit). The function is pure, and the result does not depend on the order of the
// answers (I8).
func mergeHits(answers [][]api.Hit, offset, limit int) []api.Hit {
	var all []api.Hit
	for _, a := range answers {
		all = append(all, a...)
	}
	slices.SortFunc(all, func(a, b api.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Post, b.Post),
			b.FetchedAt.Compare(a.FetchedAt), cmp.Compare(a.Peer, b.Peer))
	})
	type name struct {
		key  partition.Key
		post string
	}
	seen := make(map[name]bool, len(all))
	out := make([]api.Hit, 0, min(limit, len(all)))
	for _, h := range all {
		at := name{h.Key, h.Post}
		if seen[at] {
			continue
		}
		seen[at] = true
		if offset > 0 {
			offset--
			continue
		}
		if len(out) == limit {
			break
		}
		out = append(out, h)
	}
	return out
}

// cursor is where the next page of a query begins: at an offset, or, beyond MaxHits, after a
// certain hit. It contains a digest of its query, so the cursor of another query is refused instead
// of misread.
type cursor struct {
	Q      string     `json:"q"`
	Offset int        `json:"o,omitempty"`
	After  *afterward `json:"a,omitempty"`
}

// afterward is the last hit of the previous page.
type afterward struct {
	Score float64       `json:"s"`
	Key   partition.Key `json:"k"`
	Post  string        `json:"p,omitempty"`
}

// before reports whether h comes after the hit a, in the order of an answer.
func (a afterward) before(h api.Hit) bool {
	return cmp.Or(cmp.Compare(h.Score, a.Score), cmp.Compare(a.Key, h.Key), cmp.Compare(a.Post, h.Post)) < 0
}

// then returns the cursor of the page after this one. all are the hits from the first on, or those
// after c.After; the first next of them are used up.
func (c cursor) then(all []api.Hit, next int) cursor {
	if c.After == nil && next < MaxHits {
		return cursor{Q: c.Q, Offset: next}
	}
	last := all[next-1]
	return cursor{Q: c.Q, After: &afterward{last.Score, last.Key, last.Post}}
}

// cursorOf returns a digest of the query's words and filters. A cursor uses it to identify its
// query.
func cursorOf(q api.Query) string {
	q.Cursor, q.Limit, q.Timeout = "", 0, 0
	d := sha256.Sum256([]byte(q.Values().Encode()))
	return hex.EncodeToString(d[:16])
}

// String encodes c as the text that parseCursor reads.
func (c cursor) String() string {
	b, err := json.Marshal(c)
	if err != nil {
		return "" // cannot happen: strings and finite numbers
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// parseCursor decodes the cursor of query q; an empty text is the beginning.
func parseCursor(text, q string) (c cursor, err error) {
	if text == "" {
		return cursor{Q: q}, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return c, fmt.Errorf("cursor: %w", err)
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return c, fmt.Errorf("cursor: %w", err)
	}
	if c.Q != q {
		return c, errors.New("cursor: it belongs to another query")
	}
	if c.Offset < 0 || c.Offset >= MaxHits {
		return c, fmt.Errorf("cursor: offset %d is outside 0..%d", c.Offset, MaxHits-1)
	}
	if c.After != nil {
		if c.After.Key, err = partition.KeyFromWire(string(c.After.Key)); err != nil {
			return c, fmt.Errorf("cursor: %w", err)
		}
	}
	return c, nil
}
