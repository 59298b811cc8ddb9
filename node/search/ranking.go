package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/index"
)

// ranking is one running query: a round for term statistics, then a round for hits.
type ranking struct {
	*fanout
	q     *wire.Query
	given *wire.TermStats // to score with; nil = those of the first round
	stats index.Stats
	hits  [][]api.Hit
	total uint64
}

func (en *Engine) newRanking(q *wire.Query) *ranking { return &ranking{fanout: en.newFanout(), q: q} }

// round asks every peer that has not failed, for statistics or for hits. Hits are scored with the
// statistics of all requested slices (I8), so slices without statistics are not asked for hits.
func (r *ranking) round(ctx context.Context, statsOnly bool, until time.Time) {
	stats := r.given
	if stats == nil && !statsOnly {
		if merged, err := wireStats(r.stats); err == nil {
			stats = merged
		}
	}
	send := func(ctx context.Context, q question) (*wire.QueryAnswer, error) {
		return r.send(ctx, q.peer, &wire.Query{Q: r.q.Q, Kind: r.q.Kind, Lang: r.q.Lang, Site: r.q.Site,
			SinceMs: r.q.SinceMs, UntilMs: r.q.UntilMs, Facets: r.q.Facets, Prints: r.q.Prints, Limit: r.q.Limit,
			After: r.q.After, StatsOnly: statsOnly, Stats: stats, Slices: q.wireSlices(), Zone: uint64(q.zone)})
	}
	take := r.takeHits
	if statsOnly {
		take = r.takeStats
	}
	round(ctx, r.fanout, r.questions(false), until, send, take)
}

// send asks one peer, which may be this peer itself.
func (r *ranking) send(ctx context.Context, peer string, q *wire.Query) (*wire.QueryAnswer, error) {
	if peer == r.en.o.ID {
		return r.en.ServeQuery(ctx, q)
	}
	resp, err := r.en.ask(ctx, peer, &wire.Request{Body: &wire.Request_Query{Query: q}})
	if err != nil {
		return nil, err
	}
	if a := resp.GetQuery(); a != nil {
		return a, nil
	}
	return nil, call.ErrForeign
}

// takeStats merges one peer's response of the first round. r.mu is held.
func (r *ranking) takeStats(q question, a *wire.QueryAnswer) error {
	s, err := q.scope(a.GetMissing())
	if err != nil {
		return err
	}
	if a.GetStats() != nil {
		var st index.Stats
		if err := json.Unmarshal(a.Stats.Opaque, &st); err != nil {
			return fmt.Errorf("its statistics: %w", err)
		}
		r.stats = r.stats.Merge(st)
	}
	if q.zone == 0 { // a whole zone is asked again in the second round
		r.lack(q.peer, s.missing)
	}
	return nil
}

// takeHits merges one peer's hits. They may only be of the slices that the request named (I8). r.mu
// is held.
func (r *ranking) takeHits(q question, a *wire.QueryAnswer) error {
	s, err := q.scope(a.GetMissing())
	if err != nil {
		return err
	}
	if r.q.Facets != nil && !a.GetFaceted() && len(s.missing) < len(q.slices) {
		return errors.New("its version knows no place, scope or verdict to choose by")
	}
	hits := make([]api.Hit, 0, len(a.GetHits()))
	for _, h := range a.GetHits() {
		x, err := hitOf(h)
		if err != nil {
			return err
		}
		sl, err := r.en.swarm.SliceFrom(h.Slice, x.Key)
		if err != nil {
			return err
		}
		if !s.has(sl) {
			return errors.New("its hit belongs to a slice that it does not answer for")
		}
		if a := r.q.After; a != nil && !(afterward{a.Score, partition.Key(a.Key), a.Post}).before(x) {
			return fmt.Errorf("its version knows no page beyond the first %d hits", MaxHits)
		}
		hits = append(hits, x)
	}
	r.hits = append(r.hits, hits)
	r.stale = r.stale || a.GetStale()
	r.total += min(a.GetTotal(), math.MaxUint64-r.total)
	r.lack(q.peer, s.missing)
	return nil
}

func wireStats(st index.Stats) (*wire.TermStats, error) {
	b, err := json.Marshal(st)
	if err != nil {
		return nil, fmt.Errorf("query: statistics: %w", err)
	}
	return &wire.TermStats{Docs: st.Docs, Opaque: b}, nil
}

// serveZoneQuery answers for a whole zone by asking its members, for a peer of another zone. Slices
// that are not in this peer's own zone are missing.
func (en *Engine) serveZoneQuery(ctx context.Context, q *wire.Query) (*wire.QueryAnswer, error) {
	r := en.newRanking(q)
	r.given = q.Stats
	lost := en.withinZone(r.assign, partition.Zone(q.Zone))
	r.round(ctx, q.StatsOnly, en.zoneDeadline(ctx))
	a := &wire.QueryAnswer{Total: r.total, Stale: r.stale, Faceted: q.Facets != nil,
		Missing: append(call.AppendSlices(nil, lost), r.missing()...)}
	if q.StatsOnly {
		var err error
		a.Stats, err = wireStats(r.stats)
		return a, err
	}
	for _, h := range mergeHits(r.hits, 0, int(min(q.Limit, MaxHits))) {
		a.Hits = append(a.Hits, wireHit(h))
	}
	return a, nil
}
