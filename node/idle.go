package node

import (
	"context"
	"sync"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
)

// report is what one member says of itself in one wave of asking.
type report struct {
	Idle     bool
	Sent     uint64
	Received uint64
	Keys     uint64
}

// wave is one round of asking every member of the effective view.
type wave struct {
	reports map[string]report
	missing []string // members that did not answer
}

// quiet decides whether the swarm was done when prev was taken: every member
// idle in both waves and nobody's counters moved between them. A link under way
// is always in its sender's outbox, so idle members have none; equal counters
// say that nothing happened between the two times a member was asked; so there
// was one moment, after the last answer of prev, when all were idle at once
// (Mattern 1987, the four-counter method, with durable outboxes for channels).
// A member that vanished counts as it last reported.
func quiet(prev, cur wave) bool {
	var keys uint64
	for id, c := range cur.reports {
		p, ok := prev.reports[id]
		if !ok || !c.Idle || !p.Idle || c != p {
			return false
		}
		keys += c.Keys
	}
	return keys > 0 && len(cur.missing) == 0 && len(prev.missing) == 0
}

// WaitIdle blocks until the whole swarm has been idle for d (CLI.md,
// --until-idle), freezes this peer's ownership and returns nil; it returns
// ctx's error when that ends first.
func (n *Node) WaitIdle(ctx context.Context, d time.Duration) error {
	tick := time.NewTicker(max(50*time.Millisecond, min(d/8, 500*time.Millisecond)))
	defer tick.Stop()
	last := map[string]report{}
	prev := n.wave(ctx, last)
	since := time.Now()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		cur := n.wave(ctx, last)
		if !quiet(prev, cur) {
			since = time.Now()
		} else if time.Since(since) >= d {
			n.terr.freeze()
			return nil
		}
		prev = cur
	}
}

// wave asks every member of the effective view. A member that has vanished is
// taken at its last word if that was idle; last is updated with every answer.
func (n *Node) wave(ctx context.Context, last map[string]report) wave {
	live, view := n.terr.views()
	w := wave{reports: map[string]report{}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, m := range view.Members() {
		wg.Go(func() {
			r, err := n.askReport(ctx, m.ID)
			mu.Lock()
			defer mu.Unlock()
			_, alive := live.Find(m.ID)
			switch old, known := last[m.ID]; {
			case err == nil:
				w.reports[m.ID], last[m.ID] = r, r
			case !alive && known && old.Idle:
				w.reports[m.ID] = old
			default:
				w.missing = append(w.missing, m.ID)
			}
		})
	}
	wg.Wait()
	return w
}

func (n *Node) askReport(ctx context.Context, id string) (report, error) {
	if id == n.id {
		st, err := n.serveStatus()
		if err != nil {
			return report{}, err
		}
		return reportOf(st), nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	resp, err := n.call(ctx, id, &wire.Request{Body: &wire.Request_Status{Status: &wire.Status{}}})
	if err != nil {
		return report{}, err
	}
	return reportOf(resp.GetStatus()), nil
}

func reportOf(s *wire.StatusAnswer) report {
	return report{Idle: s.GetIdle(), Sent: s.GetSent(), Received: s.GetReceived(), Keys: s.GetSeeds()}
}
