package churn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/web"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// naive is a peer of the baseline: the first design that comes to mind. A page belongs to
// hash(host) mod N over the peers that respond to its pings. Links go to their owners in one
// request that is not repeated. The queue, and when a site was last asked, are in memory.
// Records are appended to a file, which a restart reads so as not to fetch them again. It
// fetches and extracts with the same code as the swarm, including robots.txt.
type naive struct {
	spec   Spec
	mouth  *mouth
	web    *web.Source
	client *http.Client
	names  []string // of the roster, sorted
	bytes  atomic.Int64
	sent   atomic.Int64
	got    atomic.Int64
	done   atomic.Int64 // pages fetched
	busy   atomic.Int64

	mu    sync.Mutex
	off   map[string]bool // peers from which it is cut off
	heard map[string]time.Time
	seen  map[partition.Key]bool
	queue map[string][]partition.Key // by host
	hosts map[string]*naiveHost
	file  *os.File
	work  chan struct{} // something was queued
}

// naiveHost is what is remembered of a host.
type naiveHost struct {
	busy bool
	next time.Time // no request before this time
	site store.Site
}

const (
	naivePing    = time.Second
	naiveDead    = 3 * time.Second        // without a response
	naiveTimeout = time.Second            // of one request to another peer
	naiveBounce  = 200 * time.Millisecond // peers that disagree send each other a host this often
	naiveWorkers = 64
	naiveBatch   = 1000 // links in one request
	maxNaiveBody = 8 << 20
)

// runNaive runs a peer of the baseline until ctx ends or one of its parts fails.
func runNaive(ctx context.Context, s Spec, m *mouth, orders <-chan order) (err error) {
	n := &naive{spec: s, mouth: m, client: &http.Client{Timeout: naiveTimeout}, off: map[string]bool{},
		heard: map[string]time.Time{},
		seen:  map[partition.Key]bool{}, queue: map[string][]partition.Key{}, hosts: map[string]*naiveHost{},
		work: make(chan struct{}, 1)}
	for name := range s.Roster {
		n.names = append(n.names, name)
	}
	sort.Strings(n.names)
	for _, id := range s.Cut {
		n.off[id] = true
	}
	if err := n.open(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.file.Close()) }()
	if err := m.say(word{Hello: &hello{ID: s.Name}}); err != nil {
		return err
	}
	srv := &http.Server{Addr: s.Roster[s.Name], Handler: n.handler(), ReadHeaderTimeout: naiveTimeout}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { <-ctx.Done(); return srv.Close() })
	g.Go(func() error {
		if err := srv.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error { return n.pings(ctx) })
	g.Go(func() error { return n.crawl(ctx) })
	g.Go(func() error { return tell(ctx, m, n.status) })
	g.Go(func() error { return follow(ctx, orders, n.obey) })
	return ended(ctx, g.Wait())
}

// open reads what an earlier run fetched and opens the file for more.
func (n *naive) open() error {
	from, err := netip.ParseAddr(n.spec.From)
	if err != nil {
		return err
	}
	allow, err := netip.ParsePrefix(n.spec.Allow)
	if err != nil {
		return err
	}
	client, err := fetch.New(fetch.Options{FromAddr: from, AllowNet: []netip.Prefix{allow}, AddrDelay: -1})
	if err != nil {
		return err
	}
	if n.web, err = web.New(web.Options{Client: client}); err != nil {
		return err
	}
	if err := os.MkdirAll(n.spec.Dir, 0o700); err != nil {
		return err
	}
	name := filepath.Join(n.spec.Dir, "records.jsonl")
	err = readRecords(name, func(r store.Record) { n.seen[r.Key] = true })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	n.file, err = os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return err
}

// live returns the peers that this one believes to be alive, including itself, sorted. The
// caller holds n.mu.
func (n *naive) live(now time.Time) []string {
	var out []string
	for _, name := range n.names {
		if name == n.spec.Name || now.Sub(n.heard[name]) < naiveDead && !n.heard[name].IsZero() {
			out = append(out, name)
		}
	}
	return out
}

// naiveOwner returns the peer that crawls a host.
func naiveOwner(live []string, host string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(host)) // never fails
	return live[h.Sum64()%uint64(len(live))]
}

// naiveSlices is the size of the space in the balance.
const naiveSlices = 4096

func (n *naive) status() status {
	n.mu.Lock()
	defer n.mu.Unlock()
	live := n.live(time.Now())
	s := status{Peers: len(live), Fetching: int(n.busy.Load()), Fetched: n.done.Load(), LinksOut: n.sent.Load(),
		LinksIn: n.got.Load(), BytesOut: n.bytes.Load()}
	for _, q := range n.queue {
		s.Pending += int64(len(q))
	}
	for i := range naiveSlices {
		if live[i%len(live)] == n.spec.Name {
			s.Slices++
		}
	}
	s.Idle = s.Pending == 0 && s.Fetching == 0
	return s
}

func (n *naive) obey(o order) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch o.Do {
	case doCut, doHeal:
		n.off = map[string]bool{}
		for _, id := range o.IDs {
			n.off[id] = true
		}
	case doSeed:
		keys, err := parseKeys(o.Keys)
		if err != nil {
			return err
		}
		go n.hand(keys) // like any links; it ends by its timeouts
	case doOwners:
		live := n.live(time.Now())
		a := answer{To: o.Do}
		for _, u := range o.Keys {
			p, err := url.Parse(u)
			if err != nil {
				return err
			}
			a.Owners = append(a.Owners, naiveOwner(live, p.Host))
		}
		return n.mouth.say(word{Answer: &a})
	case doExport: // the files are the records
		return n.mouth.say(word{Answer: &answer{To: o.Do}})
	default:
		return fmt.Errorf("no order is called %q", o.Do)
	}
	return nil
}

// crawl starts a fetch for every host that may be asked, until ctx ends.
func (n *naive) crawl(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(naiveWorkers + 1)
	g.Go(func() error {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			k, h, stray := n.due(time.Now())
			switch {
			case len(stray) > 0:
				g.Go(func() error { n.hand(stray); return nil })
			case h != nil:
				n.busy.Add(1)
				g.Go(func() error { defer n.busy.Add(-1); return n.fetch(ctx, k, h) })
			default:
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-tick.C:
				}
			}
		}
	})
	return g.Wait()
}

// due returns a Key whose host may be asked now. stray are Keys that belong to another peer
// according to the present list; they go to that peer.
func (n *naive) due(now time.Time) (k partition.Key, h *naiveHost, stray []partition.Key) {
	n.mu.Lock()
	defer n.mu.Unlock()
	live := n.live(now)
	for host, q := range n.queue {
		h := n.hosts[host]
		if h != nil && (h.busy || now.Before(h.next)) {
			continue
		}
		if h == nil {
			h = &naiveHost{}
			n.hosts[host] = h
		}
		if naiveOwner(live, host) != n.spec.Name {
			h.next = now.Add(naiveBounce)
			delete(n.queue, host)
			for _, k := range q {
				delete(n.seen, k) // it may come back
			}
			return "", nil, q
		}
		h.busy = true
		if n.queue[host] = q[1:]; len(q) == 1 {
			delete(n.queue, host)
		}
		return q[0], h, nil
	}
	return "", nil, nil
}

// fetch fetches k and distributes its links.
func (n *naive) fetch(ctx context.Context, k partition.Key, h *naiveHost) error {
	first := true
	gate := func(ctx context.Context) error {
		if first { // due has checked this
			first = false
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(n.spec.Delay):
			return nil
		}
	}
	h.site.Site = k.Site()
	r, err := n.web.Fetch(ctx, fetch.Task{Due: store.Due{Key: k, State: store.StatePending}, Site: h.site,
		Now: time.Now(), Gate: gate})
	if err != nil {
		return err
	}
	var links []partition.Key
	for _, l := range r.Links {
		if !l.NoFollow {
			links = append(links, l.Key)
		}
	}
	n.mu.Lock()
	h.busy, h.site, h.next = false, r.Site, time.Now().Add(n.spec.Delay)
	// The robots.txt arrived, and the Key is next. If there is no robots.txt to fetch, the peer
	// gives the Key up.
	if r.Again && r.Site.NextAllowed.Before(h.next) {
		host := hostOf(k)
		n.queue[host] = append([]partition.Key{k}, n.queue[host]...)
		n.mu.Unlock()
		return nil
	}
	if r.Record != nil {
		err = n.keep(*r.Record)
	}
	n.mu.Unlock()
	n.done.Add(1)
	n.hand(links)
	return err
}

// keep appends a record. The caller holds n.mu.
func (n *naive) keep(r store.Record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = n.file.Write(append(b, '\n'))
	return err
}

func hostOf(k partition.Key) string {
	u, err := url.Parse(k.URL())
	if err != nil {
		return ""
	}
	return u.Host
}
