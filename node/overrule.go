package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/crawler/social/follow"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/node/forward"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/strictjson"
	"github.com/echo-node/echo-node/store"
)

// overrule brings a person's verdict on an account to the account's owner. An account that the
// swarm does not know is admitted first. On return the verdict is durable at a majority of the
// replicas.
func (n *Node) overrule(ctx context.Context, o store.Override) error {
	if !n.swarm.Overrules(n.id) {
		return fmt.Errorf("%w: the peers of this swarm accept overrides of its founder %s alone",
			api.ErrInvalid, n.charter.Founder)
	}
	o.V, o.Peer, o.At = store.OverrideVersion, n.id, time.Now().UTC()
	sl := n.store.SliceOf(o.Key)
	admitted := false
	for hop := 0; hop <= maxPlaced; hop++ {
		known, placed, err := n.overruleAt(ctx, sl, o)
		switch {
		case err != nil:
			return err
		case placed != 0:
			if sl, err = n.swarm.SliceFrom(uint64(placed), o.Key); err != nil {
				return fmt.Errorf("overrule: %w", err)
			}
		case known:
			return nil
		case admitted:
			return fmt.Errorf("%w: %s", api.ErrNotFound, o.Key)
		default:
			// not as a seed, because seeds belong to the community
			answers, err := n.forward.Ask(ctx, n.forward.OwnerOf(sl), []store.Admission{{Key: o.Key, Depth: 1}})
			if err != nil {
				return err
			}
			if a := answers[0]; a.Answer == wire.ForwardAck_ANSWER_REFUSED {
				return fmt.Errorf("%w: %s is not known, and refused: %s", api.ErrInvalid, o.Key, a.Reason)
			} else if !a.Final() {
				return fmt.Errorf("%w: %s is not known, and its owner is busy: %s", api.ErrUnavailable, o.Key, a.Reason)
			}
			admitted = true
		}
	}
	return fmt.Errorf("%w: %s moves", api.ErrUnavailable, o.Key)
}

// overruleAt sends o to the owner of sl. placed is the slice to which the unit has moved, or 0.
func (n *Node) overruleAt(ctx context.Context, sl partition.Slice, o store.Override) (known bool,
	placed partition.Slice, err error) {
	owner, _ := n.ownerAnywhere(ctx, sl)
	if owner == n.id || owner == "" {
		return n.overruleHere(ctx, sl, o)
	}
	b, err := call.Plain(o)
	if err != nil {
		return false, 0, err
	}
	resp, err := n.swarm.Call(ctx, owner,
		&wire.Request{Body: &wire.Request_Overrule{Overrule: &wire.Overrule{Override: b, Slice: call.SliceOn(sl)}}})
	if err != nil {
		return false, 0, fmt.Errorf("%w: the owner %s: %s", api.ErrUnavailable, owner, n.search.Reason(ctx, owner, err))
	}
	return resp.GetOverrule().GetKnown(), partition.Slice(resp.GetOverrule().GetPlaced()), nil
}

// overruleHere writes o into this peer's store, if this peer acts in sl.
func (n *Node) overruleHere(ctx context.Context, sl partition.Slice, o store.Override) (known bool,
	placed partition.Slice, err error) {
	head, under, err := n.overruleNow(sl, o)
	if isNotExist(err) {
		p, perr := n.store.Queue.PlacementOf(sl, o.Key)
		if perr == nil && p.To != sl {
			return false, p.To, nil
		}
		if perr != nil && !isNotExist(perr) {
			return false, 0, perr
		}
		return false, 0, nil
	}
	if err != nil {
		return false, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, forward.AckTimeout)
	defer cancel()
	if n.replicator.Await(ctx, map[partition.Slice]uint64{sl: head})[sl] ||
		under.Compare(n.quorum.ReplicaSet(sl)) != 0 {
		return false, 0, fmt.Errorf("%w: no majority of the replicas has it yet; say it again", api.ErrUnavailable)
	}
	return true, 0, nil
}

// overruleNow does the write. It holds the agreement, so no promise to another candidate falls
// between the check that this peer acts and the write.
func (n *Node) overruleNow(sl partition.Slice, o store.Override) (uint64, quorum.ReplicaSet, error) {
	n.agreement.RLock()
	defer n.agreement.RUnlock()
	if !n.agreement.Acts(sl) {
		return 0, quorum.ReplicaSet{}, fmt.Errorf("%w: this peer does not act in %s now", api.ErrUnavailable, sl)
	}
	var err error
	switch o.Verdict {
	case store.VerdictRelease:
		err = n.store.Queue.Release(sl, o.Key, time.Now())
	case store.VerdictAgain:
		err = n.store.Queue.Again(sl, o.Key, time.Now())
	default:
		err = n.store.Override(sl, o, time.Now(), follow.Overrule)
	}
	if err != nil {
		if errors.Is(err, store.ErrOverride) || errors.Is(err, store.ErrNotQuarantined) ||
			errors.Is(err, store.ErrQuarantined) {
			err = fmt.Errorf("%w: %w", api.ErrInvalid, err)
		}
		return 0, quorum.ReplicaSet{}, err
	}
	n.crawler.Wake(sl, o.Key.Site())
	return n.store.Log.LogHead(sl), n.quorum.ReplicaSet(sl), nil
}

// serveOverrule handles another peer's override, which must name that peer; the store checks it.
func (n *Node) serveOverrule(ctx context.Context, from string, w *wire.Overrule) (*wire.Response, error) {
	var o store.Override
	if err := strictjson.Unmarshal(w.Override, &o); err != nil {
		return call.Refuse(wire.Refusal_CODE_MALFORMED, err.Error(), 0), nil
	}
	k, err := partition.KeyFromWire(string(o.Key))
	visit := o.Verdict == store.VerdictRelease || o.Verdict == store.VerdictAgain
	if err != nil || k.Kind() != partition.KindAccount && !visit {
		return call.Refuse(wire.Refusal_CODE_MALFORMED, "an override of no account", 0), nil
	}
	if o.Peer != from {
		return call.Refuse(wire.Refusal_CODE_MALFORMED, "an override that names another peer than its sender", 0), nil
	}
	sl, err := n.swarm.SliceFrom(w.Slice, k)
	if err != nil {
		return call.Refuse(wire.Refusal_CODE_MALFORMED, err.Error(), 0), nil
	}
	known, placed, err := n.overruleHere(ctx, sl, o)
	switch {
	case errors.Is(err, api.ErrInvalid):
		return call.Refuse(wire.Refusal_CODE_MALFORMED, err.Error(), 0), nil
	case errors.Is(err, api.ErrUnavailable):
		return call.Refuse(wire.Refusal_CODE_BUSY, err.Error(), time.Second), nil
	case err != nil:
		return nil, err
	}
	return &wire.Response{Body: &wire.Response_Overrule{Overrule: &wire.OverruleAnswer{Known: known,
		Placed: uint64(placed)}}}, nil
}
