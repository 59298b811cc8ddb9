package node

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/search"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Status returns this peer's state. It is cheap enough for a request every second.
func (n *Node) Status() api.Status {
	// Read the crawler before the store. A fetch that ends between the two readings is then counted
	// twice, never missed, so Idle is never true too early.
	c := n.crawler.Stats()
	owned := n.quorum.Owned()
	mine := make(map[partition.Slice]bool, len(owned))
	for _, s := range owned {
		mine[s] = true
	}
	all, st := n.store.Stats(), n.store.StatsOf(func(s partition.Slice) bool { return mine[s] })
	live, _ := n.placement.Views()
	now := time.Now()
	acting, shipping := n.quorum.Active(owned, now), n.replicator.Lagging(owned)
	s := api.Status{
		Membership: n.Membership(),
		ID:         n.id, Swarm: n.charter.Name, Charter: n.charter.Digest(), Version: n.o.Version,
		Uptime:  time.Since(n.started).Seconds(),
		Fetched: all.Fetches, Requests: c.Requests, Failed: c.Failed,
		Records: st.Records, Keys: st.Keys, Pending: st.Pending, Due: int64(c.ReadyKeys), Fetching: c.Fetching,
		Outbox: st.Outbox,
		Slices: acting, SlicesAwaited: len(owned) - acting, SlicesTotal: len(n.slices),
		SlicesKept: len(n.quorum.Kept()), SlicesMoving: n.handover.Moving(), SlicesReplicating: shipping,
		Peers:    len(live.Members()),
		LinksOut: n.count.linksOut.Load(), LinksIn: n.count.linksIn.Load(),
		IndexLag: int64(search.Lag(n.store, n.index)) + int64(n.index.Waiting()), Limits: c.Limits, Stops: c.Stops,
		Revisits: c.Revisits, Hints: c.Hints, Media: st.Files, MediaBytes: st.FileBytes,
	}
	s.Budgets, s.Streams, s.Rejected, s.Rounds = n.budgets(now), n.streams(), n.rejected(), n.rounds()
	s.AddressesWaiting, s.AddressesBlocked = n.addresses.status(now)
	slow := n.glance.at(func() (x readings) {
		x.fingerprints, x.disk = n.index.Fingerprints(), n.disk.use()
		x.verdicts, x.languages = n.verdicts.counts(n, owned, now)
		return x
	})
	s.Prints, s.DiskBytes, s.Verdicts, s.Languages = slow.fingerprints, slow.disk, slow.verdicts, slow.languages
	s.Clock, s.Trash = n.ahead.status(now), n.trashStatus()
	s.Quarantined, s.Memory = st.Quarantined, api.Memory{Limit: c.Memory.Limit, Held: c.Memory.Held,
		Most: c.Memory.Most}
	s.Dead = deadShare(st)
	s.Progress = n.progress.of(now, st.Keys, st.Pending, all.Fetches)
	if s.Limits == nil {
		s.Limits = []string{}
	}
	s.Idle = s.Pending == 0 && s.Fetching == 0 && s.Outbox == 0 && s.SlicesAwaited == 0 && s.SlicesReplicating == 0 &&
		len(n.quorum.Diverged()) == 0 && n.seeding.Load() == 0
	return s
}

// statusWait is how long Status waits for values from the disk or the index, which may be busy.
// After that it shows the values of the last reading.
const statusWait = 150 * time.Millisecond

// readings are the values of Status that must be read.
type readings struct {
	fingerprints, disk  int64
	verdicts, languages map[string]int64
}

// glance holds the last readings. One goroutine reads at a time, for all callers that wait.
type glance struct {
	mu   sync.Mutex
	last readings
	busy chan struct{} // closed when the current reading ends; nil = no reading
}

// at returns the new readings, or the last ones if read takes longer than statusWait.
func (g *glance) at(read func() readings) readings {
	g.mu.Lock()
	busy := g.busy
	if busy == nil {
		busy = make(chan struct{})
		g.busy = busy
		go func() {
			now := read()
			g.mu.Lock()
			defer g.mu.Unlock()
			g.last, g.busy = now, nil
			close(busy)
		}()
	}
	g.mu.Unlock()
	timer := time.NewTimer(statusWait)
	defer timer.Stop()
	select {
	case <-busy:
	case <-timer.C:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.last
}

// deadShare returns the share of records whose Key is not done any more: the page was gone or did
// not answer at the last visit. The record of a Key that was placed elsewhere stays and counts as
// alive.
func deadShare(st store.Stats) float64 {
	if dead := st.Records - st.Done - st.Placed; dead > 0 {
		return float64(dead) / float64(st.Records)
	}
	return 0
}

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
