package stream

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/crawler/social/calls"
	"github.com/echo-node/echo-node/partition"
)

// Events of a server that no visit takes fill only that server's own room. No other stream waits
// for them.
func TestASiteFillsItsOwnRoom(t *testing.T) {
	e := newSubscriptions(true)
	bad, good := account.KeyOf("mastodon:a@bad.test"), account.KeyOf("mastodon:a@good.test")
	for _, k := range []partition.Key{bad, good} {
		e.Join(k, 0, &account.State{})
	}
	ctx, cancel := context.WithCancel(t.Context())
	w := Event{came: time.Now(), size: eventWeight}
	for range maxEventsOf / eventWeight {
		if err := e.receive(ctx, bad, w); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.receive(ctx, good, w); err != nil {
		t.Fatal(err)
	}
	full := make(chan error, 1)
	go func() { full <- e.receive(ctx, bad, w) }()
	cancel()
	if err := <-full; !errors.Is(err, context.Canceled) {
		t.Errorf("a word for which there is no room: %v", err)
	}
	e.Leave(bad)
	if e.sum != eventWeight || e.size[good.Site()] != eventWeight || len(e.size) != 1 {
		t.Errorf("%d bytes wait, by site %v", e.sum, e.size)
	}
}

// An account that must be read as often as without a stream keeps that mark until a visit applies
// it. The mark does not expire and is not counted as a lost event.
func TestPlainReadingsAreNotForgotten(t *testing.T) {
	e := newSubscriptions(true)
	k, now := account.KeyOf("mastodon:a@m.test"), time.Now()
	e.Join(k, 0, &account.State{})
	e.tells(k.Site(), now)
	e.Join(k, 0, &account.State{Plain: now.Add(time.Hour)})
	if len(e.reschedule(now)) != 0 {
		t.Error("a visit is asked for while the stream tells")
	}
	e.broke(k.Site())
	for range 3 {
		if now = now.Add(eventsWait + time.Minute); len(e.reschedule(now)) != 1 {
			t.Error("no visit is asked for")
		}
	}
	if _, _, _, plain, lost := e.Events(k); !plain || lost != 0 {
		t.Errorf("plain %t, %d lost", plain, lost)
	}
	e.Kept(k, 0, true, 0)
	if _, _, _, plain, _ := e.Events(k); plain || len(e.reschedule(now.Add(time.Hour))) != 0 {
		t.Error("it is said again")
	}
}

// A limit that holds for long ends a connection, however short the intervals are in which it is
// checked.
func TestLimitsThatHoldEndAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, piece := range []time.Duration{time.Second, time.Minute} {
			for held, want := range map[time.Duration]error{30 * time.Second: nil, time.Hour: errHeld} {
				until := time.Now().Add(held)
				o := Peer{Hold: func() time.Duration { return min(piece, max(0, time.Until(until))) }}
				if err := o.ready(t.Context()); !errors.Is(err, want) {
					t.Errorf("held for %s, in pieces of %s: %v", held, piece, err)
				}
			}
		}
	})
}

// The bytes of a stream count against a server once. A connection that fails a day later is not
// refused for them.
func TestTooMuchIsSaidOnce(t *testing.T) {
	of := &shared{o: Options{Calls: &calls.Caller{Now: time.Now}}, subscriptions: newSubscriptions(true)}
	x := &local{stream: stream{s: of, of: "mastodon:m.test"}}
	x.came(maxHourly)
	if err := x.tooMuch(time.Now()); err != nil {
		t.Errorf("%d bytes: %v", maxHourly, err)
	}
	x.came(1)
	var no *refusal
	if err := x.tooMuch(time.Now()); !errors.As(err, &no) {
		t.Errorf("a byte more: %v", err)
	}
	if err := x.tooMuch(time.Now()); err != nil {
		t.Errorf("it is said again: %v", err)
	}
}
