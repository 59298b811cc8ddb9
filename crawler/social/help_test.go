package social_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/crawler"
	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/crawler/social/stream"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// peer is a store, a Source and a Crawler of all slices, as in a swarm with one peer.
type peer struct {
	t     *testing.T
	fs    *vfs.MemFS
	death *death // nil = no crash is planned
	w     served
	hosts []string // names that resolve to from
	from  netip.Addr
	slow  time.Duration // delay of a request, each way
	idle  bool          // no account is visited because of a stream
	o     social.Options
	store *db.Store
	src   *social.Source
	more  []crawler.Source // in addition to src
	// returns the Source for the crawl instead of src; nil = src
	wrap    func(crawler.Source) crawler.Source
	crawler *crawler.Crawler
	stop    func() // stops the crawl and waits for its end
}

// served is a simulated service.
type served interface {
	RoundTripper(from netip.Addr) http.RoundTripper
}

// far is a server some distance away.
type far struct {
	http.RoundTripper
	away time.Duration
}

func (f far) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(f.away)
	resp, err := f.RoundTripper.RoundTrip(r)
	time.Sleep(f.away)
	return resp, err
}

func newPeer(t *testing.T, w served, o social.Options, hosts ...string) *peer {
	t.Helper()
	p := &peer{t: t, fs: vfs.NewCrashableMem(), w: w, from: netip.MustParseAddr("127.0.0.1"),
		hosts: append(hosts, "m.test"), o: o}
	charter := partition.DefaultCharter("test", "founder")
	charter.SliceBits = 4
	// no link leaves its slice, as there is no forwarder here
	charter.Fanout = map[string]int{"mastodon": 1, "bluesky": 1, "twitter": 1}
	s, err := db.Create("data", store.Options{FS: p.fs, Charter: charter})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return p
}

// open opens the store and the Source.
func (p *peer) open() {
	p.t.Helper()
	var err error
	disk, way := vfs.FS(p.fs), http.RoundTripper(far{p.w.RoundTripper(p.from), p.slow})
	if p.death != nil {
		disk, way = p.death.disk(), mortal{way, p.death}
	}
	if p.store, err = db.Open("data", store.Options{FS: disk}); err != nil {
		p.t.Fatal(err)
	}
	names := map[string]netip.Addr{}
	for _, h := range p.hosts {
		names[h] = p.from
	}
	client, err := fetch.New(fetch.Options{Transport: way, AddrDelay: -1, Hosts: names,
		AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		p.t.Fatal(err)
	}
	o := p.o
	o.Store, o.Client = p.store, client
	if p.src, err = social.New(o); err != nil {
		p.t.Fatal(err)
	}
}

// start opens and runs the peer.
func (p *peer) start() {
	p.t.Helper()
	p.open()
	p.run()
}

// run starts the crawl of an open peer.
func (p *peer) run() {
	p.t.Helper()
	src := crawler.Source(p.src)
	if p.wrap != nil {
		src = p.wrap(src)
	}
	c, err := crawler.New(crawler.Options{Store: p.store, Sources: append([]crawler.Source{src}, p.more...),
		Peer: "peer", Budgeted: social.Budgeted, Workers: 4})
	if err != nil {
		p.t.Fatal(err)
	}
	p.crawler = c
	c.SetSlices(p.store.Charter().Slices())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- c.Run(ctx) }()
	hurry := c.RescheduleNow
	if p.idle {
		hurry = func(partition.Slice, []partition.Key) error { return nil }
	}
	go func() {
		err := p.src.Listen(ctx, stream.Peer{Slices: c.Crawled, Reschedule: hurry, Hold: c.Hold,
			Received: c.Received})
		if ctx.Err() != nil {
			err = nil
		}
		done <- err
	}()
	p.stop = sync.OnceFunc(func() {
		cancel()
		for range cap(done) {
			if err := <-done; err != nil {
				p.t.Error(err)
			}
		}
	})
	p.t.Cleanup(func() {
		if p.t.Failed() { // the bubble of a failed test must not keep goroutines
			p.stop()
			_ = p.store.Close()
		}
	})
}

// end stops the peer and closes everything in order.
func (p *peer) end() {
	p.t.Helper()
	p.stop()
	if err := p.src.Close(); err != nil {
		p.t.Error(err)
	}
	if err := p.store.Close(); err != nil {
		p.t.Error(err)
	}
}

// crash restarts the peer from what its disk had synced at this moment.
func (p *peer) crash() {
	p.t.Helper()
	left := p.fs.CrashClone(vfs.CrashCloneCfg{})
	p.stop()
	_ = p.store.Close() // of the crashed peer; its disk is not used again
	p.fs = left
	p.start()
}

// crashes crashes the peer so many times, each time at most within after the crash before.
func (p *peer) crashes(times int, within time.Duration) {
	p.t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	for range times {
		time.Sleep(time.Duration(rng.Int64N(within.Milliseconds())) * time.Millisecond)
		p.crash()
	}
}

// release releases all quarantined Keys, as a person would. A process that crashes at a write
// blames the Key that it was writing.
func (p *peer) release() (released int) {
	p.t.Helper()
	for _, sl := range p.crawler.Crawled() {
		var keys []partition.Key
		err := p.store.Queue.Quarantined(sl,
			func(k partition.Key, _ string) (bool, error) { keys = append(keys, k); return true, nil })
		for _, k := range keys {
			if err == nil {
				err = p.store.Queue.Release(sl, k, time.Now())
			}
			p.crawler.Wake(sl, k.Site())
		}
		if p.death != nil && p.death.dead.Load() {
			return released // the peer after the crash releases them
		}
		if err != nil {
			p.t.Fatal(err)
		}
		released += len(keys)
	}
	return released
}

// rest lets d go by and releases quarantined Keys once an hour.
func (p *peer) rest(d time.Duration) {
	p.t.Helper()
	released := 0
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(time.Hour, time.Until(end)))
		released += p.release()
	}
	if released > 0 {
		p.t.Logf("%d keys were left alone, and released", released)
	}
}

func (p *peer) seed(keys ...partition.Key) {
	p.t.Helper()
	var items []store.Admission
	for _, k := range keys {
		items = append(items, store.Admission{Key: k, Seed: true})
	}
	if _, err := p.store.Queue.Admit(items, time.Now()); err != nil {
		p.t.Fatal(err)
	}
	for _, k := range keys {
		p.crawler.Wake(p.store.SliceOf(k), k.Site())
	}
}

// link admits accounts as links of another page.
func (p *peer) link(keys ...partition.Key) {
	p.t.Helper()
	var items []store.Admission
	for _, k := range keys {
		items = append(items, store.Admission{Key: k, Depth: 2})
	}
	if _, err := p.store.Queue.Admit(items, time.Now()); err != nil {
		p.t.Fatal(err)
	}
}

func accountKey(t *testing.T, acct string) partition.Key {
	t.Helper()
	k, err := partition.ParseKey("mastodon:" + acct)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func accountKeys(t *testing.T, accts []string) (out []partition.Key) {
	for _, a := range accts {
		out = append(out, accountKey(t, a))
	}
	return out
}

// posts returns the posts that the store has of a Key, by their first id.
func (p *peer) posts(k partition.Key) map[string]store.Record {
	p.t.Helper()
	out := map[string]store.Record{}
	if err := p.store.Accounts.Posts(0, k, "", func(r store.Record) (bool, error) {
		out[path.Base(r.Post)] = r
		return true,
			nil
	}); err != nil {
		p.t.Fatal(err)
	}
	return out
}

func (p *peer) gaps(k partition.Key) (out []store.Gap) {
	p.t.Helper()
	if err := p.store.Accounts.Gaps(0, k, func(g store.Gap) (bool, error) {
		out = append(out, g)
		return true,
			nil
	}); err != nil {
		p.t.Fatal(err)
	}
	return out
}

// edges returns the accounts that a list has now.
func (p *peer) edges(list partition.Key) (out []string) {
	p.t.Helper()
	err := p.store.Accounts.Edges(0, list, "", func(e store.Edge) (bool, error) {
		if e.GoneAt == nil {
			out = append(out, string(e.To))
		}
		return true, nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// world returns a server that runs by the clock of the test and is a month old.
func world(t *testing.T, o mastodontest.Options) *mastodontest.World {
	t.Helper()
	o.Clock = time.Now
	o.Start = time.Now().Add(-30 * 24 * time.Hour)
	w, err := mastodontest.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// boostsUnwilling reports whether a post boosts an author who opts out: such a boost is not stored.
func boostsUnwilling(truth mastodontest.Truth, id string) bool {
	boosted := truth.Posts[id].Boost
	return boosted != "" && wishes(truth.Accounts[truth.Posts[boosted].By])
}

// wishes reports whether an account opts out of collection.
func wishes(a mastodontest.Account) bool { return strings.Contains(strings.ToLower(a.Bio), "#nobot") }
