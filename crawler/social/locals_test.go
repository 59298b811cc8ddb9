package social_test

import (
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
)

// wired are servers whose streams are read over connections in memory, which keep to the clock of a
// bubble. All other requests go to the worlds directly.
type wired struct {
	worlds  map[string]*mastodontest.World
	streams map[string]*http.Transport
	from    netip.Addr
	takes   time.Duration // time to answer all other requests
}

func (w wired) RoundTripper(from netip.Addr) http.RoundTripper {
	w.from = from
	return w
}

func (w wired) RoundTrip(r *http.Request) (*http.Response, error) {
	host := r.URL.Host
	switch {
	case w.worlds[host] == nil:
		return nil, errors.New("no such host")
	case strings.HasPrefix(r.URL.Path, "/api/v1/streaming/"):
		in := r.Clone(r.Context())
		in.URL.Scheme = "http"
		return w.streams[host].RoundTrip(in)
	}
	time.Sleep(w.takes)
	return w.worlds[host].RoundTripper(w.from).RoundTrip(r)
}

// tuned returns a peer of those worlds that reads some of their streams.
func tuned(t *testing.T, so social.Options, worlds ...mastodontest.Options) (all []*mastodontest.World, p *peer,
	end func()) {
	t.Helper()
	return tunedSlowly(t, 0, so, worlds...)
}

// tunedSlowly is tuned with worlds that take that long to answer.
func tunedSlowly(
	t *testing.T, takes time.Duration, so social.Options, worlds ...mastodontest.Options,
) (all []*mastodontest.World, p *peer, end func()) {
	t.Helper()
	w := wired{worlds: map[string]*mastodontest.World{}, streams: map[string]*http.Transport{}, takes: takes}
	var ends []func()
	var hosts []string
	for _, o := range worlds {
		o.StreamPoll = 5 * time.Second
		of := world(t, o)
		pipe, end := piped(t, of.Handler())
		w.worlds[of.Domain()], w.streams[of.Domain()] = of,
			&http.Transport{DialContext: pipe.dial, DisableKeepAlives: true}
		all, ends, hosts = append(all, of), append(ends, end), append(hosts, of.Domain())
	}
	return all, newPeer(t, w, so, hosts...), func() {
		for _, end := range ends {
			end()
		}
	}
}

// residents returns the Keys of a world's own people.
func residents(t *testing.T, w *mastodontest.World) []partition.Key {
	t.Helper()
	return accountKeys(t, w.Users())
}

// untold returns what the peer lacks although it happened at least ago before now: the number of
// posts made after since, and the number of edits and deletions. Boosts do not count, as no stream
// reports them.
func (p *peer) untold(truth mastodontest.Truth, since time.Time, ago time.Duration) (posts, changes int) {
	p.t.Helper()
	before := time.Now().Add(-ago)
	for acct, a := range truth.Accounts {
		if !a.Local || wishes(a) || a.Suspended || a.Moved != "" {
			continue
		}
		had := p.posts(accountKey(p.t, acct))
		for _, id := range a.Posts {
			switch post, has := truth.Posts[id], had[id]; {
			case post.Boost != "" || post.Created.After(before) || post.Created.Before(since):
			case has.Post == "":
				posts++
			case !a.NoIndex && has.Text != post.Text && post.Edited.Before(before):
				changes++
			}
		}
		for id, r := range had {
			if !r.Deleted && r.BoostOf == "" && !truth.Posts[id].Shown {
				changes++
			}
		}
	}
	return posts, changes
}

// calls returns the number of all requests to a server.
func calls(w *mastodontest.World) int { return w.Report().Requests + w.Report().Streams }

// With a stream, posts, edits and deletions of a server's people are fetched within seconds, while
// readings alone take hours. It needs fewer calls, and the result is the same. Readings find the
// boosts, which the stream does not report.
func TestAServersStreamTellsWithinSeconds(t *testing.T) {
	racetest.Skip(t)
	run := func(streams int) (n int) {
		synctest.Test(t, func(t *testing.T) {
			ws, p, end := tuned(t, social.Options{Streams: streams}, mastodontest.Options{Seed: 5, People: 8, Rate: 2})
			w := ws[0]
			p.start()
			p.seed(residents(t, w)...)
			time.Sleep(8 * time.Hour)
			late, before := 0, calls(w)
			for range 14 {
				time.Sleep(2 * time.Hour)
				posts, changes := p.untold(w.Truth(), time.Time{}, 30*time.Second)
				late += posts + changes
			}
			posts, tombstones := p.sameAsTruth(w.Truth(), time.Now().Add(-25*time.Hour))
			n = calls(w) - before
			r := w.Report()
			t.Logf("%d streams: %d late, %d posts, %d tombstones, %d calls in 28 hours, %+v", streams, late, posts,
				tombstones, n, p.src.Streams())
			if (streams > 0) != (late == 0) || posts < 100 || streams > 0 && (tombstones == 0 || r.Streams != 1) {
				t.Errorf("%d streams: %d late, %d posts, %d tombstones, %d connections", streams, late, posts,
					tombstones, r.Streams)
			}
			p.end()
			end()
		})
		return n
	}
	if plain, streamed := run(0), run(1); streamed >= plain {
		t.Errorf("%d calls, without a stream %d", streamed, plain)
	}
}

// A bad stream costs no more than a few attempts to connect. Readings find everything.
func TestAServersStreamThatLies(t *testing.T) {
	racetest.Skip(t)
	server := mastodontest.Options{Seed: 5, People: 8, Remote: -1, Rate: 1}
	plain := 0
	synctest.Test(t, func(t *testing.T) {
		ws, p, end := tuned(t, social.Options{}, server)
		p.start()
		p.seed(residents(t, ws[0])...)
		time.Sleep(24 * time.Hour)
		plain = calls(ws[0])
		p.end()
		end()
	})
	for name, c := range map[string]struct {
		lies        mastodontest.Lies
		connections int
		tells       bool // the stream still reports posts
	}{
		"silent":  {mastodontest.Lies{StreamSilent: true}, 40, false},
		"garbage": {mastodontest.Lies{StreamGarbage: true}, 1, true},
		"repeats": {mastodontest.Lies{StreamRepeats: true}, 1, true},
		"replays": {mastodontest.Lies{StreamReplays: true}, 1, true},
		"drops":   {mastodontest.Lies{StreamDrops: 2}, 1, false},
		"breaks":  {mastodontest.Lies{StreamBreaks: 3}, 40, false},
		"huge":    {mastodontest.Lies{StreamHuge: 2 << 20}, 60, false},
		"others":  {mastodontest.Lies{StreamAs: "n.test"}, 1, false},
		"down":    {mastodontest.Lies{StreamRefuses: 503}, 40, false},
		"chatter": {mastodontest.Lies{StreamChatter: 64 << 10}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := server
				o.Lies = c.lies
				ws, p, end := tuned(t, social.Options{Streams: 1}, o)
				w := ws[0]
				p.start()
				p.seed(residents(t, w)...)
				time.Sleep(24 * time.Hour)
				posts, tombstones := p.sameAsTruth(w.Truth(), time.Now().Add(-25*time.Hour))
				n, r := calls(w), w.Report()
				if late, changes := p.untold(w.Truth(), time.Time{}, 30*time.Second); c.tells && late+changes > 0 {
					t.Errorf("%d posts and %d changes that were told are not there", late, changes)
				}
				t.Logf("%d calls, %d without a stream; %d posts, %d tombstones, %+v", n, plain, posts, tombstones,
					p.src.Streams())
				if n > plain*11/10+r.Streams || c.lies.StreamRefuses > 0 && r.Requests < plain*9/10 ||
					r.Streams > c.connections || r.Streams == 0 || p.src.Streams()[0].Connects != int64(r.Streams) {
					t.Errorf("%d calls, %d without a stream, %d connections", n, plain, r.Streams)
				}
				p.end()
				end()
			})
		})
	}
}

// An event that is repeated undoes neither an edit nor a deletion.
func TestAServersStreamThatReplays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ws, p, end := tuned(t, social.Options{Streams: 1, Least: 23 * time.Hour},
			mastodontest.Options{Seed: 7, People: 4, Remote: -1, Quiet: true, Rate: -1,
				Lies: mastodontest.Lies{StreamReplays: true}})
		w := ws[0]
		who := slices.DeleteFunc(w.Users(), func(u string) bool {
			return wishes(w.Truth().Accounts[u]) ||
				w.Truth().Accounts[u].NoIndex
		})[0]
		k := accountKey(t, who)
		p.start()
		p.seed(k)
		time.Sleep(time.Minute)
		step := func(do func() error) {
			if err := do(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Second)
		}
		var id string
		step(func() (err error) { id, err = w.Post(who, "bom dia"); return err })
		step(func() error { return w.Edit(id, "boa tarde") })
		other := func() error { _, err := w.Post(who, "outra"); return err }
		step(other)
		if r := p.posts(k)[id]; r.Text != "boa tarde" || len(r.Edits) != 1 {
			t.Errorf("after an old version: %+v", r)
		}
		step(func() error { return w.Edit(id, "boa noite") })
		step(func() error { return w.Delete(id) })
		step(other)
		if r := p.posts(k)[id]; !r.Deleted || len(p.posts(k)) != 3 || p.src.Streams()[0].Events != 10 {
			t.Errorf("after old versions: %+v; %d posts, %+v", r, len(p.posts(k)), p.src.Streams())
		}
		p.end()
		end()
	})
}

// A server that refuses its stream without a token, or has no stream, is asked once a day, also
// across restarts. A peer with a token asks at once.
func TestAServerThatRefusesItsStream(t *testing.T) {
	for name, lies := range map[string]mastodontest.Lies{
		"token": {StreamToken: true}, "closed": {StreamRefuses: 403}, "none": {StreamRefuses: 404},
		"unacceptable": {StreamRefuses: 406}, "page": {StreamHTML: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ws, p, end := tuned(t, social.Options{Streams: 4}, mastodontest.Options{Seed: 5, People: 4, Remote: -1,
					Lies: lies, Tokens: map[string]string{"s3cret": "isla0"}})
				w := ws[0]
				p.start()
				p.seed(residents(t, w)...)
				for day := 1; day <= 2; day++ {
					for range 3 {
						time.Sleep(7 * time.Hour)
						p.crash()
					}
					time.Sleep(3 * time.Hour)
					if n := w.Report().Streams; n > day {
						t.Fatalf("asked %d times in %d days", n, day)
					}
				}
				time.Sleep(2 * time.Hour) // it has been asked for the third time
				if s := p.src.Streams(); len(s) != 1 || s[0].Why == "" || !s[0].Since.IsZero() || s[0].Accounts != 0 {
					t.Errorf("%+v", s)
				}
				asked := w.Report().Streams
				p.stop()
				_ = p.store.Close()
				p.withToken("m.test")
				p.start()
				time.Sleep(time.Minute)
				is := p.src.Streams()
				if w.Report().Streams != asked+1 || len(is) != 1 ||
					(name == "token") != (!is[0].Since.IsZero() && w.Report().Readers == 1) {
					t.Errorf("with a token: %d connections, %+v", w.Report().Streams-asked, is)
				}
				p.end()
				end()
			})
		})
	}
}

// withToken gives p a token for its next start.
func (p *peer) withToken(server string) {
	p.t.Helper()
	c, err := service.NewCredential("isla", "s3cret")
	if err != nil {
		p.t.Fatal(err)
	}
	p.o.Tokens = []social.Token{{Server: server, Credential: c}}
}

// The first answer of a server says what is left of its limits, so no other request is sent before
// it arrives. After that the stream is read.
func TestStreamBesideAFirstCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := mastodontest.Options{Seed: 5, People: 4, Remote: -1, Quiet: true, Rate: -1}
		of.Tokens = map[string]string{"s3cret": "isla0"}
		ws, p, end := tunedSlowly(t, 15*time.Second, social.Options{Streams: 1}, of)
		p.start()
		p.seed(residents(t, ws[0])...)
		time.Sleep(time.Hour)
		p.stop()
		_ = p.store.Close()
		time.Sleep(48 * time.Hour) // all are due at the start
		p.withToken("m.test")
		p.start()
		time.Sleep(time.Minute)
		if s := p.src.Streams(); len(s) != 1 || s[0].Since.IsZero() || ws[0].Report().Readers != 1 {
			t.Errorf("a minute after the first call: %+v", s)
		}
		p.end()
		end()
	})
}

// The streams of two servers are both read, or only the one with more accounts. A server is not
// believed about accounts or posts of the other, although both use some of the same ids. A peer
// that loses its slices gets no more events, and gets them again when the slices come back.
func TestStreamsOfTwoServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quiet := mastodontest.Options{Seed: 7, People: 6, Remote: -1, Quiet: true, Rate: -1}
		other := quiet
		other.Domain = "n.test"
		ws, p, end := tuned(t, social.Options{Streams: 2, Least: 23 * time.Hour}, quiet, other)
		m, n := ws[0], ws[1]
		user := func(i int) string {
			for _, u := range m.Users() {
				if a := m.Truth().Accounts[u]; !wishes(a) && !a.NoIndex {
					if i--; i < 0 {
						return strings.TrimSuffix(u, "@m.test")
					}
				}
			}
			t.Fatal("too few people")
			return ""
		}
		who := user(0)
		post := func(w *mastodontest.World, text string) string {
			id, err := w.Post(who+"@"+w.Domain(), text)
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		same := post(m, "igual")
		if id := post(n, "igual"); id != same {
			t.Fatalf("%s and %s", same, id)
		}
		p.start()
		p.seed(residents(t, m)...)
		p.seed(accountKey(t, who+"@n.test"), accountKey(t, user(1)+"@n.test"))
		time.Sleep(time.Minute)
		had := func(w *mastodontest.World) map[string]store.Record { return p.posts(accountKey(t, who+"@"+w.Domain())) }
		for _, w := range ws {
			id := post(w, "de "+w.Domain())
			time.Sleep(10 * time.Second)
			if had(w)[id].Text != "de "+w.Domain() {
				t.Errorf("%s: %+v; %+v", w.Domain(), had(w)[id], p.src.Streams())
			}
		}
		if err := m.Delete(same); err != nil {
			t.Fatal(err)
		}
		m.Lie(func(l *mastodontest.Lies) { l.StreamAs = "n.test" })
		lie := post(m, "mentira")
		time.Sleep(10 * time.Second)
		if a, b := had(m), had(n); !a[same].Deleted || b[same].Deleted || b[lie].Post != "" || a[lie].Post != "" {
			t.Errorf("%+v, %+v", a, b)
		}
		p.crawler.SetSlices(nil)
		time.Sleep(time.Minute)
		if a, b := m.Report().Readers, n.Report().Readers; a+b != 0 || len(p.src.Streams()) != 0 {
			t.Errorf("without slices %d and %d connections; %+v", a, b, p.src.Streams())
		}
		p.crawler.SetSlices(p.store.Charter().Slices())
		time.Sleep(time.Minute)
		if a, b := m.Report().Readers, n.Report().Readers; a != 1 || b != 1 {
			t.Errorf("with slices again %d and %d connections; %+v", a, b, p.src.Streams())
		}
		p.stop()
		_ = p.store.Close()
		p.o.Streams = 1
		p.start()
		time.Sleep(time.Minute)
		if a, b, is := m.Report().Readers, n.Report().Readers, p.src.Streams(); a != 1 || b != 0 || len(is) != 2 ||
			is[1].Why == "" {
			t.Errorf("one stream: %d and %d connections; %+v", a, b, is)
		}
		p.end()
		end()
	})
}

// Posts made while there is no connection, or no peer, are fetched as soon as without a stream.
// This holds although accounts with a stream are read a quarter as often.
func TestAServersStreamThatIsMissed(t *testing.T) {
	for _, how := range []string{"connection", "peer"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ws, p, end := tuned(t, social.Options{Streams: 1, Least: time.Hour},
					mastodontest.Options{Seed: 7, People: 4, Remote: -1, Quiet: true, Rate: -1})
				w := ws[0]
				who := slices.DeleteFunc(w.Users(), func(u string) bool { return wishes(w.Truth().Accounts[u]) })[0]
				k := accountKey(t, who)
				post := func() string {
					id, err := w.Post(who, "bom dia")
					if err != nil {
						t.Fatal(err)
					}
					return id
				}
				post()
				p.start()
				p.seed(k)
				next := func() time.Duration {
					d, err := p.store.Queue.DueOf(k)
					if err != nil {
						t.Fatal(err)
					}
					return time.Until(d.At)
				}
				hours := 0
				for ; hours < 24 && next() < 3*time.Hour; hours++ {
					post()
					time.Sleep(time.Hour)
				}
				if next() < 3*time.Hour {
					t.Fatalf("read again in %s after %d hours", next(), hours)
				}
				var missed string
				if how == "peer" {
					p.stop()
					missed = post()
					_ = p.store.Close()
					p.start()
				} else {
					w.Lie(func(l *mastodontest.Lies) { l.StreamBreaks = 1 })
					missed = post()
					time.Sleep(time.Minute)
					w.Lie(func(l *mastodontest.Lies) { l.StreamBreaks = 0 })
				}
				time.Sleep(70 * time.Minute)
				if p.posts(k)[missed].Post == "" || w.Report().Readers != 1 {
					t.Errorf("%s is not there; %d connections, read again in %s", missed, w.Report().Readers, next())
				}
				p.end()
				end()
			})
		})
	}
}
