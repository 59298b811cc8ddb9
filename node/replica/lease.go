package replica

import (
	"context"
	"sync"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/node/replica/message"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
)

const leaseTimeout = 2 * time.Second

// RunLeases renews this peer's leases every LeaseRenew, and at once after KickLeases.
func (e *Elections) RunLeases(ctx context.Context) error {
	tick := time.NewTicker(quorum.LeaseRenew)
	defer tick.Stop()
	var asking sync.WaitGroup
	defer asking.Wait()
	fail := make(chan error, 1)
	busy := map[string]*sync.Mutex{}
	lessors := e.o.Quorum.Lessors()
	for {
		for _, replica := range lessors {
			if busy[replica] == nil {
				busy[replica] = new(sync.Mutex)
			}
			mu := busy[replica]
			if !mu.TryLock() { // still waiting for its last response
				continue
			}
			asking.Go(func() {
				defer mu.Unlock()
				if err := e.lease(ctx, replica); err != nil {
					select {
					case fail <- err:
					default:
					}
				}
			})
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-fail:
			return err
		case <-e.agreement.leaseKick:
			lessors = e.o.Quorum.Lacking(time.Now())
		case <-tick.C:
			lessors = e.o.Quorum.Lessors()
		}
	}
}

// lease asks one replica for leases. The error comes from the store alone.
func (e *Elections) lease(ctx context.Context, replica string) error {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	ask := e.o.Quorum.AskFor(replica, false, time.Now())
	if ask.Count == 0 {
		return nil
	}
	g, err := e.askLease(ctx, replica, &wire.Lease{Count: uint64(ask.Count), Digest: ask.Digest,
		Configs: message.Sets(ask.News)})
	if err != nil {
		e.o.Logger.Debug("lease", "peer", replica, "err", err)
		return nil
	}
	if !e.o.Quorum.Granted(replica, ask, g) {
		return nil
	}
	ask = e.o.Quorum.AskFor(replica, true, time.Now())
	var all quorum.Grant
	for list := ask.List; len(list) > 0; {
		page := list[:min(len(list), wire.MaxConfigs)]
		list = list[len(page):]
		g, err := e.askLease(ctx, replica,
			&wire.Lease{Count: uint64(ask.Count), List: true, Configs: message.Sets(page)})
		if err != nil {
			e.o.Logger.Debug("lease", "peer", replica, "err", err)
			return nil
		}
		all.Refused, all.Newer = append(all.Refused, g.Refused...), append(all.Newer, g.Newer...)
	}
	return e.agreement.Decide(func() { e.o.Quorum.Granted(replica, ask, all) })
}

// askLease sends one lease request to a replica.
func (e *Elections) askLease(ctx context.Context, replica string, l *wire.Lease) (quorum.Grant, error) {
	var g quorum.Grant
	resp, err := e.o.Peers.Call(ctx, replica, &wire.Request{Body: &wire.Request_Lease{Lease: l}})
	if err != nil {
		return g, err
	}
	a := resp.GetLease()
	if a == nil {
		return g, call.ErrForeign
	}
	g.Differs, g.Newer = a.Differs, message.SetsOf(a.Newer)
	for _, s := range a.Refused {
		g.Refused = append(g.Refused, partition.Slice(s))
	}
	return g, nil
}

// ServeLease is the replica's side of a lease request.
func (e *Elections) ServeLease(from string, l *wire.Lease) (*wire.LeaseAnswer, error) {
	ask := quorum.Ask{Count: int(min(l.Count, 1<<30)), Digest: l.Digest}
	var g quorum.Grant
	if l.List || len(l.Configs) > 0 {
		if l.List {
			ask.List = message.SetsOf(l.Configs) // not nil, even if empty
		} else {
			ask.News = message.SetsOf(l.Configs)
		}
		if err := e.agreement.Decide(func() { g = e.o.Quorum.Grant(from, ask, time.Now()) }); err != nil {
			return nil, err
		}
	} else {
		g = e.o.Quorum.Grant(from, ask, time.Now()) // nothing durable: no wait for the disk
	}
	a := &wire.LeaseAnswer{Differs: g.Differs, Newer: message.Sets(g.Newer)}
	for _, s := range g.Refused {
		a.Refused = append(a.Refused, uint64(s))
	}
	return a, nil
}
