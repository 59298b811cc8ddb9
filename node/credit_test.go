package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/node/quota"
)

func forwardOf(links int) *wire.Request {
	f := &wire.Forward{}
	for i := range links {
		f.Links = append(f.Links, &wire.Link{Key: fmt.Sprintf("web:http://example.org/%d", i)})
	}
	return &wire.Request{Version: 1, Body: &wire.Request_Forward{Forward: f}}
}

// Between real peers: a sender that forwards too much is told to wait. A sender that does not wait
// is cut off, and status reports it. A third peer is served.
func TestCreditBetweenPeers(t *testing.T) {
	n := openNode(t, Options{Credit: quota.Limits{Links: quota.Rate{PerSecond: 1, Burst: 1000}}})
	enter(n, "loud", "quiet")
	from := func(peer string) *wire.Response {
		return n.serve(t.Context(), peer, forwardOf(900))
	}
	if r := from("loud"); r.GetForward() == nil {
		t.Fatal(r)
	}
	r := from("loud")
	if f := r.GetRefusal(); f.GetCode() != wire.Refusal_CODE_BUSY || !f.GetPause() || f.GetRetryAfterMs() == 0 {
		t.Fatal(r)
	}
	// As the sender, a peer obeys without a request.
	n.gate.Obey("somebody", r.Refusal)
	if err := n.gate.Await(t.Context(), "somebody", forwardOf(1)); err == nil {
		t.Error("a call to a peer that asked to wait")
	}
	n.gate.Obey("greedy", &wire.Refusal{Code: wire.Refusal_CODE_BUSY, Pause: true, RetryAfterMs: 1 << 62})
	var no *call.Refusal
	if err := n.gate.Await(t.Context(), "greedy", forwardOf(1)); !errors.As(err, &no) || no.After > time.Minute {
		t.Errorf("another peer makes this one wait: %v", err)
	}
	for range 400 {
		from("loud")
	}
	if s := n.gate.State("loud"); !strings.HasPrefix(s, "cut off") {
		t.Errorf("%q", s)
	}
	if r := from("quiet"); r.GetForward() == nil {
		t.Errorf("a third peer: %v", r)
	}
	seen := map[string]float64{}
	for _, m := range n.board.Metrics() {
		seen[m.Name+m.Labels["reason"]+m.Labels["what"]] = m.Value
	}
	for _, name := range []string{"echo_credit_refused_totallinks", "echo_credit_refused_totalwaiting",
		"echo_credit_refused_totalcut",
		"echo_credit_peers_totalslowed", "echo_credit_peers_totalcut off"} {
		if seen[name] == 0 {
			t.Errorf("%s is 0: %v", name, seen)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n.gate.Obey("soon", &wire.Refusal{Code: wire.Refusal_CODE_BUSY, Pause: true, RetryAfterMs: 300})
	if err := n.gate.Await(ctx, "soon", forwardOf(1)); err == nil {
		t.Error("a wait outlived its context")
	}
}
