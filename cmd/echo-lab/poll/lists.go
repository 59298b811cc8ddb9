package poll

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Options are the options of Lists and Turn. The zero value is the default.
type Options struct {
	Fresh time.Duration // how long a user seen once is fresh; default 1 h
	Bound time.Duration // the wait after which the oldest get a share; default 7 days
	Share float64       // of all calls, for users that waited for Bound; default 1/16, at most 1
	Paper bool          // the scheme of the thesis; the other options are then ignored
}

// Validate returns all errors at once.
func (o *Options) Validate() error {
	var faults []error
	if o.Fresh < 0 || o.Bound < 0 {
		faults = append(faults, fmt.Errorf("negative time: fresh %s, bound %s", o.Fresh, o.Bound))
	}
	if !(o.Share >= 0 && o.Share <= 1) {
		faults = append(faults, fmt.Errorf("share %g", o.Share))
	}
	if len(faults) > 0 {
		return fmt.Errorf("poll: options: %w", errors.Join(faults...))
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Fresh == 0 {
		o.Fresh = time.Hour
	}
	if o.Bound == 0 {
		o.Bound = 7 * 24 * time.Hour
	}
	if o.Share == 0 {
		o.Share = 1. / 16
	}
	return o
}

// Entry is one waiting account.
type Entry struct {
	Account string
	Repeat  bool      // seen at least twice
	Polled  time.Time // last poll; zero = never
	Seen    time.Time // the latest sighting
	Since   time.Time // since when it waits
}

// The tiers in a Key.
const (
	tierRepeat = 1
	tierOnce   = 2
	keyHead    = 9
)

// ErrKey is wrapped by the errors of ParseKey.
var ErrKey = errors.New("not a key of a queue")

// Key returns the order of e in its tier. It is appended to the name of its queue.
func (e *Entry) Key() []byte {
	tier, at := byte(tierRepeat), e.Polled
	if !e.Repeat {
		tier, at = tierOnce, e.Seen
	}
	b := append(make([]byte, 0, keyHead+len(e.Account)), tier)
	return append(binary.BigEndian.AppendUint64(b, uint64(nanos(at))), e.Account...)
}

// ParseKey is the inverse of Key; since is the row's value.
func ParseKey(key []byte, since time.Time) (Entry, error) {
	if len(key) <= keyHead || key[0] != tierRepeat && key[0] != tierOnce || key[1] > 0x7f {
		return Entry{}, fmt.Errorf("poll: %w: %d bytes", ErrKey, len(key))
	}
	e := Entry{Account: string(key[keyHead:]), Repeat: key[0] == tierRepeat, Since: since}
	at := time.Unix(0, int64(binary.BigEndian.Uint64(key[1:])))
	switch {
	case !e.Repeat:
		e.Seen = at
	case at.UnixNano() > 0:
		e.Polled = at
	}
	return e, nil
}

// nanos returns 0 for the zero time, and at least 1 for any other.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(t.UnixNano(), 1)
}

// Turn remembers the share of calls that the longest waiting users got. Its state is 9 bytes.
// Losing it costs only a few calls. It is not safe for concurrent use.
type Turn struct {
	o      Options
	credit float64 // calls owed to the oldest
	oldest bool    // the next call that alternates goes to it
}

// NewTurn returns a Turn with nothing owed.
func NewTurn(o Options) (*Turn, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &Turn{o: o.withDefaults()}, nil
}

// maxCredit limits what is owed, so that users who had no share for a long time do not get all
// calls afterwards.
const maxCredit = 4

// Next chooses who gets a call at now: the first of the repeat tier, or the newest or the
// oldest of those seen once (they are the same if there is only one). An argument is nil when
// its tier is empty.
func (t *Turn) Next(now time.Time, repeat, newest, oldest *Entry) *Entry {
	if t.o.Paper {
		if repeat != nil {
			return repeat
		}
		return newest
	}
	overdue := oldest != nil && now.Sub(oldest.Since) >= t.o.Bound
	if !overdue {
		t.credit = 0
	} else {
		t.credit = min(t.credit+t.o.Share, maxCredit)
	}
	switch {
	case overdue && t.credit >= 1:
	case repeat != nil:
		return repeat
	case newest == nil:
		return nil
	case now.Sub(newest.Seen) < t.o.Fresh || !overdue:
		return newest
	default:
		if t.oldest = !t.oldest; !t.oldest {
			return newest
		}
	}
	t.credit = max(t.credit-1, -maxCredit)
	return oldest
}

// Lists is the queue, in memory, of accounts whose follower or following lists must be fetched.
// It is not safe for concurrent use.
type Lists struct {
	turn    *Turn
	known   map[string]*state
	repeat  heap // by last poll
	newest  heap
	oldest  heap
	waiting int
}

// state is what is known of an account: 32 bytes and its name.
type state struct {
	polled, seen, since int64
	repeat              bool
	tier                byte // in which it waits, 0 = it does not wait
}

// NewLists returns an empty queue.
func NewLists(o Options) (*Lists, error) {
	t, err := NewTurn(o)
	if err != nil {
		return nil, err
	}
	return &Lists{turn: t, known: map[string]*state{}, newest: heap{down: true}}, nil
}

// Len returns how many wait.
func (l *Lists) Len() int { return l.waiting }

// Put adds an account as a store had it: known and, if e.Since is set, waiting.
func (l *Lists) Put(e Entry) {
	l.Drop(e.Account)
	s := &state{polled: nanos(e.Polled), seen: nanos(e.Seen), since: nanos(e.Since), repeat: e.Repeat}
	l.known[e.Account] = s
	if s.since != 0 {
		l.wait(e.Account, s)
	}
}

// Drop removes an account that is dead, protected, or moved.
func (l *Lists) Drop(account string) {
	if s := l.known[account]; s != nil && s.tier != 0 {
		l.waiting--
	}
	delete(l.known, account)
}

// Seen records a post of account at the time at. The account then waits to be polled, unless it
// waits already. A second sighting puts it into the first tier.
func (l *Lists) Seen(account string, at time.Time) {
	s := l.known[account]
	if s == nil {
		s = &state{}
		l.known[account] = s
	} else {
		s.repeat = true
	}
	s.seen = max(s.seen, nanos(at))
	if s.tier == 0 {
		s.since = nanos(at)
	}
	l.wait(account, s)
}

// wait puts an account into its tier.
func (l *Lists) wait(account string, s *state) {
	if s.tier == 0 {
		l.waiting++
	}
	switch tier := s.tier; {
	case s.repeat && tier != tierRepeat:
		s.tier = tierRepeat
		l.repeat.push(item{s.polled, account})
	case !s.repeat && tier == 0:
		s.tier = tierOnce
		l.newest.push(item{s.seen, account})
		l.oldest.push(item{s.seen, account})
	}
}

// Next returns the account to poll with a call at now, and takes it out of the queue until it
// is seen again. ok is false if none waits. If the poll fails, the caller uses Put to return
// it.
func (l *Lists) Next(now time.Time) (e Entry, ok bool) {
	one := func(v item) bool { s := l.known[v.name]; return s != nil && s.tier == tierOnce && s.seen == v.at }
	again := func(v item) bool { s := l.known[v.name]; return s != nil && s.tier == tierRepeat && s.polled == v.at }
	chosen := l.turn.Next(now, l.head(&l.repeat, again), l.head(&l.newest, one), l.head(&l.oldest, one))
	if chosen == nil {
		return Entry{}, false
	}
	s := l.known[chosen.Account]
	s.tier, s.since, s.polled = 0, 0, nanos(now)
	l.waiting--
	l.repeat.rebuild(l.waiting, again)
	l.newest.rebuild(l.waiting, one)
	l.oldest.rebuild(l.waiting, one)
	return *chosen, true
}

func (l *Lists) head(h *heap, there func(item) bool) *Entry {
	v, ok := h.first(there)
	if !ok {
		return nil
	}
	e := l.entry(v.name, l.known[v.name])
	return &e
}

func (l *Lists) entry(name string, s *state) Entry {
	return Entry{Account: name, Repeat: s.repeat, Polled: moment(s.polled), Seen: moment(s.seen),
		Since: moment(s.since)}
}

func moment(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// Waiting calls f for every waiting account, in no order.
func (l *Lists) Waiting(f func(Entry)) {
	for name, s := range l.known {
		if s.tier != 0 {
			f(l.entry(name, s))
		}
	}
}
