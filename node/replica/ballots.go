package replica

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/node/replica/message"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
)

// pollGrace is how long poll waits for slower replicas once one slice has its majority.
const pollGrace = 500 * time.Millisecond

// Elections makes the replicas agree on which peers keep and own a slice. It takes part in ballots,
// campaigns for slices whose owner is gone, and renews the leases of owned slices.
type Elections struct {
	o         Options
	agreement *Agreement
	telling   sync.WaitGroup
}

// NewElections returns the Elections of a peer.
func NewElections(o Options, a *Agreement) *Elections { return &Elections{o: o, agreement: a} }

// Wait waits until all peers have been sent what was decided.
func (e *Elections) Wait() { e.telling.Wait() }

// RunProposals finishes proposals that are not decided yet, even after the swarm is done. Until a
// proposal is decided, no peer acts in its slice.
func (e *Elections) RunProposals(ctx context.Context) error {
	tick := time.NewTicker(campaignEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if err := e.accept(ctx, e.o.Quorum.Unfinished()); err != nil {
			return err
		}
	}
}

// accept asks the replicas to accept proposals, this peer first, and sends out what was decided.
func (e *Elections) accept(ctx context.Context, all []quorum.Proposal) error {
	if len(all) == 0 {
		return nil
	}
	by := map[partition.Slice][]string{}
	mine := all[:0:0]
	err := e.agreement.Decide(func() {
		for _, p := range all {
			if e.o.Quorum.Accept(p, time.Now()).OK {
				by[p.Slice] = append(by[p.Slice], e.o.Self)
				mine = append(mine, p)
			}
		}
	})
	if err != nil || len(mine) == 0 {
		return err
	}
	err = e.poll(ctx, mine, true, func(a quorum.Promise) {
		if a.OK {
			by[a.Slice] = append(by[a.Slice], a.By)
		}
	}, func(p quorum.Proposal) bool { return p.Decided(by[p.Slice]) })
	if err != nil {
		return err
	}
	var decided []quorum.SliceReplicas
	for _, p := range mine {
		if p.Decided(by[p.Slice]) {
			decided = append(decided, quorum.SliceReplicas{Slice: p.Slice, ReplicaSet: p.Next})
		}
	}
	return e.decided(ctx, decided)
}

// decided learns what was decided and sends it to all members. A member that misses the message
// learns it when it asks.
func (e *Elections) decided(ctx context.Context, all []quorum.SliceReplicas) error {
	if len(all) == 0 {
		return nil
	}
	if err := e.agreement.Decide(func() { e.o.Quorum.Learn(all...) }); err != nil {
		return err
	}
	decided := make([]partition.Slice, len(all))
	for i, c := range all {
		decided[i] = c.Slice
	}
	words := e.o.Quorum.Of(decided...)
	live, _ := e.o.Placement.Views()
	for _, m := range live.Members() {
		if m.ID != e.o.Self {
			e.telling.Go(func() { e.tell(ctx, m.ID, words) })
		}
	}
	return nil
}

// tell sends ReplicaSets to a peer. A failure is only logged.
func (e *Elections) tell(ctx context.Context, peer string, all []quorum.SliceReplicas) {
	if err := message.Tell(ctx, e.o.Peers, peer, all); err != nil {
		e.o.Logger.Debug("telling configs", "peer", peer, "err", err)
	}
}

// poll sends ballots to the other replicas of each slice and passes each promise to take, one at a
// time. It waits for the live replicas until has is true for every ballot. Once has is true for one
// ballot, poll waits at most pollGrace more, so a silent replica delays nobody. It applies newer
// ReplicaSets that the responses contain.
func (e *Elections) poll(ctx context.Context, all []quorum.Proposal, accept bool, take func(a quorum.Promise),
	has func(quorum.Proposal) bool) error {
	ctx, cancel := context.WithTimeout(ctx, message.BallotTimeout)
	defer cancel()
	by := map[string][]quorum.Proposal{}
	for _, p := range all {
		for _, k := range p.Base.Replicas {
			if k != e.o.Self {
				by[k] = append(by[k], p)
			}
		}
	}
	answers := make(chan []quorum.Promise)
	ended := make(chan string)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	live := map[string]bool{}
	for replica, ps := range by {
		if e.o.Placement.Alive(replica) {
			live[replica] = true
		}
		wg.Go(func() {
			for page := range slices.Chunk(ps, wire.MaxConfigs/2) {
				got, err := e.askBallots(ctx, replica, page, accept)
				if err != nil {
					e.o.Logger.Debug("ballots", "peer", replica, "err", err)
					break
				}
				select {
				case answers <- got:
				case <-ctx.Done():
				}
			}
			select {
			case ended <- replica:
			case <-ctx.Done():
			}
		})
	}
	grace := time.NewTimer(pollGrace)
	defer grace.Stop()
	late := false
	newer := map[string][]quorum.SliceReplicas{}
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
		case replica := <-ended:
			delete(live, replica)
		case got := <-answers:
			for _, a := range got {
				take(a)
				if a.Newer != nil {
					newer[a.By] = append(newer[a.By], quorum.SliceReplicas{Slice: a.Slice, ReplicaSet: *a.Newer})
				}
				if a.Promised.N > 0 && !a.OK {
					e.o.Quorum.Refused(a.Slice, a.Promised)
				}
			}
		}
	}
	for by, words := range newer {
		if err := e.agreement.Hear(by, words); err != nil {
			return err
		}
	}
	return nil
}

// askBallots sends one page of ballots to a replica and returns one promise per ballot.
func (e *Elections) askBallots(ctx context.Context, replica string, ps []quorum.Proposal,
	accept bool) ([]quorum.Promise, error) {
	req := &wire.Ballots{Accept: accept}
	for _, p := range ps {
		w := &wire.Proposal{Base: message.Set(p.Slice, p.Base), Ballot: p.Ballot.N, By: p.Ballot.By}
		if accept {
			w.Next = message.Set(p.Slice, p.Next)
		}
		req.Proposals = append(req.Proposals, w)
	}
	resp, err := e.o.Peers.Call(ctx, replica, &wire.Request{Body: &wire.Request_Ballots{Ballots: req}})
	if err != nil {
		return nil, err
	}
	got := resp.GetBallots().GetPromises()
	if len(got) != len(ps) {
		return nil, fmt.Errorf("%d answers to %d ballots", len(got), len(ps))
	}
	out := make([]quorum.Promise, len(ps))
	for i, a := range got {
		if !message.OfSlice(a.Newer, ps[i].Slice) || !message.OfSlice(a.Proposal, ps[i].Slice) {
			return nil, call.ErrForeign
		}
		out[i] = quorum.Promise{Slice: ps[i].Slice, By: replica, OK: a.Ok,
			Promised: quorum.Ballot{N: a.Promised, By: a.PromisedBy},
			Leased:   time.Duration(min(a.LeasedMs, 1<<20)) * time.Millisecond,
			Accepted: quorum.Ballot{N: a.Accepted, By: a.AcceptedBy},
			Proposal: message.SetOf(a.Proposal).ReplicaSet, Copied: a.Copied, Head: a.Head}
		if a.Newer != nil {
			c := message.SetOf(a.Newer).ReplicaSet
			out[i].Newer = &c
		}
	}
	return out, nil
}

// ServeBallots is the replica's side of a ballot. A peer cannot vote for another peer: the ballot
// must be the sender's own, or an unfinished one of the owner.
func (e *Elections) ServeBallots(from string, b *wire.Ballots) (*wire.BallotsAnswer, error) {
	out := &wire.BallotsAnswer{}
	var answers []quorum.Promise
	err := e.agreement.Decide(func() {
		now := time.Now()
		for _, w := range b.Proposals {
			base := message.SetOf(w.Base)
			p := quorum.Proposal{Slice: base.Slice, Base: base.ReplicaSet, Ballot: quorum.Ballot{N: w.Ballot, By: w.By},
				Next: message.SetOf(w.Next).ReplicaSet}
			switch {
			case w.By != from:
				answers = append(answers, quorum.Promise{Slice: p.Slice})
			case b.Accept:
				answers = append(answers, e.o.Quorum.Accept(p, now))
			default:
				answers = append(answers, e.o.Quorum.Prepare(p, now))
			}
		}
	})
	if err != nil {
		return nil, err
	}
	for _, a := range answers {
		w := &wire.Promise{Ok: a.OK, Promised: a.Promised.N, PromisedBy: a.Promised.By,
			LeasedMs: uint64(a.Leased / time.Millisecond),
			Accepted: a.Accepted.N, AcceptedBy: a.Accepted.By, Copied: a.Copied, Head: a.Head}
		if a.Newer != nil {
			w.Newer = message.Set(a.Slice, *a.Newer)
		}
		if a.Accepted.N > 0 {
			w.Proposal = message.Set(a.Slice, a.Proposal)
		}
		out.Promises = append(out.Promises, w)
	}
	return out, nil
}
