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

// A stream reports posts as they are made, changed and deleted. An event is one report about one account. It
// waits in the memory of the peer that owns the account. The peer visits the account now (Peer.Reschedule).
// That visit applies the event without a call, and commits it as every visit does: at the slice's owner, in one batch
// with the Key (I3). Each peer subscribes to its own accounts only, so no event goes from peer to peer. A stream costs
// one call, which connects.
//
// A crash loses the events that no visit has applied. A stream with a cursor is read again from before the first of
// them. What it repeats is older than what is kept, and is left out. A stream without a cursor misses posts while there
// is no connection. Readings find them, and are then as frequent as without a stream (subscriptions.broke).
//
// Nothing else depends on a stream. Accounts are still read. If the stream reported all that the last readings found,
// they are read a quarter as often (State.Trust). So the next reading shows that a stream is silent, drops or repeats
// posts. A stream that makes posts up is believed: the operator or the account chose that server.

// Peer is what Listen is given by the peer.
type Peer struct {
	Slices func() []partition.Slice // those it may fetch in now
	// has Keys that are done visited now; an error ends Listen
	Reschedule func(sl partition.Slice, keys []partition.Key) error
	Hold       func() time.Duration // for how long nothing may be received, 0 = it may
	Received   func(bytes int64)
}

// errHeld ends a connection that would be silent for longer than one is kept.
var errHeld = errors.New("social: the volunteer's limits let nothing be received")

// ready waits for the volunteer's limits: no more is read meanwhile.
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

// Bounds of subscriptions.
const (
	// bytes of events that wait, of all accounts of a site; its stream is read on when there is room
	maxEventsOf     = 4 << 20
	maxEvents       = 128 << 20        // of all sites: more than those of the streams that there are by default
	eventWeight     = 512              // of an event, beside its text
	eventsOnce      = 200              // taken by one visit
	eventsWait      = 10 * time.Minute // events older than this are dropped, because the account cannot be visited
	batch           = time.Second      // in which events that come are taken together
	rescheduleAgain = time.Minute      // an account that was not visited is rescheduled again
	// and not more often than that, whatever a stream says of it: each visit is a commit
	rescheduleLeast = 5 * time.Second
	maintainEvery   = 10 * time.Second // how often it is looked which slices are here, and whose events wait
)

// Event is what a stream reports of an account: a post, that one was deleted, or that the account itself may have
// changed.
type Event struct {
	At   time.Time // by the stream
	Post any       // as the client of the service has it; nil = none
	Gone bool      // the post was deleted
	URI  string    // of the post
	ID   string    // what the Mark calls one that was deleted
	Ends bool      // the account is looked up

	seq  uint64
	came time.Time // by our clock
	size int
}

// tells says whether e says anything.
func (e *Event) tells() bool { return e.Post != nil || e.Gone || e.Ends }

// subscription is an account that is listened for.
type subscription struct {
	site        partition.Site
	slice       partition.Slice
	since       time.Time // its posts were read then
	seldom      bool      // they are read more seldom, as a stream without a cursor tells of them
	plain       bool      // they are to be so no more, and no visit has said so
	asked       bool      // the connection that there is, or was last, is about it
	on          time.Time // since when all that the stream says of it comes here; zero = not now
	lost        int       // how often some events were, and no visit has said so
	events      []Event
	rescheduled time.Time
}

// Subscriptions are the accounts that this peer listens for, and the events that wait. Safe for concurrent use.
type Subscriptions struct {
	mu     sync.Mutex
	open   bool // some stream is read
	sites  map[partition.Site]map[partition.Key]*subscription
	size   map[partition.Site]int
	sum    int // of size
	seq    uint64
	lost   map[partition.Site]int64
	room   chan struct{} // closed when some events were taken
	spoken chan struct{} // an event came: a hint
}

func newSubscriptions(open bool) *Subscriptions {
	return &Subscriptions{open: open, sites: map[partition.Site]map[partition.Key]*subscription{},
		size: map[partition.Site]int{}, lost: map[partition.Site]int64{}, room: make(chan struct{}),
		spoken: make(chan struct{}, 1)}
}

// Open says whether any stream is read.
func (e *Subscriptions) Open() bool { return e.open }

// of is k as it is listened for, nil = it is not.
func (e *Subscriptions) of(k partition.Key) *subscription { return e.sites[k.Site()][k] }

// Join listens for k, of which st is the state now.
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
	// where there is a cursor, nothing is missed
	if h.seldom = !st.Plain.IsZero() && k.Service() == "mastodon"; h.on.IsZero() {
		e.forgetSince(h)
	}
}

// Leave listens for k no more.
func (e *Subscriptions) Leave(k partition.Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drop(k)
}

func (e *Subscriptions) drop(k partition.Key) {
	if h := e.of(k); h != nil {
		e.forget(h, len(h.events))
		if delete(e.sites[h.site], k); len(e.sites[h.site]) == 0 {
			delete(e.sites, h.site)
			delete(e.size, h.site)
		}
	}
}

// forget drops the first n words of h.
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

// receive takes a word about k, when there is room. Of who is not listened for it is dropped.
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

// add has w wait.
func (e *Subscriptions) add(h *subscription, w Event) {
	e.seq++
	w.seq = e.seq
	h.events = append(h.events, w)
	e.size[h.site] += w.size
	e.sum += w.size
	e.hint()
}

// hint has it looked soon whom words are about.
func (e *Subscriptions) hint() {
	select {
	case e.spoken <- struct{}{}:
	default:
	}
}

// Events are those that wait for a visit of k, eventsOnce at most; last is the number of the last of them, 0 = there is
// none. plain: its readings are to be as without a stream; so many times some were lost.
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

// Kept forgets the words about k up to one, what words said beside them: what came of that is durable.
func (e *Subscriptions) Kept(k partition.Key, last uint64, plain bool, lost int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h := e.of(k); h != nil {
		n := 0
		for n < len(h.events) && h.events[n].seq <= last {
			n++
		}
		e.forget(h, n)
		h.lost, h.plain = max(0, h.lost-lost), h.plain && !plain // it may have come anew since
	}
}

// listens says whether k is listened for.
func (e *Subscriptions) listens(k partition.Key) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.of(k) != nil
}

// Since is from when on a stream told all it knows of k, zero = it does not now.
func (e *Subscriptions) Since(k partition.Key) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h := e.of(k); h != nil {
		return h.on
	}
	return time.Time{}
}

// ask says whom of a site a new connection is to be about, most at most, and from when on it is to tell. Who was
// asked for before is not in from: their words have been read up to the cursor.
func (e *Subscriptions) ask(of partition.Site, most int) (keys []partition.Key, from time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.sites[of]
	// those first who were asked for, so that who is left out stays it
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

// news says whether there is somebody of a site to be asked for who is not yet.
func (e *Subscriptions) news(of partition.Site) (news bool) {
	e.each(of, func(h *subscription) { news = news || !h.asked })
	return news
}

// connected says that a stream tells of those that were asked for from now on; disconnected that for a
// while it did not.
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

// missed says that what a stream reported for a while is lost.
func (e *Subscriptions) missed(of partition.Site) {
	e.each(of, func(h *subscription) { h.on, h.lost = time.Time{}, h.lost+1 })
}

// tells says that a stream, which need not be asked for anybody, tells of everybody of a site from now on.
func (e *Subscriptions) tells(of partition.Site, now time.Time) {
	e.each(of, func(h *subscription) {
		if h.asked = true; h.on.IsZero() {
			h.on = now
		}
	})
}

// broke says that a stream that has no cursor ended. Only readings find what is made until the next connection,
// so those that are more seldom because of it are so no more.
func (e *Subscriptions) broke(of partition.Site) {
	e.each(of, func(h *subscription) {
		h.asked, h.on = false, time.Time{}
		e.forgetSince(h)
	})
}

// forgetSince has what may not have been told of an account read as if there were no stream.
func (e *Subscriptions) forgetSince(h *subscription) {
	if h.seldom {
		h.seldom, h.plain = false, true
		e.hint()
	}
}

func (e *Subscriptions) each(of partition.Site, do func(*subscription)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.sites[of] {
		do(h)
	}
}

// listened is how many accounts of each site of a service are listened for.
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

// oldest is the time of the first word about a site that waits, zero = none does.
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

// counted is how many accounts of a site are asked for, and how many words about it were lost.
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

// reschedule gives the accounts that have events and are to be visited now, and loses what waited too long.
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

// keep leaves the accounts of slices that are not here any more.
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

// maintain has accounts that a stream told of visited, and listens for those of the slices that come, until ctx ends.
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
			if err := fetch.Sleep(ctx, batch); err != nil { // those that come together
				return err
			}
		}
	}
}

// came calls do for each slice of now that is not in before, and gives those of now.
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

// listenIn listens for those accounts of a slice that are followed, as their states say.
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

// many is how many accounts of a site are listened for.
func (e *Subscriptions) many(of partition.Site) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.sites[of])
}
