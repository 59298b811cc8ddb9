package social

import (
	"errors"
	"slices"
	"time"

	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/crawler/social/calls"
	"github.com/echo-node/echo-node/crawler/social/fold"
	"github.com/echo-node/echo-node/crawler/social/stream"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// trustedAfter is after how many readings in a row that the stream had fully reported it is
// trusted.
const trustedAfter = 2

// listening applies the events of streams about an account to the batch of a fetch.
type listening struct {
	*parts
	b     *fold.Batch
	api   account.API
	due   store.Due
	key   partition.Key
	now   time.Time
	alone bool // no call is made

	foretold, untold int // posts that a reading found new and the stream had reported, or not
}

// applyEvents applies the waiting events of the account. ends says that the visit ends with that,
// as it is not yet time to ask the server.
func (l *listening) applyEvents() (ends bool, err error) {
	k := l.key
	if !l.subscriptions.Open() || k.Kind() != partition.KindAccount || l.b.State.Poll.IsZero() {
		return false, nil
	}
	some, last, more, plain, lost := l.subscriptions.Events(k)
	look := false
	for _, e := range some {
		if l.b.Streamed = e.At; l.b.Streamed.After(l.now) {
			l.b.Streamed = l.now
		}
		if err := l.apply(e); err != nil {
			return false, &calls.StoreError{Err: err}
		}
		look = look || e.Ends
	}
	l.b.Streamed = time.Time{}
	if plain && !l.b.State.Plain.IsZero() {
		l.b.State.Poll, l.b.State.Plain = l.b.State.Plain, time.Time{}
	}
	if last > 0 || plain || lost > 0 {
		l.b.Kept = func() { l.subscriptions.Kept(k, last, plain, lost) }
	}
	if lost > 0 {
		l.b.Gap(store.GapIncomplete,
			"what a stream told for a while was not had: what was edited or deleted of older posts may not be known")
	}
	// at most once in Least, whatever a stream says
	if look && l.now.Sub(l.b.State.Looked) >= l.o.Least {
		l.b.State.Profiled = time.Time{}
		return false, nil
	}
	if !l.b.State.Poll.After(l.now) && !more {
		return false, nil
	}
	l.b.Next = store.Next{State: store.StateDone, At: l.b.State.Poll, Reason: l.due.Reason}
	if more {
		l.b.Next.At = l.now
	}
	l.alone = true
	return true, nil
}

// apply applies one event.
func (l *listening) apply(e stream.Event) error {
	if e.Post == nil && !e.Gone {
		return nil
	}
	had, later, err := l.news(e.URI)
	if err != nil {
		return err
	}
	if e.Gone {
		if had != nil && !had.Deleted && later {
			l.b.Unsaid(e.URI, e.ID)
		}
		return nil
	}
	if p, ok := l.api.FromStream(e.Post, had, later); ok {
		l.b.Take(p)
	}
	return nil
}

// news returns the stored post that an event is about, nil if there is none. later says that the
// event is newer than it.
func (l *listening) news(uri string) (had *store.Record, later bool, err error) {
	for i := range slices.Backward(l.b.Posts) {
		if l.b.Posts[i].Post == uri {
			return &l.b.Posts[i], true, nil
		}
	}
	r, _, err := l.o.Store.Accounts.Post(l.key, uri)
	if errors.Is(err, store.ErrNotExist) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	return &r, l.b.Streamed.After(r.FetchedAt), nil
}

// proved counts which posts that a reading found new the stream had reported.
func (l *listening) proved() error {
	on := l.subscriptions.Since(l.key)
	if on.IsZero() {
		return nil
	}
	for _, i := range l.b.Novel {
		r := &l.b.Posts[i]
		if r.PublishedAt == nil || !r.PublishedAt.After(on) || r.PublishedAt.After(l.now.Add(-time.Minute)) {
			continue
		}
		_, _, err := l.o.Store.Accounts.Post(l.key, r.Post)
		switch {
		case err == nil || l.b.StreamedPosts[r.Post]:
			l.foretold++
		case errors.Is(err, store.ErrNotExist):
			l.untold++
		default:
			return &calls.StoreError{Err: err}
		}
	}
	return nil
}

// trust updates the trust in the stream after a complete reading.
func (l *listening) trust() error {
	if err := l.proved(); err != nil {
		return err
	}
	switch {
	case l.untold > 0:
		l.b.State.Trust = 0
	case l.foretold > 0:
		l.b.State.Trust = min(l.b.State.Trust+1, trustedAfter)
	}
	return nil
}

// listen updates the subscription of the account after this visit.
func (l *listening) listen() error {
	k := l.key
	if !l.subscriptions.Open() || k.Kind() != partition.KindAccount || l.alone {
		return nil
	}
	l.posted.Read(k, &l.b.State, l.b.Posts)
	if l.b.State.Poll.IsZero() {
		l.subscriptions.Leave(k)
		return nil
	}
	sl, err := l.o.Store.Archive.Where(k)
	if err != nil {
		return err
	}
	l.b.State.Poll = l.b.Next.At
	l.subscriptions.Join(k, sl, &l.b.State)
	return nil
}

// trusted reports whether readings need to check the stream only now and then.
func (l *listening) trusted() bool {
	return l.b.State.Trust >= trustedAfter && !l.subscriptions.Since(l.key).IsZero()
}
