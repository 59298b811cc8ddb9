package nodetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	mocknet "github.com/libp2p/go-libp2p/p2p/net/mock"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/echo-node/echo-node/crawler"
	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/geo"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// SimOptions are the options of a Sim.
type SimOptions struct {
	Seed  uint64 // of the peers' identities and of Rand
	World crawltest.Options
	// Node has the default options of every peer. The Sim sets identity, disk, network, index
	// and fetcher.
	Node      node.Options
	Latency   time.Duration // of a link, one way; default 5 ms
	SliceBits int           // default 8
	Replicas  int           // default: the charter's
	// Homes are the locations of the peers, in turn: peer n is at Homes[n % len(Homes)].
	// Without Homes, no peer declares a location.
	Homes []partition.Point
	// Source wraps each source of a peer's crawler.
	Source func(s *Sim, p *SimPeer, src crawler.Source) crawler.Source
	// Beside returns the response for a host outside the test web, and nil for the test web's
	// hosts. Default: all hosts belong to the test web.
	Beside func(r *http.Request) *http.Response
	// Wrap wraps the host of each life of a peer, for example of a hostile peer that lies in
	// its responses. nil changes nothing.
	Wrap func(p *SimPeer, h host.Host) host.Host
	// Hostile reports whose own failures are no error of the test; nil = of no peer.
	Hostile func(p *SimPeer) bool
}

// Sim is a whole swarm in fake time: real nodes whose network, disks and web are in memory, so
// that each of them can fail by plan. It lives in one bubble of testing/synctest, and one
// goroutine drives it. Failures depend on Rand, so a seed repeats the plan, but not the order
// in which goroutines run.
type Sim struct {
	adding  sync.RWMutex // Peers grows
	t       testing.TB
	o       SimOptions
	charter partition.Charter
	World   *crawltest.World
	hosts   map[string]netip.Addr // hosts with names
	Rand    *rand.Rand
	Peers   []*SimPeer
	Calls   CallFaults

	mu     sync.Mutex // guards the links, side and lag, the disks, and last
	net    mocknet.Mocknet
	side   map[*SimPeer]int           // of a cut: peers of different sides cannot reach each other
	lag    map[*SimPeer]time.Duration // of all links of a peer, in addition to the usual latency
	last   map[string]visit           // by host
	buried sync.WaitGroup

	strangers []host.Host // see Stranger; guarded by mu
	draws     atomic.Uint64
	ends      []func()          // see AtEnd
	retired   map[*SimPeer]bool // see Retire; guarded by mu

	hurries int
	begun   time.Time
}

// SimPeer is one peer of a Sim, through all its lives.
type SimPeer struct {
	Name string
	ID   string
	s    *Sim
	key  crypto.PrivKey
	id   peer.ID
	addr ma.Multiaddr
	disk *disk // the next life starts with this disk
	life atomic.Pointer[life]
	// disks, when not nil, judges every operation of the store's file system.
	disks atomic.Pointer[func(op errorfs.Op) error]
	// keeps is the percentage of blocks, written but not synced, that stay on the disk in a
	// crash.
	keeps atomic.Int64
}

// life is one run of a peer, from its start to its crash. When it is dead, nothing that it does
// has an effect. Its links are gone, its requests are not sent, and its disk was copied at the
// moment of its death.
type life struct {
	p    *SimPeer
	node *node.Node
	host host.Host
	stop context.CancelFunc
	done chan error // result of Run
	gone chan struct{}
	dead atomic.Bool
	held atomic.Pointer[chan struct{}] // set while paused; closed when the pause ends
}

// RunSim runs f on a Sim in a bubble, and ends what f left running.
func RunSim(t *testing.T, o SimOptions, f func(s *Sim)) {
	t.Helper()
	// The codecs of wire outlive the bubble, so their channels must not be made in one.
	var frame bytes.Buffer
	long := &wire.Request{Version: partition.WireVersion,
		Body: &wire.Request_Query{Query: &wire.Query{Q: strings.Repeat("long ", 200)}}}
	if _, err := wire.WriteRequest(&frame, long); err != nil {
		t.Fatal(err)
	}
	_, _, _ = wire.ReadRequest(&frame) // it does not matter that it is no valid query
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, o)
		defer s.close()
		f(s)
	})
}

func newSim(t testing.TB, o SimOptions) *Sim {
	if o.Latency == 0 {
		o.Latency = 5 * time.Millisecond
	}
	if o.SliceBits == 0 {
		o.SliceBits = 8
	}
	if o.Node.Delay == 0 {
		o.Node.Delay = time.Second
	}
	s := &Sim{t: t, o: o, World: crawltest.NewWorld(o.World), net: mocknet.New(), side: map[*SimPeer]int{},
		lag: map[*SimPeer]time.Duration{}, last: map[string]visit{}, begun: time.Now(),
		Rand: rand.New(rand.NewPCG(o.Seed, 1))}
	if o.World.Names {
		s.hosts = s.World.Hosts()
	}
	s.Calls.rand = rand.New(rand.NewPCG(o.Seed, 2))
	s.net.SetLinkDefaults(mocknet.LinkOptions{Latency: o.Latency})
	return s
}

// close ends every peer. memberlist does not wait for its probes, so close waits until their
// timers have run out before the bubble ends.
func (s *Sim) close() {
	for _, end := range slices.Backward(s.ends) {
		end()
	}
	for _, p := range s.Peers {
		if l := p.life.Load(); l != nil && !l.dead.Load() {
			s.bury(l)
		}
	}
	s.buried.Wait()
	if err := s.net.Close(); err != nil {
		s.t.Error(err)
	}
	if err := s.World.Close(); err != nil {
		s.t.Error(err)
	}
	time.Sleep(time.Minute)
}

// Add makes a new peer and starts it. The first one founds the swarm.
func (s *Sim) Add() *SimPeer {
	s.t.Helper()
	n := len(s.Peers) + 1
	random := rand.NewChaCha8([32]byte{byte(n), byte(s.o.Seed), byte(s.o.Seed >> 8), byte(s.o.Seed >> 16)})
	key, _, err := crypto.GenerateEd25519Key(random)
	if err != nil {
		s.t.Fatal(err)
	}
	p := &SimPeer{Name: fmt.Sprintf("peer%d", n), ID: dht.PeerID(key), s: s, key: key,
		disk: newDisk(vfs.NewCrashableMem())}
	p.keeps.Store(50)
	if p.id, err = peer.IDFromPrivateKey(key); err != nil {
		s.t.Fatal(err)
	}
	if p.addr, err = ma.NewMultiaddr(fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", 10000+n)); err != nil {
		s.t.Fatal(err)
	}
	if n == 1 {
		s.charter = partition.DefaultCharter("sim", p.ID)
		s.charter.SliceBits = s.o.SliceBits
		if s.o.Replicas > 0 {
			s.charter.Replicas = s.o.Replicas
		}
		if s.o.Node.Partition == partition.ModeGeo {
			g, err := geo.Open()
			if err != nil {
				s.t.Fatal(err)
			}
			s.charter.Mode, s.charter.CellLevel, s.charter.Gazetteer = partition.ModeGeo,
				cmp.Or(s.o.Node.CellLevel, geo.CellLevel), g.Digest()
		}
	}
	st, err := db.Create(p.Name+"/store", store.Options{FS: p.disk, Charter: s.charter})
	if err == nil {
		err = st.Close()
	}
	if err != nil {
		s.t.Fatalf("%s: create: %v", p.Name, err)
	}
	s.adding.Lock() // running calls look up peers
	s.Peers = append(s.Peers, p)
	s.adding.Unlock()
	s.Start(p)
	return p
}

// Node returns the running node of p, or nil while p is down.
func (p *SimPeer) Node() *node.Node {
	if l := p.life.Load(); l != nil && !l.dead.Load() {
		return l.node
	}
	return nil
}

// SetDisk makes the Sim call judge before every operation of the store's file system, once the
// peer is open. judge may crash the peer or return an error. nil = no judge.
func (p *SimPeer) SetDisk(judge func(op errorfs.Op) error) {
	if judge == nil {
		p.disks.Store(nil)
		return
	}
	p.disks.Store(&judge)
}

// SetKeeps sets the percentage of blocks, written but not synced, that a crash of p leaves on
// the disk. The default is 50.
func (p *SimPeer) SetKeeps(percent int) { p.keeps.Store(int64(percent)) }

// Start gives a peer that is down a new life, on the disk that it left.
func (s *Sim) Start(p *SimPeer) {
	s.t.Helper()
	if old := p.life.Load(); old != nil {
		<-old.gone
	}
	l := &life{p: p, gone: make(chan struct{}), done: make(chan error, 1)}
	var err error
	if l.host, err = s.net.AddPeer(p.key, p.addr); err != nil {
		s.t.Fatalf("%s: %v", p.Name, err)
	}
	if s.o.Wrap != nil {
		l.host = s.o.Wrap(p, l.host)
	}
	if l.node, err = node.Open(context.Background(), s.options(l)); err != nil {
		s.t.Fatalf("%s: %v", p.Name, err)
	}
	p.life.Store(l)
	s.relink()
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	go func() {
		err := l.node.Run(ctx)
		if err != nil && !l.dead.Load() {
			s.complain(p, "%s ended: %v", p.Name, err)
		}
		l.done <- err
	}()
}

// options returns the options with which a life is opened.
func (s *Sim) options(l *life) node.Options {
	p, o := l.p, s.o.Node
	o.Dir, o.IndexDir, o.Key, o.Host = p.Name, "memory", p.key, l.host
	o.Hosts = s.hosts
	o.AllowNet = append(o.AllowNet, s.World.AllowNet())
	o.FS = errorfs.Wrap(p.disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if judge := p.disks.Load(); judge != nil && !l.dead.Load() && p.life.Load() == l {
			return (*judge)(op)
		}
		return nil
	}))
	o.Transport, o.Around, o.Fatal = l, l.around, l.fatal
	if s.o.Source != nil {
		o.Source = func(src crawler.Source) crawler.Source { return s.o.Source(s, p, src) }
	}
	if len(s.o.Homes) > 0 {
		o.Location = &s.o.Homes[slices.Index(s.Peers, p)%len(s.o.Homes)]
	}
	for _, other := range s.Peers {
		if other != p && !s.isRetired(other) {
			o.Join = append(o.Join, other.addr.String()+"/p2p/"+other.ID)
		}
	}
	if os.Getenv("ECHO_TEST_LOG") != "" {
		o.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("name",
			p.Name)
	}
	return o
}

func (s *Sim) answer(r *http.Request) (*http.Response, error) {
	if s.o.Beside != nil {
		if resp := s.o.Beside(r); resp != nil {
			return resp, nil
		}
	}
	return s.World.RoundTripper().RoundTrip(r)
}

// Crash ends a peer like kill -9 together with a power failure. No other peer gets a message,
// and the disk loses some of what was not synced (SetKeeps). Any goroutine may call it, also
// the peer's own. Crash does not wait.
func (s *Sim) Crash(p *SimPeer) {
	l := p.life.Load()
	if l == nil || l.dead.Swap(true) {
		return
	}
	s.relink()
	s.mu.Lock()
	left, err := p.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: int(p.keeps.Load()), RNG: s.dice()})
	if err != nil {
		s.t.Errorf("%s: crash: %v", p.Name, err)
	} else {
		p.disk = left
	}
	s.mu.Unlock()
	s.buried.Go(func() { s.bury(l) })
}

// dice returns a random generator for one use, by any goroutine.
func (s *Sim) dice() *rand.Rand {
	return rand.New(rand.NewPCG(s.o.Seed+s.draws.Add(1), uint64(time.Now().UnixNano())))
}

// complain reports an error of an honest peer.
func (s *Sim) complain(p *SimPeer, format string, args ...any) {
	if s.o.Hostile != nil && s.o.Hostile(p) {
		s.t.Logf(format, args...)
		return
	}
	s.t.Errorf(format, args...)
}

// bury ends what still runs of a life.
func (s *Sim) bury(l *life) {
	l.resume()
	l.stop()
	err := errors.Join(<-l.done, l.node.Close(), l.host.Close())
	if err != nil && !l.dead.Load() {
		s.complain(l.p, "%s: %v", l.p.Name, err)
	}
	l.dead.Store(true)
	close(l.gone)
}

// fatal is node.Options.Fatal. After a disk error with which no promise is possible the process
// ends, which here means the peer.
func (l *life) fatal(err error) {
	l.p.s.t.Logf("%s: disk: %v", l.p.Name, err)
	l.p.s.Crash(l.p)
	runtime.Goexit() // it must not return
}

var errDead = errors.New("sim: the process is gone")

// RoundTrip sends a request to the test web. A paused peer neither sends nor receives. Its
// request is not sent, as if the peer had been stopped a moment earlier.
func (l *life) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.dead.Load() {
		return nil, errDead
	}
	a, named := l.p.s.hosts[r.URL.Hostname()]
	if !named {
		a, _ = netip.ParseAddr(r.URL.Hostname()) // the zero Addr is in no network
	}
	if !l.p.s.World.AllowNet().Contains(a) {
		return nil, fetch.ErrPrivate // the guard of dials would return this error
	}
	if held := l.held.Load(); held != nil {
		select {
		case <-*held:
			return nil, &fetch.BusyError{Until: time.Now()}
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	l.p.s.asked(r.URL.Host, l.p)
	resp, err := l.p.s.answer(r)
	if held := l.held.Load(); held != nil {
		<-*held
	}
	if l.dead.Load() {
		return nil, errDead
	}
	return resp, err
}

// asked records which peer sent a request to a host, and reports peers that ask it too soon.
func (s *Sim) asked(host string, p *SimPeer) {
	const few = 6
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.last[host]
	if gap := now.Sub(last.at); last.by != nil && gap < s.o.World.Gap {
		if s.hurries++; s.hurries <= few {
			s.t.Logf("%7.2fs %s is asked by %s %s after %s asked it", now.Sub(s.begun).Seconds(), host, p.Name, gap,
				last.by.Name)
		}
	}
	s.last[host] = visit{now, p}
}

// visit is the last request to a host.
type visit struct {
	at time.Time
	by *SimPeer
}

// resume ends the pause of a life.
func (l *life) resume() {
	if held := l.held.Swap(nil); held != nil {
		close(*held)
	}
}
