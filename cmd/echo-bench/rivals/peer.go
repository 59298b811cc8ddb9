package rivals

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/echo-node/echo-node/crawler"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/web"
	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// PeerOptions are the arguments of Peer.
type PeerOptions struct {
	Mode     Mode
	Dir      string // of the store; Peer creates it
	Seeds    string // a file
	Allow    netip.Prefix
	Profiles string // where cpu.pprof and heap.pprof are written; "" = nowhere
	Log      *slog.Logger
}

// Peer crawls as echo-node until ctx ends. In mode Raw it is only the crawl loop, the web
// source and the store. Otherwise it is a whole peer that is its own swarm.
func Peer(ctx context.Context, o PeerOptions) (err error) {
	urls, err := readSeeds(o.Seeds)
	if err != nil {
		return err
	}
	keys := make([]partition.Key, len(urls))
	for i, u := range urls {
		if keys[i], err = partition.ParseKey(u); err != nil {
			return err
		}
	}
	stop, err := profile(o.Profiles)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if o.Mode == Raw {
		return raw(ctx, o, keys)
	}
	delay := time.Millisecond // a peer always has a delay
	if o.Mode == Polite {
		delay = time.Second
	}
	no := node.Options{Dir: o.Dir, Swarm: "rivals", Replicas: 1, Delay: delay, Workers: workers(o.Mode),
		AllowNet: []netip.Prefix{o.Allow}, Listen: []string{"/ip4/127.0.0.1/udp/0/quic-v1"},
		Logger: o.Log}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return err
	}
	if err := node.Create(ctx, no); err != nil {
		return err
	}
	n, err := node.Open(ctx, no)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	seeded := make(chan error, 1)
	go func() {
		err := n.SeedUntilDone(run, keys)
		if err != nil {
			cancel()
		}
		seeded <- err
	}()
	err = n.Run(run)
	if seedErr := <-seeded; ctx.Err() == nil {
		err = errors.Join(err, seedErr)
	}
	return errors.Join(err, os.WriteFile(filepath.Join(o.Dir, lagFile), strconv.AppendInt(nil, n.Status().IndexLag, 10),
		0o600))
}

// lagFile is the file in which a peer writes how much it fetched that its index lacked at its
// end.
const lagFile = "index-lag"

// workers returns more workers when each site is asked once a second and the web responds
// slowly.
func workers(m Mode) int {
	if m == Polite {
		return 4 * parallel
	}
	return parallel
}

// raw crawls without a swarm.
func raw(ctx context.Context, o PeerOptions, keys []partition.Key) (err error) {
	s, err := db.Create(filepath.Join(o.Dir, "store"),
		store.Options{Charter: partition.DefaultCharter("rivals", "nobody"), Logger: o.Log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	client, err := fetch.New(fetch.Options{AllowNet: []netip.Prefix{o.Allow}, AddrDelay: -1})
	if err != nil {
		return err
	}
	src, err := web.New(web.Options{Client: client, Unjudged: true})
	if err != nil {
		return err
	}
	var c *crawler.Crawler
	committed := make(chan struct{}, 1)
	if c, err = crawler.New(crawler.Options{Store: s, Sources: []crawler.Source{src}, Delay: -1, Workers: parallel,
		Logger: o.Log, Swarm: alone{committed: committed}}); err != nil {
		return err
	}
	items := make([]store.Admission, len(keys))
	for i, k := range keys {
		items[i] = store.Admission{Key: k, Seed: true}
	}
	if _, err := s.Queue.Admit(items, time.Now()); err != nil {
		return err
	}
	c.SetSlices(s.Charter().Slices())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	moved := make(chan error, 1)
	go func() {
		moved <- move(ctx, s, c, committed)
		cancel()
	}()
	err = c.Run(ctx)
	cancel()
	return errors.Join(err, <-moved)
}

// move delivers links for other slices: all slices are in this store.
func move(ctx context.Context, s *db.Store, c *crawler.Crawler, committed <-chan struct{}) error {
	var from uint64
	for {
		rows, reached, err := s.Queue.Outbox(from, 4096, nil)
		if err != nil {
			return err
		}
		if len(rows) == 0 && reached == from {
			select {
			case <-ctx.Done():
				return nil
			case <-committed:
			}
			continue
		}
		from = reached
		items := make([]store.Admission, len(rows))
		for i, r := range rows {
			items[i] = r.Admission
		}
		if _, err := s.Queue.Admit(items, time.Now()); err != nil {
			return fmt.Errorf("admit: %w", err)
		}
		if err := s.Queue.Sent(rows); err != nil {
			return fmt.Errorf("outbox: %w", err)
		}
		for _, it := range items {
			c.Wake(s.SliceOf(it.Key), it.Key.Site())
		}
	}
}

// profile starts profiles in dir. The returned function ends them.
func profile(dir string) (stop func() error, err error) {
	if dir == "" {
		return func() error { return nil }, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	cpu, err := os.Create(filepath.Join(dir, "cpu.pprof"))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, errors.Join(err, cpu.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		heap, err := os.Create(filepath.Join(dir, "heap.pprof"))
		if err != nil {
			return errors.Join(err, cpu.Close())
		}
		return errors.Join(pprof.WriteHeapProfile(heap), heap.Close(), cpu.Close())
	}, nil
}

// alone is the crawler.Swarm of a peer without others. It reports commits.
type alone struct {
	crawler.Alone
	committed chan<- struct{}
}

func (a alone) Committed() {
	select {
	case a.committed <- struct{}{}:
	default:
	}
}
