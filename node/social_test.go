package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/nodetest"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Three peers share the accounts of one server. Each has an address of its own, and so its own rate
// budget there. One stops and comes back. Every profile is fetched, and no limit is exceeded. A
// peer reports its budgets only to its operator.
func TestPeersShareAnInstance(t *testing.T) {
	w := village(t, "127.77.0.1", mastodontest.Options{Seed: 2, People: 60, Remote: -1, Quiet: true,
		Limits: mastodontest.MastodonLimits()})
	s := nodetest.New(t, nodetest.Options{World: smallWorld(), Node: node.Options{SliceBits: 6, Fanout: 16},
		Each: func(n int, o *node.Options) {
			o.FromAddr = netip.AddrFrom4([4]byte{127, 0, 0, byte(11 + n)})
		}})
	for range 3 {
		s.Add()
	}
	s.Settle(3)
	var keys []partition.Key
	truth := w.Truth()
	for acct := range truth.Accounts {
		keys = append(keys, accountOf(t, acct))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := s.Peers[0].SeedUntilDone(ctx, keys); err != nil {
		t.Fatal(err)
	}
	had := func(from *nodetest.Peer) (bool, string) {
		for i, k := range keys {
			shown, err := from.API().Show(ctx, k)
			if err != nil || shown.Record == nil || shown.Record.Kind != store.KindProfile {
				return false, fmt.Sprintf("%d of %d, %s: %+v %v", i, len(keys), k, shown.Why, err)
			}
		}
		return true, ""
	}
	s.Until("all profiles are had", 2*time.Minute, func() (bool, string) { return had(s.Peers[1]) })
	r := w.Report()
	if r.Refused != 0 || len(r.ByAddr) != 3 {
		t.Errorf("%d refused, by address %v", r.Refused, r.ByAddr)
	}
	for _, p := range s.Peers {
		b := p.Status().Budgets
		if len(b) == 0 || b[0].Site != partition.Site("mastodon:"+w.Domain()) {
			t.Errorf("%s: budgets %+v", p.Name, b)
		}
		metrics, err := json.Marshal(p.API().Metrics())
		if err != nil || !strings.Contains(string(metrics), "echo_budget_used") ||
			!strings.Contains(string(metrics), "echo_budget_refused_total") {
			t.Errorf("%s: %s %v", p.Name, metrics, err)
		}
	}
	all, err := s.Peers[0].API().Peers(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.Status != nil && p.ID != s.Peers[0].ID() && len(p.Status.Budgets) > 0 {
			t.Errorf("another peer's budgets are told: %+v", p.Status.Budgets)
		}
	}
	if err := s.Peers[2].Stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.Peers[2].Start(); err != nil {
		t.Fatal(err)
	}
	s.Settle(3)
	s.Until("all profiles are there after a restart", 2*time.Minute, func() (bool, string) { return had(s.Peers[2]) })
	if r := w.Report(); r.Refused != 0 {
		t.Errorf("%d refused after a restart", r.Refused)
	}
	t.Logf("requests by address: %v", r.ByAddr)
}

// TestSeedAgainReachesTheOwner: a person may ask any peer for a new visit of a known Key, and the
// Key's owner visits it now. An unknown Key is not visited.
func TestSeedAgainReachesTheOwner(t *testing.T) {
	w := village(t, "127.77.0.9", mastodontest.Options{Seed: 2, People: 6, Remote: -1, Quiet: true})
	s := nodetest.New(t, nodetest.Options{World: smallWorld(), Node: node.Options{SliceBits: 6, Fanout: 16},
		Each: func(n int, o *node.Options) {
			o.FromAddr = netip.AddrFrom4([4]byte{127, 0, 0, byte(11 + n)})
		}})
	for range 3 {
		s.Add()
	}
	s.Settle(3)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var keys []partition.Key
	for acct := range w.Truth().Accounts {
		keys = append(keys, accountOf(t, acct))
	}
	if err := s.Peers[0].SeedUntilDone(ctx, keys); err != nil {
		t.Fatal(err)
	}
	idle := func() (bool, string) {
		for _, k := range keys {
			if shown, err := s.Peers[1].API().Show(ctx, k); err != nil || shown.State != "done" {
				return false, fmt.Sprintf("%s: %s %v", k, shown.State, err)
			}
		}
		return true, ""
	}
	s.Until("all are looked at", time.Minute, idle)
	for i, k := range keys[:3] {
		before := w.Report().Requests
		if err := s.Peers[i].API().Again(ctx, k); err != nil {
			t.Fatal(err)
		}
		s.Until("it is asked for again", time.Minute, func() (bool, string) {
			return w.Report().Requests > before, fmt.Sprintf("no request for %s", k)
		})
	}
	if err := s.Peers[1].API().Again(ctx, accountOf(t, "nobody@"+w.Domain())); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("who is not known: %v", err)
	}
}
