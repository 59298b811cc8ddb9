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

// Limits for the streams of Mastodon-compatible servers.
const (
	MaxStreams  = 1024             // servers
	localStands = 10 * time.Minute // longer than the time after which a silent server is dropped
	localMost   = time.Hour        // posts that are missed meanwhile come with readings
	refusedFor  = 24 * time.Hour   // a server that refuses its stream is asked again after this
	// What a stream may send in an hour: in total, and in addition for each account that this peer
	// subscribes to. Posts of other accounts count, too. A page of posts has about 100 KiB. A
	// stream that sends more is not read for refusedFor.
	maxHourly, maxHourlyEach = 4 << 20, 1 << 20
	maxPosted                = 100_000 // posts known by their ids, of all servers; about 20 MiB
)

// refusalRow is the prefix of the rows that hold a refusal of a server, as JSON.
const refusalRow = "api.nostream/"

// locals are the public streams of Mastodon-compatible servers. Each reports the posts of all
// accounts of its server, so there is no list of accounts to ask for. It has no cursor. A refusal
// of a server is remembered for refusedFor.
type locals struct {
	s  *shared
	mu sync.Mutex
	by map[partition.Site]*local // the servers with accounts that are followed here
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

// choose starts the streams that must be read and ends the others. A stream that is read stays,
// unless another has more than twice as many accounts.
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

// open returns the stream of a server; it is not read yet.
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

// row returns the name of the row with the refusal of the server. The name depends on the
// credentials, as the server may accept another one.
func (x *local) row() string {
	names := slices.Sorted(maps.Keys(x.s.o.Calls.Tokens.At(x.of)))
	return streamRow(refusalRow, append([]string{x.host}, names...)...)
}

// begin reads the stream until its leave is called or the server refuses.
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
				panic(err) // not reached: plain values
			}
			return l.s.o.Store.SetMeta(x.row(), b)
		case ctx.Err() == nil && own.Err() != nil:
			x.ended("no account of it is followed here, or other servers have more followed accounts")
			return nil
		}
		return err
	})
}

// shown returns the status of the streams, those with the most accounts first.
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
	if no := x.tooMuch(now); no != nil { // the connection may end before tend checks it
		return no
	}
	switch service.WordOf(err) {
	case service.NeedsToken, service.Closed, service.Gone, service.Unsupported, service.Refused, service.Moved,
		service.Misshapen:
		return &refusal{Until: now.Add(refusedFor), Why: fetch.Reason(err)}
	}
	return err
}

// tend subscribes to accounts that joined since, and checks the limit on what the stream sends.
func (x *local) tend() error {
	now := x.s.o.Calls.Now()
	if x.shown().Since.IsZero() {
		return nil
	}
	x.s.subscriptions.tells(x.of, now)
	return x.tooMuch(now)
}

// tooMuch returns a *refusal if more came in this hour than is allowed, else nil.
func (x *local) tooMuch(now time.Time) error {
	accounts := x.s.subscriptions.many(x.of)
	x.mu.Lock()
	defer x.mu.Unlock()
	most := int64(maxHourly + accounts*maxHourlyEach)
	if x.bytes <= most {
		return nil
	}
	x.hour, x.bytes = time.Time{}, 0 // the next connection is judged by its own bytes
	return &refusal{Until: now.Add(refusedFor), Why: fmt.Sprintf("more than %d MiB in an hour, for %d accounts",
		most>>20, accounts)}
}

// streamBase returns the address of the server to ask for the stream. That is the one that the
// instance names, if it has the same registrable domain. The credential is sent there, and an
// instance must not make peers connect to arbitrary hosts. Otherwise it is the instance.
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

// opener connects within the rate budget of the server, with the credential that the budget
// chooses.
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
				// The streaming server is a separate program. Its errors must not delay calls to
				// the other one.
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

// metered reports how many bytes are read.
type metered struct {
	io.ReadCloser
	came func(n int)
}

// Read implements io.Reader.
func (m *metered) Read(b []byte) (int, error) {
	n, err := m.ReadCloser.Read(b)
	m.came(n)
	return n, err
}

// came counts the bytes of this hour.
func (x *local) came(n int64) {
	now := x.s.o.Calls.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	if now.Sub(x.hour) >= time.Hour {
		x.hour, x.bytes = now, 0
	}
	x.bytes += n
}

// take passes an event to the subscription of its account, if there is one.
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

// word converts an event and returns its account. A server reports only its own accounts: for an
// author on another server the Key is "". A deletion has only the id of the post, so Posted must
// know the post. If it does not, the next reading finds the deletion.
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
