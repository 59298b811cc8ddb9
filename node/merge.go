package node

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

// mergeHits merges the answers of several peers into one ranking: by score,
// ties by Key, then Post, each once (the better score, should two peers hold it), then
// the window [offset, offset+limit). It is pure, and its result does not depend
// on the order of the answers (I8).
func mergeHits(answers [][]api.Hit, offset, limit int) []api.Hit {
	var all []api.Hit
	for _, a := range answers {
		all = append(all, a...)
	}
	slices.SortFunc(all, func(a, b api.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Post, b.Post), b.FetchedAt.Compare(a.FetchedAt), cmp.Compare(a.Peer, b.Peer))
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

// cursor is where the next page of a query begins. It names its query, so that
// a cursor of another one is refused instead of misread.
type cursor struct {
	Q      string `json:"q"`
	Offset int    `json:"o"`
}

// cursorOf is what a cursor says of the query it belongs to: a digest of its
// words and filters.
func cursorOf(q api.Query) string {
	q.Cursor, q.Limit = "", 0
	d := sha256.Sum256([]byte(q.Values().Encode()))
	return hex.EncodeToString(d[:16])
}

func (c cursor) String() string {
	b, err := json.Marshal(c)
	if err != nil {
		return "" // cannot happen: a string and a number
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseCursor(text, q string) (int, error) {
	if text == "" {
		return 0, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return 0, fmt.Errorf("cursor: %w", err)
	}
	var c cursor
	if err := json.Unmarshal(b, &c); err != nil {
		return 0, fmt.Errorf("cursor: %w", err)
	}
	if c.Q != q {
		return 0, errors.New("cursor: it belongs to another query")
	}
	if c.Offset < 0 || c.Offset > MaxQueryHits {
		return 0, fmt.Errorf("cursor: offset %d is outside 0..%d", c.Offset, MaxQueryHits)
	}
	return c.Offset, nil
}
