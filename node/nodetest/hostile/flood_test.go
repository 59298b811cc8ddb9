package hostile_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/nodetest"
	"github.com/echo-node/echo-node/node/nodetest/hostile"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
)

var (
	floodEach = flag.Int("flood", 60, "messages of each kind of the flood test; 100000 = all of it")
	floodRate = flag.Float64("rate", 1500, "messages a second of the flood test")
)

// calls records how long the calls of honest peers took.
type calls struct {
	mu   sync.Mutex
	took []time.Duration
	bad  int
}

func (c *calls) around(ctx context.Context, _ string, req *wire.Request, next dht.Caller) (*wire.Response, error) {
	begun := time.Now()
	resp, err := next(ctx, req)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took = append(c.took, time.Since(begun))
	if err != nil {
		c.bad++
	}
	return resp, err
}

// p99 returns that percentile of the calls since the last time; said describes it in words.
func (c *calls) p99() (d time.Duration, said string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.took)
	n := len(c.took)
	said = fmt.Sprintf("%d calls, %d failed", n, c.bad)
	if n > 0 {
		d = c.took[n*99/100]
		said += fmt.Sprintf(", p50 %s, p90 %s, p99 %s, the longest %s", c.took[n/2], c.took[n*9/10], d, c.took[n-1])
	}
	c.took, c.bad = nil, 0
	return d, said
}

// flood is a swarm on real sockets, and the messages that strangers send to it.
type flood struct {
	t     *testing.T
	s     *nodetest.Swarm
	disks []*vfs.MemFS
	calls *calls
}

func (f *flood) rows(n int) nodetest.Rows {
	f.t.Helper()
	left := f.disks[n].CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
	rows, err := nodetest.ReadRows(left, filepath.Join(f.s.Dir(), f.s.Peers[n].Name, "store", "pebble"))
	if err != nil {
		f.t.Fatal(err)
	}
	return rows
}

// query makes honest peers call each other until ctx ends.
func (f *flood) query(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		q, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err := f.s.Peers[i%len(f.s.Peers)].Search().Query(q, api.Query{Q: "vila"})
		cancel()
		if err != nil && ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
			f.t.Error(err)
		}
	}
}

// lost counts, until ctx ends, how often an owner did not act in a slice that it owns.
func (f *flood) lost(ctx context.Context) (lost int) {
	for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		for _, p := range f.s.Peers {
			if awaited := p.Status().SlicesAwaited; awaited > 0 {
				f.t.Logf("%s awaits %d slices", p.Name, awaited)
				lost += awaited
			}
		}
	}
	return lost
}

// TestFloodOfStrangers sends messages of every kind from strangers, over real connections. No
// row changes, and no lease is lost. With many messages, the p99 of honest peers' calls is at
// most three times that without strangers.
func TestFloodOfStrangers(t *testing.T) {
	racetest.Skip(t)
	f := &flood{t: t, calls: &calls{}}
	f.s = nodetest.New(t,
		nodetest.Options{World: crawltest.Options{Seed: 5, Sites: 8, Pages: 3, Words: 20, Plain: true},
			Node: node.Options{SliceBits: 5},
			Each: func(n int, o *node.Options) {
				disk := vfs.NewCrashableMem()
				f.disks = append(f.disks, disk)
				o.FS, o.Around = disk, f.calls.around
				o.AllowNet = []netip.Prefix{netip.MustParsePrefix("127.77.0.0/16")}
			}})
	for range 3 {
		f.s.Add()
	}
	f.s.Settle(3)
	f.s.Seed()
	f.s.WaitIdle()
	f.s.Until("the stores are at rest", time.Minute, func() (bool, string) {
		was := f.rows(0)
		time.Sleep(3 * time.Second)
		c := was.Changes(f.rows(0))
		return len(c) == 0, fmt.Sprint(c)
	})
	ctx, stop := context.WithCancel(t.Context())
	var honest sync.WaitGroup
	honest.Go(func() { f.query(ctx) })
	f.calls.p99()
	const whole = 10_000 // fewer messages end before there is a meaningful p99
	peace := 5 * time.Second
	if *floodEach >= whole {
		peace = time.Minute
	}
	time.Sleep(peace) // calls for comparison
	quiet, said := f.calls.p99()
	t.Logf("in peace: %s", said)
	var was []nodetest.Rows
	for i := range f.s.Peers {
		was = append(was, f.rows(i))
	}
	lost := make(chan int, 1)
	go func() { lost <- f.lost(ctx) }()
	begun := time.Now()
	sent := f.strangers(ctx)
	took := time.Since(begun)
	loud, said := f.calls.p99()
	stop()
	honest.Wait()
	for i, p := range f.s.Peers {
		if c := was[i].Changes(f.rows(i)); len(c) > 0 {
			t.Errorf("%d rows change on the disk of %s, as %s", len(c), p.Name, c[0])
		}
	}
	if l := <-lost; l > 0 {
		t.Errorf("%d times a lease was lost", l)
	}
	t.Logf("%d messages in %s: %d answered, %d refused, of them %d for want of place or credit, %d cut", sent.Sent,
		took.Round(time.Second), sent.Answered, sent.Refused, sent.Busy, sent.Cut)
	t.Logf("meanwhile: %s, p99 %.1f times as long", said, float64(loud)/float64(quiet))
	if *floodEach >= whole && loud > 3*quiet {
		t.Errorf("p99 of honest calls is %s, was %s", loud, quiet)
	}
}

// strangers lets strangers send the messages, and counts them.
func (f *flood) strangers(ctx context.Context) tally {
	h := horde{Proto: hostile.RPC(f.s.Peers[0].Charter()), Rate: *floodRate, Each: *floodEach}
	for _, p := range f.s.Peers {
		info, err := peer.AddrInfoFromString(p.Addrs()[0])
		if err != nil {
			f.t.Fatal(err)
		}
		h.Targets = append(h.Targets, *info)
	}
	for i := range uint64(8) {
		key := newKey(f.t, 900+i)
		id, err := peer.IDFromPrivateKey(key)
		if err != nil {
			f.t.Fatal(err)
		}
		raw, err := key.Raw()
		if err != nil {
			f.t.Fatal(err)
		}
		h.Strangers = append(h.Strangers, stranger{Key: raw, Frames: f.frames(rand.New(rand.NewPCG(i, 9)), id)})
	}
	return h.send(ctx, f.t)
}

// frames returns the messages of one stranger: forged, right and random ones.
func (f *flood) frames(r *rand.Rand, me peer.ID) map[hostile.Kind][][]byte {
	n := f.s.Peers[0].Node
	sc := &hostile.Scene{Charter: n.Charter(), All: n.Slices(), Me: me.String(), Target: n.ID(),
		ReplicaSets: map[partition.Slice]*wire.Config{}}
	for _, p := range f.s.Peers {
		sc.Peers = append(sc.Peers, p.ID())
	}
	for _, sl := range sc.All {
		c := n.Agreed(sl)
		sc.ReplicaSets[sl] = &wire.Config{Slice: uint64(sl), Epoch: c.Epoch, Fork: c.Fork, Gen: c.Gen, Owner: c.Owner,
			Keepers: c.Replicas}
	}
	for k := range f.rows(0) {
		if k[0] == 'R' {
			_, key, _ := strings.Cut(k[9:], "\x00")
			sc.Keys, sc.Slice = []partition.Key{partition.Key(key)}, nodetest.SliceOfRow(k)
		}
	}
	var err error
	if sc.Rows, err = sc.ForgedRows(time.Now().Add(time.Minute), false); err != nil {
		f.t.Error(err)
	}
	out := map[hostile.Kind][][]byte{}
	for _, kind := range hostile.Kinds() {
		all := []*wire.Request{sc.RightMessage(kind)}
		for _, a := range hostile.Forgeries(kind) {
			all = append(all, a.Make(sc, r))
		}
		for range 20 {
			all = append(all, sc.Random(r, kind))
		}
		for _, req := range all {
			req.Version = partition.WireVersion
			out[kind] = append(out[kind], hostile.Frame(req))
		}
	}
	return out
}
