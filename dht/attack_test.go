package dht

import (
	"context"
	"flag"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/echo-node/echo-node/dht/life"
	"github.com/echo-node/echo-node/dht/member"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
)

// swarmOf starts n peers like form, with the options that change sets.
func swarmOf(t *testing.T, n int, change func(*Options)) []*DHT {
	t.Helper()
	var ds []*DHT
	var charter partition.Charter
	for range n {
		o := Options{Key: newKey(t)}
		if len(ds) == 0 {
			charter = partition.DefaultCharter("test", PeerID(o.Key))
		} else {
			o.Join = ds[0].Addrs()
		}
		o.Charter = charter
		change(&o)
		d, _ := start(t, o)
		ds = append(ds, d)
	}
	converged(t, 20*time.Second, ds...)
	return ds
}

// bare returns a libp2p host without limits, connected to each of ds.
func bare(t *testing.T, ds ...*DHT) host.Host {
	t.Helper()
	h, err := libp2p.New(libp2p.Identity(newKey(t)), libp2p.NoListenAddrs,
		libp2p.ResourceManager(&network.NullResourceManager{}),
		libp2p.DisableMetrics())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	for _, d := range ds {
		if err := h.Connect(context.Background(), peer.AddrInfo{ID: d.self, Addrs: d.host.Addrs()}); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// holdStreams opens each streams per protocol to each of ds, sends one byte on each, and holds them
// until ctx ends. It reopens those that are reset. wg counts its goroutines.
func holdStreams(ctx context.Context, wg *sync.WaitGroup, h host.Host, each int, ids []protocol.ID, ds ...*DHT) {
	for _, d := range ds {
		for _, id := range ids {
			for range each {
				wg.Go(func() {
					for ctx.Err() == nil {
						holdOne(ctx, h, d.self, id)
						life.Sleep(ctx, time.Second) // the test is about held streams, not about the cost of refusals
					}
				})
			}
		}
	}
}

func holdOne(ctx context.Context, h host.Host, to peer.ID, id protocol.ID) {
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	s, err := h.NewStream(short, to, id)
	if err != nil {
		return
	}
	defer func() { _ = s.Reset() }()
	defer context.AfterFunc(ctx, func() { _ = s.Reset() })()
	if _, err := s.Write([]byte{200}); err != nil {
		return
	}
	_, _ = s.Read(make([]byte, 1))
}

// latencies makes urgent calls from each of ds to each other one, rounds times. It returns their
// durations, sorted, and how many were answered.
func latencies(t *testing.T, rounds int, ds []*DHT) (all []time.Duration, good int) {
	t.Helper()
	for range rounds {
		for _, from := range ds {
			for _, to := range ds {
				if from == to {
					continue
				}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				began := time.Now()
				res, err := from.Call(ctx, to.ID(), whoOwns("web:https://example.org/"))
				cancel()
				all = append(all, time.Since(began))
				if err == nil && res.GetWhoOwns() != nil {
					good++
				} else if good >= 0 {
					t.Logf("%s to %s: %v, %v", from.ID(), to.ID(), res, err)
				}
			}
		}
	}
	slices.Sort(all)
	return all, good
}

// Row "slow" of the attacks: ten outsiders open as many streams as they can and send one byte on
// each. The members still answer every urgent call. The test prints how fast, because that depends
// on the machine.
func TestAttackSlowStreams(t *testing.T) {
	ds := swarmOf(t, 3, func(o *Options) { o.Priority = func(r *wire.Request) bool { return r.GetWhoOwns() != nil } })
	const rounds = 25
	before, good := latencies(t, rounds, ds)
	if good != len(before) {
		t.Fatalf("in peace %d of %d calls were answered", good, len(before))
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	prefix := ds[0].prefix
	ids := []protocol.ID{prefix + "/rpc/1", prefix + "/urgent/1", prefix + "/swim-stream/1", prefix + "/swim-packet/1",
		prefix + "/kad/1.0.0", prefix + "/vouch/1", "/ipfs/ping/1.0.0", charterProtocol}
	var evil []host.Host
	for range 20 {
		evil = append(evil, bare(t, ds...))
	}
	// First the same work without held streams, on a protocol that no peer serves. This shows the
	// cost for the machine.
	idle, rest := context.WithCancel(ctx)
	var resting sync.WaitGroup
	for _, h := range evil[:10] {
		holdStreams(idle, &resting, h, 32, []protocol.ID{"/nobody/1"}, ds...)
	}
	work, good := latencies(t, rounds, ds)
	if good != len(work) {
		t.Errorf("with strangers that hold nothing %d of %d calls were answered", good, len(work))
	}
	rest()
	resting.Wait()
	for _, h := range evil[:10] {
		holdStreams(ctx, &wg, h, 32, ids[:1], ds...)
	}
	eventually(t, time.Minute, "calls of outsiders are held", func() bool {
		for _, d := range ds {
			if d.Stats().CallsIn < 400 { // of these, more than 150 are calls of members
				return false
			}
		}
		return true
	})
	during, good := latencies(t, rounds, ds)
	if good != len(during) {
		t.Errorf("under attack %d of %d calls were answered", good, len(during))
	}
	// Now ten more hosts hold streams of every protocol.
	for _, h := range evil[10:] {
		holdStreams(ctx, &wg, h, 4, ids, ds...)
	}
	views := func() bool {
		for _, d := range ds {
			if d.View().Len() != len(ds) {
				return false
			}
		}
		return true
	}
	life.Sleep(t.Context(), 5*time.Second) // if packets of a member were lost, it would seem dead by now
	wide, good := latencies(t, rounds, ds)
	if good != len(wide) || !views() {
		t.Errorf("under attack on every protocol %d of %d calls were answered, views %v", good, len(wide), views())
	}
	p99 := func(all []time.Duration) time.Duration { return all[len(all)*99/100] }
	t.Logf("p99 of urgent calls: %s in peace, %s with strangers that hold nothing, %s with held calls, %s with held streams of every protocol",
		p99(before), p99(work), p99(during), p99(wide))
	for i, d := range ds {
		t.Logf("%d: %+v", i, d.Stats()) // it has the counts of streams without a place
	}
	cancel()
	wg.Wait()
}

// victim counts what arrives at an address where no peer of the swarm is.
type victim struct {
	addrs    []string
	tcp, udp atomic.Int64
}

func newVictim(t *testing.T, ip string) *victim {
	t.Helper()
	v := &victim{}
	for range 6 {
		l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
		if err != nil {
			t.Skipf("this system has no %s: %v", ip, err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				v.tcp.Add(1)
				_ = c.Close()
			}
		}()
		u, err := net.ListenPacket("udp", net.JoinHostPort(ip, "0"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = u.Close() })
		go func() {
			b := make([]byte, 2000)
			for {
				if _, _, err := u.ReadFrom(b); err != nil {
					return
				}
				v.udp.Add(1)
			}
		}()
		v.addrs = append(v.addrs, fmt.Sprintf("/ip4/%s/tcp/%d", ip, l.Addr().(*net.TCPAddr).Port))
		v.addrs = append(v.addrs, fmt.Sprintf("/ip4/%s/udp/%d/quic-v1", ip, u.LocalAddr().(*net.UDPAddr).Port))
	}
	return v
}

// announce adds a member to ds's swarm that announces the victim's addresses as its own.
func (v *victim) announce(t *testing.T, ds ...*DHT) (stop func()) {
	t.Helper()
	key := newKey(t)
	h, err := libp2p.New(libp2p.Identity(key), libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"),
		libp2p.DisableMetrics())
	if err != nil {
		t.Fatal(err)
	}
	l, err := member.New(member.Options{Host: h, Key: key, Space: ds[0].space, Prefix: ds[0].prefix,
		Self: partition.Member{ID: h.ID().String(), Capacity: 1, Addrs: v.addrs[:8]}})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range ds {
		if err := h.Connect(context.Background(), peer.AddrInfo{ID: d.self, Addrs: d.host.Addrs()}); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Join(context.Background(), d.self); err != nil {
			t.Fatal(err)
		}
	}
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			_ = h.Close() // without a goodbye
			_ = l.Close()
		}
	}
	t.Cleanup(stop)
	return stop
}

var victimFor = flag.Duration("victim", 25*time.Second,
	"how long the victim of an announcement is watched; 1h = all of it")

// Row "victim" of the attacks: a member that lives for some seconds announces the addresses of a
// victim that is no peer. A swarm of five dials the victim at most once a minute. With -victim=1h
// the test watches for longer.
func TestAttackVictimAddress(t *testing.T) {
	t.Parallel()
	ds := form(t, 5)
	v := newVictim(t, "127.0.0.66")
	began := time.Now()
	stop := v.announce(t, ds[0])
	eventually(t, 10*time.Second, "all believe that the liar is a member", func() bool {
		for _, d := range ds {
			if d.View().Len() != len(ds)+1 {
				return false
			}
		}
		return true
	})
	talk := func() { // every peer wants to call every member
		for _, d := range ds {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			for _, m := range d.View().Members() {
				_, _ = d.Call(ctx, m.ID, whoOwns("web:https://example.org/"))
			}
			cancel()
		}
	}
	talk()
	life.Sleep(t.Context(), 8*time.Second-time.Since(began))
	stop()
	for next := time.Minute; next < *victimFor; next += time.Minute {
		life.Sleep(t.Context(), next-time.Since(began))
		t.Logf("after %s: %d TCP connections and %d UDP packets", next, v.tcp.Load(), v.udp.Load())
		talk()
	}
	life.Sleep(t.Context(), *victimFor-time.Since(began))
	tcp, udp := v.tcp.Load(), v.udp.Load()
	t.Logf("in %s the victim received %d TCP connections and %d UDP packets", time.Since(began).Round(time.Second), tcp,
		udp)
	for i, d := range ds {
		t.Logf("%d: %+v", i, d.Stats()) // it has the counts of addresses that were not dialled
	}
	if most := 1 + int64(time.Since(began)/time.Minute); tcp+udp > most {
		t.Errorf("the victim received %d TCP connections and %d UDP packets", tcp, udp)
	}
	// The honest peers are still connected to each other.
	converged(t, 20*time.Second, ds...)
}
