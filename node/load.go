package node

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
)

// The load step: a peer that is behind, or that its volunteer's limits have stopped, gives a part
// of its slices to others and later takes it back. partition.LoadSteps decides; this file gives it
// the measurements.
const (
	LoadSample = 8                // members asked for their load at a time
	LoadEvery  = 10 * time.Second // time between two such samples
	behindBy   = 4                // more ready sites than this per fetch: the peer is behind
)

// followLimits updates this peer's load step every second.
func (n *Node) followLimits(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var steps partition.LoadSteps
	step, mean, asked := 0, math.NaN(), time.Time{}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		x := n.ownLoad()
		if !x.Stopped && (x.Behind || step > 0) && time.Since(asked) >= LoadEvery {
			mean, asked = n.meanLoad(ctx), time.Now()
		}
		x.Share = share(n.load(), n.o.Capacity, mean)
		next := steps.Next(time.Now(), x)
		if next == step {
			continue
		}
		step = next
		n.log.Info("load step", "step", step, "share", x.Share, "stopped", x.Stopped)
		if err := n.dht.SetLoadStep(step); err != nil {
			return err
		}
	}
}

// load returns the number of sites that may be fetched now, plus those being fetched. It is the
// work that the crawl delays allow.
func (n *Node) load() int {
	st := n.crawler.Stats()
	return st.Ready + st.Fetching
}

// ownLoad returns this peer's Load without its share of the swarm's load.
func (n *Node) ownLoad() partition.Load {
	st := n.crawler.Stats()
	return partition.Load{Share: math.NaN(), Behind: st.Ready > behindBy*max(st.Fetching, 1),
		Stopped: stopsFetching(st.Limits)}
}

// meanLoad asks some members for their load. It returns the mean of theirs and this peer's, each
// divided by its capacity, or NaN if nobody answers.
func (n *Node) meanLoad(ctx context.Context) float64 {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	live, _ := n.placement.Views()
	members := slices.DeleteFunc(slices.Clone(live.Members()), func(m partition.Member) bool { return m.ID == n.id })
	rand.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	var mu sync.Mutex
	sum, answered := perCapacity(n.load(), n.o.Capacity), 0
	var wg sync.WaitGroup
	for _, m := range members[:min(len(members), LoadSample)] {
		wg.Go(func() {
			resp, err := n.swarm.Call(ctx, m.ID, &wire.Request{Body: &wire.Request_Status{Status: &wire.Status{}}})
			if err != nil {
				return // other members are enough
			}
			mu.Lock()
			defer mu.Unlock()
			answered++
			sum += perCapacity(int(min(resp.GetStatus().GetLoad(), math.MaxInt32)), m.Capacity)
		})
	}
	wg.Wait()
	if answered == 0 {
		return math.NaN()
	}
	return sum / float64(answered+1)
}

func perCapacity(load, capacity int) float64 {
	return float64(load) / float64(min(max(capacity, 1), partition.MaxCapacity))
}

// share returns a load relative to the mean, or NaN if the mean is not known.
func share(load, capacity int, mean float64) float64 {
	if mean == 0 {
		return 0
	}
	return perCapacity(load, capacity) / mean
}

// stopsFetching reports whether one of the active limits stops fetching completely instead of
// slowing it down.
func stopsFetching(limits []string) bool {
	return slices.ContainsFunc(limits, func(l string) bool {
		return strings.HasPrefix(l, "hours") || strings.HasPrefix(l, "disk") || strings.HasPrefix(l, "outbox")
	})
}
