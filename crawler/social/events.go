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

// trustedAfter is after how many readings in a row, of which the stream had told all, it is believed.
const trustedAfter = 2

// listening takes what streams said of an account into the batch of a fetch.
type listening struct {
	*parts
	b     *fold.Batch
	api   account.API
	due   store.Due
	key   partition.Key
	now   time.Time
	alone bool // nobody is asked

	foretold, untold int // posts that were not known before the reading, that a stream had told, and had not
}

// applyEvents takes what streams said of the account. It says whether the visit ends with that, as it is not yet time
// to ask its server.
func (l *listening) applyEvents() (ends bool, err error) {
	k := l.key
	if !l.subscriptions.Open() || k.Kind() != partition.KindAccount || l.b.State.Poll.IsZero() {
		return false, nil
	}
	some, last, more, plain, lost := l.subscriptions.Events(k)
	look := false
	for _, e := range some {
		if l.b.Told = e.At; l.b.Told.After(l.now) {
			l.b.Told = l.now
		}
		if err := l.apply(e); err != nil {
			return false, &calls.StoreError{Err: err}
		}
		look = look || e.Ends
	}
	l.b.Told = time.Time{}
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
	if look && l.now.Sub(l.b.State.Looked) >= l.o.Least { // and so no stream has it asked for more often
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

// apply takes in one event.
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
	if p, ok := l.api.Told(e.Post, had, later); ok {
		l.b.Take(p)
	}
	return nil
}

// news says whether what a stream tells of a post is later than what is kept of it, and what that is.
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
	return &r, l.b.Told.After(r.FetchedAt), nil
}

// proved holds the posts that a reading found new against what the stream had told.
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
		case err == nil || l.b.ToldOf[r.Post]:
			l.foretold++
		case errors.Is(err, store.ErrNotExist):
			l.untold++
		default:
			return &calls.StoreError{Err: err}
		}
	}
	return nil
}

// trust is after a whole reading.
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

// listen tells the subscriptions how the account stands after this visit.
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

// trusted says whether the stream need be held against readings only now and then.
func (l *listening) trusted() bool {
	return l.b.State.Trust >= trustedAfter && !l.subscriptions.Since(l.key).IsZero()
}
