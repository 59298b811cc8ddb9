package dht

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/echo-node/echo-node/partition"
)

// Close leaves no goroutine behind, except for memberlist's last probes. These end by themselves
// within seconds. The test is not parallel, because it looks at all goroutines.
func TestCloseWaitsForAll(t *testing.T) {
	before := goleak.IgnoreCurrent()
	key := newKey(t)
	charter := partition.DefaultCharter("test", PeerID(key))
	a, stopA := start(t, Options{Key: key, Charter: charter})
	b, stopB := start(t, Options{Key: newKey(t), Charter: charter, Join: a.Addrs(), Dir: t.TempDir()})
	converged(t, 20*time.Second, a, b)
	if _, err := b.Call(context.Background(), a.ID(), whoOwns("k")); err != nil {
		t.Fatal(err)
	}
	stopB()
	stopA()
	eventually(t, 20*time.Second, "no goroutine is left", func() bool {
		return goleak.Find(before, goleak.IgnoreTopFunction("testing.(*T).Run")) == nil
	})
	if _, open := <-drain(a); open {
		t.Error("Views is not closed")
	}
	if err := a.Run(context.Background()); err != nil {
		t.Errorf("run after close: %v", err)
	}
	if _, err := New(cancelled(), Options{Key: key, Charter: charter, Listen: loopback()}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("new with a context that ended: %v", err)
	}
}

// drain removes a View that was not read, and returns the channel.
func drain(d *DHT) <-chan partition.View {
	select {
	case <-d.Views():
	default:
	}
	return d.Views()
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
