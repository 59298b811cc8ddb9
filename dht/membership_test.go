package dht

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/echo-node/echo-node/dht/guard"
	"github.com/echo-node/echo-node/dht/handshake"
	"github.com/echo-node/echo-node/dht/life"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
)

func privateCharter(founder string) partition.Charter {
	c := partition.DefaultCharter("private", founder)
	c.Private = true
	return c
}

// found starts a private swarm.
func found(t *testing.T, change func(*Options)) *DHT {
	t.Helper()
	key := newKey(t)
	o := Options{Key: key, Charter: privateCharter(PeerID(key)), Dir: t.TempDir()}
	if change != nil {
		change(&o)
	}
	d, _ := start(t, o)
	return d
}

func invite(t *testing.T, d *DHT, life time.Duration) *wire.Invite {
	t.Helper()
	code, err := d.NewInvite(life)
	if err != nil {
		t.Fatal(err)
	}
	inv, err := wire.ParseInvite(code)
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

// joinBy fetches the charter and starts a peer, as a program would.
func joinBy(t *testing.T, o Options) (*DHT, func()) {
	t.Helper()
	if o.Key == nil {
		o.Key, o.Dir = newKey(t), t.TempDir()
	}
	var err error
	if o.Charter, err = FetchCharter(context.Background(), o.Key, nil, o.Join, o.Ways); err != nil {
		t.Fatal(err)
	}
	return start(t, o)
}

// lasts waits until d has a pass for good.
func lasts(t *testing.T, d *DHT) Membership {
	t.Helper()
	eventually(t, 10*time.Second, "a lasting pass", func() bool { a, ok := d.Membership(); return ok && a.Lasting })
	a, _ := d.Membership()
	return a
}

// Who was invited invites in turn, comes back without an invite, and is let in
// by any member, the founder there or not.
func TestInvitesOfInvites(t *testing.T) {
	t.Parallel()
	f := found(t, nil)
	if a, ok := f.Membership(); !ok || !a.Lasting || a.Depth != 0 {
		t.Fatalf("the founder: %+v, %v", a, ok)
	}
	inv := invite(t, f, time.Hour)
	a, stopA := joinBy(t, Options{Join: inv.Addrs, Ways: Ways{Invite: inv}})
	converged(t, 10*time.Second, f, a)
	if got := lasts(t, a); got.By != f.ID() || got.Inviter != f.ID() || got.Depth != 1 {
		t.Fatalf("%+v", got)
	}
	if _, err := a.Call(context.Background(), f.ID(), whoOwns("web:https://example.org/")); err != nil {
		t.Fatal(err)
	}
	inv = invite(t, a, time.Hour)
	b, _ := joinBy(t, Options{Join: f.Addrs(), Ways: Ways{Invite: inv}})
	converged(t, 10*time.Second, f, a, b)
	if got := lasts(t, b); got.Inviter != a.ID() {
		t.Fatalf("%+v", got)
	}
	// a comes back, its invite long gone, through b alone.
	o := Options{Key: a.opts.Key, Dir: a.opts.Dir, Charter: a.opts.Charter, Join: b.Addrs()}
	stopA()
	a, _ = start(t, o)
	converged(t, 20*time.Second, f, a, b)
	if code, err := InviteFrom(a.opts.Dir, a.Addrs(), time.Hour); err == nil {
		t.Fatalf("a directory without an identity invites: %s", code)
	}
	if f.Stats().HandshakeFailed["forged"]+b.Stats().HandshakeFailed["no-member"] != 0 {
		t.Fatalf("%v, %v", f.Stats().HandshakeFailed, b.Stats().HandshakeFailed)
	}
}

// What a peer keeps of its swarm is signed: a bit that changed on disk is an error that is said, and never another
// swarm.
func TestFlippedSwarm(t *testing.T) {
	t.Parallel()
	f := found(t, nil)
	inv := invite(t, f, time.Hour)
	dir := t.TempDir()
	key, err := LoadIdentity(filepath.Join(dir, "identity.key"), true)
	if err != nil {
		t.Fatal(err)
	}
	a, stop := joinBy(t, Options{Key: key, Dir: dir, Join: inv.Addrs, Ways: Ways{Invite: inv}})
	converged(t, 10*time.Second, f, a)
	lasts(t, a)
	eventually(t, 10*time.Second, "a has the founder's signature",
		func() bool { return a.charters.sealed.Load() != nil })
	addrs := a.Addrs()
	stop()
	good := 0
	for _, name := range []string{charterFile, passFile} {
		eachFlip(t, filepath.Join(dir, name), func(where string) {
			code, err := InviteFrom(dir, addrs, time.Hour)
			if err != nil {
				return
			}
			good++ // the bit says nothing
			if got, err := wire.ParseInvite(code); err != nil || got.Space != inv.Space || got.Founder != inv.Founder ||
				got.Check(time.Now()) != nil {
				t.Errorf("%s: %v, %v", where, got, err)
			}
		})
	}
	if _, err := InviteFrom(dir, addrs, time.Hour); err != nil || good > 32 {
		t.Fatalf("%d flips change nothing; without one: %v", good, err)
	}
	eachFlip(t, filepath.Join(dir, bookFile), func(string) {
		for _, p := range a.joiner.readBook() {
			if p.ID.Validate() != nil || p.ID == a.self {
				t.Errorf("a list of peers with %v", p)
			}
		}
	})
}

// A shared key lets in, too, and who came by it can invite others, who need not
// know it.
func TestSwarmKey(t *testing.T) {
	t.Parallel()
	key := bytes.Repeat([]byte{7}, wire.SwarmKeyLen)
	f := found(t, func(o *Options) { o.SwarmKey = key })
	a, _ := joinBy(t, Options{Join: f.Addrs(), Ways: Ways{SwarmKey: key}})
	converged(t, 10*time.Second, f, a)
	if got := lasts(t, a); got.By != f.ID() || got.Inviter != "" {
		t.Fatalf("%+v", got)
	}
	eventually(t, 10*time.Second, "a has the founder's signature",
		func() bool { return a.charters.sealed.Load() != nil })
	b, _ := joinBy(t, Options{Join: a.Addrs(), Ways: Ways{Invite: invite(t, a, time.Hour)}})
	converged(t, 10*time.Second, f, a, b)
	lasts(t, b)
	_, err := FetchCharter(context.Background(), newKey(t), nil, f.Addrs(),
		Ways{SwarmKey: bytes.Repeat([]byte{8}, wire.SwarmKeyLen)})
	if !errors.Is(err, handshake.ErrRefused) || f.Stats().HandshakeFailed["wrong-key"] == 0 {
		t.Fatalf("another key: %v, %v", err, f.Stats().HandshakeFailed)
	}
}

// A stranger gets nothing but the word that the swarm is private: not by any
// protocol, and not by a pass that is expired, forged, another's or by nobody.
func TestStrangersAreRefusedEverywhere(t *testing.T) {
	t.Parallel()
	f := found(t, nil)
	inv := invite(t, f, time.Hour)
	a, _ := joinBy(t, Options{Join: f.Addrs(), Ways: Ways{Invite: inv}})
	converged(t, 10*time.Second, f, a)
	lasts(t, a)
	_, err := FetchCharter(context.Background(), newKey(t), nil, f.Addrs(), Ways{})
	if !errors.Is(err, handshake.ErrRefused) {
		t.Fatalf("the charter for a stranger: %v", err)
	}
	h := stranger(t, a)
	guarded := 0
	for _, id := range a.host.Mux().Protocols() {
		if !a.handshaker.Guarded(id) || id == charterProtocol {
			continue
		}
		guarded++
		before := a.Stats().HandshakeFailed["stranger"]
		s, err := h.NewStream(context.Background(), a.self, id)
		if err == nil {
			_, _ = s.Write([]byte{1, 0})
			_, err = io.ReadAll(s)
		}
		if err == nil {
			t.Errorf("%s: served", id)
		}
		eventually(t, 5*time.Second, string(id)+" is counted",
			func() bool { return a.Stats().HandshakeFailed["stranger"] > before })
	}
	if guarded < 4 {
		t.Fatalf("only %d protocols are guarded: %v", guarded, a.host.Mux().Protocols())
	}
	if len(a.View().Members()) != 2 || a.Stats().RoutingTable != 1 {
		t.Fatalf("%d members, %d in Kademlia", len(a.View().Members()), a.Stats().RoutingTable)
	}
	testBadPasses(t, a, inv)
}

func testBadPasses(t *testing.T, d *DHT, inv *wire.Invite) {
	other := newKey(t)
	made := func(p *wire.Pass, err error) *wire.Pass {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for reason, show := range map[string]func(self string) (space string, pass *wire.Pass){
		"stranger": func(string) (string, *wire.Pass) { return d.space, nil },
		"other-swarm": func(self string) (string, *wire.Pass) {
			return "elsewhere",
				made(inv.Redeem(self, time.Now()))
		},
		"other-peer": func(string) (string, *wire.Pass) {
			return d.space,
				made(inv.Redeem(PeerID(other), time.Now()))
		},
		"no-member": func(self string) (string, *wire.Pass) {
			return d.space, made((*wire.Pass)(nil).Grant(other, d.space, &wire.GrantBody{Subject: self}))
		},
		"expired": func(self string) (string, *wire.Pass) {
			return d.space, made(d.handshaker.OwnPass().Grant(d.opts.Key, d.space,
				&wire.GrantBody{Subject: self, ExpiresMs: 1}))
		},
		"forged": func(self string) (string, *wire.Pass) {
			p := made(inv.Redeem(self, time.Now()))
			p.Grants[1].Signature[0] ^= 1
			return d.space, p
		},
	} {
		h := stranger(t, d)
		space, pass := show(h.ID().String())
		g := bareHandshaker(h, space, d.opts.Charter.Founder, pass)
		want := maps.Clone(d.Stats().HandshakeFailed)
		if err := g.Enter(context.Background(), d.self); !errors.Is(err, handshake.ErrRefused) {
			t.Errorf("%s: %v", reason, err)
		}
		got := d.Stats().HandshakeFailed
		if got[reason] == want[reason] {
			t.Errorf("%s: not counted", reason)
		}
		want[reason] = got[reason] // one for each connection the two have
		if !maps.Equal(got, want) {
			t.Errorf("%s: also %v, before %v", reason, got, want)
		}
		g.Stop()
	}
	// Neither does a newcomer stay with somebody who is no member.
	evil, err := newHost(Options{Key: other}, loopback(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = evil.Close() })
	lives := life.New()
	impostor := handshake.New(evil, handshake.Options{Signer: other, Prefix: string(d.prefix), Charter: charterProtocol,
		Space: d.space, Founder: PeerID(other), Pass: &wire.Pass{}, Refused: &guard.Tally{}, Life: lives,
		Logger: slog.New(slog.DiscardHandler)})
	defer impostor.Stop()
	defer lives.Finish()
	h := bare(t)
	if err := h.Connect(context.Background(), peer.AddrInfo{ID: evil.ID(), Addrs: evil.Addrs()}); err != nil {
		t.Fatal(err)
	}
	g := bareHandshaker(h, inv.Space, inv.Founder, made(inv.Redeem(h.ID().String(), time.Now())))
	defer g.Stop()
	if err := g.Enter(context.Background(), evil.ID()); !errors.Is(err, handshake.ErrRefused) {
		t.Errorf("an impostor: %v", err)
	}
}

// A caller that gives up during a handshake does not keep others from making one.
func TestAHandshakeThatItsCallerLeft(t *testing.T) {
	t.Parallel()
	f := found(t, nil)
	h := stranger(t, f)
	pass, err := invite(t, f, time.Hour).Redeem(h.ID().String(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	g := bareHandshaker(h, f.space, f.opts.Charter.Founder, pass)
	defer g.Stop()
	gone, leave := context.WithCancel(context.Background())
	leave()
	if err := g.Enter(gone, f.self); err == nil {
		t.Fatal("entered without waiting")
	}
	if err := g.Enter(context.Background(), f.self); err != nil {
		t.Fatalf("the next caller: %v", err)
	}
}

// bareHandshaker is for a host that is nobody's.
func bareHandshaker(h host.Host, space, founder string, pass *wire.Pass) *handshake.Host {
	return handshake.New(h, handshake.Options{Charter: charterProtocol, Space: space, Founder: founder, Pass: pass,
		Refused: &guard.Tally{}, Context: context.Background(), Logger: slog.New(slog.DiscardHandler)})
}

// An invite that has expired lets nobody in, one of another swarm neither, and
// the program says which.
func TestInvitesThatAreNoGood(t *testing.T) {
	t.Parallel()
	f, g := found(t, nil), found(t, nil)
	short := invite(t, f, 50*time.Millisecond)
	time.Sleep(60 * time.Millisecond) // until it has expired
	if _, err := FetchCharter(context.Background(), newKey(t), nil, f.Addrs(), Ways{Invite: short}); !errors.Is(err,
		wire.ErrExpired) {
		t.Errorf("expired: %v", err)
	}
	if _, err := FetchCharter(context.Background(), newKey(t), nil, f.Addrs(),
		Ways{Invite: invite(t, g, time.Hour)}); !errors.Is(err, handshake.ErrRefused) {
		t.Errorf("another swarm's: %v", err)
	}
	for name, o := range map[string]Options{
		"none":    {},
		"expired": {Ways: Ways{Invite: short}},
		"other":   {Ways: Ways{Invite: invite(t, g, time.Hour)}},
	} {
		o.Key, o.Charter, o.Listen = newKey(t), f.opts.Charter, loopback()
		if d, err := New(context.Background(), o); !errors.Is(err, handshake.ErrRefused) {
			t.Errorf("%s: %v, %v", name, d, err)
		}
	}
	if _, err := one(t, nil).NewInvite(time.Hour); err == nil {
		t.Error("an open swarm invites")
	}
}

// In fake time: a connection on which nothing is shown is closed, and a swarm of
// invited peers is cut and heals like any other.
func TestPrivateSwarmInFakeTime(t *testing.T) {
	racetest.InFakeTime(t, func(t *testing.T) {
		net, ds, stop := mockOf(t, 5, func(o *Options, ds []*DHT) {
			o.Charter.Private = true
			if len(ds) > 0 {
				o.Invite = invite(t, ds[0], time.Minute)
			}
		})
		converged(t, time.Minute, ds...)
		key := newKey(t)
		h, err := net.AddPeer(key, parseAddr(t, "/ip4/127.0.0.1/tcp/9999"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := net.LinkPeers(h.ID(), ds[1].self); err != nil {
			t.Fatal(err)
		}
		if err := h.Connect(t.Context(), peer.AddrInfo{ID: ds[1].self, Addrs: ds[1].host.Addrs()}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(handshake.Within + time.Second)
		if h.Network().Connectedness(ds[1].self) == network.Connected || ds[1].Stats().HandshakeFailed["late"] != 1 {
			t.Fatalf("a silent stranger is still connected: %v", ds[1].Stats().HandshakeFailed)
		}
		cutBetween(t, net, ds[:2], ds[2:])
		converged(t, time.Minute, ds[:2]...)
		time.Sleep(2 * time.Minute) // the invites are gone
		linkBetween(t, net, ds[:2], ds[2:])
		converged(t, 2*time.Minute, ds...)
		stop()
		time.Sleep(time.Minute) // memberlist's probes
	})
}
