package node

import (
	"context"
	"maps"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/call"
)

// admitRequest stands before every handler. A peer that requests more than its credit is told when
// to try again. A peer that does not wait is slowed, then cut off for a time. Only requests within
// the credit reach n.serve.
func (n *Node) admitRequest(ctx context.Context, from string, req *wire.Request) *wire.Response {
	if from == n.id {
		return n.serve(ctx, from, req)
	}
	g, now := n.credit, time.Now()
	g.mu.Lock()
	r := g.credits.judge(from, priceOf(req), now)
	g.note(r.reason, r.news)
	g.mu.Unlock()
	n.warn(from, r.news)
	if r.ok {
		return n.serve(ctx, from, req)
	}
	resp := call.Refuse(wire.Refusal_CODE_BUSY, "over the credit of one peer: "+r.reason, r.wait)
	resp.Refusal.Pause = r.reason != "urgent"
	return resp
}

// faulty counts each malformed request, which dht refused before it reached this package.
func (n *Node) faulty(from string) {
	if from == n.id {
		return
	}
	g := n.credit
	g.mu.Lock()
	news := g.credits.fault(from, time.Now())
	g.note("malformed", news)
	g.mu.Unlock()
	n.warn(from, news)
}

// warn logs news about a peer, if there is any.
func (n *Node) warn(from, news string) {
	if news != "" {
		n.log.Warn("a peer asks for more than its credit and does not wait", "from", from, "what", news, "state",
			n.credit.state(from, time.Now()))
	}
}

// refusals returns the metrics of the gate and of the overlay's own refusals, by reason.
func (n *Node) refusals() []api.Metric {
	var out []api.Metric
	by := func(name, help, label string, counts map[string]int64) {
		for k, v := range counts {
			out = append(out, api.Metric{Name: name, Help: help, Kind: "counter", Value: float64(v),
				Labels: map[string]string{label: k}})
		}
	}
	g := n.credit
	g.mu.Lock()
	refused, named := maps.Clone(g.refused), maps.Clone(g.named)
	g.mu.Unlock()
	by("echo_credit_refused_total", "Requests of other peers over their credit, by what they ran out of.", "reason",
		refused)
	by("echo_credit_peers_total", "Times that a peer was slowed or cut off.", "what", named)
	s := n.dht.Stats()
	overlay := map[string]int64{"busy": int64(s.Busy), "malformed": int64(s.Malformed), "cut": int64(s.Cut),
		"replayed": int64(s.Replayed), "swim": int64(s.Member.Refused),
		"bad-descriptor": int64(s.Member.BadDescriptors), "stale-descriptor": int64(s.Member.StaleDescriptors)}
	for k, v := range s.RejectedDescriptors {
		overlay["record-"+k] = int64(v)
	}
	by("echo_overlay_refused_total", "What other peers sent that was refused, by reason.", "reason", overlay)
	unplaced, undialled := map[string]int64{}, map[string]int64{}
	for k, v := range s.NoPlace {
		unplaced[k] = int64(v)
	}
	for k, v := range s.NotDialled {
		undialled[k] = int64(v)
	}
	by("echo_overlay_no_place_total", "Streams and connections of other peers without a place, by pool and limit.",
		"reason", unplaced)
	by("echo_overlay_not_dialled_total", "Announced addresses that were not dialled, by reason.", "reason", undialled)
	claims := map[string]int64{}
	for k, v := range s.Member.DeathClaims {
		claims[k] = int64(v)
	}
	by("echo_death_claims_total",
		"Claims that a live member is dead, by the peer that sent them; honest peers pass some on.", "peer", claims)
	admission := map[string]int64{}
	for k, v := range s.HandshakeFailed {
		admission[k] = int64(v)
	}
	by("echo_not_admitted_total", "Peers that a private swarm did not let in, by reason.", "reason", admission)
	return out
}
