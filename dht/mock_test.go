package dht

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	mocknet "github.com/libp2p/go-libp2p/p2p/net/mock"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/echo-node/echo-node/partition"
)

// mock starts n peers over libp2p's mocknet, all links up.
func mock(t *testing.T, n int) (mocknet.Mocknet, []*DHT, func()) {
	t.Helper()
	net := mocknet.New()
	var keys []crypto.PrivKey
	var hosts []host.Host
	for i := range n {
		key := newKey(t)
		addr, err := ma.NewMultiaddr("/ip4/127.0.0.1/tcp/" + string(rune('1'+i)) + "000")
		if err != nil {
			t.Fatal(err)
		}
		h, err := net.AddPeer(key, addr)
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

// In fake time a swarm is cut in two, both halves believe they are all there
// is, and after the cut heals they find each other again.
func TestCutAndHealInFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, ds, stop := mock(t, 5)
		converged(t, time.Minute, ds...)
		left, right := ds[:2], ds[2:]
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
		t.Logf("cut noticed by the left after %s, by the right after %s", converged(t, time.Minute, left...), converged(t, time.Minute, right...))
		for _, a := range left {
			for _, b := range right {
				if _, err := net.LinkPeers(a.self, b.self); err != nil {
					t.Fatal(err)
				}
			}
		}
		t.Logf("healed after %s", converged(t, 2*time.Minute, ds...))
		for _, d := range ds {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			if _, err := d.Call(ctx, ds[0].ID(), whoOwns("web:https://example.org/")); err != nil {
				t.Error(err)
			}
			cancel()
		}
		stop()
		// memberlist does not wait for its probes: in fake time, which stops
		// with this function, let their timers run out.
		time.Sleep(time.Minute)
	})
}
