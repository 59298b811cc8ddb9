package stream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/mastodon"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/crawler/social/calls"
	adapter "github.com/echo-node/echo-node/crawler/social/mastodon"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/strictjson"
	"github.com/echo-node/echo-node/store"
)

// Of the streams of Mastodon-compatible servers.
const (
	MaxStreams  = 1024             // servers
	localStands = 10 * time.Minute // longer than it takes to find a server silent
	localMost   = time.Hour        // what is missed meanwhile comes with readings
	refusedFor  = 24 * time.Hour   // a server that has no stream for us is asked again after that
	// What a stream may send in an hour, whether or not it is about who is followed, for all and for each account that
	// it is listened for: a page of posts has 100 KiB or so. One of more is read no more for refusedFor.
	maxHourly, maxHourlyEach = 4 << 20, 1 << 20
	maxPosted                = 100_000 // posts known by their ids, of all servers; about 20 MiB
)

// refusalRow is what the names of rows begin with that hold a refusal of a server, as JSON.
const refusalRow = "api.nostream/"

// locals are the public streams of Mastodon-compatible servers, each of which tells of the posts of its own accounts.
// It has no cursor, and needs not be asked for anybody. A server that refuses is remembered for refusedFor.
type locals struct {
	s  *shared
	mu sync.Mutex
	by map[partition.Site]*local // of whose accounts some are followed here
}

// local is the stream of one server.
type local struct {
	stream
	host string

	// Under locals.mu.
	leave context.CancelFunc // nil = it is not read
	no    refusal

	// Under stream.mu.
	hour  time.Time // since when bytes are counted
	bytes int64
}

// run reads the streams of the servers with the most accounts until ctx ends.
func (l *locals) run(ctx context.Context, o Peer) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		for {
			if err := l.choose(ctx, g, o); err != nil {
				return err
			}
			if err := fetch.Sleep(ctx, maintainEvery); err != nil {
				return err
			}
		}
	})
	return g.Wait()
}

// choose begins to read the streams that are to be read, and leaves the others. One that is read stays, unless another
// is of more than twice as many accounts.
func (l *locals) choose(ctx context.Context, g *errgroup.Group, o Peer) error {
	accounts := l.s.subscriptions.listened("mastodon")
	now := l.s.o.Calls.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.by, func(of partition.Site, x *local) bool {
		if accounts[of] == 0 && x.leave != nil {
			x.leave()
		}
		return accounts[of] == 0 && x.leave == nil
	})
	var able []*local
	for of := range accounts {
		x := l.by[of]
		if x == nil {
			var err error
			if x, err = l.open(of, now); err != nil {
				return err
			}
			l.by[of] = x
		}
		if x.leave != nil {
			accounts[of] *= 2
		}
		if !now.Before(x.no.Until) {
			able = append(able, x)
		}
	}
	slices.SortFunc(able, func(a, b *local) int {
		return cmp.Or(cmp.Compare(accounts[b.of], accounts[a.of]), cmp.Compare(a.of, b.of))
	})
	for i, x := range able {
		switch {
		case i < l.s.o.Streams && x.leave == nil:
			l.begin(ctx, g, o, x)
		case i >= l.s.o.Streams && x.leave != nil:
			x.leave()
		case i >= l.s.o.Streams:
			x.ended(fmt.Sprintf("%d servers with more accounts that are followed here are listened to", l.s.o.Streams))
		}
	}
	return nil
}

// open is the stream of a server, not read yet.
func (l *locals) open(of partition.Site, now time.Time) (*local, error) {
	host := string(of)[len("mastodon:"):]
	x := &local{stream: stream{s: l.s, of: of, stands: localStands, most: localMost,
		at: Stream{Address: account.Base(host) + mastodon.LocalStream}}, host: host}
	b, err := l.s.o.Store.Meta(x.row())
	if errors.Is(err, store.ErrNotExist) {
		return x, nil
	}
	if err != nil {
		return nil, err
	}
	if err := strictjson.Unmarshal(b, &x.no); err != nil || x.no.Until.After(now.Add(refusedFor)) {
		l.s.o.Calls.Logger.Warn("the reason why a server has no stream for this peer is looked up again", "server", host,
			"err", err)
		x.no = refusal{}
	}
	x.at.Why = service.Line(x.no.Why, 200)
	return x, nil
}

// row is the name of the row of a refusal: what is refused to one credential may not be to another.
func (x *local) row() string {
	names := slices.Sorted(maps.Keys(x.s.o.Calls.Tokens.At(x.of)))
	return streamRow(refusalRow, append([]string{x.host}, names...)...)
}

// begin has the stream read until its leave is called or it is refused.
func (l *locals) begin(ctx context.Context, g *errgroup.Group, o Peer, x *local) {
	own, leave := context.WithCancel(ctx)
	x.leave = leave
	g.Go(func() error {
		defer leave()
		err := x.run(own, o, x.connect)
		l.mu.Lock()
		defer l.mu.Unlock()
		x.leave = nil
		var no *refusal
		switch {
		case errors.As(err, &no):
			x.no = *no
			x.ended(no.Why)
			b, err := json.Marshal(no)
			if err != nil {
				panic(err) // plain values
			}
			return l.s.o.Store.SetMeta(x.row(), b)
		case ctx.Err() == nil && own.Err() != nil:
			x.ended("no account of it is followed here, or other servers have more followed accounts")
			return nil
		}
		return err
	})
}

// shown are those that are read or would be, those of the most accounts first.
func (l *locals) shown() (out []Stream) {
	accounts := l.s.subscriptions.listened("mastodon")
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*local
	for _, x := range l.by {
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b *local) int {
		return cmp.Or(cmp.Compare(accounts[b.of], accounts[a.of]), cmp.Compare(a.of, b.of))
	})
	for _, x := range all[:min(len(all), maxShown)] {
		out = append(out, x.shown())
	}
	return out
}

// connect reads one connection to its end.
func (x *local) connect(ctx context.Context, o Peer) error {
	info, _, err := x.s.o.Servers.Get(x.host, x.s.o.Calls.Now())
	if err != nil {
		return &calls.StoreError{Err: err}
	}
	if info.Domain == "" {
		info.Domain = x.host
	}
	p, err := x.s.o.Calls.Budget(x.of, adapter.TableOf(info.Software))
	if err != nil {
		return &calls.StoreError{Err: err}
	}
	at := streamBase(x.host, info.Streaming)
	c, err := mastodon.New(mastodon.Options{Base: at, Domain: info.Domain, Now: x.s.o.Calls.Now,
		Credential: x.s.o.Calls.Tokens.At(x.of)[p.Names[0]], Do: service.Through(x.s.o.Calls.Client, nil)})
	if err != nil {
		return err
	}
	x.mu.Lock()
	x.at.Address = at + mastodon.LocalStream
	x.mu.Unlock()
	ctx, end := context.WithCancelCause(ctx)
	over := meanwhile(ctx, maintainEvery, func() {
		if err := x.tend(); err != nil {
			end(err)
		}
	})
	foreign := 0
	bad, err := c.Stream(ctx, mastodon.StreamOptions{Open: x.opener(p, o)}, func(e mastodon.Event) error {
		k, w := x.word(e, info.Domain)
		if e.Post != nil && k == "" {
			foreign++
		}
		return x.take(ctx, o, k, w)
	})
	end(nil)
	over()
	now := x.s.o.Calls.Now()
	x.s.subscriptions.broke(x.of)
	x.mu.Lock()
	x.at.Bad += int64(bad + foreign)
	x.mu.Unlock()
	if no := x.tooMuch(now); no != nil { // of one that ends before it is looked at
		return no
	}
	switch service.WordOf(err) {
	case service.NeedsToken, service.Closed, service.Gone, service.Unsupported, service.Refused, service.Moved,
		service.Misshapen:
		return &refusal{Until: now.Add(refusedFor), Why: fetch.Reason(err)}
	}
	return err
}

// tend listens for those who came since, and holds what came against what may.
func (x *local) tend() error {
	now := x.s.o.Calls.Now()
	if x.shown().Since.IsZero() {
		return nil
	}
	x.s.subscriptions.tells(x.of, now)
	return x.tooMuch(now)
}

// tooMuch is a *refusal when more came in this hour than may, else nil.
func (x *local) tooMuch(now time.Time) error {
	accounts := x.s.subscriptions.many(x.of)
	x.mu.Lock()
	defer x.mu.Unlock()
	most := int64(maxHourly + accounts*maxHourlyEach)
	if x.bytes <= most {
		return nil
	}
	x.hour, x.bytes = time.Time{}, 0 // said once: the next connection is judged by what comes on it
	return &refusal{Until: now.Add(refusedFor), Why: fmt.Sprintf("more than %d MiB in an hour, for %d accounts",
		most>>20, accounts)}
}

// streamBase is the server to ask for the stream: that which the instance names, when it is of the same registrable
// domain, as the credential goes to it, and no instance is to have peers connect to whom it likes; else the instance.
func streamBase(host, named string) string {
	u, err := url.Parse(named)
	if err != nil || strings.Contains(host, ":") || strings.Contains(u.Host, ":") {
		return account.Base(host)
	}
	if to := strings.ToLower(u.Host); to != "" && partition.Domain(to) == partition.Domain(host) {
		return account.Base(to)
	}
	return account.Base(host)
}

// opener connects, within the budget of the server, with the credential that the budget chooses.
func (x *local) opener(p *calls.Budget, o Peer) service.Opener {
	return func(ctx context.Context, r fetch.Request) (*http.Response, error) {
		var got *http.Response
		_, err := p.Ask(ctx, calls.Charge{Class: calls.ClassRead}, func(name string) (*fetch.Response, error) {
			x.s.o.Calls.Tokens.At(x.of)[name].Sign(&r)
			x.tried()
			resp, err := x.s.o.Calls.Client.Open(ctx, r)
			if err != nil {
				return nil, err
			}
			got = resp
			settled := &fetch.Response{Status: resp.StatusCode, Header: resp.Header}
			if resp.StatusCode >= 500 && resp.Header.Get("Retry-After") == "" {
				// of a program beside the one that answers all else, which is held up by no fault of this
				settled.Status = 0
			}
			return settled, nil
		})
		if err != nil {
			if got != nil {
				_ = got.Body.Close() // nothing was read
			}
			return nil, err
		}
		if now := x.s.o.Calls.Now(); got.StatusCode == http.StatusOK {
			x.s.subscriptions.tells(x.of, now)
			x.begun(now)
		}
		got.Body = &metered{got.Body, func(n int) {
			o.Received(int64(n))
			x.came(int64(n))
		}}
		return got, nil
	}
}

// metered says how much is read.
type metered struct {
	io.ReadCloser
	came func(n int)
}

// Read is of io.Reader.
func (m *metered) Read(b []byte) (int, error) {
	n, err := m.ReadCloser.Read(b)
	m.came(n)
	return n, err
}

// came counts what came in this hour.
func (x *local) came(n int64) {
	now := x.s.o.Calls.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	if now.Sub(x.hour) >= time.Hour {
		x.hour, x.bytes = now, 0
	}
	x.bytes += n
}

// take has an event taken by a visit of its account, if it is about one.
func (x *local) take(ctx context.Context, o Peer, k partition.Key, w Event) error {
	if err := o.ready(ctx); err != nil {
		return err
	}
	now := x.s.o.Calls.Now()
	x.mu.Lock()
	x.at.Events++
	x.at.Last = now
	x.mu.Unlock()
	if !w.tells() {
		return nil
	}
	w.At, w.came = now, now
	return x.s.subscriptions.receive(ctx, k, w)
}

// word is what an event says, and of whom. A server speaks of its own accounts only: who writes as somebody of another
// is nobody, "". Of a deletion, which has the id of a post alone, that is whose post was read or told of under that id;
// one that is not known is left to the readings.
func (x *local) word(e mastodon.Event, domain string) (partition.Key, Event) {
	if e.Post == nil {
		at, ok := x.s.posted.find(postID{x.of, e.ID})
		if !ok {
			return "", Event{}
		}
		return at.by, Event{size: eventWeight, Gone: true, URI: at.uri, ID: e.ID}
	}
	p := *e.Post
	user, of, _ := strings.Cut(p.Author.Acct, "@")
	if of != domain && of != x.host {
		return "", Event{}
	}
	k := account.KeyOf("mastodon:" + user + "@" + x.host)
	if !x.s.subscriptions.listens(k) {
		return k, Event{}
	}
	x.s.posted.put(postID{x.of, p.ID}, postOf{k, adapter.URIOf(p)})
	return k, Event{size: eventWeight + len(p.Raw) + len(p.Text), Post: p, URI: adapter.URIOf(p)}
}
