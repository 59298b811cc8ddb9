package node

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/hostlease"
	"github.com/echo-node/echo-node/node/hostlease/lease"
	"github.com/echo-node/echo-node/partition"
)

func hostLeaseOf(n *Node, from string, ask *wire.TurnAsk) *wire.TurnAnswer {
	if !n.placement.Alive(from) {
		enter(n, from)
	}
	r := n.serve(context.Background(), from,
		&wire.Request{Body: &wire.Request_Turns{Turns: &wire.Turns{Asks: []*wire.TurnAsk{ask}}}})
	return r.GetTurns().GetAnswers()[0]
}

// Host leases are given only for canonical addresses that the guard allows and whose Key this peer
// owns.
func TestHostLeasesAreGuarded(t *testing.T) {
	n := openNode(t, Options{AllowNet: []netip.Prefix{netip.MustParsePrefix("127.99.0.0/16")}})
	for _, bad := range []string{"10.0.0.1", "127.0.0.1", "169.254.169.254", "192.168.1.1", "::1", "fd00::1", "0.0.0.0",
		"224.0.0.1", "100.64.0.1",
		"::ffff:11.0.0.1", "11.00.0.1", "2001:DB8::1", "fe80::1%eth0", "example.org", "11.0.0.1:80", " 11.0.0.1", ""} {
		if a := hostLeaseOf(n, "p",
			&wire.TurnAsk{Address: bad, Want: true, Turn: 1}); a.State != wire.TurnAnswer_STATE_REFUSED ||
			a.Reason == "" || a.WaitMs == 0 {
			t.Errorf("%q: %v", bad, a)
		}
	}
	for _, m := range n.addresses.Metrics(time.Now()) {
		if m.Name == "echo_addresses_given" && m.Value != 0 {
			t.Errorf("%+v", m)
		}
	}
	for i, good := range []string{"11.0.0.1", "2606:4700::1", "127.99.0.1"} {
		a := hostLeaseOf(n, "p", &wire.TurnAsk{Address: good, Want: true, Turn: uint64(i + 1), GapMs: 1 << 40,
			PaceMs: 1 << 60})
		if a.State != wire.TurnAnswer_STATE_GIVEN && a.State != wire.TurnAnswer_STATE_WAIT ||
			time.Duration(a.GapMs)*time.Millisecond > lease.MaxGap {
			t.Errorf("%q: %v", good, a)
		}
	}
	mine := netip.MustParseAddr("11.0.0.7")
	give(t, n, n.store.SliceOf(hostlease.AddressKey(mine)), "other")
	if a := hostLeaseOf(n, "p",
		&wire.TurnAsk{Address: "11.0.0.7", Want: true, Turn: 1}); a.State != wire.TurnAnswer_STATE_NOT_OWNER ||
		a.Owner != "other" {
		t.Errorf("%v", a)
	}
}

// After a slice is gained, its previous owner's host leases may still be in use. No lease is given
// until they are over. A peer that knew no other peer gave them itself.
func TestNewGiverWaits(t *testing.T) {
	n := openNode(t, Options{})
	a := netip.MustParseAddr("11.0.0.7")
	given := func() bool {
		ask := &wire.Turns{Asks: []*wire.TurnAsk{{Address: a.String(), Want: true, Turn: 1}}}
		return n.addresses.Serve("p", ask).Answers[0].State == wire.TurnAnswer_STATE_GIVEN
	}
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if given() {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("alone, and no turn")
		}
	}
	s := n.store.SliceOf(hostlease.AddressKey(a))
	give(t, n, s, "other")
	give(t, n, s, n.id)
	begun := time.Now()
	for time.Since(begun) < 2*time.Second {
		if given() {
			t.Fatal("a lease of the owner before may still be in use")
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// If an address's owner cannot be reached, the sites of the address wait, and status gives the
// reason.
func TestUnreachedOwnerOfAnAddress(t *testing.T) {
	n := openNode(t, Options{})
	a := netip.MustParseAddr("11.0.0.7")
	give(t, n, n.store.SliceOf(hostlease.AddressKey(a)), "nobody")
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if l := n.addresses.Share().Ask(a, time.Second, time.Now()); l.From.IsZero() {
			t.Fatalf("allowed: %+v", l)
		}
		if s := n.Status(); s.AddressesWaiting == 1 && len(s.AddressesBlocked) == 1 &&
			strings.Contains(s.AddressesBlocked[0], "11.0.0.7") &&
			strings.Contains(s.AddressesBlocked[0], "nobody was not reached") {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("%+v", s)
		}
	}
	found := false
	for _, m := range n.board.Metrics() {
		found = found || m.Name == "echo_addresses_blocked" && m.Value == 1
	}
	if !found {
		t.Error("no metric says so")
	}
}

// A peer that requests every lease does not keep others waiting for long.
func TestGreedyAsker(t *testing.T) {
	n := openNode(t, Options{})
	var all []*wire.TurnAsk
	for i := range wire.MaxTurns {
		all = append(all, &wire.TurnAsk{Address: netip.AddrFrom4([4]byte{11, 1, byte(i / 250), byte(i % 250)}).String(),
			Want: true, Turn: uint64(i + 1)})
	}
	time.Sleep(1100 * time.Millisecond) // no gap is owed to the time before the restart
	enter(n, "greedy")
	r := n.serve(t.Context(), "greedy", &wire.Request{Body: &wire.Request_Turns{Turns: &wire.Turns{Asks: all}}})
	if a := r.GetTurns().GetAnswers(); len(a) != len(all) || a[0].State != wire.TurnAnswer_STATE_GIVEN {
		t.Fatalf("%d answers", len(a))
	}
	ask := &wire.TurnAsk{Address: all[0].Address, Want: true, Turn: 9}
	for begun := time.Now(); ; {
		a := hostLeaseOf(n, "modest", ask)
		if a.State == wire.TurnAnswer_STATE_GIVEN {
			return
		}
		if hostLeaseOf(n, "greedy", all[0]); time.Since(begun) > 15*time.Second {
			t.Fatalf("%v", a)
		}
		time.Sleep(time.Duration(a.WaitMs) * time.Millisecond)
	}
}

// A link from an older version to the port of another service is refused with a reason. A link to a
// port that another peer's operator may allow is accepted.
func TestAttackMailPort(t *testing.T) {
	n := openNode(t, Options{})
	for text, ok := range map[string]bool{"web:http://h.example:25/": false, "web:http://h.example:6667/x": false,
		"web:http://h.example:81/": true, "web:http://h.example/": true} {
		k, err := partition.KeyFromWire(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.admissible(k); (err == nil) != ok || err != nil && !errors.Is(err, fetch.ErrPort) {
			t.Errorf("%s: %v", k, err)
		}
	}
}
