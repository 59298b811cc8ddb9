package replica

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/node/replica/replicate"
	"github.com/echo-node/echo-node/partition"
)

const (
	campaignEvery   = 250 * time.Millisecond
	campaignBackoff = 2 * time.Second // the longest delay after a failure; up to as much is added
	// One step of delay for each replica of a dead owner, so that they try one after the other. An
	// owner waits as long for a candidate that has a promise.
	campaignRank  = time.Second
	campaignAlive = 10 * time.Second // patience with a live owner that does not renew
	campaignEmpty = 2 * time.Second  // extra delay for empty slices: no site waits there
	emptyAtOnce   = 256              // the most empty slices in one campaign
)

// RunCampaigns finds new owners for slices whose owner is gone, and adopts orphans. Campaigns run
// concurrently: a campaign that waits for a silent peer delays no other slice.
func (e *Elections) RunCampaigns(ctx context.Context) error {
	tick := time.NewTicker(campaignEvery)
	defer tick.Stop()
	var running sync.WaitGroup
	defer running.Wait()
	fail := make(chan error, 1)
	c := &campaigns{after: retries{}, running: map[partition.Slice]bool{}}
	met := meetings{}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-fail:
			return err
		case <-tick.C:
		}
		if e.o.Placement.Frozen() {
			continue
		}
		now := time.Now()
		if lost := c.begin(replicate.InUse(e.o.Store, c.free(e.o.Quorum.Lost(now, e.patience), now))); len(lost) > 0 {
			running.Go(func() {
				leased, err := e.campaign(ctx, lost)
				c.end(lost, leased, time.Now())
				if err != nil {
					select {
					case fail <- err:
					default:
					}
				}
			})
		}
		if err := e.adoptOrphans(now, met); err != nil {
			return err
		}
	}
}

// campaigns holds the running campaigns and when each slice may have its next one.
type campaigns struct {
	mu      sync.Mutex
	after   retries
	running map[partition.Slice]bool
}

// free returns the slices of lost for which a campaign may start at now.
func (c *campaigns) free(lost []partition.Slice, now time.Time) []partition.Slice {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.after.forget(now)
	return slices.DeleteFunc(lost, func(s partition.Slice) bool { return c.running[s] || now.Before(c.after[s].at) })
}

// begin returns the slices for which a campaign starts: all slices in use. If there are none and no
// campaign runs, it returns some of the empty ones.
func (c *campaigns) begin(used, empty []partition.Slice) []partition.Slice {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(used) == 0 && len(c.running) == 0 {
		used = empty[:min(len(empty), emptyAtOnce)]
	}
	for _, s := range used {
		c.running[s] = true
	}
	return used
}

// end records that a campaign ended at now. See tried.
func (c *campaigns) end(all []partition.Slice, leased map[partition.Slice]time.Duration, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range all {
		delete(c.running, s)
	}
	c.after.tried(all, leased, now)
}

// retries says when this peer may campaign for a slice again.
type retries map[partition.Slice]retry

// retry says when the next campaign for a slice may start.
type retry struct {
	at   time.Time
	wait time.Duration // the last delay
}

// tried records campaigns that ended at now. leased says how long the leases last because of which
// replicas refused; after that time they may agree. A candidate that met a rival, or no replica,
// waits longer each time, plus a random delay. So two candidates do not outbid each other for long.
func (r retries) tried(all []partition.Slice, leased map[partition.Slice]time.Duration, now time.Time) {
	for _, s := range all {
		wait := min(max(2*r[s].wait, campaignEvery), campaignBackoff)
		if rest, ok := leased[s]; ok {
			r[s] = retry{now.Add(rest), r[s].wait}
		} else {
			r[s] = retry{now.Add(wait + rand.N(wait)), wait}
		}
	}
}

// forget drops entries that are long past.
func (r retries) forget(now time.Time) {
	for s, one := range r {
		if now.Sub(one.at) > campaignAlive {
			delete(r, s)
		}
	}
}

// patience returns how long a lease must have run out before this peer campaigns. The replicas take
// turns, so that they do not outbid each other. An owner may be refused by a replica that promised
// to another candidate while the owner was away (spurned). The owner then gives that candidate one
// turn and no more. If no majority can be asked, nobody can be elected. An owner, or the replicas
// of this peer's own slices, may have just come back into view after a network cut: then the owner
// first gets time to renew the lease.
func (e *Elections) patience(s partition.Slice, c quorum.ReplicaSet, spurned bool) time.Duration {
	const never = time.Duration(math.MaxInt64)
	now := time.Now()
	present, rank, before := 0, 0, true
	newest := campaignAlive
	for _, k := range c.Replicas {
		before = before && k != e.o.Self
		if !e.o.Placement.Vanished(k) {
			present++
		}
		if met, alive := e.o.Placement.Met(k, now); alive {
			if k != e.o.Self {
				newest = min(newest, met)
			}
			if before && k != c.Owner {
				rank++
			}
		}
	}
	wait := time.Duration(rank) * campaignRank
	met, alive := e.o.Placement.Met(c.Owner, now)
	switch {
	case present < c.Quorum():
		return never
	case c.Owner == e.o.Self && newest < campaignRank:
		return never
	case c.Owner == e.o.Self && spurned:
		wait = campaignRank
	case c.Owner == e.o.Self:
		wait = quorum.LeaseGrant
	case alive && met < campaignAlive:
		return never
	case alive:
		wait += campaignAlive
	}
	if e.o.Store.Log.LogHead(s) == 0 {
		wait += campaignEmpty
	}
	return wait
}

// campaign tries to become the owner of slices. leased are the slices that replicas refused because
// of a lease, with the remaining time of the longest one. The error comes from the store alone.
func (e *Elections) campaign(ctx context.Context, ss []partition.Slice) (leased map[partition.Slice]time.Duration,
	err error) {
	if len(ss) == 0 {
		return nil, nil
	}
	var ballots []quorum.Proposal
	promises := map[partition.Slice][]quorum.Promise{}
	leased = map[partition.Slice]time.Duration{}
	for _, s := range ss {
		if p, ok := e.o.Quorum.Campaign(s); ok && e.o.Quorum.Free(p, time.Now()) {
			ballots = append(ballots, p)
		}
	}
	if len(ballots) == 0 {
		return nil, nil
	}
	e.o.Logger.Info("campaign", "slices", len(ballots), "owner", ballots[0].Base.Owner)
	comparable := map[partition.Slice]int{} // promises with copies that Choose can compare
	granted := map[partition.Slice]int{}
	err = e.poll(ctx, ballots, false, func(a quorum.Promise) {
		promises[a.Slice] = append(promises[a.Slice], a)
		if a.OK {
			granted[a.Slice]++
		}
		if a.OK && !(a.Copied && a.Head == quorum.UnknownHead) {
			comparable[a.Slice]++
		}
		if a.Leased > 0 {
			leased[a.Slice] = max(leased[a.Slice], min(a.Leased, quorum.LeaseGrant))
		}
	}, func(p quorum.Proposal) bool { return comparable[p.Slice]+1 >= p.Base.Quorum() })
	if err != nil {
		return nil, err
	}
	e.logPromises(ballots, promises)
	// This peer's own promise comes last, and only if it makes the majority. A promise without
	// effect would delay an owner that comes back, or that never was away.
	ballots = slices.DeleteFunc(ballots, func(p quorum.Proposal) bool { return granted[p.Slice]+1 < p.Base.Quorum() })
	err = e.agreement.Decide(func() {
		for _, p := range ballots {
			promises[p.Slice] = append(promises[p.Slice], e.o.Quorum.Prepare(p, time.Now()))
		}
	})
	if err != nil {
		return nil, err
	}
	var chosen []quorum.Proposal
	for _, p := range ballots {
		if p, ok := e.o.Quorum.Choose(p, promises[p.Slice]); ok {
			chosen = append(chosen, p)
		}
	}
	return leased, e.accept(ctx, chosen)
}

// logPromises logs the result of a campaign for slices in use, so that an operator can see later
// why a site waited.
func (e *Elections) logPromises(ballots []quorum.Proposal, promises map[partition.Slice][]quorum.Promise) {
	if !e.o.Logger.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	for _, p := range ballots {
		head := e.o.Store.Log.LogHead(p.Slice)
		if head == 0 {
			continue
		}
		e.o.Logger.Debug("promises", "slice", p.Slice, "owner", p.Base.Owner, "gen", p.Base.Gen, "replicas",
			len(p.Base.Replicas), "ballot", p.Ballot.N, "head", head, "got", fmt.Sprintf("%+v", promises[p.Slice]))
	}
}

// meetings says when each replica was last a member in this peer's view. A replica that was never
// met counts as met when its name first appeared: a new peer does not know how long others have
// been away.
type meetings map[string]time.Time

// gone reports whether replica has not been met for at least long.
func (m meetings) gone(replica string, alive bool, now time.Time, long time.Duration) bool {
	if last, known := m[replica]; alive || !known {
		m[replica] = now
	} else {
		return now.Sub(last) >= long
	}
	return false
}

// adoptOrphans takes slices when a majority of their replicas has been gone for longer than
// --orphan-after. The first live replica takes the slice. If no replica is left, the first live
// peer in the ranking takes it.
func (e *Elections) adoptOrphans(now time.Time, met meetings) error {
	live, _ := e.o.Placement.Views()
	gone, founderGone := map[string]bool{}, false
	for _, k := range e.o.Quorum.Replicas() {
		_, alive := live.Find(k)
		if met.gone(k, alive, now, e.o.OrphanAfter) {
			gone[k] = true
		}
		if k == e.o.Charter.Founder {
			founderGone = !alive && now.Sub(met[k]) >= min(founderFor, e.o.OrphanAfter)
		}
	}
	if err := e.confirm(now, gone, founderGone); err != nil {
		return err
	}
	if !e.mayAdopt(now) {
		return nil
	}
	// If other peers are reported to keep the slice, a peer that never kept it waits twice as long.
	recent := func(k string) bool { return now.Sub(met[k]) < 2*e.o.OrphanAfter }
	orphans := map[partition.Slice]quorum.ReplicaSet{}
	for _, s := range e.o.Slices {
		if len(gone) == 0 {
			break
		}
		c := e.o.Quorum.ReplicaSet(s)
		reach := 0
		for _, k := range c.Replicas {
			if !gone[k] {
				reach++
			}
		}
		if reach >= c.Quorum() || !c.Has(e.o.Self) && e.o.Quorum.Doubted(s) && slices.ContainsFunc(c.Replicas, recent) {
			continue
		}
		left := slices.DeleteFunc(slices.Clone(c.Replicas), func(id string) bool { return !e.o.Placement.Alive(id) })
		if len(left) == 0 {
			left = slices.DeleteFunc(e.o.Placement.Ranked(s), func(id string) bool { return !e.o.Placement.Alive(id) })
		}
		if len(left) > 0 && left[0] == e.o.Self {
			orphans[s] = c
		}
	}
	for _, s := range e.o.Quorum.Bereft(now, e.o.OrphanAfter) {
		orphans[s] = e.o.Quorum.ReplicaSet(s)
	}
	if len(orphans) == 0 {
		return nil
	}
	e.o.Logger.Warn("taking slices over whose replicas are gone", "slices", len(orphans))
	return e.agreement.Decide(func() {
		for s, c := range orphans {
			e.o.Quorum.Adopt(s, c)
		}
	})
}

// founderFor applies to a peer that knows only that the founder had all slices. It waits this long
// for the founder's report before it believes the peers that are said to keep the slices.
const founderFor = 3 * time.Second

// confirm accepts reports about slices whose known replicas are all gone.
func (e *Elections) confirm(now time.Time, gone map[string]bool, founderGone bool) error {
	if !e.o.Quorum.InDoubt() {
		return nil
	}
	confirmed := 0
	err := e.agreement.Decide(func() {
		confirmed = len(e.o.Quorum.Confirm(now, func(replica string, first bool) bool {
			return gone[replica] || first &&
				founderGone
		}))
	})
	if confirmed > 0 {
		e.o.Counts.ReportsConfirmed.Add(int64(confirmed))
		e.o.Logger.Warn("who kept slices is gone; the word of a majority of those who say that they keep them is taken",
			"slices", confirmed)
	}
	return err
}

// mayAdopt stops a peer that has not met its swarm from taking all slices for itself.
func (e *Elections) mayAdopt(now time.Time) bool {
	live, effective := e.o.Placement.Views()
	if len(live.Members()) > 1 {
		return e.agreement.informed.Load()
	}
	if len(effective.Members()) > 1 {
		return false
	}
	return !e.o.Joiner || now.Sub(e.o.Started) > e.o.OrphanAfter && e.agreement.HeldBefore()
}
