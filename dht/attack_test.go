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

// swarmOf is form with options that change sets.
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

// bare is a libp2p host without limits, connected to each of ds.
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

// holdStreams opens streams on each of the protocols to each of ds, for as long
// as ctx, and sends a byte on each.
func holdStreams(ctx context.Context, wg *sync.WaitGroup, h host.Host, each int, ids []protocol.ID, ds ...*DHT) {
	for _, d := range ds {
		for _, id := range ids {
			for range each {
				wg.Go(func() {
					for ctx.Err() == nil {
						holdOne(ctx, h, d.self, id)
						life.Sleep(ctx, time.Second) // it is about what they hold, not about the work of refusing
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

// latencies are those of urgent calls from each to each other, and how many of
// them were answered.
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

// Row "slow" of the attacks: ten identities that are no members open all the
// streams that they can and send a byte on each. Members go on to agree: every
// urgent call is answered. How fast is printed, and depends on the machine.
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
	// The same work for the machine without anything held: of a protocol that nobody speaks.
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
			if d.Stats().CallsIn < 400 { // 150 and more are honest ones
				return false
			}
		}
		return true
	})
	during, good := latencies(t, rounds, ds)
	if good != len(during) {
		t.Errorf("under attack %d of %d calls were answered", good, len(during))
	}
	// Now on every protocol, by ten more.
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
	life.Sleep(t.Context(), 5*time.Second) // time for a member to be thought dead, were its packets lost
	wide, good := latencies(t, rounds, ds)
	if good != len(wide) || !views() {
		t.Errorf("under attack on every protocol %d of %d calls were answered, views %v", good, len(wide), views())
	}
	p99 := func(all []time.Duration) time.Duration { return all[len(all)*99/100] }
	t.Logf("p99 of urgent calls: %s in peace, %s with strangers that hold nothing, %s with held calls, %s with held streams of every protocol",
		p99(before), p99(work), p99(during), p99(wide))
	for i, d := range ds {
		t.Logf("%d: %+v", i, d.Stats()) // what found no place is counted
	}
	cancel()
	wg.Wait()
}

// victim counts what reaches an address where nobody of the swarm is.
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

// announce has a member of ds's swarm that lives at the victim's, as it says.
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
			_ = h.Close() // without a good-bye
			_ = l.Close()
		}
	}
	t.Cleanup(stop)
	return stop
}

var victimFor = flag.Duration("victim", 25*time.Second,
	"how long the victim of an announcement is watched; 1h = all of it")

// Row "victim" of the attacks: identities that live for some seconds announce
// the addresses of somebody who is no peer. A swarm of five dials it once a
// minute at most, and one identity's announcement three times.
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
	talk := func() { // somebody wants to talk to it
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
		t.Logf("%d: %+v", i, d.Stats()) // what was not dialled is counted
	}
	if most := 1 + int64(time.Since(began)/time.Minute); tcp+udp > most {
		t.Errorf("the victim received %d TCP connections and %d UDP packets", tcp, udp)
	}
	// The honest ones are as connected as ever.
	converged(t, 20*time.Second, ds...)
}
