package dht

import (
	"context"
	"testing"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
)

// A peer is killed and is back on the same ports before the others notice. It has no join address.
// The others, which know it, bring it in again.
func TestQuickReturnWithoutJoin(t *testing.T) {
	t.Parallel()
	ds := form(t, 3)
	key := newKey(t)
	o := Options{Key: key, Charter: ds[0].opts.Charter, Join: ds[0].Addrs()}
	fourth, kill := start(t, o)
	converged(t, 10*time.Second, append(append([]*DHT{}, ds...), fourth)...)
	var listen []string
	for _, a := range fourth.host.Network().ListenAddresses() {
		listen = append(listen, a.String())
	}
	kill()
	again, _ := start(t, Options{Key: key, Charter: ds[0].opts.Charter, Listen: listen})
	took := converged(t, 15*time.Second, append(append([]*DHT{}, ds...), again)...)
	t.Logf("back in every view after %s", took)
}

// The others learn of a goodbye at once, and know that it was one.
func TestLeave(t *testing.T) {
	t.Parallel()
	ds := form(t, 3)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := ds[2].Leave(ctx); err != nil {
		t.Fatal(err)
	}
	took := converged(t, 2*time.Second, ds[:2]...)
	t.Logf("leave known after %s", took)
	for _, d := range ds[:2] {
		if g := d.Gone()[ds[2].ID()]; !g.Left {
			t.Fatalf("remembered as %+v", g)
		}
	}
}

// The founder dies. A peer that joined can still bring others in, because it has kept the charter
// with the founder's signature.
func TestCharterOutlivesFounder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := newKey(t)
	charter := partition.DefaultCharter("test", PeerID(key))
	founder, kill := start(t, Options{Key: key, Charter: charter})
	second, killSecond := start(t, Options{Key: newKey(t), Charter: charter, Join: founder.Addrs(), Dir: dir})
	converged(t, 10*time.Second, founder, second)
	eventually(t, 10*time.Second, "the second has the signature",
		func() bool { return second.charters.sealed.Load() != nil })
	kill()
	got, err := FetchCharter(context.Background(), newKey(t), nil, second.Addrs(), Ways{})
	if err != nil || got.Digest() != charter.Digest() {
		t.Fatalf("charter %+v, %v", got, err)
	}
	o := second.opts
	killSecond()
	o.Join = nil
	third, _ := start(t, o)
	if third.charters.sealed.Load() == nil {
		t.Fatal("the signature was not kept")
	}
}

// whoOwns returns a request for the owner of key.
func whoOwns(key string) *wire.Request {
	return &wire.Request{Body: &wire.Request_WhoOwns{WhoOwns: &wire.WhoOwns{Key: key}}}
}
