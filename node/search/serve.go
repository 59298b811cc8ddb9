package search

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/index"
)

// hitOf converts a hit of another peer, and checks that its Key is valid.
func hitOf(h *wire.Hit) (api.Hit, error) {
	k, err := partition.KeyFromWire(h.GetKey())
	if err != nil {
		return api.Hit{}, fmt.Errorf("its hit: %w", err)
	}
	x := api.Hit{Key: k, Post: h.Post, Kind: h.Kind, Title: h.Title, Snippet: h.Snippet, Score: h.Score, Place: h.Place,
		Lang: h.Lang, Peer: h.Peer,
		FetchedAt: time.UnixMilli(h.FetchedMs).UTC(), Period: h.Period, Verdict: h.Verdict, Print: h.Print}
	if h.TimeMs != 0 {
		t := time.UnixMilli(h.TimeMs).UTC()
		x.Time = &t
	}
	return x, nil
}

// ServeQuery answers for the requested slices that this peer holds, and lists the others as
// missing.
func (en *Engine) ServeQuery(ctx context.Context, q *wire.Query) (*wire.QueryAnswer, error) {
	if q.Zone != 0 {
		return en.serveZoneQuery(ctx, q)
	}
	a := &wire.QueryAnswer{}
	iq := index.Query{Text: q.Q, Kind: q.Kind, Lang: q.Lang, Site: q.Site, Limit: min(int(q.Limit), MaxHits)}
	if q.SinceMs != 0 {
		iq.Since = time.UnixMilli(q.SinceMs)
	}
	if q.UntilMs != 0 {
		iq.Until = time.UnixMilli(q.UntilMs)
	}
	if a := q.After; a != nil {
		iq.After = &index.Place{Score: a.Score, Key: partition.Key(a.Key), Post: a.Post}
	}
	var err error
	if iq.Facets, err = facetsFrom(q.Facets); err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	a.Faceted = q.Facets != nil
	for _, s := range q.Slices {
		if sl := partition.Slice(s); en.o.Quorum.Has(sl) {
			iq.Slices = append(iq.Slices, sl)
		} else {
			a.Missing = append(a.Missing, s)
		}
	}
	if len(iq.Slices) == 0 {
		return a, nil
	}
	if q.StatsOnly {
		st, err := en.statistics(ctx, iq)
		if err != nil {
			return nil, fmt.Errorf("query: %w", err)
		}
		a.Missing = call.AppendSlices(a.Missing, st.Missing)
		a.Stats, err = wireStats(st)
		return a, err
	}
	var st *index.Stats
	if q.Stats != nil {
		st = new(index.Stats)
		if err := json.Unmarshal(q.Stats.Opaque, st); err != nil {
			return nil, fmt.Errorf("query: statistics: %w", err)
		}
	}
	if q.Prints {
		iq.Beside = en.fingerprints.of
	}
	res, err := en.o.Index.Search(ctx, iq, st)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	a.Missing = call.AppendSlices(a.Missing, res.Missing)
	// A replica that is not the acting owner may lack the owner's last writes.
	a.Total, a.Stale = res.Total, Lag(en.o.Store, en.o.Index) > 0 ||
		slices.ContainsFunc(iq.Slices, func(s partition.Slice) bool { return !en.acts(s) })
	for _, h := range res.Hits {
		w := wireHit(foundHit(h))
		w.Slice = call.SliceOn(h.Slice)
		a.Hits = append(a.Hits, w)
	}
	return a, nil
}

// statistics returns the statistics of the index. It waits for slices that the index must read
// first: only an owner has its slices there all the time.
func (en *Engine) statistics(ctx context.Context, q index.Query) (index.Stats, error) {
	wait, cancel := context.WithTimeout(ctx, en.o.indexWait())
	defer cancel()
	if err := en.o.Index.Await(wait, q.Slices); err != nil && wait.Err() == nil {
		return index.Stats{}, err
	}
	return en.o.Index.Statistics(ctx, q)
}

// foundHit converts a hit of this peer's index.
func foundHit(h index.Hit) api.Hit {
	x := api.Hit{Key: h.Key, Post: h.Post, Score: h.Score, Kind: h.Kind, Lang: h.Lang, Title: h.Title,
		Snippet: h.Snippet, Period: periodText(h.Period), Verdict: h.Verdict, Peer: h.Peer, FetchedAt: h.FetchedAt,
		Print: h.Beside}
	if h.Place != nil {
		x.Place = h.Place.Name
	}
	if !h.Time.IsZero() {
		x.Time = &h.Time
	}
	return x
}

// wireHit converts h for the wire: the inverse of hitOf.
func wireHit(h api.Hit) *wire.Hit {
	w := &wire.Hit{Key: string(h.Key), Post: h.Post, Score: h.Score, Kind: h.Kind, Title: h.Title, Snippet: h.Snippet,
		Lang: h.Lang, Place: h.Place,
		Peer: h.Peer, FetchedMs: h.FetchedAt.UnixMilli(), Period: h.Period, Verdict: h.Verdict, Print: h.Print}
	if h.Time != nil {
		w.TimeMs = h.Time.UnixMilli()
	}
	if math.IsNaN(w.Score) || math.IsInf(w.Score, 0) {
		w.Score = 0
	}
	return w
}

// HitOfRecord returns r as a hit of a list that has no query.
func HitOfRecord(r store.Record) api.Hit {
	h := api.Hit{Key: r.Key, Post: r.Post, Kind: r.Kind, Title: r.Title, Lang: r.Lang, Peer: r.Peer,
		FetchedAt: r.FetchedAt, Time: r.PublishedAt, Period: periodText(r.Period),
		Verdict: r.VerdictWord()}
	if r.Place != nil {
		h.Place = r.Place.Name
	}
	return h
}
