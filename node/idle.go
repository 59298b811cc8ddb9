package node

import (
	"context"
	"sync"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
)

// report is what one member reports about itself in one wave.
type report struct {
	Idle     bool
	Sent     uint64
	Received uint64
	Keys     uint64
	Acting   uint64
}

// wave is one round of requests to every member of the effective view.
type wave struct {
	reports map[string]report
	missing []string // members that did not answer
	total   uint64   // slices of the swarm
	working []string // members that answered and are not about to stop
}

// quiet reports whether the swarm was done when prev was taken. Every member must be idle in both
// waves, and no counter may have moved between them. A link under way is always in its sender's
// outbox, so an idle member has none. Equal counters show that nothing happened between a member's
// two reports. So at one moment, after the last response of prev, all members were idle at once.
// This is the four-counter method (Mattern 1987) with durable outboxes as channels. For a member
// that vanished, see watch.
func quiet(prev, cur wave) bool {
	var keys, acting uint64
	for id, c := range cur.reports {
		p, ok := prev.reports[id]
		if !ok || !c.Idle || !p.Idle || c != p {
			return false
		}
		keys += c.Keys
		acting += c.Acting
	}
	// Each slice is counted exactly once: no two peers act in the same one. So if the sum is right,
	// no slice is left out.
	return keys > 0 && acting == cur.total && len(cur.missing) == 0 && len(prev.missing) == 0
}

// watch follows waves. A member that finds the swarm idle first may stop and vanish. Its last
// report counts only while nothing has moved since all members were quiet together: a link that
// reached it later shows in its sender's count. Otherwise the member is not counted. Its fellow
// replicas take over its slices, and the swarm is not quiet until they act in all of them.
type watch struct {
	prev   wave
	proved map[string]report // reports of the last quiet pair; nil if something moved since
}

// next takes a wave and reports whether the swarm is quiet. away are the members that vanished.
// Live members that did not answer are in cur.missing.
func (w *watch) next(cur wave, away []string) bool {
	for id, r := range cur.reports {
		if p, ok := w.proved[id]; !ok || p != r {
			w.proved = nil
		}
	}
	for _, id := range away {
		if r, ok := w.proved[id]; ok {
			cur.reports[id] = r
		} // otherwise others must act in its slices, or the sum is not right
	}
	ok := quiet(w.prev, cur)
	if ok {
		w.proved = cur.reports
	}
	w.prev = cur
	return ok
}

// WaitIdle blocks until the whole swarm has been idle for d (--until-idle). Then it freezes this
// peer's ownership and returns nil. If ctx ends first, it returns the error of ctx.
func (n *Node) WaitIdle(ctx context.Context, d time.Duration) error {
	tick := time.NewTicker(max(50*time.Millisecond, min(d/8, 500*time.Millisecond)))
	defer tick.Stop()
	var w watch
	since := time.Now()
	for {
		if !w.next(n.wave(ctx)) {
			since = time.Now()
		} else if time.Since(since) >= d {
			n.placement.Freeze()
			n.done.Store(true)
			return n.linger(ctx, tick.C, 3*time.Second+d/4)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// linger keeps answering until the other members also find the swarm idle, so that no member waits
// for peers that have just stopped. It waits at most limit, because some members do not mean to
// stop.
func (n *Node) linger(ctx context.Context, tick <-chan time.Time, limit time.Duration) error {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		if w, _ := n.wave(ctx); len(w.working) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick:
		}
	}
	return nil
}

// wave asks every member of the effective view. away are those that vanished.
func (n *Node) wave(ctx context.Context) (w wave, away []string) {
	live, view := n.placement.Views()
	w.reports, w.total = map[string]report{}, uint64(len(n.slices))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, m := range view.Members() {
		wg.Go(func() {
			r, done, err := n.askReport(ctx, m.ID)
			mu.Lock()
			defer mu.Unlock()
			_, alive := live.Find(m.ID)
			switch {
			case err == nil:
				w.reports[m.ID] = r
				if !done {
					w.working = append(w.working, m.ID)
				}
			case alive:
				w.missing = append(w.missing, m.ID)
			default:
				away = append(away, m.ID)
			}
		})
	}
	wg.Wait()
	return w, away
}

// askReport returns what member id reports about itself, and whether it is about to stop.
func (n *Node) askReport(ctx context.Context, id string) (r report, done bool, err error) {
	if id == n.id {
		st, err := n.serveStatus()
		return reportOf(st), st.GetDone(), err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	resp, err := n.swarm.Call(ctx, id, &wire.Request{Body: &wire.Request_Status{Status: &wire.Status{}}})
	return reportOf(resp.GetStatus()), resp.GetStatus().GetDone(), err
}

func reportOf(s *wire.StatusAnswer) report {
	return report{Idle: s.GetIdle(), Sent: s.GetSent(), Received: s.GetReceived(), Keys: s.GetSeeds(),
		Acting: s.GetActing()}
}
