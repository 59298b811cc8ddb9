package poll

import (
	"fmt"
	"time"

	"github.com/echo-node/echo-node/cmd/echo-lab/policy"
)

// EchoOptions are the options of NewEcho. The zero value gives TwitterEcho's look-ups.
type EchoOptions struct {
	Links bool // three classes, lowered by what does not change; else six, which are only raised
	// Zone is the time zone of the community's night; nil = UTC. From 3 to 8 nothing is raised.
	// Only from 3 to 7 frozen accounts are looked up.
	Zone *time.Location
	// Rest is how old the last post must be for a new one to raise its account. Otherwise an
	// account that posts all the time would always be at the top. Default 10 min: the
	// dissertation sets "a minimum" and does not give its value.
	Rest time.Duration
}

// The hours of a night in TwitterEcho.
const (
	nightFrom   = 3
	nightRaised = 8 // nothing is raised before this hour
	nightFrozen = 7 // frozen accounts are looked up before this hour
)

// Echo is TwitterEcho's policy for the next look-ups (Oliveira, FEUP 2011, chapter 4). It is
// the reference for other policies. Frozen accounts, without a post for 30 days, are a class of
// their own. It has the share of the lowest class, and only at night. The caller handles
// look-ups without a response: Checked without news puts the account behind the rest of its
// class. It is not safe for concurrent use.
type Echo struct {
	o       EchoOptions
	classes []heap // by the time of the last check; the last class has the frozen accounts
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

// NewEcho returns an empty queue.
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

// Len returns how many accounts are known.
func (e *Echo) Len() int { return len(e.known) }

// Put adds an account with its memo and the times of its last check and last post (zero:
// never).
func (e *Echo) Put(account string, m policy.Memo, checked, post time.Time, now time.Time) {
	e.Drop(account)
	s := &echoState{memo: m, checked: nanos(checked), post: nanos(post), taken: true}
	if m.Priority == 0 {
		s.memo = policy.EchoRaise(m, false)
	}
	e.known[account] = s
	e.place(account, s, now)
}

// Drop removes an account.
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

// share returns the part of the calls that a class gets while none is empty. The frozen class
// has as much as the lowest.
func (e *Echo) share(c int) float64 {
	c = min(c, len(e.classes)-2)
	if e.o.Links {
		return policy.EchoLinkShare(c)
	}
	return policy.EchoShare(c)
}

func (e *Echo) hour(now time.Time) int { return now.In(e.o.Zone).Hour() }

// Next takes out at most the n next accounts. Checked puts them back.
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
		if !ok { // sizes and classes have the same accounts
			break
		}
		e.classes[best].pop()
		e.sizes[best]--
		e.known[v.name].taken = true
		accounts = append(accounts, v.name)
	}
	return accounts
}

// Checked puts back an account after a check at now. changed says that there was a new post (or
// another list), and post is the time of the latest. Checked returns the memo to keep.
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
