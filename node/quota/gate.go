package quota

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
)

// Swarm is what this peer knows of the peers and slices of its swarm.
type Swarm interface {
	// Alive reports whether peer is alive in this peer's View.
	Alive(peer string) bool
	// Partner reports whether peer is a replica or the owner of some slice.
	Partner(peer string) bool
	// Owner returns the owner of a slice by the agreement that this peer knows, or "".
	Owner(s partition.Slice) string
	// Lacking reports whether peer reports that its own copy of a slice is not whole.
	Lacking(s partition.Slice, peer string) bool
	// Zones reports whether the swarm has zones.
	Zones() bool
	// Descriptor finds what a member of another zone has signed about itself.
	Descriptor(ctx context.Context, peer string) (dht.Descriptor, error)
	// Overrules reports whether the charter lets peer overrule the judge of accounts.
	Overrules(peer string) bool
}

// Options are the options of a Gate.
type Options struct {
	Self   string // this peer: nothing limits it
	Limits Limits
	Swarm  Swarm
	Logger *slog.Logger
}

// Gate decides which requests of other peers are answered, and obeys the pauses that other peers ask
// this one for. Its methods are safe for concurrent use.
type Gate struct {
	o          Options
	neighbours *neighbours

	mu      sync.Mutex
	credits *credits
	refused map[string]int64     // by reason
	named   map[string]int64     // peers slowed or cut off, by which of the two
	ruled   map[ruledKind]int64  // refused by the table in rules.go
	pauses  map[string]time.Time // until when a peer wants no bulk requests from this one
}

// New returns a Gate.
func New(o Options) *Gate {
	return &Gate{o: o, neighbours: newNeighbours(o.Swarm), credits: newCredits(o.Limits), refused: map[string]int64{},
		named: map[string]int64{}, ruled: map[ruledKind]int64{}, pauses: map[string]time.Time{}}
}

// Admit applies the credit of a peer to its request. A peer that requests more than its credit is
// told when to try again. A peer that does not wait is slowed, then cut off for a time. Admit
// returns nil if the request is within the credit.
func (g *Gate) Admit(from string, req *wire.Request) *wire.Response {
	if from == g.o.Self {
		return nil
	}
	now := time.Now()
	g.mu.Lock()
	r := g.credits.judge(from, priceOf(req), now)
	g.note(r.reason, r.news)
	g.mu.Unlock()
	g.warn(from, r.news)
	if r.ok {
		return nil
	}
	resp := call.Refuse(wire.Refusal_CODE_BUSY, "over the credit of one peer: "+r.reason, r.wait)
	resp.Refusal.Pause = r.reason != "urgent"
	return resp
}

// Faulty counts a malformed request of a peer, which package dht refused.
func (g *Gate) Faulty(from string) {
	if from == g.o.Self {
		return
	}
	g.mu.Lock()
	news := g.credits.fault(from, time.Now())
	g.note("malformed", news)
	g.mu.Unlock()
	g.warn(from, news)
}

// note counts a refusal and returns news for the log. g.mu is held.
func (g *Gate) note(reason, news string) string {
	if reason != "" {
		g.refused[reason]++
	}
	if news != "" {
		g.named[news]++
	}
	return news
}

// warn logs news about a peer, if there is any.
func (g *Gate) warn(from, news string) {
	if news != "" {
		g.o.Logger.Warn("a peer asks for more than its credit and does not wait", "from", from, "what", news, "state",
			g.State(from))
	}
}

// State describes how a peer is limited now, or returns "" if it is not.
func (g *Gate) State(peer string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.credits.state(peer, time.Now())
}

// Await waits out a short pause that peer has asked this one for. For a longer pause it returns a
// refusal, and the caller sends no request. Leases and ballots never wait.
func (g *Gate) Await(ctx context.Context, peer string, req *wire.Request) error {
	const worth = 500 * time.Millisecond
	if Priority(req) {
		return nil
	}
	wait := g.pause(peer, time.Now())
	if wait <= 0 {
		return nil
	}
	if wait > worth {
		return call.Busy("it has asked this peer to wait", wait)
	}
	if !call.Sleep(ctx, wait, nil) {
		return ctx.Err()
	}
	return nil
}

// pause returns how long peer wants no bulk requests from this one.
func (g *Gate) pause(peer string, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	until, ok := g.pauses[peer]
	if ok && !now.Before(until) {
		delete(g.pauses, peer)
	}
	return until.Sub(now)
}

// Obey records the pause that a refusal asks for, up to maxPause.
func (g *Gate) Obey(peer string, r *wire.Refusal) {
	if r.GetCode() != wire.Refusal_CODE_BUSY || !r.GetPause() {
		return
	}
	wait := time.Duration(min(r.RetryAfterMs, uint64(maxPause/time.Millisecond))) * time.Millisecond
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pauses[peer] = time.Now().Add(wait) // only called peers, which are members, so they are few
}

// Metrics returns the counts of refused requests, by reason and by rule.
func (g *Gate) Metrics() []api.Metric {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := api.Counters("echo_credit_refused_total",
		"Requests of other peers over their credit, by what they ran out of.", "reason", g.refused)
	out = append(out, api.Counters("echo_credit_peers_total", "Times that a peer was slowed or cut off.", "what",
		g.named)...)
	for k, v := range g.ruled {
		out = append(out, api.Metric{Name: "echo_rule_refused_total", Kind: "counter",
			Help:  "Requests of other peers that their sender may not make, by kind of request and reason.",
			Value: float64(v), Labels: map[string]string{"kind": k.kind, "reason": k.reason}})
	}
	return out
}
