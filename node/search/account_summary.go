package search

import (
	"context"
	"errors"
	"slices"

	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Limits of an account summary.
const (
	shownPosts = 10
	shownGaps  = 10
	maxCounted = 50_000 // posts and accounts that are counted, each
)

// AccountSummary returns what this peer stores of an account, a list or a timeline besides its
// record. It returns nil for a Key of another kind.
func (en *Engine) AccountSummary(sl partition.Slice, k partition.Key) (*api.AccountSummary, error) {
	switch k.Kind() {
	case partition.KindPage, partition.KindFeed, partition.KindMedia, partition.KindFile, partition.KindAddress,
		partition.KindInvalid:
		return nil, nil
	}
	h := &api.AccountSummary{Latest: []store.Record{}, Lists: []api.ListSummary{}, Gaps: []store.Gap{}}
	err := en.o.Store.Accounts.Posts(sl, k, "", func(r store.Record) (bool, error) {
		if h.Posts++; r.Deleted {
			h.Deleted++
		} else {
			r.Raw = nil
			h.Latest = append(h.Latest, r)
		}
		if len(h.Latest) > 4*shownPosts {
			newest(h)
		}
		h.More = h.Posts >= maxCounted
		return !h.More, nil
	})
	if err != nil {
		return nil, err
	}
	newest(h)
	lists := []partition.Key{k}
	if k.Kind() == partition.KindAccount {
		lists = []partition.Key{k + "/followers", k + "/following"}
	}
	for _, l := range lists {
		if err := en.listSummary(sl, l, h); err != nil {
			return nil, err
		}
	}
	err = en.o.Store.Accounts.Gaps(sl, k, func(g store.Gap) (bool, error) {
		h.Gaps = append(h.Gaps, g)
		return true, nil
	})
	slices.Reverse(h.Gaps)
	h.Gaps = h.Gaps[:min(len(h.Gaps), shownGaps)]
	return h, err
}

// newest keeps only the latest shownPosts of h.Latest, newest first.
func newest(h *api.AccountSummary) {
	at := func(r store.Record) int64 {
		if r.PublishedAt != nil {
			return r.PublishedAt.UnixMicro()
		}
		return r.FetchedAt.UnixMicro()
	}
	slices.SortStableFunc(h.Latest, func(a, b store.Record) int { return int(min(max(at(b)-at(a), -1), 1)) })
	h.Latest = h.Latest[:min(len(h.Latest), shownPosts)]
}

// listSummary counts the walks and edges of list, and appends the result to h.Lists. It appends
// nothing when the list was never walked.
func (en *Engine) listSummary(sl partition.Slice, list partition.Key, h *api.AccountSummary) error {
	x := api.ListSummary{List: list}
	err := en.o.Store.Accounts.Walks(sl, list, func(w store.Walk) (bool, error) {
		x.Walks++
		if w.Complete {
			x.Complete = &w
		}
		x.Last = &w
		return true, nil
	})
	if err != nil || x.Walks == 0 {
		return err
	}
	err = en.o.Store.Accounts.Edges(sl, list, "", func(e store.Edge) (bool, error) {
		if x.Ever++; e.GoneAt == nil {
			x.Now++
		}
		x.More = x.Ever >= maxCounted
		return !x.More, nil
	})
	h.Lists = append(h.Lists, x)
	return err
}

// errEnough ends an export or a scan that has as much as its caller needs.
var errEnough = errors.New("enough")

// Gaps returns up to q.Limit gaps of the whole swarm, and a cursor to the next ones.
func (en *Engine) Gaps(ctx context.Context, q api.GapQuery) (api.GapAnswer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := api.GapAnswer{Gaps: []store.Gap{}}
	e := api.Export{Kind: store.KindGap, Site: q.Site, Since: q.Since, Until: q.Until, Cursor: q.Cursor, Local: q.Local}
	missing, err := en.Export(ctx, e, func(r store.Record, cursor string) error {
		if len(a.Gaps) == q.Limit {
			return errEnough
		}
		a.Gaps = append(a.Gaps, *r.Gap)
		a.Cursor = cursor
		return nil
	})
	if a.Missing = missing; errors.Is(err, errEnough) {
		return a, nil
	}
	a.Cursor = "" // that was all
	return a, err
}
