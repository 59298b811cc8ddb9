package stream

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// A stream reports posts as they are made, changed and deleted. An event is one report about one
// account. It waits in the memory of the peer that owns the account. The peer visits the account
// now (Peer.Reschedule). That visit applies the event without a call, and commits it as every visit
// does: at the slice's owner, in one batch with the Key (I3). Each peer subscribes to its own
// accounts only, so no event goes from peer to peer. A stream costs one call, which connects.
//
// A crash loses the events that no visit has applied. A stream with a cursor is read again from
// before the first of them. It repeats events that are older than the stored posts; these are left
// out. A stream without a cursor misses posts while there is no connection. Readings find them, and
// are then as frequent as without a stream (Subscriptions.broke).
//
// Nothing else depends on a stream. Accounts are still read. If the stream reported all that the
// last readings found, they are read a quarter as often (State.Trust). So the next reading shows
// that a stream is silent, drops or repeats posts. A stream that makes posts up is believed: the
// operator or the account chose that server.

// Peer has the functions that the peer gives to Listen.
type Peer struct {
	Slices func() []partition.Slice // the slices in which it may fetch now
	// schedules Keys in state done for a visit now; an error ends Listen
	Reschedule func(sl partition.Slice, keys []partition.Key) error
	Hold       func() time.Duration // for how long nothing may be received; 0 = it may
	Received   func(bytes int64)
}

// errHeld ends a connection that would be silent longer than streamIdle.
var errHeld = errors.New("social: the volunteer's limits let nothing be received")

// ready waits until the volunteer's limits allow to receive again.
func (o Peer) ready(ctx context.Context) error {
	waited := time.Duration(0)
	for wait := o.Hold(); wait > 0; wait = o.Hold() {
		if waited += wait; waited > streamIdle {
			return errHeld
		}
		if err := fetch.Sleep(ctx, wait); err != nil {
			return err
		}
	}
	return nil
}

// Limits of subscriptions.
const (
	// bytes of waiting events of all accounts of a site; the stream is read again when there is
	// room
	maxEventsOf = 4 << 20
	maxEvents   = 128 << 20 // bytes for all sites; more than the default streams need
	eventWeight = 512       // of an event, beside its text
	eventsOnce  = 200       // events that one visit applies
	// events older than this are dropped, because the account cannot be visited
	eventsWait = 10 * time.Minute
	// time for which events are collected before visits are scheduled
	batch           = time.Second
	rescheduleAgain = time.Minute // an account that was not visited is rescheduled after this
	// the shortest time between two reschedules, as each visit is a commit
	rescheduleLeast = 5 * time.Second
	maintainEvery   = 10 * time.Second // how often slices and waiting events are checked
)

// Event is a report of a stream about an account: a post, a deleted post, or a possible change of
// the account itself.
type Event struct {
	At   time.Time // time given by the stream
	Post any       // of the type of the service's client; nil = none
	Gone bool      // the post was deleted
	URI  string    // of the post
	ID   string    // the deleted post's id in the Mark
	Ends bool      // the account must be looked up

	seq  uint64
	came time.Time // by the peer's clock
	size int
}

// tells reports whether e has anything to apply.
func (e *Event) tells() bool { return e.Post != nil || e.Gone || e.Ends }

// subscription is an account that this peer subscribes to.
type subscription struct {
	site   partition.Site
	slice  partition.Slice
	since  time.Time // time of the last complete reading
	seldom bool      // it is read less often, as a stream without a cursor reports it
	// it must be read as often as without a stream, and no visit has applied that yet
	plain       bool
	asked       bool      // the present connection, or else the last one, includes it
	on          time.Time // since when all its events arrive here; zero = they do not now
	lost        int       // how often events were lost without a visit recording it
	events      []Event
	rescheduled time.Time
}

// Subscriptions are the accounts that this peer subscribes to, and their waiting events. Safe for
// concurrent use.
type Subscriptions struct {
	mu     sync.Mutex
	open   bool // some stream is read
	sites  map[partition.Site]map[partition.Key]*subscription
	size   map[partition.Site]int
	sum    int // of size
	seq    uint64
	lost   map[partition.Site]int64
	room   chan struct{} // closed when events are removed
	spoken chan struct{} // a hint that events came
}

func newSubscriptions(open bool) *Subscriptions {
	return &Subscriptions{open: open, sites: map[partition.Site]map[partition.Key]*subscription{},
		size: map[partition.Site]int{}, lost: map[partition.Site]int64{}, room: make(chan struct{}),
		spoken: make(chan struct{}, 1)}
}

// Open reports whether any stream is read.
func (e *Subscriptions) Open() bool { return e.open }

// of returns the subscription to k, nil if there is none. The caller holds mu.
func (e *Subscriptions) of(k partition.Key) *subscription { return e.sites[k.Site()][k] }

// Join subscribes to k, whose state is st now.
func (e *Subscriptions) Join(k partition.Key, sl partition.Slice, st *account.State) {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.of(k)
	if h == nil {
		site := k.Site()
		h = &subscription{site: site}
		if e.sites[site] == nil {
			e.sites[site] = map[partition.Key]*subscription{}
		}
		e.sites[site][k] = h
	}
	h.slice, h.since = sl, st.Visited
	h.plain = false
	// a stream with a cursor misses nothing
	if h.seldom = !st.Plain.IsZero() && k.Service() == "mastodon"; h.on.IsZero() {
		e.forgetSince(h)
	}
}

// Leave ends the subscription to k.
func (e *Subscriptions) Leave(k partition.Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drop(k)
}

// drop ends a subscription. The caller holds mu.
func (e *Subscriptions) drop(k partition.Key) {
	if h := e.of(k); h != nil {
		e.forget(h, len(h.events))
		if delete(e.sites[h.site], k); len(e.sites[h.site]) == 0 {
			delete(e.sites, h.site)
			delete(e.size, h.site)
		}
	}
}

// forget removes the first n events of h.
func (e *Subscriptions) forget(h *subscription, n int) {
	for _, w := range h.events[:n] {
		e.size[h.site] -= w.size
		e.sum -= w.size
	}
	if h.events = h.events[n:]; n > 0 {
		close(e.room)
		e.room = make(chan struct{})
	}
}

// receive adds an event of k as soon as there is room. It drops the event if there is no
// subscription to k.
func (e *Subscriptions) receive(ctx context.Context, k partition.Key, w Event) error {
	for {
		e.mu.Lock()
		h, room := e.of(k), e.room
		fits := h != nil && (e.size[h.site] == 0 || e.size[h.site]+w.size <= maxEventsOf && e.sum+w.size <= maxEvents)
		if fits {
			e.add(h, w)
		}
		e.mu.Unlock()
		if h == nil || fits {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-room:
		}
	}
}

// add appends w to the waiting events.
func (e *Subscriptions) add(h *subscription, w Event) {
	e.seq++
	w.seq = e.seq
	h.events = append(h.events, w)
	e.size[h.site] += w.size
	e.sum += w.size
	e.hint()
}

// hint wakes maintain, which reschedules the accounts of waiting events.
func (e *Subscriptions) hint() {
	select {
	case e.spoken <- struct{}{}:
	default:
	}
}

// Events returns the events that wait for a visit of k, at most eventsOnce. last is the number of
// the last one, 0 if there is none. more says that more events wait. plain says that k must be read
// as often as without a stream. lost is how often events were lost.
func (e *Subscriptions) Events(k partition.Key) (some []Event, last uint64, more, plain bool, lost int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.of(k)
	if h == nil {
		return nil, 0, false, false, 0
	}
	n := min(len(h.events), eventsOnce)
	if n > 0 {
		last = h.events[n-1].seq
	}
	return slices.Clone(h.events[:n]), last, n < len(h.events), h.plain, h.lost
}

// Kept removes the events of k up to number last, and the plain and lost that Events returned. Call
// it when the visit that applied them is durable.
func (e *Subscriptions) Kept(k partition.Key, last uint64, plain bool, lost int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h := e.of(k); h != nil {
		n := 0
		for n < len(h.events) && h.events[n].seq <= last {
			n++
		}
		e.forget(h, n)
		// plain may have been set again since
		h.lost, h.plain = max(0, h.lost-lost), h.plain && !plain
	}
}

// listens reports whether there is a subscription to k.
func (e *Subscriptions) listens(k partition.Key) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.of(k) != nil
}

// Since returns since when a stream reports all events of k; zero means that it does not now.
func (e *Subscriptions) Since(k partition.Key) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h := e.of(k); h != nil {
		return h.on
	}
	return time.Time{}
}

// ask returns the accounts of a site for a new connection, at most most, and the time from which on
// their events are needed. Accounts of the last connection do not count for from: their events were
// read up to the cursor.
func (e *Subscriptions) ask(of partition.Site, most int) (keys []partition.Key, from time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.sites[of]
	// accounts of the last connection first, so that an account that is left out stays out
	keys = slices.SortedFunc(maps.Keys(all), func(a, b partition.Key) int {
		return cmp.Or(yesFirst(all[a].asked, all[b].asked), cmp.Compare(a, b))
	})
	for _, k := range keys[min(most, len(keys)):] {
		all[k].asked, all[k].on = false, time.Time{}
	}
	keys = keys[:min(most, len(keys))]
	for _, k := range keys {
		h := all[k]
		if !h.asked && (from.IsZero() || h.since.Before(from)) {
			from = h.since
		}
		h.asked = true
	}
	return keys, from
}

func yesFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// news reports whether a site has an account that the connection does not include.
func (e *Subscriptions) news(of partition.Site) (news bool) {
	e.each(of, func(h *subscription) { news = news || !h.asked })
	return news
}

// connected notes that from now on a stream reports the accounts of its connection. disconnected
// notes that for a while it did not.
func (e *Subscriptions) connected(of partition.Site, now time.Time) {
	e.each(of, func(h *subscription) {
		if h.asked && h.on.IsZero() {
			h.on = now
		}
	})
}

func (e *Subscriptions) disconnected(of partition.Site) {
	e.each(of, func(h *subscription) { h.on = time.Time{} })
}

// missed notes that the events of a stream are lost for some time.
func (e *Subscriptions) missed(of partition.Site) {
	e.each(of, func(h *subscription) { h.on, h.lost = time.Time{}, h.lost+1 })
}

// tells notes that a stream that reports all accounts of a site does so from now on.
func (e *Subscriptions) tells(of partition.Site, now time.Time) {
	e.each(of, func(h *subscription) {
		if h.asked = true; h.on.IsZero() {
			h.on = now
		}
	})
}

// broke notes that a stream without a cursor ended. Only readings find what is posted until the
// next connection. So accounts that are read less often because of the stream no longer are.
func (e *Subscriptions) broke(of partition.Site) {
	e.each(of, func(h *subscription) {
		h.asked, h.on = false, time.Time{}
		e.forgetSince(h)
	})
}

// forgetSince has an account read as often as without a stream, if it was read less often.
func (e *Subscriptions) forgetSince(h *subscription) {
	if h.seldom {
		h.seldom, h.plain = false, true
		e.hint()
	}
}

// each calls do, with mu held, for each subscription of a site.
func (e *Subscriptions) each(of partition.Site, do func(*subscription)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.sites[of] {
		do(h)
	}
}

// listened returns the number of subscriptions for each site of a service.
func (e *Subscriptions) listened(service string) map[partition.Site]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := map[partition.Site]int{}
	for site, all := range e.sites {
		if strings.HasPrefix(string(site), service+":") {
			out[site] = len(all)
		}
	}
	return out
}

// oldest returns the time of the oldest waiting event of a site, zero if there is none.
func (e *Subscriptions) oldest(of partition.Site) (at time.Time) {
	e.each(of, func(h *subscription) {
		for _, w := range h.events {
			if at.IsZero() || w.At.Before(at) {
				at = w.At
			}
		}
	})
	return at
}

// counted returns how many accounts of a site a connection includes, and how many events of the
// site were lost.
func (e *Subscriptions) counted(of partition.Site) (asked int, lost int64) {
	e.each(of, func(h *subscription) {
		if h.asked {
			asked++
		}
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	return asked, e.lost[of]
}

// reschedule returns the accounts that must be visited now because of their events. It drops events
// that have waited for eventsWait.
func (e *Subscriptions) reschedule(now time.Time) map[partition.Slice][]partition.Key {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := map[partition.Slice][]partition.Key{}
	for site, all := range e.sites {
		for k, h := range all {
			old := 0
			for old < len(h.events) && now.Sub(h.events[old].came) >= eventsWait {
				old++
			}
			if old > 0 {
				e.lost[site] += int64(old)
				h.lost, h.on = h.lost+1, time.Time{}
				e.forget(h, old)
			}
			waits, last := len(h.events) > 0 || h.plain, now.Sub(h.rescheduled)
			if waits && last >= rescheduleAgain || len(h.events) > 0 && last >= rescheduleLeast &&
				h.events[len(h.events)-1].came.After(h.rescheduled) {
				h.rescheduled = now
				out[h.slice] = append(out[h.slice], k)
			}
		}
	}
	return out
}

// keep ends the subscriptions in slices that are no longer here.
func (e *Subscriptions) keep(here map[partition.Slice]bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, all := range e.sites {
		for k, h := range all {
			if !here[h.slice] {
				e.drop(k)
			}
		}
	}
}

// maintain reschedules accounts with waiting events, and subscribes to the accounts of each slice
// that this peer gets, until ctx ends.
func (s *Streams) maintain(ctx context.Context, o Peer) error {
	here := map[partition.Slice]bool{}
	tick := time.NewTicker(maintainEvery)
	defer tick.Stop()
	for {
		var err error
		if here, err = came(o.Slices(), here, s.listenIn); err != nil {
			return err
		}
		s.subscriptions.keep(here)
		for sl, keys := range s.subscriptions.reschedule(s.o.Calls.Now()) {
			if err := o.Reschedule(sl, keys); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		case <-s.subscriptions.spoken:
			if err := fetch.Sleep(ctx, batch); err != nil { // collect events for a moment
				return err
			}
		}
	}
}

// came calls do for each slice of now that is not in before. It returns the set of slices in now.
func came(now []partition.Slice, before map[partition.Slice]bool,
	do func(partition.Slice) error) (map[partition.Slice]bool, error) {
	is := map[partition.Slice]bool{}
	for _, sl := range now {
		if is[sl] = true; before[sl] {
			continue
		}
		if err := do(sl); err != nil {
			return nil, err
		}
	}
	return is, nil
}

// listenIn subscribes to the accounts of a slice whose states say that they are followed.
func (s *Streams) listenIn(sl partition.Slice) error {
	for _, of := range s.streamed() {
		var keys []partition.Key
		err := s.o.Store.Archive.SliceRecords(sl, partition.Key(of+":!"), func(r store.Record) (bool, error) {
			if r.Key.Service() != of {
				return false, nil
			}
			if r.Kind == store.KindProfile {
				keys = append(keys, r.Key)
			}
			return true, nil
		})
		if err != nil {
			return err
		}
		for _, k := range keys {
			b, err := s.o.Store.Accounts.Checkpoint(sl, k)
			if err != nil && !errors.Is(err, store.ErrNotExist) {
				return err
			}
			if st, err := account.DecodeState(b); err == nil && !st.Poll.IsZero() {
				s.subscriptions.Join(k, sl, &st)
				s.posted.Read(k, &st, nil)
			}
		}
	}
	return nil
}

// many returns the number of subscriptions at a site.
func (e *Subscriptions) many(of partition.Site) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.sites[of])
}
