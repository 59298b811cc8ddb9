package dht

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
)

func newKey(t testing.TB) crypto.PrivKey {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// loopback returns listen addresses for both transports.
func loopback() []string {
	return []string{"/ip4/127.0.0.1/udp/0/quic-v1", "/ip4/127.0.0.1/tcp/0"}
}

// eventually waits until ok holds, and returns how long that took. It fails the test after within.
func eventually(t testing.TB, within time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	for !ok() {
		if time.Since(start) > within {
			t.Fatalf("after %s still not: %s", within, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(start)
}

// echo answers who-owns. The slice is the length of the key, and the caller is the only replica.
func echo(_ context.Context, from string, req *wire.Request) *wire.Response {
	a := &wire.WhoOwnsAnswer{Slice: uint64(len(req.GetWhoOwns().GetKey())), Keepers: []string{from}}
	return &wire.Response{Body: &wire.Response_WhoOwns{WhoOwns: a}}
}

// start runs a DHT until the test ends or the caller calls stop.
func start(t testing.TB, o Options) (d *DHT, stop func()) {
	t.Helper()
	if o.Listen == nil {
		o.Listen = loopback()
	}
	d, err := New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	d.Handle(echo)
	done := make(chan error, 1)
	go func() { done <- d.Run(context.Background()) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	}
	t.Cleanup(stop)
	return d, stop
}

// form starts n peers. All others join the first.
func form(t testing.TB, n int) []*DHT {
	t.Helper()
	var ds []*DHT
	var charter partition.Charter
	for i := range n {
		o := Options{Key: newKey(t), Capacity: i + 1, Version: fmt.Sprint("test-", i)}
		if i == 0 {
			charter = partition.DefaultCharter("test", PeerID(o.Key))
		} else {
			o.Join = ds[0].Addrs()
		}
		o.Charter = charter
		d, _ := start(t, o)
		ds = append(ds, d)
	}
	converged(t, 20*time.Second, ds...)
	return ds
}

// converged waits until all of ds have the same View, with exactly these peers.
func converged(t testing.TB, within time.Duration, ds ...*DHT) time.Duration {
	t.Helper()
	return eventually(t, within, fmt.Sprintf("all %d peers have the same view of each other", len(ds)), func() bool {
		for _, d := range ds {
			v := d.View()
			if len(v.Members()) != len(ds) || v.Digest() != ds[0].View().Digest() {
				return false
			}
		}
		return true
	})
}

// Five peers see each other's descriptors, and each can call every peer, also itself. A changed
// load step reaches all.
func TestSwarmConvergesAndCalls(t *testing.T) {
	t.Parallel()
	began := time.Now()
	ds := form(t, 5)
	t.Logf("5 peers converged %s after the first started", time.Since(began))
	for i, from := range ds {
		for _, to := range ds {
			res, err := from.Call(context.Background(), to.ID(),
				&wire.Request{Body: &wire.Request_WhoOwns{WhoOwns: &wire.WhoOwns{Key: "web:https://example.org/"}}})
			if err != nil {
				t.Fatal(err)
			}
			if got := res.GetWhoOwns().GetKeepers(); len(got) != 1 || got[0] != from.ID() {
				t.Fatalf("answered %v, asked by %s", got, from.ID())
			}
		}
		for j, d := range ds {
			m, ok := from.View().Find(d.ID())
			if !ok || m.Capacity != j+1 || m.Version != fmt.Sprint("test-", j) || len(m.Addrs) != 2 {
				t.Fatalf("%d sees %d as %+v", i, j, m)
			}
		}
	}
	if err := ds[1].SetLoadStep(7); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "all know the load step", func() bool {
		for _, d := range ds {
			if m, ok := d.View().Find(ds[1].ID()); !ok || m.LoadStep != 7 {
				return false
			}
		}
		return true
	})
}
