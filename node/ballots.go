package node

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/keeping"
	"github.com/echo-node/echo-node/partition"
)

const (
	ballotTimeout = 2 * time.Second
	pollGrace     = 500 * time.Millisecond // for the slower ones, once one slice has its majority
)

// runProposals finishes what was proposed and not decided.
func (n *Node) runProposals(ctx context.Context) error {
	tick := time.NewTicker(campaignEvery)
	defer tick.Stop()
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
	}
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
	err = n.poll(ctx, mine, true, func(a keeping.Promise) {
		if a.OK {
			by[a.Slice] = append(by[a.Slice], a.By)
		}
	}, func(p keeping.Proposal) bool { return p.Decided(by[p.Slice]) })
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
	decided := make([]partition.Slice, len(all))
	for i, c := range all {
		decided[i] = c.Slice
	}
	words := n.keep.Of(decided...)
	live, _ := n.terr.views()
	for _, m := range live.Members() {
		if m.ID != n.id {
			n.telling.Go(func() { n.tell(ctx, m.ID, words) })
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
// to take, one at a time. It waits for the live ones until all ballots have what
// they need, as has says, and no longer than pollGrace once one of them has:
// who does not answer keeps nobody waiting. Newer Configs that they tell are heard.
func (n *Node) poll(ctx context.Context, all []keeping.Proposal, accept bool, take func(a keeping.Promise), has func(keeping.Proposal) bool) error {
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
	answers := make(chan []keeping.Promise)
	ended := make(chan string)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	live := map[string]bool{}
	for keeper, ps := range by {
		if n.terr.alive(keeper) {
			live[keeper] = true
		}
		wg.Go(func() {
			for page := range slices.Chunk(ps, wire.MaxConfigs/2) {
				got, err := n.askBallots(ctx, keeper, page, accept)
				if err != nil {
					n.log.Debug("ballots", "peer", keeper, "err", err)
					break
				}
				select {
				case answers <- got:
				case <-ctx.Done():
				}
			}
			select {
			case ended <- keeper:
			case <-ctx.Done():
			}
		})
	}
	grace := time.NewTimer(pollGrace)
	defer grace.Stop()
	late := false
	newer := map[string][]keeping.SliceConfig{}
	for {
		some, every := false, true
		for _, p := range all {
			ok := has(p)
			some, every = some || ok, every && ok
		}
		if every || len(live) == 0 || late && some {
			break
		}
		select {
		case <-ctx.Done():
			live = nil
		case <-grace.C:
			late = true
		case keeper := <-ended:
			delete(live, keeper)
		case got := <-answers:
			for _, a := range got {
				take(a)
				if a.Newer != nil {
					newer[a.By] = append(newer[a.By], keeping.SliceConfig{Slice: a.Slice, Config: *a.Newer})
				}
				if a.Promised.N > 0 && !a.OK {
					n.keep.Refused(a.Slice, a.Promised)
				}
			}
		}
	}
	for by, words := range newer {
		if err := n.hear(by, words); err != nil {
			return err
		}
	}
	return nil
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
		if !ofSlice(a.Newer, ps[i].Slice) || !ofSlice(a.Proposal, ps[i].Slice) {
			return nil, errForeign
		}
		out[i] = keeping.Promise{Slice: ps[i].Slice, By: keeper, OK: a.Ok, Promised: keeping.Ballot{N: a.Promised, By: a.PromisedBy},
			Leased: time.Duration(min(a.LeasedMs, 1<<20)) * time.Millisecond, Accepted: keeping.Ballot{N: a.Accepted, By: a.AcceptedBy},
			Proposal: configOf(a.Proposal).Config, Copied: a.Copied, Head: a.Head}
		if a.Newer != nil {
			c := configOf(a.Newer).Config
			out[i].Newer = &c
		}
	}
	return out, nil
}

// ofSlice says whether c, if there is one, is a Config of s: an answer about one slice says nothing of another, which the
// sender may not keep.
func ofSlice(c *wire.Config, s partition.Slice) bool { return c == nil || c.Slice == uint64(s) }

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
