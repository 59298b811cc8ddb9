package node

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/keeping"
	"github.com/echo-node/echo-node/partition"
)

const (
	campaignEvery   = 250 * time.Millisecond
	campaignBackoff = 2 * time.Second  // the longest after one that failed, and up to as much again
	campaignRank    = time.Second      // the keepers of a dead owner try one after the other; an owner lets who has a promise try as long
	campaignAlive   = 10 * time.Second // patience with an owner that lives and does not renew
	campaignEmpty   = 2 * time.Second  // more patience where nothing was ever written, so that no site waits
	emptyAtOnce     = 256              // slices of that kind in one campaign
	ballotTimeout   = 2 * time.Second
)

// runCampaigns finds new owners for slices whose owner is gone, finishes what
// was proposed and not decided, and adopts orphans.
func (n *Node) runCampaigns(ctx context.Context) error {
	tick := time.NewTicker(campaignEvery)
	defer tick.Stop()
	after := retries{}
	met := meetings{}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if n.terr.isFrozen() {
			continue
		}
		if err := n.accept(ctx, n.keep.Unfinished()); err != nil {
			return err
		}
		now := time.Now()
		lost := n.keep.Lost(now, n.patience)
		lost = slices.DeleteFunc(lost, func(s partition.Slice) bool { return now.Before(after[s].at) })
		used, empty := n.used(lost)
		if lost = used; len(used) == 0 {
			lost = empty[:min(len(empty), emptyAtOnce)]
		}
		leased, err := n.campaign(ctx, lost)
		if err != nil {
			return err
		}
		after.tried(lost, leased, time.Now())
		if err := n.adoptOrphans(now, met); err != nil {
			return err
		}
		after.forget(now)
	}
}

// used parts slices into those in which something was ever written and the
// others, of which a geo swarm has thousands. What the former need comes first,
// and does not wait for the latter: there, a site may be waiting.
func (n *Node) used(all []partition.Slice) (used, empty []partition.Slice) {
	for _, s := range all {
		if n.store.LogHead(s) > 0 {
			used = append(used, s)
		} else {
			empty = append(empty, s)
		}
	}
	return used, empty
}

// retries are when this peer may campaign for a slice again.
type retries map[partition.Slice]retry

type retry struct {
	at   time.Time
	wait time.Duration // the last one
}

// tried takes note of campaigns that failed, or not, at now, and of how long the keepers
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
// the keepers take turns, so that they do not outbid each other. An owner that
// a keeper refuses, having promised to another while this one was away, lets
// that other have its turn and no more. Where no majority can be asked nobody
// can be elected; and who has just come into view, an owner or the keepers of
// this peer's own slices after a cut, is let renew the lease first.
func (n *Node) patience(s partition.Slice, c keeping.Config, spurned bool) time.Duration {
	const never = time.Duration(math.MaxInt64)
	now := time.Now()
	present, rank, before := 0, 0, true
	newest := campaignAlive
	for _, k := range c.Keepers {
		before = before && k != n.id
		if !n.terr.vanished(k) {
			present++
		}
		if met, alive := n.terr.met(k, now); alive {
			if k != n.id {
				newest = min(newest, met)
			}
			if before && k != c.Owner {
				rank++
			}
		}
	}
	wait := time.Duration(rank) * campaignRank
	met, alive := n.terr.met(c.Owner, now)
	switch {
	case present < c.Quorum():
		return never
	case c.Owner == n.id && newest < campaignRank:
		return never
	case c.Owner == n.id && spurned:
		wait = campaignRank
	case c.Owner == n.id:
		wait = keeping.LeaseGrant
	case alive && met < campaignAlive:
		return never
	case alive:
		wait += campaignAlive
	}
	if n.store.LogHead(s) == 0 {
		wait += campaignEmpty
	}
	return wait
}

// campaign tries to become the owner of slices. leased are those of them that
// keepers refused because of a lease, and how much longer the longest lasts. The
// error is the store's alone.
func (n *Node) campaign(ctx context.Context, ss []partition.Slice) (leased map[partition.Slice]time.Duration, err error) {
	if len(ss) == 0 {
		return nil, nil
	}
	var ballots []keeping.Proposal
	promises := map[partition.Slice][]keeping.Promise{}
	leased = map[partition.Slice]time.Duration{}
	for _, s := range ss {
		if p, ok := n.keep.Campaign(s); ok && n.keep.Free(p, time.Now()) {
			ballots = append(ballots, p)
		}
	}
	if len(ballots) == 0 {
		return nil, nil
	}
	n.log.Info("campaign", "slices", len(ballots), "owner", ballots[0].Base.Owner)
	granted := map[partition.Slice]int{}
	err = n.poll(ctx, ballots, false, func(_ string, _ keeping.Proposal, a keeping.Promise) {
		promises[a.Slice] = append(promises[a.Slice], a)
		if a.OK {
			granted[a.Slice]++
		}
		if a.Leased > 0 {
			leased[a.Slice] = max(leased[a.Slice], min(a.Leased, keeping.LeaseGrant))
		}
	})
	if err != nil {
		return nil, err
	}
	// This peer's own promise comes last, when it makes the majority: given for
	// nothing, it would hold up an owner that comes back, or never was away.
	ballots = slices.DeleteFunc(ballots, func(p keeping.Proposal) bool { return granted[p.Slice]+1 < p.Base.Quorum() })
	err = n.decide(func() {
		for _, p := range ballots {
			promises[p.Slice] = append(promises[p.Slice], n.keep.Prepare(p, time.Now()))
		}
	})
	if err != nil {
		return nil, err
	}
	var chosen []keeping.Proposal
	for _, p := range ballots {
		if p, ok := n.keep.Choose(p, promises[p.Slice]); ok {
			chosen = append(chosen, p)
		}
	}
	return leased, n.accept(ctx, chosen)
}

// accept has proposals accepted, by this peer first, and tells what was decided.
func (n *Node) accept(ctx context.Context, all []keeping.Proposal) error {
	if len(all) == 0 {
		return nil
	}
	by := map[partition.Slice][]string{}
	mine := all[:0:0]
	err := n.decide(func() {
		for _, p := range all {
			if n.keep.Accept(p, time.Now()).OK {
				by[p.Slice] = append(by[p.Slice], n.id)
				mine = append(mine, p)
			}
		}
	})
	if err != nil || len(mine) == 0 {
		return err
	}
	err = n.poll(ctx, mine, true, func(keeper string, _ keeping.Proposal, a keeping.Promise) {
		if a.OK {
			by[a.Slice] = append(by[a.Slice], keeper)
		}
	})
	if err != nil {
		return err
	}
	var decided []keeping.SliceConfig
	for _, p := range mine {
		if p.Decided(by[p.Slice]) {
			decided = append(decided, keeping.SliceConfig{Slice: p.Slice, Config: p.Next})
		}
	}
	return n.decided(ctx, decided)
}

// decided learns what was decided and tells everybody; who does not hear it
// hears of it by asking.
func (n *Node) decided(ctx context.Context, all []keeping.SliceConfig) error {
	if len(all) == 0 {
		return nil
	}
	if err := n.decide(func() { n.keep.Learn(all...) }); err != nil {
		return err
	}
	live, _ := n.terr.views()
	for _, m := range live.Members() {
		if m.ID != n.id {
			n.telling.Go(func() { n.tell(ctx, m.ID, all) })
		}
	}
	return nil
}

// tell sends Configs to a peer, which may or may not hear them.
func (n *Node) tell(ctx context.Context, peer string, all []keeping.SliceConfig) {
	ctx, cancel := context.WithTimeout(ctx, ballotTimeout)
	defer cancel()
	for page := range slices.Chunk(all, wire.MaxConfigs) {
		req := &wire.Configs{Decided: wireConfigs(page)}
		if _, err := n.call(ctx, peer, &wire.Request{Body: &wire.Request_Configs{Configs: req}}); err != nil {
			n.log.Debug("telling configs", "peer", peer, "err", err)
			return
		}
	}
}

// poll sends ballots to the other keepers of each and gives what they promise
// to take, one at a time. Newer Configs are learned.
func (n *Node) poll(ctx context.Context, all []keeping.Proposal, accept bool, take func(keeper string, p keeping.Proposal, a keeping.Promise)) error {
	ctx, cancel := context.WithTimeout(ctx, ballotTimeout)
	defer cancel()
	by := map[string][]keeping.Proposal{}
	for _, p := range all {
		for _, k := range p.Base.Keepers {
			if k != n.id {
				by[k] = append(by[k], p)
			}
		}
	}
	var mu sync.Mutex
	var newer []keeping.SliceConfig
	var wg sync.WaitGroup
	for keeper, ps := range by {
		wg.Go(func() {
			for page := range slices.Chunk(ps, wire.MaxConfigs/2) {
				answers, err := n.askBallots(ctx, keeper, page, accept)
				if err != nil {
					n.log.Debug("ballots", "peer", keeper, "err", err)
					return
				}
				mu.Lock()
				for i, a := range answers {
					take(keeper, page[i], a)
					if a.Newer != nil {
						newer = append(newer, keeping.SliceConfig{Slice: a.Slice, Config: *a.Newer})
					}
					if a.Promised.N > 0 && !a.OK {
						n.keep.Refused(a.Slice, a.Promised)
					}
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(newer) == 0 {
		return nil
	}
	return n.decide(func() { n.keep.Learn(newer...) })
}

func (n *Node) askBallots(ctx context.Context, keeper string, ps []keeping.Proposal, accept bool) ([]keeping.Promise, error) {
	req := &wire.Ballots{Accept: accept}
	for _, p := range ps {
		w := &wire.Proposal{Base: wireConfig(p.Slice, p.Base), Ballot: p.Ballot.N, By: p.Ballot.By}
		if accept {
			w.Next = wireConfig(p.Slice, p.Next)
		}
		req.Proposals = append(req.Proposals, w)
	}
	resp, err := n.call(ctx, keeper, &wire.Request{Body: &wire.Request_Ballots{Ballots: req}})
	if err != nil {
		return nil, err
	}
	got := resp.GetBallots().GetPromises()
	if len(got) != len(ps) {
		return nil, fmt.Errorf("%d answers to %d ballots", len(got), len(ps))
	}
	out := make([]keeping.Promise, len(ps))
	for i, a := range got {
		out[i] = keeping.Promise{Slice: ps[i].Slice, OK: a.Ok, Promised: keeping.Ballot{N: a.Promised, By: a.PromisedBy},
			Leased: time.Duration(min(a.LeasedMs, 1<<20)) * time.Millisecond, Accepted: keeping.Ballot{N: a.Accepted, By: a.AcceptedBy},
			Proposal: configOf(a.Proposal).Config, Copied: a.Copied, Head: a.Head}
		if a.Newer != nil {
			c := configOf(a.Newer).Config
			out[i].Newer = &c
		}
	}
	return out, nil
}

// serveBallots is a keeper's side. Nobody speaks for another: a ballot is the
// sender's own, or an unfinished one of the owner's.
func (n *Node) serveBallots(from string, b *wire.Ballots) (*wire.BallotsAnswer, error) {
	out := &wire.BallotsAnswer{}
	var answers []keeping.Promise
	err := n.decide(func() {
		now := time.Now()
		for _, w := range b.Proposals {
			base := configOf(w.Base)
			p := keeping.Proposal{Slice: base.Slice, Base: base.Config, Ballot: keeping.Ballot{N: w.Ballot, By: w.By}, Next: configOf(w.Next).Config}
			switch {
			case w.By != from:
				answers = append(answers, keeping.Promise{Slice: p.Slice})
			case b.Accept:
				answers = append(answers, n.keep.Accept(p, now))
			default:
				answers = append(answers, n.keep.Prepare(p, now))
			}
		}
	})
	if err != nil {
		return nil, err
	}
	for _, a := range answers {
		w := &wire.Promise{Ok: a.OK, Promised: a.Promised.N, PromisedBy: a.Promised.By, LeasedMs: uint64(a.Leased / time.Millisecond),
			Accepted: a.Accepted.N, AcceptedBy: a.Accepted.By, Copied: a.Copied, Head: a.Head}
		if a.Newer != nil {
			w.Newer = wireConfig(a.Slice, *a.Newer)
		}
		if a.Accepted.N > 0 {
			w.Proposal = wireConfig(a.Slice, a.Proposal)
		}
		out.Promises = append(out.Promises, w)
	}
	return out, nil
}

// meetings are when each keeper was last a member here. One that was never met
// counts as met when it was first heard of: a peer that has just come knows
// nothing of how long others have been away.
type meetings map[string]time.Time

// gone says whether keeper has not been met for so long.
func (m meetings) gone(keeper string, alive bool, now time.Time, long time.Duration) bool {
	if last, known := m[keeper]; alive || !known {
		m[keeper] = now
	} else {
		return now.Sub(last) >= long
	}
	return false
}

// adoptOrphans takes slices whose keepers' majority has been gone for longer
// than --orphan-after. Of those left the first in the ranking takes one; when
// none is left, the first that should keep it.
func (n *Node) adoptOrphans(now time.Time, met meetings) error {
	live, _ := n.terr.views()
	gone := map[string]bool{}
	for _, k := range n.keep.Keepers() {
		_, alive := live.Find(k)
		if met.gone(k, alive, now, n.o.OrphanAfter) {
			gone[k] = true
		}
	}
	if len(gone) == 0 || !n.mayAdopt(now) {
		return nil
	}
	orphans := map[partition.Slice]keeping.Config{}
	for _, s := range n.slices {
		c := n.keep.Config(s)
		reach := 0
		for _, k := range c.Keepers {
			if !gone[k] {
				reach++
			}
		}
		if reach >= c.Quorum() {
			continue
		}
		left := slices.DeleteFunc(slices.Clone(c.Keepers), func(id string) bool { return !n.terr.alive(id) })
		if len(left) == 0 {
			left = slices.DeleteFunc(n.terr.ranked(s), func(id string) bool { return !n.terr.alive(id) })
		}
		if len(left) > 0 && left[0] == n.id {
			orphans[s] = c
		}
	}
	if len(orphans) == 0 {
		return nil
	}
	n.log.Warn("adopting slices whose keepers are gone", "slices", len(orphans))
	return n.decide(func() {
		for s, c := range orphans {
			n.keep.Adopt(s, c)
		}
	})
}

// mayAdopt keeps a peer that has not met its swarm from taking the whole space
// for its own.
func (n *Node) mayAdopt(now time.Time) bool {
	live, effective := n.terr.views()
	if len(live.Members()) > 1 {
		return n.informed.Load()
	}
	if len(effective.Members()) > 1 {
		return false
	}
	return !n.joiner || now.Sub(n.started) > n.o.OrphanAfter && n.heldBefore
}
