package dht

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/echo-node/echo-node/dht/life"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
)

func TestResolveJoin(t *testing.T) {
	t.Parallel()
	a, b := PeerID(newKey(t)), PeerID(newKey(t))
	file := filepath.Join(t.TempDir(), "peers")
	text := fmt.Sprintf("# those I know\n\n/ip4/127.0.0.1/tcp/1/p2p/%s\n  /ip4/127.0.0.1/tcp/2/p2p/%s  \n/ip4/127.0.0.1/udp/2/quic-v1/p2p/%s\n", a, b, b)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	infos, err := resolveJoin(context.Background(), []string{file, "/ip4/127.0.0.1/tcp/3/p2p/" + a})
	if err != nil || len(infos) != 2 {
		t.Fatalf("%v, %v", infos, err)
	}
	addrs := map[string]int{}
	for _, info := range infos {
		addrs[info.ID.String()] = len(info.Addrs)
	}
	if addrs[a] != 2 || addrs[b] != 2 {
		t.Fatalf("addresses per peer: %v", addrs)
	}
	for _, bad := range []string{"/ip4/127.0.0.1/tcp/1", "/no/such/file", "word", "/ip4/127.0.0.1/tcp/1/p2p/x"} {
		// The good entries are resolved despite a bad one.
		infos, err := resolveJoin(context.Background(), []string{bad, "/ip4/127.0.0.1/tcp/3/p2p/" + a})
		if err == nil || !strings.Contains(err.Error(), bad) || len(infos) != 1 {
			t.Errorf("%q: %v, %v", bad, infos, err)
		}
	}
}

func FuzzReadJoinFile(f *testing.F) {
	f.Add("# x\n/ip4/127.0.0.1/tcp/1/p2p/12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5\n")
	f.Add("/ip4/1.2.3.4/tcp/1\nnonsense\n\x00")
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // so that there are no look-ups
	f.Fuzz(func(t *testing.T, text string) {
		addrs, _ := readJoinFile(ctx, strings.NewReader(text))
		for _, a := range addrs {
			if !strings.Contains(a.String(), "/p2p/") {
				t.Fatalf("%s has no peer id", a)
			}
		}
	})
}

func FuzzValidator(f *testing.F) {
	// Every worker process of the fuzzer needs the same key.
	key, err := crypto.UnmarshalEd25519PrivateKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		f.Fatal(err)
	}
	id := PeerID(key)
	desc := Descriptor{Sequence: 1, Expires: time.Now().Add(time.Hour), Member: partition.Member{Capacity: 1}}
	sealed, err := desc.Seal(key, "space", wire.MaxDescriptor)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(peerKey+id, sealed)
	f.Add("/echo/peer/", []byte{})
	f.Fuzz(func(t *testing.T, name string, value []byte) {
		v := &validator{space: "space"}
		if err := v.Validate(name, value); err == nil && name != peerKey+id {
			t.Fatalf("%q passes with a value that is not its own", name)
		}
		if i, err := v.Select(name, [][]byte{value, sealed}); err == nil && name == peerKey+id && i != 0 &&
			v.Validate(name, value) == nil {
			d, _ := v.open(name, value, time.Now())
			if d.Sequence >= desc.Sequence {
				t.Fatalf("chose sequence %d over %d", desc.Sequence, d.Sequence)
			}
		}
	})
}

// One transport is enough. A peer with both transports can call a peer with either one.
func TestOneTransportEach(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	charter := partition.DefaultCharter("test", PeerID(key))
	tcp, _ := start(t, Options{Key: key, Charter: charter, Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
	both, _ := start(t, Options{Key: newKey(t), Charter: charter, Join: tcp.Addrs()})
	quic, _ := start(t, Options{Key: newKey(t), Charter: charter, Listen: []string{"/ip4/127.0.0.1/udp/0/quic-v1"},
		Join: tcp.Addrs()})
	all := []*DHT{tcp, both, quic}
	converged(t, 20*time.Second, all...)
	for _, from := range all {
		for _, to := range all {
			if _, err := from.Call(context.Background(), to.ID(), whoOwns("web:https://example.org/")); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, a := range tcp.Addrs() {
		if strings.Contains(a, "quic") {
			t.Errorf("a TCP-only peer listens on %s", a)
		}
	}
}

// Silent peers from the last run do not keep a peer from joining. An attempt with each of them
// takes seconds.
func TestJoinPastTheSilent(t *testing.T) {
	t.Parallel()
	ds := form(t, 1)
	var known []peer.AddrInfo
	for range joinParallel - 1 {
		silent, err := net.ListenPacket("udp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = silent.Close() })
		at := fmt.Sprintf("/ip4/127.0.0.1/udp/%d/quic-v1/p2p/%s", silent.LocalAddr().(*net.UDPAddr).Port,
			PeerID(newKey(t)))
		infos, err := resolveJoin(context.Background(), []string{at})
		if err != nil {
			t.Fatal(err)
		}
		known = append(known, infos...)
	}
	infos, err := resolveJoin(context.Background(), ds[0].Addrs())
	if err != nil {
		t.Fatal(err)
	}
	d, _ := start(t, Options{Key: newKey(t), Charter: ds[0].opts.Charter})
	d.guard.Reached(append(known, infos...)) // as if they were in the book
	// an attempt with one of the silent peers alone would take this time
	ctx, cancel := context.WithTimeout(context.Background(), joinTimeout)
	defer cancel()
	if n := d.joiner.joinSome(ctx, append(known, infos...), 1, "to join"); n != 1 {
		t.Fatalf("joined %d", n)
	}
	converged(t, 10*time.Second, ds[0], d)
}

// A peer finds the swarm with the book of its last run, without a join address. A damaged book or
// charter file is no obstacle.
func TestReturnByTheBook(t *testing.T) {
	t.Parallel()
	ds := form(t, 2)
	third := Options{Key: newKey(t), Charter: ds[0].opts.Charter, Join: ds[0].Addrs(), Dir: t.TempDir()}
	d, stop := start(t, third)
	converged(t, 10*time.Second, append(ds[:2:2], d)...)
	stop() // this writes the book
	third.Join = nil
	if err := os.WriteFile(filepath.Join(third.Dir, charterFile), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	again, _ := start(t, third)
	converged(t, 20*time.Second, append(ds[:2:2], again)...)
	for name, text := range map[string]string{"damaged": "{", "nonsense": `[{"id":"x","addrs":["y"]}]`} {
		if err := os.WriteFile(filepath.Join(third.Dir, bookFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := again.joiner.readBook(); len(got) != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// New reports all faults of its options at once, and listen addresses that are taken.
func TestOptionsReportAllFaults(t *testing.T) {
	t.Parallel()
	_, err := New(context.Background(), Options{Listen: []string{"here"}, Capacity: 17, LoadStep: -1,
		Location: &partition.Point{Lat: 100}, Version: strings.Repeat("v", 100), Join: []string{""}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"key", "charter", "listen", "capacity", "load step", "location", "version", "join"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named in: %v", want, err)
		}
	}
	key := newKey(t)
	busy := one(t, nil)
	for _, taken := range busy.Addrs() {
		taken, _, _ := strings.Cut(taken, "/p2p/")
		for _, listen := range [][]string{{taken}, {taken, "/ip4/127.0.0.1/tcp/0"}} {
			_, err = New(context.Background(), Options{Key: key, Charter: partition.DefaultCharter("x", PeerID(key)),
				Listen: listen})
			if err == nil || !strings.Contains(err.Error(), taken) {
				t.Errorf("%v, of which one is used: %v", listen, err)
			}
		}
	}
}

func TestCalls(t *testing.T) {
	t.Parallel()
	ds := form(t, 2)
	a, b := ds[0], ds[1]
	ctx := context.Background()
	hold := make(chan struct{})
	b.Handle(func(ctx context.Context, _ string, req *wire.Request) *wire.Response {
		switch req.Body.(type) {
		case *wire.Request_WhoOwns:
			return nil
		case *wire.Request_Status:
			select {
			case <-hold:
			case <-ctx.Done():
			}
			return &wire.Response{Body: &wire.Response_Status{Status: &wire.StatusAnswer{}}}
		}
		return &wire.Response{} // not valid, because it has no body
	})
	if res, err := a.Call(ctx, b.ID(), whoOwns("k")); err != nil ||
		res.GetRefusal().GetCode() != wire.Refusal_CODE_UNSUPPORTED {
		t.Errorf("nothing to answer: %v, %v", res, err)
	}
	records := &wire.Request{Body: &wire.Request_Records{Records: &wire.Records{}}}
	if res, err := a.Call(ctx, b.ID(), records); err != nil ||
		res.GetRefusal().GetCode() != wire.Refusal_CODE_INTERNAL {
		t.Errorf("an answer that is not valid: %v, %v", res, err)
	}
	status := &wire.Request{Body: &wire.Request_Status{Status: &wire.Status{}}}
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if _, err := a.Call(short, b.ID(), status); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no answer in time: %v", err)
	}
	close(hold)
	if _, err := a.Call(ctx, b.ID(), status); err != nil {
		t.Errorf("after it: %v", err)
	}
	if _, err := a.Call(ctx, "nobody", status); !errors.Is(err, ErrNoPeer) {
		t.Errorf("no peer id: %v", err)
	}
	few, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := a.Call(few, PeerID(newKey(t)), status); !errors.Is(err, ErrNoPeer) {
		t.Errorf("an unknown peer: %v", err)
	}
	if _, err := a.Call(ctx, b.ID(), &wire.Request{}); !errors.Is(err, wire.ErrNoBody) {
		t.Errorf("an empty request: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Call(ctx, b.ID(), status); !errors.Is(err, life.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
