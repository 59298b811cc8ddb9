package dht

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	kad "github.com/libp2p/go-libp2p-kad-dht"
	record "github.com/libp2p/go-libp2p-record"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
)

// stranger returns a plain libp2p host, connected to d.
func stranger(t *testing.T, d *DHT) host.Host {
	t.Helper()
	h, err := libp2p.New(libp2p.Identity(newKey(t)), libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"),
		libp2p.DisableMetrics())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	if d != nil {
		if err := h.Connect(context.Background(), peer.AddrInfo{ID: d.self, Addrs: d.host.Addrs()}); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// one starts a peer that is alone, with the options that change sets.
func one(t *testing.T, change func(*Options)) *DHT {
	t.Helper()
	key := newKey(t)
	o := Options{Key: key, Charter: partition.DefaultCharter("test", PeerID(key))}
	if change != nil {
		change(&o)
	}
	d, _ := start(t, o)
	return d
}

// rpcStream opens a stream for one call from h to d.
func rpcStream(t *testing.T, h host.Host, d *DHT) network.Stream {
	t.Helper()
	s, err := h.NewStream(context.Background(), d.self, d.prefix+rpcSuffix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Reset() })
	return s
}

// A charter that its founder did not sign is refused.
func TestCharterWithWrongSignature(t *testing.T) {
	t.Parallel()
	founder, other := newKey(t), newKey(t)
	good, err := wire.SealCharter(partition.DefaultCharter("good", PeerID(founder)), founder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wire.SealCharter(partition.DefaultCharter("good", PeerID(founder)), other); !errors.Is(err,
		wire.ErrSignature) {
		t.Fatalf("sealed with a stranger's key: %v", err)
	}
	changed := &wire.SealedCharter{Charter: []byte(strings.Replace(string(good.Charter), `"good"`, `"evil"`, 1)),
		Signature: good.Signature}
	honest := one(t, nil)
	for name, bad := range map[string]*wire.SealedCharter{"changed": changed, "unsigned": {Charter: good.Charter},
		"empty": {}} {
		h := stranger(t, nil)
		h.SetStreamHandler(charterProtocol, func(s network.Stream) {
			_ = wire.WriteCharter(s, bad)
			_ = s.Close()
		})
		join := []string{h.Addrs()[0].String() + "/p2p/" + h.ID().String()}
		if c, err := FetchCharter(context.Background(), newKey(t), nil, join, Ways{}); err == nil {
			t.Fatalf("%s: accepted %+v", name, c)
		} else if name == "changed" && !errors.Is(err, wire.ErrSignature) {
			t.Fatalf("%s: %v", name, err)
		}
		// With an honest peer among the join addresses, the joining peer gets the true charter.
		c, err := FetchCharter(context.Background(), newKey(t), nil, append(join, honest.Addrs()...), Ways{})
		if err != nil || c.Digest() != honest.space {
			t.Fatalf("%s, with an honest peer: %v", name, err)
		}
	}
}

// liar is the validator of a Kademlia peer that stores and sends any record.
type liar struct{}

func (liar) Validate(string, []byte) error        { return nil }
func (liar) Select(string, [][]byte) (int, error) { return 0, nil }

// Invariant: a peer refuses a descriptor that its owner's key did not sign, or that is older than a
// known one.
func TestForgedAndStaleDescriptors(t *testing.T) {
	t.Parallel()
	ds := form(t, 3)
	victim, judge := ds[1], ds[2]
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	eventually(t, 20*time.Second, "all have published", func() bool {
		for _, d := range ds {
			if d.Stats().Published == 0 {
				return false
			}
		}
		return true
	})
	honest, err := judge.Descriptor(ctx, victim.ID())
	if err != nil || honest.Member.Capacity != 2 {
		t.Fatalf("%+v, %v", honest, err)
	}

	h := stranger(t, judge)
	evil, err := kad.New(ctx, h, kad.Mode(kad.ModeServer), kad.ProtocolPrefix(judge.prefix),
		kad.Validator(record.NamespacedValidator{namespace: liar{}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = evil.Close() })
	eventually(t, 10*time.Second, "the liar has a routing table", func() bool { return evil.RoutingTable().Size() > 0 })

	attack := func(d Descriptor, space string, sign *DHT, limit int) {
		t.Helper()
		sealed, err := d.Seal(sign.opts.Key, space, limit)
		if err != nil {
			t.Fatal(err)
		}
		_ = evil.PutValue(ctx, peerKey+victim.ID(), sealed) // it should fail
	}
	higher := honest
	higher.Sequence, higher.Member.Capacity = honest.Sequence+1_000_000, 16
	attack(higher, judge.space, ds[0], wire.MaxDescriptor) // with the signature of another member
	attack(higher, "another swarm", victim, wire.MaxDescriptor)
	eventually(t, 5*time.Second, "the judge saw two forgeries",
		func() bool { return judge.Stats().RejectedDescriptors["forged"] >= 2 })
	late := higher
	late.Expires = time.Now().Add(-time.Minute)
	attack(late, judge.space, victim, wire.MaxDescriptor)
	eventually(t, 5*time.Second, "the judge saw an expired one",
		func() bool { return judge.Stats().RejectedDescriptors["expired"] >= 1 })
	older := honest
	older.Sequence, older.Member.Capacity = honest.Sequence-1, 16
	attack(older, judge.space, victim, wire.MaxDescriptor)
	eventually(t, 5*time.Second, "the judge saw an old one",
		func() bool { return judge.Stats().RejectedDescriptors["old"] >= 1 })
	_ = evil.PutValue(ctx, peerKey+victim.ID(), make([]byte, wire.MaxDescriptor+1))
	eventually(t, 5*time.Second, "the judge saw an oversize one",
		func() bool { return judge.Stats().RejectedDescriptors["oversize"] >= 1 })
	_ = evil.PutValue(ctx, "/echo/other/x", []byte("x"))
	eventually(t, 5*time.Second, "the judge saw a malformed one",
		func() bool { return judge.Stats().RejectedDescriptors["malformed"] >= 1 })

	for _, d := range ds {
		got, err := d.Descriptor(ctx, victim.ID())
		if err != nil || got.Sequence < honest.Sequence || got.Member.Capacity != 2 {
			t.Fatalf("believed %+v, %v", got, err)
		}
	}
	zone, err := judge.FindZone(ctx, judge.Zone())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, d := range zone {
		found[d.Member.ID] = true
	}
	for _, d := range ds {
		if !found[d.ID()] {
			t.Fatalf("the zone in Kademlia is %v, without %s", found, d.ID())
		}
	}
}

// Invalid frames are refused or cut off, and the peer still works after them.
func TestOversizedAndBrokenFrames(t *testing.T) {
	t.Parallel()
	d := one(t, nil)
	h := stranger(t, d)
	for name, frame := range map[string][]byte{
		"a length over the limit":  binary.AppendUvarint(nil, wire.MaxFrame+3),
		"a length of five bytes":   {0xff, 0xff, 0xff, 0xff, 0x7f},
		"an unknown version":       {3, 9, 0, 0},
		"unknown flags":            {3, 1, 0x80, 0},
		"not protobuf":             {4, 1, 0, 0xff, 0xff},
		"an empty message":         {2, 1, 0},
		"zstd that is not":         {4, 1, 1, 0xff, 0xff},
		"a body of no known kind":  {7, 1, 0, 0x08, 0x01, 0xf8, 0x3f, 0x01},
		"a Status of version 4096": {8, 1, 0, 0x08, 0x80, 0x20, 0x72, 0x00, 0x00},
	} {
		s := rpcStream(t, h, d)
		if _, err := s.Write(frame); err != nil {
			t.Fatal(err)
		}
		res, _, err := wire.ReadResponse(s)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if c := res.GetRefusal().GetCode(); c != wire.Refusal_CODE_MALFORMED && c != wire.Refusal_CODE_UNSUPPORTED {
			t.Fatalf("%s: answered %v", name, res)
		}
	}
	if got := d.Stats().Malformed; got != 9 {
		t.Fatalf("counted %d malformed calls, not 9", got)
	}
	// The peer still works.
	if _, err := d.Call(context.Background(), d.ID(), whoOwns("web:https://example.org/")); err != nil {
		t.Fatal(err)
	}
}

// One caller sends one byte and then waits. Another does not read its answer. Both lose their
// places at the deadline.
func TestSlowCallersAreCut(t *testing.T) {
	t.Parallel()
	d := one(t, func(o *Options) { o.ReadTimeout = 300 * time.Millisecond; o.MaxOutsiders = 1 })
	taken := func() int { n, _ := d.calls.lanes.outside.reading.Taken(); return n }
	h := stranger(t, d)
	slow := rpcStream(t, h, d)
	if _, err := slow.Write([]byte{200}); err != nil { // the first byte of a length
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "the call is being read", func() bool { return taken() == 1 })
	// Meanwhile the only place is taken, so other calls are reset at once and not read.
	second := rpcStream(t, h, d)
	_, _ = second.Write([]byte{1}) // the stream may already be reset
	if res, _, err := wire.ReadResponse(second); err == nil {
		t.Fatalf("answered %v", res)
	}
	if d.Stats().NoPlace["rpc-all"] == 0 {
		t.Fatalf("counted %v", d.Stats().NoPlace)
	}
	began := time.Now()
	if _, err := io.ReadAll(slow); err == nil {
		t.Fatal("a slow caller was answered")
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Fatalf("cut only after %s", took)
	}
	eventually(t, 5*time.Second, "the place is free", func() bool { return taken() == 0 && d.Stats().Cut == 1 })

	deaf := rpcStream(t, h, d)
	d.Handle(func(context.Context, string, *wire.Request) *wire.Response {
		// This does not compress, and is larger than the windows of the transport.
		a := &wire.RecordsAnswer{Records: [][]byte{static(3 << 20)}}
		return &wire.Response{Body: &wire.Response_Records{Records: a}}
	})
	if _, err := wire.WriteRequest(deaf,
		&wire.Request{Version: partition.WireVersion,
			Body: &wire.Request_Records{Records: &wire.Records{}}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "the answer is under way", func() bool { return d.Stats().CallsIn == 3 })
	began = time.Now()
	eventually(t, 10*time.Second, "the deaf caller is cut", func() bool {
		for _, c := range d.host.Network().ConnsToPeer(h.ID()) {
			for _, s := range c.GetStreams() {
				if strings.HasSuffix(string(s.Protocol()), rpcSuffix) {
					return false
				}
			}
		}
		return true
	})
	t.Logf("the deaf caller was cut after %s", time.Since(began))
}

// An answer that a peer repeats for another call is refused. An old acknowledgement of one forward
// does not acknowledge another one.
func TestReplayedAnswers(t *testing.T) {
	t.Parallel()
	d := one(t, nil)
	h := stranger(t, d)
	var once sync.Once
	var old *wire.Response
	h.SetStreamHandler(d.prefix+rpcSuffix, func(s network.Stream) {
		defer s.Close()
		req, _, err := wire.ReadRequest(s)
		if err != nil {
			t.Error(err)
			return
		}
		once.Do(func() {
			ack := &wire.ForwardAck{Answers: []wire.ForwardAck_Answer{wire.ForwardAck_ANSWER_ADMITTED}}
			old = &wire.Response{Version: partition.WireVersion, Id: req.GetId(),
				Body: &wire.Response_Forward{Forward: ack}}
		})
		if _, err := wire.WriteResponse(s, old); err != nil {
			t.Error(err)
		}
	})
	forward := func(url string) error {
		_, err := d.Call(t.Context(), h.ID().String(),
			&wire.Request{Body: &wire.Request_Forward{Forward: &wire.Forward{Links: []*wire.Link{{Key: url}}}}})
		return err
	}
	if err := forward("web:https://example.org/1"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := forward("web:https://example.org/2"); !errors.Is(err, ErrReplayed) {
			t.Errorf("believed: %v", err)
		}
	}
	if st := d.Stats(); st.Replayed != 3 {
		t.Errorf("%d replays counted", st.Replayed)
	}
}

// static returns n bytes that do not compress.
func static(n int) []byte {
	b := make([]byte, n)
	x := uint64(1)
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return b
}

// Peers with different charters at known addresses cannot call each other.
func TestChartersDoNotMix(t *testing.T) {
	t.Parallel()
	a := one(t, nil)
	key := newKey(t)
	b, _ := start(t, Options{Key: key, Charter: partition.DefaultCharter("other", PeerID(key)), Join: a.Addrs()})
	friend, _ := start(t, Options{Key: newKey(t), Charter: a.opts.Charter, Join: a.Addrs()})
	converged(t, 10*time.Second, a, friend)
	eventually(t, 10*time.Second, "b has reached a",
		func() bool { return b.host.Network().Connectedness(a.self) == network.Connected })
	if _, err := b.Call(context.Background(), a.ID(), whoOwns("web:https://example.org/")); !errors.Is(err, ErrNoPeer) {
		t.Fatalf("a call across charters: %v", err)
	}
	if _, err := b.zones.Join(context.Background(), a.self); err == nil {
		t.Fatal("joined across charters")
	}
	if len(a.View().Members()) != 2 || len(b.View().Members()) != 1 || b.Stats().RoutingTable != 0 {
		t.Fatalf("a sees %d, b sees %d and has %d in Kademlia", len(a.View().Members()), len(b.View().Members()),
			b.Stats().RoutingTable)
	}
}
