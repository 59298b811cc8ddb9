package mastodon

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
)

var errEnough = errors.New("enough")

// opener returns an Opener for tests, whose servers are on loopback. It records which tokens were
// sent to which server.
func opener(sent map[string]string) service.Opener {
	hc := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return func(ctx context.Context, r fetch.Request) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL, nil)
		if err != nil {
			return nil, err
		}
		for name, v := range r.Header {
			req.Header.Set(name, v)
		}
		sent[req.Host] = req.Header.Get("Authorization")
		return hc.Do(req)
	}
}

// streamed returns a world served on loopback, and a client of it with that token.
func streamed(t *testing.T, o mastodontest.Options, token string) (*mastodontest.World, *Client) {
	t.Helper()
	o.Start, o.Clock, o.Quiet, o.Rate = time.Now().Add(-time.Hour), time.Now, true, -1
	w, err := mastodontest.New(o)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(w.Handler())
	t.Cleanup(srv.Close)
	to := Options{Base: srv.URL, Domain: w.Domain(), Do: func(context.Context, service.Call) (*fetch.Response,
		error) {
		return nil, errEnough
	}}
	if token != "" {
		if to.Credential, err = service.NewCredential("ana", token); err != nil {
			t.Fatal(err)
		}
	}
	c, err := New(to)
	if err != nil {
		t.Fatal(err)
	}
	return w, c
}

// New, edited and deleted posts arrive in order, with anything in between. A post
// without the hashtag is not in the hashtag's stream.
func TestStream(t *testing.T) {
	for name, lies := range map[string]mastodontest.Lies{"plain": {}, "garbage": {StreamGarbage: true},
		"repeats": {StreamRepeats: true}} {
		for _, tag := range []string{"", "lisboa"} {
			w, c := streamed(t, mastodontest.Options{Seed: 3, People: 4, Lies: lies}, "")
			user := w.Users()[0]
			var first, other string
			begin := func() {
				var err, err2 error
				other, err2 = w.Post(user, "sem etiqueta")
				first, err = w.Post(user, "bom dia", "lisboa")
				if err := errors.Join(err, err2, w.Edit(first, "boa tarde"), w.Delete(first)); err != nil {
					t.Error(err)
				}
			}
			var had []Event
			o := StreamOptions{Tag: tag, Open: func(ctx context.Context, r fetch.Request) (*http.Response, error) {
				resp, err := opener(map[string]string{})(ctx, r)
				begin() // connected: later posts arrive
				return resp, err
			}}
			bad, err := c.Stream(t.Context(), o, func(e Event) error {
				// a repeat
				if n := len(had); n > 0 && had[n-1].Kind == e.Kind && had[n-1].ID == e.ID {
					return nil
				}
				had = append(had, e)
				if e.Kind == Deleted {
					return errEnough
				}
				return nil
			})
			if !errors.Is(err, errEnough) || (bad > 0) != lies.StreamGarbage {
				t.Errorf("%s %q: %d bad, %v", name, tag, bad, err)
			}
			want := []EventKind{Made, Edited, Deleted}
			if tag == "" {
				if want = append([]EventKind{Made}, want...); len(had) > 0 && had[0].ID != other {
					t.Errorf("%s: %+v, want %s first", name, had[0], other)
				}
			}
			if len(had) != len(want) {
				t.Fatalf("%s %q: %d events, want %d", name, tag, len(had), len(want))
			}
			for i, e := range had {
				if e.Kind != want[i] || e.Kind != Deleted && (e.Post == nil || e.Post.ID != e.ID) ||
					(tag != "" || i > 0) && e.ID != first {
					t.Errorf("%s %q: event %d: %+v", name, tag, i, e)
				}
			}
			if last := had[len(had)-2]; last.Post == nil || last.Post.Text != "boa tarde" {
				t.Errorf("%s %q: edited: %+v", name, tag, last.Post)
			}
		}
	}
}

// Each way to end a connection has its error. A token is sent only to its server and is in no
// error.
func TestStreamEnds(t *testing.T) {
	sent := map[string]string{}
	run := func(lies mastodontest.Lies, token string, tokens map[string]string, o StreamOptions) error {
		t.Helper()
		w, c := streamed(t, mastodontest.Options{Seed: 3, People: 4, Lies: lies, Tokens: tokens}, token)
		open := opener(sent)
		o.Open = func(ctx context.Context, r fetch.Request) (*http.Response, error) {
			resp, err := open(ctx, r)
			_, err2 := w.Post(w.Users()[0], "bom dia")
			return resp, errors.Join(err, err2)
		}
		_, err := c.Stream(t.Context(), o, func(Event) error { return errEnough })
		return err
	}
	if err := run(mastodontest.Lies{StreamSilent: true}, "", nil,
		StreamOptions{Idle: 60 * time.Millisecond}); !errors.Is(err, ErrIdle) {
		t.Errorf("silent: %v", err)
	}
	if err := run(mastodontest.Lies{StreamHuge: 1 << 16}, "", nil, StreamOptions{MaxLine: 1 << 12}); !errors.Is(err,
		ErrLine) {
		t.Errorf("a huge line: %v", err)
	}
	if err := run(mastodontest.Lies{StreamHuge: 1 << 16}, "", nil, StreamOptions{MaxEvent: 1 << 12}); !errors.Is(err,
		ErrEvent) {
		t.Errorf("a huge event: %v", err)
	}
	if err := run(mastodontest.Lies{StreamBreaks: 1}, "", nil, StreamOptions{}); !errors.Is(err, io.EOF) &&
		!errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("broken: %v", err)
	}
	if err := run(mastodontest.Lies{}, "s3cret", map[string]string{"s3cret": "ana"}, StreamOptions{}); !errors.Is(err,
		errEnough) {
		t.Errorf("with a token: %v", err)
	}
	err := run(mastodontest.Lies{}, "wr0ng", map[string]string{"s3cret": "ana"}, StreamOptions{})
	if service.WordOf(err) != service.NeedsToken || strings.Contains(err.Error(), "wr0ng") {
		t.Errorf("a wrong token: %v", err)
	}
	if n := len(sent); n == 0 || !strings.Contains(strings.Join(values(sent), " "), "Bearer s3cret") {
		t.Errorf("sent to %d servers: no token", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, c := streamed(t, mastodontest.Options{Seed: 3, People: 4}, "")
	if _, err := c.Stream(ctx, StreamOptions{Open: opener(sent)}, func(Event) error { return nil }); !errors.Is(err,
		context.Canceled) {
		t.Errorf("left: %v", err)
	}
	if _, err := c.Stream(t.Context(), StreamOptions{}, nil); err == nil {
		t.Error("no Open: no error")
	}
}

func values(of map[string]string) (out []string) {
	for _, v := range of {
		out = append(out, v)
	}
	return out
}

// With any input there is no panic, no event without an id, and nothing longer than the limits.
func FuzzEvents(f *testing.F) {
	for _, s := range []string{"event: update\ndata: {\"id\":\"1\",\"account\":{\"id\":\"2\",\"acct\":\"a\"},\"content\":\"<p>x</p>\"}\n\n", "event: delete\ndata: 7\n\n", ":thump\n\n", "data: a\ndata: b\n\n", "event\n\n", "event: status.update\r\ndata:{}\r\n\r\n", "\n\n\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		c := canned(t, "", nil)
		_, err := c.events(strings.NewReader(body), StreamOptions{MaxLine: 4 << 10, MaxEvent: 8 << 10},
			func(e Event) error {
				switch {
				case e.ID == "", e.Kind == Deleted != (e.Post == nil), e.Post != nil && e.Post.ID != e.ID,
					len(e.ID) > service.MaxID:
					t.Errorf("%+v", e)
				}
				return nil
			})
		if err == nil {
			t.Error("a stream that ended, and no error")
		}
	})
}
