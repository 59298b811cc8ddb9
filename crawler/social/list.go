package social

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Between two readings of a list: half as long after one that differs from the one before, twice
// as long after one that does not, as the links of TwitterEcho are raised and lowered.
const (
	listFirst = 7 * 24 * time.Hour
	listLeast = 24 * time.Hour
	listMost  = 30 * 24 * time.Hour
)

// listState is where the reading of a list stands.
type listState struct {
	Walk  time.Time          `json:"walk"` // when it began
	At    service.Checkpoint `json:"at,omitempty"`
	Sum   uint64             `json:"sum"` // of the accounts met, whatever their order
	Last  uint64             `json:"last"`
	Every time.Duration      `json:"every"`
}

// list reads some pages of followers or followings; the next fetch goes on where this one ends.
func (v *visit) list(ctx context.Context) error {
	k, side := v.t.Due.Key, service.Followers
	if k.Kind() == partition.KindFollowing {
		side = service.Following
	}
	if v.st.List == nil {
		v.st.List = &listState{Every: listFirst}
	}
	l := v.st.List
	followed, err := v.s.followed(k.Account())
	if err != nil {
		return err
	}
	v.apart = !followed
	var e edges
	if len(l.At) > 0 {
		e, err = v.api.resume(l.At)
		if err != nil {
			v.s.o.Logger.Warn("a list is begun anew", "key", k, "err", err)
		}
	}
	if e == nil {
		had, _, err := v.looked(ctx)
		if err != nil {
			return err
		}
		p, err := v.profile(ctx, had)
		v.res.Record = nil // it is the account's
		if gone, api := notThere(err); gone {
			return v.lost(api, err)
		}
		if err != nil {
			return err
		}
		v.st.Lost = 0
		if p.suspended && p.edges == nil {
			v.gap(store.GapExpired, "suspended")
			v.res.Stop, v.res.Next = "suspended", store.Next{State: store.StateDone, At: v.now.Add(ended),
				Reason: "suspended"}
			return nil
		}
		if e, err = p.edges(ctx, side); err != nil {
			return err
		}
		// begun: should the budget end here, the profile is not asked for again
		l.Walk, l.Sum, l.At = v.now, 0, e.Checkpoint()
	}
	for !e.Done() {
		page, err := e.accounts(ctx)
		if err != nil && !e.Done() {
			return err
		}
		v.listPage(k, side, page, e)
		l.At = e.Checkpoint()
	}
	v.listed(e.Listing())
	return nil
}

// listPage is one page, for the store and for growth.
func (v *visit) listPage(k partition.Key, side service.Side, page []partition.Key, e edges) {
	at := e.Listing()
	out := store.ListPage{List: k, Walk: v.st.List.Walk, At: v.now, Claimed: at.Claimed, End: e.Done(),
		Complete: e.Done() && at.Complete}
	if out.End && !out.Complete {
		out.Why = string(at.Why)
	}
	for _, to := range page {
		out.Accounts = append(out.Accounts, to)
		h := fnv.New64a()
		_, _ = h.Write([]byte(to)) // never fails
		v.st.List.Sum += h.Sum64()
		v.candidate(to, string(side))
	}
	v.res.Lists = append(v.res.Lists, out)
}

// listed ends a reading.
func (v *visit) listed(at service.Listing) {
	l := v.st.List
	if !at.Complete {
		what := store.GapIncomplete
		switch at.Why {
		case service.MaxPages, service.MaxItems:
			what = store.GapCut
		case service.Hidden, service.NeedsToken, service.Closed, service.NotTheirs, service.Doubted:
			what = store.GapSkipped
		}
		v.gap(what, fmt.Sprintf("%s: %d of %d", at.Why, at.Seen, at.Claimed))
	}
	switch {
	case at.Why == service.NotTheirs, at.Why == service.Doubted: // nothing was read
		l.Every, l.Sum = listFirst, l.Last
		if at.Why == service.Doubted { // another account's may tell
			l.Every = listLeast
		}
	case l.Sum != l.Last:
		l.Every = max(l.Every/2, listLeast)
	default:
		l.Every = min(l.Every*2, listMost)
	}
	l.Last, l.At = l.Sum, nil
	if v.apart { // read to judge by
		l.Every = listMost
	}
	v.st.Visited = v.now
	v.res.Record = v.record(store.KindEdges)
	v.res.Record.Counts = map[string]int64{"seen": at.Seen}
	if at.Claimed >= 0 {
		v.res.Record.Counts["claimed"] = at.Claimed
	}
	v.res.Next = store.Next{State: store.StateDone, At: v.now.Add(l.Every),
		Reason: fmt.Sprintf("again after %s, which is half as long when the list changed and twice as long when not",
			brief(l.Every))}
}
