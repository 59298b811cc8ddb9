package social

import (
	"context"
	"errors"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/crawler/social/bluesky"
	"github.com/echo-node/echo-node/crawler/social/calls"
	"github.com/echo-node/echo-node/crawler/social/fold"
	"github.com/echo-node/echo-node/crawler/social/follow"
	"github.com/echo-node/echo-node/crawler/social/mastodon"
	"github.com/echo-node/echo-node/crawler/social/pace"
	"github.com/echo-node/echo-node/crawler/social/rounds"
	"github.com/echo-node/echo-node/crawler/social/stream"
	"github.com/echo-node/echo-node/crawler/social/x"
	"github.com/echo-node/echo-node/crawler/twitter"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// parts are what all fetches of a Source share.
type parts struct {
	o             Options
	calls         *calls.Caller
	servers       *mastodon.Servers
	known         follow.Known
	pace          pace.Pace
	subscriptions *stream.Subscriptions
	posted        *stream.Posted
	ahead         ahead
	shown         rounds.Shown
	retry         fetch.Retry

	// what X accepts; after a start it is learned again, at the cost of one refused call for each
	// thing that X refuses
	dialect twitter.Dialect
}

// visit is one Fetch. It decides what is asked, asks, and adds the answers to its batch.
type visit struct {
	*parts
	t      fetch.Task
	key    partition.Key
	now    time.Time
	before time.Time // time of the visit before this one

	api     account.API
	session *calls.Session
	b       *fold.Batch

	judge  *judging
	events *listening
	look   *lookUp
	round  *rounds.Look

	fresh  bool // the account was looked up in this visit
	judged bool // the verdict came from what is stored: the profile is not asked for
}

// visit starts a Fetch from the stored state of its Key.
func (s *Source) visit(t fetch.Task) *visit {
	v := &visit{parts: &s.parts, t: t, key: t.Due.Key, now: s.o.Now().UTC()}
	st, err := account.DecodeState(t.Checkpoint)
	if err != nil {
		s.o.Logger.Warn("a state is begun anew", "key", v.key, "err", err)
		st = account.State{V: account.StateVersion}
	}
	if v.before = st.Visited; st.Looked.After(v.before) {
		v.before = st.Looked
	}
	v.b = fold.New(v.key, v.now, home(v.key.Site()), st, fold.Options{Grows: s.o.Rules.Grows(),
		Exclude: s.o.Rules.Exclude, Media: s.o.Media})
	v.b.Site = t.Site
	v.session = s.calls.Begin(t, v.now, s.o.Calls, v.b)
	v.api = v.serve()
	v.judge = &judging{parts: v.parts, b: v.b, due: t.Due, key: v.key, now: v.now}
	v.events = &listening{parts: v.parts, b: v.b, api: v.api, due: t.Due, key: v.key, now: v.now}
	v.look = &lookUp{parts: v.parts, b: v.b, api: v.api, t: t, key: v.key, now: v.now}
	v.round = &rounds.Look{Store: s.o.Store, Budgets: s.calls.Budgets, Session: v.session, API: v.api, Batch: v.b,
		Shown: &s.shown, Due: t.Due, Now: v.now, Every: s.o.Round, Least: s.o.Least}
	return v
}

// home returns the address of the server of a site, for people.
func home(site partition.Site) string {
	switch site {
	case "bluesky:":
		return "https://bsky.app/"
	case "twitter:":
		return "https://x.com/"
	}
	return account.Base(string(site)[len("mastodon:"):]) + "/"
}

// serve returns the API of the Key's service.
func (v *visit) serve() account.API {
	of := account.Visit{Key: v.key, State: &v.b.State, Now: v.now}
	switch v.key.Site() {
	case "bluesky:":
		return bluesky.New(of, v.calls, v.session, bluesky.Options{View: v.o.View, Directory: v.o.Directory})
	case "twitter:":
		return x.New(of, v.calls, v.session, x.Options{Base: v.o.X, Dialect: &v.dialect})
	}
	return mastodon.New(of, v.calls, v.session, v.servers)
}

// reading returns the reading of the Key's feeds.
func (v *visit) reading() *reading {
	return &reading{b: v.b, api: v.api, key: v.key, profile: v.o.Profile}
}

// counted reports whether the claimed number of posts changes when the account posts.
func (v *visit) counted() bool { return v.api.Counts(v.b.State.Claimed) }

// Fetch implements crawler.Source.
func (s *Source) Fetch(ctx context.Context, t fetch.Task) (fetch.Result, error) {
	v := s.visit(t)
	var ends bool
	var err error
	v.judged, ends, err = v.judge.reconsider()
	if err == nil && !ends {
		ends, err = v.events.applyEvents()
	}
	if v.b.Wish != "" && err == nil { // the profile in an event says so
		ends, err = true, v.optedMeanwhile()
	}
	if err == nil && v.b.Wish == "" && v.round.Alone() && (ends || !v.subscriptions.Open()) {
		v.events.alone = true
		return v.end(ctx, v.round.RunAlone(ctx, ends))
	}
	if ends && err == nil {
		return v.end(ctx, nil)
	}
	v.b.State.Plain, v.b.State.Barred = time.Time{}, ""
	if err == nil {
		err = v.api.Enter(ctx)
	}
	if err == nil {
		err = v.ask(ctx)
	}
	return v.end(ctx, err)
}

// ask makes the calls that the kind of the Key needs.
func (v *visit) ask(ctx context.Context) error {
	switch v.key.Kind() {
	case partition.KindName:
		return v.name(ctx)
	case partition.KindAccount:
		err := v.account(ctx)
		if lost := v.pace.Curves.Saw(v.key.Site(), v.now, v.b.Made); lost != nil {
			err = errors.Join(err, &calls.StoreError{Err: lost})
		}
		return err
	case partition.KindTag, partition.KindTimeline, partition.KindSearch:
		return v.feed(ctx)
	}
	return v.list(ctx)
}

// optedMeanwhile ends the visit of an account whose posts came with a profile that asks not to be
// collected.
func (v *visit) optedMeanwhile() error {
	v.events.alone = false
	return v.judge.optedMeanwhile()
}

// again ends the visit of an account that is followed. pace decides when the next visit is.
func (v *visit) again() (err error) {
	v.b.Next = store.Next{State: store.StateDone}
	v.b.Next.At, v.b.Next.Reason, err = v.pace.Next(pace.Account{Key: v.key, State: &v.b.State, Now: v.now,
		Before: v.before, Due: v.t.Due.At, Many: v.api.Most() > 1, Counted: v.counted(), Trusted: v.events.trusted()})
	v.b.State.Poll = v.b.Next.At
	if err != nil {
		return &calls.StoreError{Err: err}
	}
	return nil
}
