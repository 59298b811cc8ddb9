package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/strictjson"
	"github.com/echo-node/echo-node/store"
)

// API returns the functions of this peer that its HTTP API uses.
func (n *Node) API() api.Peer {
	return api.Peer{
		Status:   func(context.Context) (api.Status, error) { return n.Status(), nil },
		Peers:    n.peers,
		Owner:    n.ownerOf,
		Show:     n.show,
		Overrule: n.overrule,
		Release:  n.release, Again: n.again, Quarantine: n.quarantined,
		Mistakes: n.search.Mistakes,
		Seed:     n.Seed,
		Query:    n.search.Query,
		Copies:   n.search.Copies,
		Export:   n.search.Export,
		Recent:   n.recent,
		Errors:   n.failures,
		Gaps:     n.search.Gaps,
		Map:      n.geoJSON,
		Metrics:  n.metrics,
		Ready:    n.ready,
	}
}

// ready returns nil if this peer can serve: it has met its swarm and acts in all slices that it
// owns.
func (n *Node) ready() error {
	if live, _ := n.placement.Views(); live.Len() == 0 {
		return errors.New("the membership has not begun")
	}
	if s := n.Status(); s.SlicesAwaited > 0 {
		return fmt.Errorf("%d slices are owned here and not acted in: their replicas do not lease them yet",
			s.SlicesAwaited)
	}
	return nil
}

// peers returns all members of the effective view, with the status of those that answer in 2 s.
func (n *Node) peers(ctx context.Context) ([]api.PeerInfo, error) {
	live, view := n.placement.Views()
	assign := n.quorum.Assignment()
	out := make([]api.PeerInfo, len(view.Members()))
	var wg sync.WaitGroup
	for i, m := range view.Members() {
		out[i] = api.PeerInfo{Member: m, State: "alive", Slices: len(assign[m.ID]), Self: m.ID == n.id,
			Credit: n.credit.state(m.ID, time.Now())}
		if _, ok := live.Find(m.ID); !ok {
			out[i].State = "gone"
			continue
		}
		if m.ID == n.id {
			st := n.Status()
			out[i].Status = &st
			continue
		}
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			resp, err := n.swarm.Call(ctx, m.ID, &wire.Request{Body: &wire.Request_Status{Status: &wire.Status{}}})
			if err != nil {
				return // Status stays nil because the peer did not answer
			}
			var st api.Status
			if strictjson.Unmarshal(resp.GetStatus().GetJson(), &st) == nil {
				out[i].Status = &st
			}
		})
	}
	wg.Wait()
	return out, nil
}

// failures returns this peer's latest failed fetches.
func (n *Node) failures(context.Context) ([]api.Failure, error) {
	out := []api.Failure{}
	for _, f := range n.crawler.Failures() {
		out = append(out, api.Failure{Key: f.Key, State: stateWord(f.State), Reason: f.Reason, At: f.At.UTC()})
	}
	return out, nil
}

// ownerOf returns the owner and the replicas of k's slice.
func (n *Node) ownerOf(ctx context.Context, k partition.Key) (api.Owner, error) {
	s := n.store.SliceOf(k)
	_, replicas := n.ownerAnywhere(ctx, s)
	o := api.Owner{Key: k, Site: k.Site(), Slice: s.String(), Replicas: replicas, Addrs: []string{}}
	_, view := n.placement.Views()
	if len(o.Replicas) > 0 {
		o.Self = o.Replicas[0] == n.id
		if m, ok := view.Find(o.Replicas[0]); ok {
			o.Addrs = m.Addrs
		}
	}
	return o, nil
}

// maxPlaced is the most moves of a unit that show follows.
const maxPlaced = 8

// show asks the owner of k what it knows. It starts at the registrar. In geo mode it follows the
// unit to the slice that crawls k now.
func (n *Node) show(ctx context.Context, k partition.Key) (api.Shown, error) {
	sl := n.store.SliceOf(k)
	var evidence json.RawMessage
	for hop := 0; ; hop++ {
		out, placed, err := n.showAt(ctx, sl, k)
		if out.Placement != nil {
			evidence = out.Placement
		}
		if err != nil || placed == 0 || hop == maxPlaced {
			out.Placement = evidence
			return out, err
		}
		if sl, err = n.swarm.SliceFrom(uint64(placed), k); err != nil {
			return out, fmt.Errorf("show: %w", err)
		}
	}
}

// showAt returns what the owner of sl knows of k, and the slice to which it moved k, or 0.
func (n *Node) showAt(ctx context.Context, sl partition.Slice, k partition.Key) (api.Shown, partition.Slice, error) {
	owner, _ := n.ownerAnywhere(ctx, sl)
	if owner == n.id || owner == "" {
		return n.showHere(sl, k)
	}
	resp, err := n.swarm.Call(ctx, owner,
		&wire.Request{Body: &wire.Request_Show{Show: &wire.Show{Key: string(k), Slice: call.SliceOn(sl)}}})
	if err != nil {
		return api.Shown{}, 0, fmt.Errorf("%w: the owner %s: %s", api.ErrUnavailable, owner,
			n.search.Reason(ctx, owner, err))
	}
	a := resp.GetShow()
	out := api.Shown{Key: k, Owner: owner}
	if len(a.GetDue()) > 0 {
		if err := strictjson.Unmarshal(a.Due, &out); err != nil {
			return out, 0, fmt.Errorf("show: the owner's answer: %w", err)
		}
	}
	out.Key, out.Owner, out.Known, out.Slice = k, owner, a.GetKnown(), sl.String()
	if len(a.GetRecord()) > 0 {
		out.Record = new(store.Record)
		if err := strictjson.Unmarshal(a.Record, out.Record); err != nil {
			return out, 0, fmt.Errorf("show: the owner's record: %w", err)
		}
	}
	return out, partition.Slice(a.GetPlaced()), nil
}

// Seed admits keys at their registrars. For 8 s it asks an unreachable owner again. A key without a
// final answer gets "busy" and is not stored here, so the caller must seed it again.
func (n *Node) Seed(ctx context.Context, keys []partition.Key) ([]api.SeedAnswer, error) {
	n.seeding.Add(1)
	defer n.seeding.Add(-1)
	out := make([]api.SeedAnswer, len(keys))
	open := make([]int, len(keys))
	for i, k := range keys {
		out[i], open[i] = api.SeedAnswer{Key: string(k), Answer: "busy"}, i
	}
	deadline := time.Now().Add(8 * time.Second)
	for {
		if err := n.seedRound(ctx, keys, open, out); err != nil {
			return nil, err
		}
		var still []int
		for _, i := range open {
			if out[i].Answer == "busy" {
				still = append(still, i)
			}
		}
		open = still
		if len(open) == 0 || time.Now().After(deadline) {
			return out, nil
		}
		select {
		case <-ctx.Done():
			return out, nil
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// seedRound sends the keys with the indices open once to their owners, and writes the answers to
// out.
func (n *Node) seedRound(ctx context.Context, keys []partition.Key, open []int, out []api.SeedAnswer) error {
	byOwner := map[string][]int{}
	for _, i := range open {
		o := n.laneOf(n.store.SliceOf(keys[i]))
		out[i].Owner = o
		byOwner[o] = append(byOwner[o], i)
	}
	for owner, idx := range byOwner {
		for len(idx) > 0 {
			batch := idx[:min(len(idx), MaxForwardLinks)]
			idx = idx[len(batch):]
			items := make([]store.Admission, len(batch))
			for j, i := range batch {
				items[j] = store.Admission{Key: keys[i], Seed: true}
			}
			vs, err := n.admitAt(ctx, owner, items)
			if err != nil {
				return err
			}
			for j, i := range batch {
				out[i].Answer, out[i].Reason = answerWord(vs[j].answer), vs[j].reason
			}
		}
	}
	return nil
}

// admitAt admits items at owner, which is this peer or another one. If owner cannot be reached, the
// answer is busy, with the reason. The error comes from the store alone.
func (n *Node) admitAt(ctx context.Context, owner string, items []store.Admission) ([]verdict, error) {
	if owner == n.id {
		return n.admit(ctx, items)
	}
	out := make([]verdict, len(items))
	fail := func(why string) ([]verdict, error) {
		for i := range out {
			out[i] = verdict{answer: wire.ForwardAck_ANSWER_BUSY, reason: why}
		}
		return out, nil
	}
	if owner == "" {
		return fail("no member owns that slice yet")
	}
	f := &wire.Forward{}
	for _, it := range items {
		f.Links = append(f.Links, linkOf(it))
	}
	resp, err := n.swarm.Call(ctx, owner, &wire.Request{Body: &wire.Request_Forward{Forward: f}})
	if err != nil {
		return fail(n.search.Reason(ctx, owner, err))
	}
	ack := resp.GetForward()
	if len(ack.GetAnswers()) != len(items) {
		return fail("its answer does not match the question")
	}
	for i, a := range ack.Answers {
		out[i].answer = a
		if final(a) {
			n.count.linksOut.Add(1)
		}
		if i < len(ack.Reasons) {
			out[i].reason = ack.Reasons[i]
		}
	}
	return out, nil
}

func answerWord(a wire.ForwardAck_Answer) string {
	switch a {
	case wire.ForwardAck_ANSWER_ADMITTED:
		return "admitted"
	case wire.ForwardAck_ANSWER_KNOWN:
		return "known"
	case wire.ForwardAck_ANSWER_REFUSED:
		return "refused"
	}
	return "busy"
}

// SeedUntilDone admits keys and tries again until each has a final answer or ctx ends. `run --seed`
// needs this while the swarm is still forming.
func (n *Node) SeedUntilDone(ctx context.Context, keys []partition.Key) error {
	n.seeding.Add(1)
	defer n.seeding.Add(-1)
	all, refused := len(keys), 0
	for len(keys) > 0 {
		batch := keys[:min(len(keys), MaxSeeds)]
		answers, err := n.Seed(ctx, batch)
		if err != nil {
			return err
		}
		var again []partition.Key
		for i, a := range answers {
			switch a.Answer {
			case "busy":
				again = append(again, batch[i])
			case "refused":
				n.log.Warn("seed refused", "key", a.Key, "reason", a.Reason)
				refused++
			}
		}
		keys = append(again, keys[len(batch):]...)
		if len(again) > 0 {
			n.log.Info("seeds wait for their owners", "seeds", len(again))
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Second):
			}
		}
	}
	if refused == all && all > 0 {
		return fmt.Errorf("seed: all %d seeds are refused; the log says why each", all)
	}
	return nil
}
