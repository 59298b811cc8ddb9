package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/index"
)

// Query answers for the whole swarm (I8). Every slice is assigned to its owner, or to a live
// replica. The first round gathers the peers' term statistics. The second gathers their best hits,
// scored with the merged statistics, so a score does not depend on which peer holds what. A slice
// that no peer answered for is reported with its peer and the reason.
func (en *Engine) Query(ctx context.Context, q api.Query) (api.Answer, error) {
	start := time.Now()
	if q.Limit == 0 {
		q.Limit = 10
	}
	at, err := parseCursor(q.Cursor, cursorOf(q))
	if err != nil {
		return api.Answer{}, fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	if q.Limit < 0 || q.Limit > MaxHits {
		return api.Answer{}, fmt.Errorf("%w: limit %d: an answer has at most %d hits; its cursor leads to the next",
			api.ErrInvalid, q.Limit, MaxHits)
	}
	q.Limit = min(q.Limit, MaxHits-at.Offset) // the page before MaxHits may be shorter
	// A query over a limit is the caller's mistake. It is found here, so it does not look like a
	// failure of every peer.
	if err := en.o.Index.Check(q.Q); errors.Is(err, index.ErrQuery) {
		return api.Answer{}, fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	facets, err := en.wireFacets(q.Facets)
	if err != nil {
		return api.Answer{}, err
	}
	// A peer that does not respond may cost the statistics half of the time, but it must not cost
	// all the time for the other peers' hits.
	look := at.Offset + q.Limit
	if !q.Unfold {
		look = min(look+foldAhead(q.Limit), MaxHits)
	}
	wq := wireQuery(q, facets, look)
	if a := at.After; a != nil {
		wq.After = &wire.Place{Score: a.Score, Key: string(a.Key), Post: a.Post}
	}
	rk := en.newRanking(wq)
	wait := cmp.Or(q.Timeout, en.o.Timeout)
	rk.zones = en.split(ctx, rk.assign, start.Add(wait/4))
	rk.round(ctx, true, start.Add(wait/2))
	rk.round(ctx, false, start.Add(wait))

	all := mergeHits(rk.hits, 0, look)
	hits, next := all[min(at.Offset, len(all)):], min(at.Offset+q.Limit, len(all))
	if q.Unfold {
		hits = hits[:min(q.Limit, len(hits))]
	} else {
		hits, next = fold(all, at.Offset, q.Limit)
	}
	ans := api.Answer{Hits: hits, Total: rk.total, Coverage: rk.coverage(), Notes: index.Notes(q.Q)}
	if more := next < len(all) || len(all) == look; more && len(ans.Hits) > 0 {
		ans.Cursor = at.then(all, next).String()
	}
	ans.TookMS = float64(time.Since(start).Microseconds()) / 1000
	return ans, nil
}

// wireQuery returns q as it is sent to other peers, with a limit of its own.
func wireQuery(q api.Query, facets *wire.Facets, limit int) *wire.Query {
	w := &wire.Query{Q: q.Q, Kind: q.Kind, Lang: q.Lang, Site: siteText(q.Site), Limit: uint32(limit), Facets: facets,
		Prints: !q.Unfold}
	if !q.Since.IsZero() {
		w.SinceMs = q.Since.UnixMilli()
	}
	if !q.Until.IsZero() {
		w.UntilMs = q.Until.UnixMilli()
	}
	return w
}

// siteText converts a site as people write it (a host, a host and port, or a URL) to a Site.
func siteText(s string) string {
	for _, service := range []string{"mastodon:", "bluesky:", "twitter:", "ip:"} {
		if strings.HasPrefix(s, service) {
			return s
		}
	}
	at := strings.TrimPrefix(s, "web:")
	if at == "" {
		return s
	}
	if !strings.Contains(at, "://") {
		scheme := "https://"
		if strings.HasSuffix(at, ":80") { // not part of a Site: the default of http
			scheme = "http://"
		}
		at = scheme + at
	}
	if k, err := partition.ParseKey(at); err == nil {
		return string(k.Site())
	}
	return "web:" + strings.ToLower(strings.TrimPrefix(s, "web:"))
}
