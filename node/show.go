package node

import (
	"encoding/json"

	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// showHere returns what this peer's own store knows of k in the slice sl. placed is the slice that
// crawls k if k was placed elsewhere, or 0.
func (n *Node) showHere(sl partition.Slice, k partition.Key) (s api.Shown, placed partition.Slice, err error) {
	s = api.Shown{Key: k, Owner: n.id, Slice: sl.String()}
	if s.Site, err = n.siteState(sl, k); err != nil {
		return s, 0, err
	}
	d, err := n.store.Queue.DueIn(sl, k)
	if isNotExist(err) {
		return s, 0, nil
	}
	if err != nil {
		return s, 0, err
	}
	if d.State == store.StatePlaced {
		p, err := n.store.Queue.PlacementOf(sl, k)
		if err == nil && p.To != sl {
			placed = p.To
			if json.Valid([]byte(p.Why)) {
				s.Placement = json.RawMessage(p.Why)
			}
		} else if err != nil && !isNotExist(err) {
			return s, 0, err
		}
	}
	s.Known, s.State, s.Why, s.Depth, s.Attempts = true, stateWord(d.State), d.Reason, d.Depth, d.Attempts
	if !d.At.IsZero() {
		at := d.At.UTC()
		s.DueAt = &at
		if s.DueWhy, err = n.crawler.Why(d); err != nil {
			s.DueWhy = err.Error()
		}
	}
	rec, in, err := n.store.Archive.Find(k)
	switch {
	case err == nil && in == sl:
		s.Record = &rec
	case err != nil && !isNotExist(err):
		return s, placed, err
	}
	if s.Held, err = n.search.AccountSummary(sl, k); err != nil || k.Kind() != partition.KindAccount {
		return s, placed, err
	}
	s.Overrides, err = n.store.Accounts.Overrides(sl, k)
	return s, placed, err
}

// siteState returns the state of the crawl of k's site here, or nil if no request was ever sent to
// it.
func (n *Node) siteState(sl partition.Slice, k partition.Key) (*api.SiteState, error) {
	st, err := n.crawler.Site(sl, k.Site())
	if isNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &api.SiteState{Site: k.Site(), Fetched: st.Fetched, Delay: st.Delay.Seconds(), BackOff: st.BackOff.Seconds(),
		Stopped: st.Stopped, Stops: st.Stops}
	s.Domain, s.DomainSites = n.crawler.Domain(k)
	if s.Stops == nil {
		s.Stops = map[string]int64{}
	}
	if !st.NextAllowed.IsZero() {
		at := st.NextAllowed.UTC()
		s.NextAllowed = &at
	}
	return s, nil
}

func stateWord(s store.State) string {
	switch s {
	case store.StatePending:
		return "pending"
	case store.StateDone:
		return "done"
	case store.StateGone:
		return "gone"
	case store.StateRefused:
		return "refused"
	case store.StatePlaced:
		return "placed"
	case store.StateQuarantined:
		return "quarantined"
	}
	return "unknown"
}
