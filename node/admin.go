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
	"github.com/echo-node/echo-node/node/search"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/strictjson"
	"github.com/echo-node/echo-node/store"
)

// Status returns this peer's state. It is cheap enough for a request every second.
func (n *Node) Status() api.Status { return n.board.Status() }

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
		Seed:     n.forward.Seed,
		Query:    n.search.Query,
		Copies:   n.search.Copies,
		Export:   n.search.Export,
		Recent:   n.recent,
		Errors:   n.failures,
		Gaps:     n.search.Gaps,
		Map:      n.board.Map,
		Metrics:  n.board.Metrics,
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
			Credit: n.gate.State(m.ID)}
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

// Seed admits keys at their registrars; see forward.Forwarder.
func (n *Node) Seed(ctx context.Context, keys []partition.Key) ([]api.SeedAnswer, error) {
	return n.forward.Seed(ctx, keys)
}

// SeedUntilDone admits keys and tries again until each has a final answer or ctx ends.
func (n *Node) SeedUntilDone(ctx context.Context, keys []partition.Key) error {
	return n.forward.SeedUntilDone(ctx, keys)
}

// FlushIndex makes everything committed here searchable before it returns.
func (n *Node) FlushIndex(ctx context.Context) error { return n.index.Flush(ctx) }

// recent returns the last k records that this peer wrote, or fewer, the newest first.
func (n *Node) recent(_ context.Context, k int) ([]api.Hit, error) {
	last := n.store.LastSeq()
	changes, err := n.store.Changes(last-min(last, uint64(k)), k)
	if err != nil {
		return nil, fmt.Errorf("recent: %w", err)
	}
	out := make([]api.Hit, 0, len(changes))
	for _, c := range changes {
		r, err := n.changed(c)
		if isNotExist(err) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("recent: %w", err)
		}
		out = append(out, search.HitOfRecord(r))
	}
	return out, nil
}

// changed returns the present version of the record that c names.
func (n *Node) changed(c store.Change) (store.Record, error) {
	if c.Post == "" {
		return n.store.Archive.Record(c.Key)
	}
	r, _, err := n.store.Accounts.Post(c.Key, c.Post)
	return r, err
}
