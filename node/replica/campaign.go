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
	campaignBackoff = 2 * time.Second // the longest after one that failed, and up to as much again
	// the replicas of a dead owner try one after the other; an owner lets who has a promise try as long
	campaignRank  = time.Second
	campaignAlive = 10 * time.Second // patience with an owner that lives and does not renew
	campaignEmpty = 2 * time.Second  // more patience where nothing was ever written, so that no site waits
	emptyAtOnce   = 256              // slices of that kind in one campaign
)

// RunCampaigns finds new owners for slices whose owner is gone, and adopts
// orphans. Campaigns run beside each other: one that waits for somebody who does
// not answer keeps no other slice waiting.
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

// campaigns are those that run, and when a slice may have the next one.
type campaigns struct {
	mu      sync.Mutex
	after   retries
	running map[partition.Slice]bool
}

// free are those of lost for which a campaign may begin at now.
func (c *campaigns) free(lost []partition.Slice, now time.Time) []partition.Slice {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.after.forget(now)
	return slices.DeleteFunc(lost, func(s partition.Slice) bool { return c.running[s] || now.Before(c.after[s].at) })
}

// begin says for which slices a campaign begins: all that are in use; else, when
// none runs, some of the empty ones.
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

// end takes note of a campaign that has ended at now; see tried.
func (c *campaigns) end(all []partition.Slice, leased map[partition.Slice]time.Duration, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range all {
		delete(c.running, s)
	}
	c.after.tried(all, leased, now)
}

// retries are when this peer may campaign for a slice again.
type retries map[partition.Slice]retry

type retry struct {
	at   time.Time
	wait time.Duration // the last one
}

// tried takes note of campaigns that failed, or not, at now, and of how long the replicas
// that refused because of a lease said that it would last: after that they may
// agree. Who met a rival, or nobody, waits longer each time, and by chance, so
// that two do not outbid each other for long.
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

// forget drops those long past.
func (r retries) forget(now time.Time) {
	for s, one := range r {
		if now.Sub(one.at) > campaignAlive {
			delete(r, s)
		}
	}
}

// patience is how long a lease must have run out before this peer campaigns:
// the replicas take turns, so that they do not outbid each other. An owner that
// a replica refuses, having promised to another while this one was away, lets
// that other have its turn and no more. Where no majority can be asked nobody
// can be elected; and who has just come into view, an owner or the replicas of
// this peer's own slices after a cut, is let renew the lease first.
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

// campaign tries to become the owner of slices. leased are those of them that
// replicas refused because of a lease, and how much longer the longest lasts. The
// error is the store's alone.
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
	// This peer's own promise comes last, when it makes the majority: given for
	// nothing, it would hold up an owner that comes back, or never was away.
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

// logPromises says what came of a campaign in slices that are in use: from it one
// sees afterwards why a site waited.
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

// meetings are when each replica was last a member here. One that was never met
// counts as met when it was first heard of: a peer that has just come knows
// nothing of how long others have been away.
type meetings map[string]time.Time

// gone says whether replica has not been met for so long.
func (m meetings) gone(replica string, alive bool, now time.Time, long time.Duration) bool {
	if last, known := m[replica]; alive || !known {
		m[replica] = now
	} else {
		return now.Sub(last) >= long
	}
	return false
}

// adoptOrphans takes slices whose replicas' majority has been gone for longer
// than --orphan-after. Of those left the first in the ranking takes one; when
// none is left, the first that should keep it.
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
	// Others are said to keep it: a peer that never did gives them as long again to say so.
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

// founderFor is how long who knows nothing but that the founder had all slices
// waits for the founder's word, before the words of those count who are said to
// keep them.
const founderFor = 3 * time.Second

// confirm takes what was heard of slices whose known replicas are all gone.
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
		e.o.Counts.WordsConfirmed.Add(int64(confirmed))
		e.o.Logger.Warn("who kept slices is gone; the word of a majority of those who say that they keep them is taken",
			"slices", confirmed)
	}
	return err
}

// mayAdopt keeps a peer that has not met its swarm from taking the whole space
// for its own.
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
