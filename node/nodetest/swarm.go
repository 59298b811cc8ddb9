// Package nodetest runs many nodes in one test: real nodes on loopback, stores on memory file
// systems that can crash, and a test web with known content to crawl.
package nodetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"

	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/datadir"
	"github.com/echo-node/echo-node/partition"
)

// Options are the arguments of New.
type Options struct {
	World crawltest.Options
	// Node has the default options of every peer. The Swarm sets Dir, Join, Listen and
	// AllowNet. Delay 0 means 5 ms here, and SliceBits 0 means 8. The charter's 12 would give
	// 4,096 slices, and each peer must agree with the others on each of its slices.
	Node node.Options
	// Each changes the options of the n-th peer, from 0 on. nil = all peers are alike.
	Each func(n int, o *node.Options)
}

// Swarm has some peers and the test web that they crawl. Only one test goroutine may use it.
type Swarm struct {
	t     testing.TB
	o     Options
	dir   string // of the peers' directories
	World *crawltest.World
	Peers []*Peer
}

// Peer is one node of a Swarm.
type Peer struct {
	*node.Node // nil while down
	Name       string
	o          node.Options
	stop       context.CancelFunc
	done       chan error
}

// New starts a test web without peers. Everything ends with the test.
func New(t testing.TB, o Options) *Swarm {
	t.Helper()
	if o.Node.Delay == 0 {
		o.Node.Delay = 5 * time.Millisecond
	}
	if o.Node.SliceBits == 0 {
		o.Node.SliceBits = 8
	}
	if o.Node.QueryTimeout == 0 {
		o.Node.QueryTimeout = time.Minute
	}
	// TempDir is called before the cleanup is registered, so the cleanup runs before the
	// directory is removed. So no peer runs without its files.
	s := &Swarm{t: t, o: o, dir: t.TempDir(), World: crawltest.NewWorld(o.World)}
	if err := s.World.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, p := range s.Peers {
			if p.Node != nil {
				if err := p.Stop(); err != nil {
					t.Errorf("%s: %v", p.Name, err)
				}
			}
		}
		if err := s.World.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Dir returns the directory that contains the peers' directories, each named after its peer.
func (s *Swarm) Dir() string { return s.dir }

// Add makes a peer, joined to the first one, and starts it.
func (s *Swarm) Add() *Peer { s.t.Helper(); return s.add(nil, nil) }

// AddAt is Add with a peer that declares that location.
func (s *Swarm) AddAt(at *partition.Point) *Peer { s.t.Helper(); return s.add(at, nil) }

// AddKey is Add with a peer that has the given identity.
func (s *Swarm) AddKey(key crypto.PrivKey) *Peer { s.t.Helper(); return s.add(nil, key) }

func (s *Swarm) add(at *partition.Point, key crypto.PrivKey) *Peer {
	s.t.Helper()
	p := &Peer{Name: fmt.Sprintf("peer%d", len(s.Peers)+1), o: s.o.Node}
	p.o.Location, p.o.Key = at, key
	p.o.Dir = filepath.Join(s.dir, p.Name)
	p.o.Listen = []string{"/ip4/127.0.0.1/udp/0/quic-v1"}
	p.o.AllowNet = []netip.Prefix{netip.MustParsePrefix("127.77.0.0/16")}
	if s.o.Each != nil {
		s.o.Each(len(s.Peers), &p.o)
	}
	if os.Getenv("ECHO_TEST_LOG") != "" {
		p.o.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("name",
			p.Name)
	}
	if len(s.Peers) > 0 {
		p.o.Join = s.Peers[0].Addrs()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := node.Create(ctx, p.o); err != nil {
		s.t.Fatalf("%s: create: %v", p.Name, err)
	}
	s.Peers = append(s.Peers, p)
	if err := p.Start(); err != nil {
		s.t.Fatalf("%s: %v", p.Name, err)
	}
	return p
}

// Restore makes a peer from a backup. It is down, and joins no peer unless told to.
func (s *Swarm) Restore(from string, alone bool) *Peer {
	s.t.Helper()
	p := &Peer{Name: fmt.Sprintf("peer%d", len(s.Peers)+1), o: s.o.Node}
	p.o.Dir = filepath.Join(s.dir, p.Name)
	p.o.Listen = []string{"/ip4/127.0.0.1/udp/0/quic-v1"}
	p.o.AllowNet = []netip.Prefix{netip.MustParsePrefix("127.77.0.0/16")}
	if _, err := datadir.Restore(context.Background(),
		datadir.Options{Dir: p.o.Dir, FS: p.o.FS, Key: p.o.Key, Logger: p.o.Logger}, from, alone); err != nil {
		s.t.Fatal(err)
	}
	s.Peers = append(s.Peers, p)
	return p
}

// Joins sets the addresses that a peer that is down joins when it starts.
func (p *Peer) Joins(addrs []string) { p.o.Join = addrs }

// Start opens and runs a peer that is down.
func (p *Peer) Start() error {
	n, err := node.Open(context.Background(), p.o)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	p.Node, p.stop, p.done = n, stop, make(chan error, 1)
	go func() { p.done <- n.Run(ctx) }()
	return nil
}

// Stop ends a peer and waits for it.
func (p *Peer) Stop() error {
	p.stop()
	err := errors.Join(<-p.done, p.Node.Close())
	p.Node = nil
	return err
}

// Settle waits until every running peer sees want members and acts in all slices that it owns.
func (s *Swarm) Settle(want int) {
	s.t.Helper()
	s.Until("the swarm settles", 3*time.Minute, func() (bool, string) {
		for _, p := range s.Peers {
			if p.Node == nil {
				continue
			}
			st := p.Status()
			if st.Peers != want || st.SlicesAwaited > 0 || st.Slices == 0 || st.SlicesMoving > 0 ||
				st.SlicesReplicating > 0 {
				return false, fmt.Sprintf("%s sees %d peers, acts in %d slices, awaits %d, moves %d, replicates %d",
					p.Name, st.Peers, st.Slices, st.SlicesAwaited, st.SlicesMoving, st.SlicesReplicating)
			}
		}
		return true, ""
	})
}

// Seed gives the test web's seeds to the first running peer.
func (s *Swarm) Seed() {
	s.t.Helper()
	seed(s.t, s.running().Node, s.World)
}

// seed gives the test web's seeds to a peer.
func seed(t testing.TB, n *node.Node, w *crawltest.World) {
	t.Helper()
	var keys []partition.Key
	for _, u := range w.Seeds() {
		k, err := partition.ParseKey(u)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := n.SeedUntilDone(ctx, keys); err != nil {
		t.Fatal(err)
	}
}

func (s *Swarm) running() *Peer {
	for _, p := range s.Peers {
		if p.Node != nil {
			return p
		}
	}
	s.t.Fatal("no peer is running")
	return nil
}

// WaitIdle waits until the swarm is idle, like --until-idle.
func (s *Swarm) WaitIdle() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := s.running().WaitIdle(ctx, 500*time.Millisecond); err != nil {
		for _, p := range s.Peers {
			if p.Node != nil {
				s.t.Logf("%s: %+v", p.Name, p.Status())
			}
		}
		s.t.Fatalf("the swarm does not become idle: %v", err)
	}
}

// Until polls cond until it returns true. The string says what it still waits for.
func (s *Swarm) Until(what string, limit time.Duration, cond func() (bool, string)) {
	s.t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		ok, why := cond()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: not within %s: %s", what, limit, why)
		}
	}
}
