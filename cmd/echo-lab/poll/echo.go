package poll

import (
	"fmt"
	"time"

	"github.com/echo-node/echo-node/cmd/echo-lab/policy"
)

// EchoOptions of NewEcho. The zero value is TwitterEcho's look-ups.
type EchoOptions struct {
	Links bool // three classes, lowered by what does not change; else six, only raised
	// Zone is where the community's night is; nil = UTC. From 3 to 8 nothing is raised, from
	// 3 to 7 alone the frozen are looked at.
	Zone *time.Location
	// Rest is how old the last post must be for a new one to raise its account: who posts all
	// the time would else be at the top for good. Default 10 min: the dissertation sets "a
	// minimum" and does not print it.
	Rest time.Duration
}

// The hours of a night in TwitterEcho.
const (
	nightFrom   = 3
	nightRaised = 8 // nothing is raised before
	nightFrozen = 7 // the frozen are looked at before
)

// Echo is TwitterEcho's policy of who is looked up next (Oliveira, FEUP 2011, chapter 4),
// kept as the reference that others are measured against. Who is frozen, without a post for 30 days,
// is a class of its own, with the lowest one's share, at night only. What a lookup of an account
// that answers nothing leads to is its caller's: Checked with no news puts it behind the
// rest of its class. It is not safe for concurrent use.
type Echo struct {
	o       EchoOptions
	classes []heap // by when checked; the last is of the frozen
	sizes   []int
	credit  []float64
	known   map[string]*echoState
}

type echoState struct {
	memo    policy.Memo
	class   int
	checked int64
	post    int64
	taken   bool
}

// NewEcho is an empty queue.
func NewEcho(o EchoOptions) (*Echo, error) {
	if o.Rest < 0 {
		return nil, fmt.Errorf("poll: rest %s", o.Rest)
	}
	if o.Rest == 0 {
		o.Rest = 10 * time.Minute
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	n := policy.EchoClasses
	if o.Links {
		n = policy.EchoLinks
	}
	return &Echo{o: o, classes: make([]heap, n+1), sizes: make([]int, n+1), credit: make([]float64, n+1),
		known: map[string]*echoState{}}, nil
}

// Len is how many accounts are known.
func (e *Echo) Len() int { return len(e.known) }

// Put takes in an account: its memo, when it was checked last and posted last (zero: never).
func (e *Echo) Put(account string, m policy.Memo, checked, post time.Time, now time.Time) {
	e.Drop(account)
	s := &echoState{memo: m, checked: nanos(checked), post: nanos(post), taken: true}
	if m.Priority == 0 {
		s.memo = policy.EchoRaise(m, false)
	}
	e.known[account] = s
	e.place(account, s, now)
}

// Drop forgets an account.
func (e *Echo) Drop(account string) {
	if s := e.known[account]; s != nil && !s.taken {
		e.sizes[s.class]--
	}
	delete(e.known, account)
}

func (e *Echo) place(account string, s *echoState, now time.Time) {
	s.class = policy.EchoClass(s.memo)
	if e.o.Links {
		s.class = policy.EchoLinkClass(s.memo)
	}
	if s.post != 0 && policy.EchoFrozen(moment(s.post), now) {
		s.class = len(e.classes) - 1
	}
	s.taken = false
	e.sizes[s.class]++
	e.classes[s.class].push(item{s.checked, account})
}

// share is the part of the calls that a class gets while none is empty; the frozen
// have as much as the lowest.
func (e *Echo) share(c int) float64 {
	c = min(c, len(e.classes)-2)
	if e.o.Links {
		return policy.EchoLinkShare(c)
	}
	return policy.EchoShare(c)
}

func (e *Echo) hour(now time.Time) int { return now.In(e.o.Zone).Hour() }

// Next takes out the n next at most. They come back by Checked.
func (e *Echo) Next(n int, now time.Time) (accounts []string) {
	h := e.hour(now)
	for len(accounts) < n {
		best, open := -1, 0.0
		for c := range e.classes {
			frozen := c == len(e.classes)-1
			if e.sizes[c] == 0 || frozen && (h < nightFrom || h >= nightFrozen) {
				continue
			}
			open += e.share(c)
			if e.credit[c] += e.share(c); best < 0 || e.credit[c] > e.credit[best] {
				best = c
			}
		}
		if best < 0 {
			break
		}
		e.credit[best] -= open
		there := func(v item) bool {
			s := e.known[v.name]
			return s != nil && !s.taken && s.class == best && s.checked == v.at
		}
		v, ok := e.classes[best].first(there)
		if !ok { // sizes and classes tell of the same accounts
			break
		}
		e.classes[best].pop()
		e.sizes[best]--
		e.known[v.name].taken = true
		accounts = append(accounts, v.name)
	}
	return accounts
}

// Checked puts back who was taken: at now, changed says that there was a new post (or another
// list), post when the latest was. It returns the memo to be kept.
func (e *Echo) Checked(account string, now time.Time, changed bool, post time.Time) policy.Memo {
	s := e.known[account]
	if s == nil {
		return policy.Memo{}
	}
	if !s.taken {
		e.sizes[s.class]--
	}
	h := e.hour(now)
	rested := s.post == 0 || post.Sub(moment(s.post)) >= e.o.Rest
	switch {
	case e.o.Links && !changed:
		s.memo = policy.EchoLower(s.memo)
	case e.o.Links:
		s.memo = policy.EchoRaise(s.memo, true)
	case changed && rested && !(h >= nightFrom && h < nightRaised):
		s.memo = policy.EchoRaise(s.memo, true)
	}
	s.checked, s.post = nanos(now), max(s.post, nanos(post))
	e.place(account, s, now)
	return s.memo
}
