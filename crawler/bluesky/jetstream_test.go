package bluesky

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// dial is a Dial for tests, whose servers are on loopback.
func dial(ctx context.Context, address string) (Socket, error) {
	conn, _, err := websocket.DefaultDialer.DialContext(ctx, address, nil)
	return conn, err
}

var errEnough = errors.New("enough")

// All events are delivered once, over connections that break anywhere and a stream that sends every
// event twice. Live events arrive, and silence ends a connection.
func TestJetstream(t *testing.T) {
	p := visit(t, world{Seed: 11, People: 12, Rate: 3, Start: time.Date(2026, 1, 29, 0, 0, 0, 0, time.UTC),
		Lies: lies{StreamRepeats: true}})
	srv := httptest.NewServer(p.w.Handler())
	defer srv.Close()
	o := StreamOptions{Address: "ws" + strings.TrimPrefix(srv.URL, "http") + "/subscribe", Dial: dial}
	s, err := NewStream(o, 1)
	if err != nil {
		t.Fatal(err)
	}
	now, kept, had := p.clock.Now().UnixMicro(), map[string]Post{}, map[string]int{}
	note := func(e Event) {
		had[fmt.Sprint(e.Kind, e.URI, e.Rev, e.DID)]++
		switch {
		case e.Kind == Deleted:
			delete(kept, e.URI)
		case e.Post != nil:
			kept[e.URI] = *e.Post
		}
	}
	truth := p.w.Truth()
	want := 0
	for _, q := range truth.Posts {
		if q.Kept {
			want++
		}
	}
	for rounds := 0; ; rounds++ {
		n := 0
		_, err := s.Run(t.Context(), func(e Event) error {
			note(e)
			if n++; n == 40 { // the connection breaks
				return errEnough
			}
			if len(kept) == want && e.At > now-int64(time.Hour/time.Microsecond) {
				return context.Canceled
			}
			return nil
		})
		if len(kept) >= want && rounds > 2 {
			break
		}
		if !errors.Is(err, errEnough) || rounds > 1000 {
			t.Fatalf("round %d, %d of %d: %v", rounds, len(kept), want, err)
		}
		if s, err = NewStream(o, s.Cursor()); err != nil { // the process was killed
			t.Fatal(err)
		}
	}
	for id, q := range truth.Posts {
		if got, ok := kept[id]; q.Kept && (!ok || got.CID != q.CID || got.Text != q.Text) {
			t.Errorf("%+v\nwant %+v", got, q)
		}
	}
	ana := p.w.IDs()[0]
	o.DIDs, o.Collections = []string{ana}, []string{Posts}
	s, err = NewStream(o, 0)
	if err != nil {
		t.Fatal(err)
	}
	made := make(chan string, 1)
	go func() {
		p.clock.Add(time.Hour)
		id, _ := p.w.Post(p.acct(ana), "olá")
		made <- id
	}()
	id := <-made
	// the event may be older or newer than the connection
	s.cursor = p.clock.Now().Add(-time.Second).UnixMicro()
	if _, err := s.Run(t.Context(), func(e Event) error {
		if e.URI == id && e.Kind == Created && e.Post.Text == "olá" {
			return errEnough
		}
		return nil
	}); !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	p.w.Lie(func(l *lies) { l.StreamSilent = true })
	o.Idle = 20 * time.Millisecond
	if s, err = NewStream(o, s.Cursor()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context(), func(Event) error { return nil }); !errors.Is(err, ErrIdle) {
		t.Errorf("a silent stream: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	o.Idle = time.Hour
	if s, err = NewStream(o, s.Cursor()); err != nil {
		t.Fatal(err)
	}
	over := make(chan error)
	go func() {
		_, err := s.Run(ctx, func(Event) error { return nil })
		over <- err
	}()
	cancel()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("a stream that was left: %v", err)
	}
	for _, bad := range []StreamOptions{{}, {Address: "https://x", Dial: dial}, {Address: "ws://u@x", Dial: dial},
		{Address: "wss://x"}} {
		if _, err := NewStream(bad, 0); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}

// With more accounts than fit into a URL, a stream works as with few, and has no events of other
// accounts. A later added account also delivers earlier events, and no event is delivered twice.
func TestAStreamOfManyAccounts(t *testing.T) {
	p := visit(t, world{Seed: 11, People: 80, Rate: 3, Start: time.Date(2026, 1, 29, 0, 0, 0, 0, time.UTC)})
	srv := httptest.NewServer(p.w.Handler())
	defer srv.Close()
	ids := p.w.IDs()
	s, err := NewStream(StreamOptions{Address: "ws" + strings.TrimPrefix(srv.URL, "http") + "/subscribe", Dial: dial},
		0)
	if err != nil {
		t.Fatal(err)
	}
	had := map[string]int{}
	read := func(of []string) {
		t.Helper()
		if err := s.Follow(of, 1); err != nil {
			t.Fatal(err)
		}
		p.clock.Add(time.Second)
		last, err := p.w.Post(p.acct(of[0]), "fim")
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Run(t.Context(), func(e Event) error {
			if !slices.Contains(of, e.DID) {
				t.Errorf("an event of %s, who is not followed", e.DID)
			}
			if e.URI == last {
				return errEnough
			}
			had[fmt.Sprint(e.DID, e.Kind, e.URI, e.Rev, e.At)]++
			return nil
		})
		if !errors.Is(err, errEnough) {
			t.Fatal(err)
		}
	}
	read(ids[:60])
	few := len(had)
	read(ids)
	for id, n := range had {
		if n != 1 {
			t.Errorf("%s came %d times", id, n)
		}
	}
	if few == 0 || len(had) <= few {
		t.Errorf("%d events of 60, %d of 80", few, len(had))
	}
	if err := s.Follow(make([]string, MaxDIDs+1), 0); err == nil {
		t.Error("more than MaxDIDs: no error")
	}
}
