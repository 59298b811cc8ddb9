package social

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/crawler/social/calls"
	"github.com/echo-node/echo-node/crawler/social/pace"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Limits on the time between two readings of a list. The time halves after a reading that differs
// from the one before, and doubles after one that does not. TwitterEcho raises and lowers its links
// in the same way.
const (
	listFirst = 7 * 24 * time.Hour
	listLeast = 24 * time.Hour
	listMost  = 30 * 24 * time.Hour
)

// list reads some pages of followers or followings. The next fetch continues where this one ends.
func (v *visit) list(ctx context.Context) error {
	k, side := v.key, service.Followers
	if k.Kind() == partition.KindFollowing {
		side = service.Following
	}
	if v.b.State.List == nil {
		v.b.State.List = &account.ListState{Every: listFirst}
	}
	l := v.b.State.List
	followed, err := v.known.Followed(k.Account())
	if err != nil {
		return &calls.StoreError{Err: err}
	}
	v.b.Apart = !followed
	var e account.Edges
	if len(l.At) > 0 {
		e, err = v.api.Resume(l.At)
		if err != nil {
			v.o.Logger.Warn("a list is begun anew", "key", k, "err", err)
		}
	}
	if e == nil {
		had, _, err := v.look.looked(ctx)
		if err != nil {
			return err
		}
		p, err := v.profile(ctx, had)
		v.b.Record = nil // the record belongs to the Key of the account
		if gone, api := account.NotThere(err); gone {
			v.b.Missing(api, err)
			return nil
		}
		if err != nil {
			return err
		}
		v.b.State.Lost = 0
		if p.Suspended && p.Edges == nil {
			v.b.Gap(store.GapExpired, "suspended")
			v.b.Stop, v.b.Next = "suspended", store.Next{State: store.StateDone, At: v.now.Add(account.Ended),
				Reason: "suspended"}
			return nil
		}
		if e, err = p.Edges(ctx, side); err != nil {
			return err
		}
		// the reading has begun: if the budget ends here, the profile is not asked for again
		l.Walk, l.Sum, l.At = v.now, 0, e.Checkpoint()
	}
	for !e.Done() {
		page, err := e.Accounts(ctx)
		if err != nil && !e.Done() {
			return err
		}
		v.listPage(k, side, page, e)
		l.At = e.Checkpoint()
	}
	v.listed(e.Listing())
	return nil
}

// listPage adds one page to the batch, and its accounts to the candidates.
func (v *visit) listPage(k partition.Key, side service.Side, page []partition.Key, e account.Edges) {
	at := e.Listing()
	out := store.ListPage{List: k, Walk: v.b.State.List.Walk, At: v.now, Claimed: at.Claimed, End: e.Done(),
		Complete: e.Done() && at.Complete}
	if out.End && !out.Complete {
		out.Why = string(at.Why)
	}
	for _, to := range page {
		out.Accounts = append(out.Accounts, to)
		h := fnv.New64a()
		_, _ = h.Write([]byte(to)) // never fails
		v.b.State.List.Sum += h.Sum64()
		v.b.Candidate(to, string(side))
	}
	v.b.Lists = append(v.b.Lists, out)
}

// listed ends a reading.
func (v *visit) listed(at service.Listing) {
	l := v.b.State.List
	if !at.Complete {
		what := store.GapIncomplete
		switch at.Why {
		case service.MaxPages, service.MaxItems:
			what = store.GapCut
		case service.Hidden, service.NeedsToken, service.Closed, service.NotTheirs, service.Doubted:
			what = store.GapSkipped
		}
		v.b.Gap(what, fmt.Sprintf("%s: %d of %d", at.Why, at.Seen, at.Claimed))
	}
	switch {
	case at.Why == service.NotTheirs, at.Why == service.Doubted: // nothing was read
		l.Every, l.Sum = listFirst, l.Last
		if at.Why == service.Doubted { // a reading with another account's token may succeed
			l.Every = listLeast
		}
	case l.Sum != l.Last:
		l.Every = max(l.Every/2, listLeast)
	default:
		l.Every = min(l.Every*2, listMost)
	}
	l.Last, l.At = l.Sum, nil
	if v.b.Apart { // read only to judge the account
		l.Every = listMost
	}
	v.b.State.Visited = v.now
	v.b.Record = v.b.NewRecord(store.KindEdges)
	v.b.Record.Counts = map[string]int64{"seen": at.Seen}
	if at.Claimed >= 0 {
		v.b.Record.Counts["claimed"] = at.Claimed
	}
	v.b.Next = store.Next{State: store.StateDone, At: v.now.Add(l.Every),
		Reason: fmt.Sprintf("again after %s, which is half as long when the list changed and twice as long when not",
			pace.Brief(l.Every))}
}
