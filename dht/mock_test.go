package dht

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	mocknet "github.com/libp2p/go-libp2p/p2p/net/mock"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
)

// mock starts n peers over libp2p's mocknet, with all links.
func mock(t *testing.T, n int) (mocknet.Mocknet, []*DHT, func()) {
	t.Helper()
	return mockOf(t, n, func(*Options, []*DHT) {})
}

func parseAddr(t *testing.T, text string) ma.Multiaddr {
	t.Helper()
	a, err := ma.NewMultiaddr(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// cutBetween removes every link between left and right.
func cutBetween(t *testing.T, net mocknet.Mocknet, left, right []*DHT) {
	t.Helper()
	for _, a := range left {
		for _, b := range right {
			if err := net.UnlinkPeers(a.self, b.self); err != nil {
				t.Fatal(err)
			}
			if err := net.DisconnectPeers(a.self, b.self); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// linkBetween makes every link between left and right.
func linkBetween(t *testing.T, net mocknet.Mocknet, left, right []*DHT) {
	t.Helper()
	for _, a := range left {
		for _, b := range right {
			if _, err := net.LinkPeers(a.self, b.self); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// mockOf is like mock, with the options that change sets. change gets the peers that already run.
func mockOf(t *testing.T, n int, change func(o *Options, ds []*DHT)) (mocknet.Mocknet, []*DHT, func()) {
	t.Helper()
	net := mocknet.New()
	var keys []crypto.PrivKey
	var hosts []host.Host
	for i := range n {
		key := newKey(t)
		h, err := net.AddPeer(key, parseAddr(t, fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", 1000+i)))
		if err != nil {
			t.Fatal(err)
		}
		keys, hosts = append(keys, key), append(hosts, h)
	}
	if err := net.LinkAll(); err != nil {
		t.Fatal(err)
	}
	charter := partition.DefaultCharter("mock", PeerID(keys[0]))
	var ds []*DHT
	var stops []func()
	for i := range n {
		o := Options{Key: keys[i], Charter: charter, Host: hosts[i]}
		if i > 0 {
			o.Join = ds[0].Addrs()
		}
		change(&o, ds)
		d, stop := start(t, o)
		ds, stops = append(ds, d), append(stops, stop)
	}
	return net, ds, func() {
		for _, stop := range stops {
			stop()
		}
		if err := net.Close(); err != nil {
			t.Error(err)
		}
	}
}

// In fake time a swarm is cut in two. Each half then sees only its own members. After the cut
// heals, all peers find each other again.
func TestCutAndHealInFakeTime(t *testing.T) {
	racetest.InFakeTime(t, func(t *testing.T) {
		net, ds, stop := mock(t, 5)
		converged(t, time.Minute, ds...)
		left, right := ds[:2], ds[2:]
		cutBetween(t, net, left, right)
		t.Logf("cut noticed by the left after %s, by the right after %s", converged(t, time.Minute, left...),
			converged(t, time.Minute, right...))
		linkBetween(t, net, left, right)
		t.Logf("healed after %s", converged(t, 2*time.Minute, ds...))
		for _, d := range ds {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			if _, err := d.Call(ctx, ds[0].ID(), whoOwns("web:https://example.org/")); err != nil {
				t.Error(err)
			}
			cancel()
		}
		stop()
		// memberlist does not wait for its probes. Fake time stops when this function returns, so
		// let their timers expire first.
		time.Sleep(time.Minute)
	})
}
