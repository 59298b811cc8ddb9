package dht

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	mocknet "github.com/libp2p/go-libp2p/p2p/net/mock"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
)

// lossyHost loses one of lossOneIn packets of the membership. Each packet is one Write.
type lossyHost struct {
	host.Host
	packet protocol.ID
	mu     *sync.Mutex
	rng    *rand.Rand
	lost   *atomic.Int64
}

const lossOneIn = 20

func (h lossyHost) NewStream(ctx context.Context, p peer.ID, ids ...protocol.ID) (network.Stream, error) {
	s, err := h.Host.NewStream(ctx, p, ids...)
	if err != nil || len(ids) != 1 || ids[0] != h.packet {
		return s, err
	}
	return lossyStream{s, h}, nil
}

type lossyStream struct {
	network.Stream
	h lossyHost
}

func (s lossyStream) Write(b []byte) (int, error) {
	s.h.mu.Lock()
	lose := s.h.rng.IntN(lossOneIn) == 0
	s.h.mu.Unlock()
	if lose {
		s.h.lost.Add(1)
		return len(b), nil
	}
	return s.Stream.Write(b)
}

// crowd is a simulated network with many peers. Each link has its own latency of 5 to 150 ms in one
// direction. One in twenty packets of the membership is lost.
type crowd struct {
	t       *testing.T
	net     mocknet.Mocknet
	charter partition.Charter
	rng     *rand.Rand
	lost    atomic.Int64
	all     int
	up      []*DHT
	stops   map[*DHT]func()
}

// add starts n peers, and waits for nothing. Each joins up to three of the peers that are there.
func (c *crowd) add(n int) {
	c.t.Helper()
	for range n {
		key := newKey(c.t)
		h, err := c.net.AddPeer(key, parseAddr(c.t, fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", 1000+c.all)))
		if err != nil {
			c.t.Fatal(err)
		}
		if c.all++; c.all == 1 {
			c.charter = partition.DefaultCharter("crowd", PeerID(key))
			c.charter.SliceBits = 8
		}
		var join []string
		for _, d := range c.up {
			l, err := c.net.LinkPeers(h.ID(), d.self)
			if err != nil {
				c.t.Fatal(err)
			}
			l.SetOptions(mocknet.LinkOptions{Latency: time.Duration(5+c.rng.IntN(146)) * time.Millisecond})
			join = append(join, d.Addrs()...)
		}
		lossy := lossyHost{Host: h, packet: prefix(c.charter) + "/swim-packet/1", mu: &sync.Mutex{},
			rng: rand.New(rand.NewPCG(1, uint64(c.all))), lost: &c.lost}
		d, stop := start(c.t, Options{Key: key, Charter: c.charter, Host: lossy, Join: join[:min(len(join), 3)]})
		c.up, c.stops[d] = append(c.up, d), stop
	}
}

// kill stops n peers without a goodbye.
func (c *crowd) kill(n int) {
	c.t.Helper()
	dead := c.up[3 : 3+n]
	c.up = append(c.up[:3:3], c.up[3+n:]...)
	for _, d := range dead {
		for _, other := range c.net.Peers() {
			if other == d.self || len(c.net.LinksBetweenPeers(d.self, other)) == 0 {
				continue
			}
			if err := c.net.UnlinkPeers(d.self, other); err != nil {
				c.t.Fatal(err)
			}
		}
		if err := d.host.Network().Close(); err != nil {
			c.t.Fatal(err)
		}
	}
	for _, d := range dead {
		c.stops[d]()
	}
}

// owners returns a digest of the replicas of all slices in d's View.
func owners(c partition.Charter, d *DHT) uint64 {
	table := partition.NewTable(c)
	table.Update(d.View())
	h := fnv.New64a()
	for _, s := range c.Slices() {
		_, _ = fmt.Fprintln(h, s, table.Replicas(s))
	}
	return h.Sum64()
}

// agree waits in fake time until every peer sees every other. Then all peers must name the same
// replicas for each slice.
func (c *crowd) agree(within time.Duration) time.Duration {
	c.t.Helper()
	began := time.Now()
	for !c.same() {
		if time.Since(began) > within {
			low, high := 1<<30, 0
			for _, d := range c.up {
				low, high = min(low, d.View().Len()), max(high, d.View().Len())
			}
			c.t.Fatalf("after %s %d peers see %d to %d", within, len(c.up), low, high)
		}
		time.Sleep(100 * time.Millisecond)
	}
	took := time.Since(began)
	first := owners(c.charter, c.up[0])
	for _, d := range c.up[1:] {
		if owners(c.charter, d) != first {
			c.t.Fatal("the same View and other replicas")
		}
	}
	return took
}

// same reports whether all peers have the same View, with all peers in it.
func (c *crowd) same() bool {
	first := c.up[0].View()
	for _, d := range c.up {
		if v := d.View(); v.Len() != len(c.up) || v.Digest() != first.Digest() {
			return false
		}
	}
	return true
}

// 42 real hosts with memberlist and Kademlia run in fake time on a network with latency and loss.
// All Views become the same, and all peers name the same replicas of each slice. Then five hosts
// die at once, five join at once, and then both. With the race detector there are only twelve
// hosts, because it supports only a few thousand goroutines with such traffic.
func TestFortyTwoHosts(t *testing.T) {
	racetest.InFakeTime(t, func(t *testing.T) {
		c := &crowd{t: t, net: mocknet.New(), rng: rand.New(rand.NewPCG(42, 0)), stops: map[*DHT]func(){}}
		hosts := 42
		if racetest.Enabled {
			hosts = 12
		}
		c.add(hosts)
		t.Logf("%d hosts agree after %s of fake time", hosts, c.agree(3*time.Minute))
		c.kill(5)
		t.Logf("5 deaths: after %s", c.agree(2*time.Minute))
		c.add(5)
		t.Logf("5 joins: after %s", c.agree(2*time.Minute))
		c.kill(5)
		c.add(5)
		t.Logf("5 deaths and 5 joins: after %s", c.agree(2*time.Minute))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		first, last := c.up[0], c.up[len(c.up)-1]
		if _, err := last.Call(ctx, first.ID(), whoOwns("web:https://example.org/")); err != nil {
			t.Error(err)
		}
		if desc, err := first.Descriptor(ctx, last.ID()); err != nil || desc.Member.ID != last.ID() {
			t.Errorf("the last one's descriptor from Kademlia: %v, %v", desc, err)
		}
		t.Logf("%d packets were lost", c.lost.Load())
		if c.lost.Load() == 0 {
			t.Error("no packet was lost")
		}
		for _, d := range c.up {
			c.stops[d]()
		}
		if err := c.net.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute) // memberlist does not wait for its probes
	})
}
