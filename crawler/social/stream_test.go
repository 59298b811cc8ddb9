package social_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/gorilla/websocket"

	"github.com/echo-node/echo-node/crawler/crawltest/blueskytest"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
)

// pipes is a listener of connections in memory, which keep to the clock of a bubble.
type pipes struct {
	conns chan net.Conn
	over  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.over); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// dial connects in memory.
func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// piped serves a handler over connections in memory.
func piped(t *testing.T, h http.Handler) (p *pipes, end func()) {
	p = &pipes{make(chan net.Conn), make(chan struct{})}
	srv, served := &http.Server{Handler: h}, make(chan error, 1)
	go func() { served <- srv.Serve(p) }()
	return p, func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		<-served
	}
}

// dialer returns a Dial to a handler.
func dialer(t *testing.T, h http.Handler) (dial func(context.Context, string) (*websocket.Conn, *http.Response, error),
	end func()) {
	p, end := piped(t, h)
	d := websocket.Dialer{NetDialContext: p.dial}
	return func(ctx context.Context, address string) (*websocket.Conn, *http.Response, error) {
		return d.DialContext(ctx, address, nil)
	}, end
}

// listening is skies with a Jetstream that the peer reads.
func listening(t *testing.T, o blueskytest.Options, so social.Options) (w *blueskytest.World, p *peer, end func()) {
	t.Helper()
	o.StreamPoll = 5 * time.Second
	so.Jetstream = "ws://jet.test/subscribe"
	w, p = skies(t, o, so)
	p.o.Dial, end = dialer(t, w.Handler())
	return w, p, end
}

// everybody makes each account a seed that does not opt out.
func everybody(w *blueskytest.World) (keys []partition.Key) {
	truth := w.Truth()
	for _, did := range w.IDs() {
		if !private(truth.Accounts[did]) {
			keys = append(keys, blueskyKey(did))
		}
	}
	return keys
}

// With a stream, posts, edits and deletions of a network's people are fetched within seconds, while
// readings alone take hours. It needs no more calls, and the result is the same.
func TestAStreamTellsWithinSeconds(t *testing.T) {
	racetest.Skip(t)
	run := func(with bool) (requests, subscriptions int) {
		synctest.Test(t, func(t *testing.T) {
			o := blueskytest.Options{Seed: 5, People: 12, Rate: 4}
			var w *blueskytest.World
			var p *peer
			end := func() {}
			if with {
				w, p, end = listening(t, o, social.Options{})
			} else {
				w, p = skies(t, o, social.Options{})
			}
			p.start()
			p.seed(everybody(w)...)
			time.Sleep(8 * time.Hour)
			late := 0
			for range 8 {
				time.Sleep(2 * time.Hour)
				truth := w.Truth()
				for did, a := range truth.Accounts {
					if private(a) || a.Suspended {
						continue
					}
					had := p.written(blueskyKey(did))
					for _, uri := range a.Records {
						if r := had[uri]; truth.Posts[uri].Created.Before(time.Now().Add(-10*time.Second)) &&
							(r.Post == "" || r.Text != truth.Posts[uri].Text) {
							late++
						}
					}
					for uri, r := range had {
						if !r.Deleted && !truth.Posts[uri].Kept {
							late++
						}
					}
				}
			}
			t.Logf("streams %t: %d late, %d requests, %d subscriptions, %+v", with, late, w.Report().Requests,
				w.Subscriptions(), p.src.Streams())
			if with != (late == 0) {
				t.Errorf("streams %t: %d posts are late", with, late)
			}
			posts, tombstones := p.sameAsSkies(w.Truth(), time.Now().Add(-25*time.Hour))
			if posts < 50 || tombstones == 0 && with {
				t.Errorf("%d posts, %d tombstones", posts, tombstones)
			}
			requests, subscriptions = w.Report().Requests, w.Subscriptions()
			p.end()
			end()
		})
		return requests, subscriptions
	}
	plain, _ := run(false)
	streamed, subscriptions := run(true)
	if streamed > plain || subscriptions > 5 {
		t.Errorf("%d requests and %d subscriptions, without a stream %d", streamed, subscriptions, plain)
	}
}

// A peer that is killed and returns after half an hour reads the stream from its cursor on. It gets
// what happened meanwhile, though no account is read for days. Repeated events change nothing.
func TestAStreamGoesOnAfterADeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p, end := listening(t, blueskytest.Options{Seed: 8, People: 8, Rate: 2},
			social.Options{Least: 20 * 24 * time.Hour, Most: 20 * 24 * time.Hour})
		p.start()
		p.seed(everybody(w)...)
		time.Sleep(3 * time.Hour)
		calls := w.Report().Requests
		had := func() map[string]store.Record {
			out := map[string]store.Record{}
			for _, k := range everybody(w) {
				for uri, r := range p.written(k) {
					out[uri] = r
				}
			}
			return out
		}
		before := map[string]store.Record{}
		deaths := 5
		if racetest.Small(t) {
			deaths = 2
		}
		for range deaths {
			left := p.fs.CrashClone(vfs.CrashCloneCfg{})
			before = had()
			p.stop()
			_ = p.store.Close() // of the dead peer; its disk is not used again
			time.Sleep(30 * time.Minute)
			p.fs = left
			p.start()
			time.Sleep(20 * time.Second)
			now := had()
			for uri, r := range before {
				if is := now[uri]; is.Text == r.Text && is.Deleted == r.Deleted && !is.FetchedAt.Equal(r.FetchedAt) {
					t.Errorf("%s was taken at %s and again at %s", uri, r.FetchedAt, is.FetchedAt)
				}
			}
			if posts, tombstones := p.sameAsSkies(w.Truth(), time.Now().Add(-10*time.Second)); posts == 0 ||
				t.Failed() {
				t.Fatalf("%d posts, %d tombstones", posts, tombstones)
			}
			time.Sleep(time.Hour)
		}
		if all, n := len(had()), w.Report().Requests-calls; all <= len(before) || n > 40 {
			t.Errorf("%d posts, %d requests", all, n)
		}
		t.Logf("%d posts, %d requests before and %d after", len(had()), calls, w.Report().Requests-calls)
		p.end()
		end()
	})
}

// A bad stream costs no more than a few attempts to connect. Readings find everything.
func TestAStreamThatLies(t *testing.T) {
	racetest.Skip(t)
	network := blueskytest.Options{Seed: 5, People: 8, Rate: 4}
	const days = 1
	plain := 0
	synctest.Test(t, func(t *testing.T) {
		w, p := skies(t, network, social.Options{})
		p.start()
		p.seed(everybody(w)...)
		time.Sleep(days * 24 * time.Hour)
		plain = w.Report().Requests
		p.end()
	})
	for name, c := range map[string]struct {
		lies        blueskytest.Lies
		connections int
	}{
		"silent":  {blueskytest.Lies{StreamSilent: true}, 10},
		"repeats": {blueskytest.Lies{StreamRepeats: true, StreamGarbage: true}, 10},
		"drops":   {blueskytest.Lies{StreamDrops: 2}, 10},
		"breaks":  {blueskytest.Lies{StreamBreaks: 3}, 300},
		"refuses": {blueskytest.Lies{StreamRefuses: 503}, days * 24 * 12},
		"none":    {blueskytest.Lies{StreamRefuses: 404}, days * 24 * 20},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := network
				o.Lies = c.lies
				w, p, end := listening(t, o, social.Options{})
				p.start()
				p.seed(everybody(w)...)
				time.Sleep(days * 24 * time.Hour)
				p.sameAsSkies(w.Truth(), time.Now().Add(-25*time.Hour))
				t.Logf("%d requests, %d without a stream, %d connections; %+v", w.Report().Requests, plain,
					w.Subscriptions(), p.src.Streams())
				if w.Report().Requests > plain*11/10 || w.Subscriptions() > c.connections {
					t.Errorf("%d requests, %d without a stream, %d connections", w.Report().Requests, plain,
						w.Subscriptions())
				}
				p.end()
				end()
			})
		})
	}
}
