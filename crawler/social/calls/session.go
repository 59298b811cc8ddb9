package calls

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/echo-node/echo-node/crawler/budget"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
)

// Caller is what the fetches of a peer share. Safe for concurrent use.
type Caller struct {
	Budgets *Budgets
	Tokens  *Tokens
	Client  *fetch.Client
	Now     func() time.Time
	Logger  *slog.Logger
}

// Budget is the rate budget at a site, by that table, of the credentials that there are for it. Its errors are
// StoreErrors.
func (c *Caller) Budget(site partition.Site, table string) (*Budget, error) {
	names := slices.Sorted(maps.Keys(c.Tokens.At(site)))
	if len(names) == 0 {
		names = []string{""}
	}
	p, err := c.Budgets.Of(site, table, names, c.Tokens.Daily(site))
	if err != nil {
		return nil, &StoreError{err}
	}
	return p, nil
}

// Found is what a fetch has found so far.
type Found interface {
	Full() bool // with one more page it may not fit a commit
}

// Session are the calls of one fetch. Not safe for concurrent use.
type Session struct {
	c     *Caller
	task  fetch.Task
	now   time.Time
	found Found
	ended func() // says that the last answer has been read; nil = that was said

	Left     int            // calls that may still be made
	Only     string         // the name of the credential that the next calls must carry; "" = of whichever
	Used     string         // of that which the last call carried
	Asked    partition.Site // whose budget the last call was in
	Had      bool           // something was fetched, be it by another session
	Answered bool           // some server answered
	Reqs     int            // requests made
	Bytes    int64          // received
	At       time.Time      // when the site was surely asked last
}

// Begin begins the calls of a fetch, which began now; most is how many it may make.
func (c *Caller) Begin(t fetch.Task, now time.Time, most int, found Found) *Session {
	return &Session{c: c, task: t, now: now, Left: most, found: found}
}

// Ours says whether what was asked last is what the site of the Key is called by; a server that keeps the
// records of some accounts, and is full or down, holds up no others.
func (s *Session) Ours() bool { return s.Asked == "" || s.Asked == s.task.Due.Key.Site() }

// Reject notes that the token of the last call, which was to a site, is not accepted.
func (s *Session) Reject(site partition.Site, said string) {
	x := Rejected{Site: site, Credential: s.Used, Since: s.now, Said: said}
	if s.c.Tokens.rejected.add(x) {
		s.c.Logger.Warn("a token is rejected", "site", x.Site, "token", x.Credential, "said", x.Said)
	}
}

// Within is a Do that asks within the budget of p, with whichever of creds it chooses. of says
// what a call costs there.
func (s *Session) Within(p *Budget, creds map[string]service.Credential, of func(service.Call) Charge) service.Do {
	return func(ctx context.Context, call service.Call) (*fetch.Response, error) {
		if s.Left <= 0 || s.found.Full() {
			return nil, ErrEnough
		}
		s.Asked = p.Site
		if s.ended != nil { // the answer before
			s.ended()
			s.ended = nil
		}
		send := func(name string) (*fetch.Response, error) {
			req := call.Request
			creds[name].Sign(&req)
			s.Left--
			s.Used = name
			resp, err := s.c.Client.Get(ctx, req, func(ctx context.Context) error {
				if err := s.task.Gate(ctx); err != nil {
					return &GateError{err}
				}
				s.Reqs++
				return nil
			})
			if resp != nil {
				s.Bytes += resp.Bytes
				s.At = resp.Asked
				done, judging := s.task.Judging(ctx, 0) // answers are bounded by MaxBody
				if judging != nil {
					return resp, &GateError{judging}
				}
				s.ended = done
			}
			return resp, err
		}
		cost := of(call)
		cost.Only = s.Only
		resp, err := s.patient(ctx, p, cost, send)
		for range len(creds) - 1 { // of several tokens one is bad: the others have its share
			if err != nil || resp.Status != http.StatusUnauthorized || cost.Only != "" || cost.Person ||
				!p.reject(s.Used) {
				break
			}
			s.Reject(p.Site, http.StatusText(resp.Status))
			if s.Left <= 0 {
				return nil, ErrEnough
			}
			if s.ended != nil {
				s.ended()
				s.ended = nil
			}
			resp, err = s.patient(ctx, p, cost, send)
		}
		if err == nil {
			if s.Had = s.Had || resp.Status < 300; resp.Status < 300 && s.c.Tokens.rejected.accepted(p.Site, s.Used) {
				p.accept(s.Used)
			}
			s.Answered = true
		}
		return resp, err
	}
}

// patient makes one call, and waits for it if that is not for long.
func (s *Session) patient(ctx context.Context, p *Budget, cost Charge,
	send func(string) (*fetch.Response, error)) (*fetch.Response, error) {
	resp, err := p.Ask(ctx, cost, send)
	for {
		var wait *budget.WaitError
		if !errors.As(err, &wait) || wait.At.IsZero() || wait.At.Sub(s.c.Now()) > patience {
			return resp, err
		}
		if err := fetch.Sleep(ctx, max(wait.At.Sub(s.c.Now()), time.Millisecond)); err != nil {
			return nil, err
		}
		resp, err = p.Ask(ctx, cost, send)
	}
}

// patience is how long a fetch waits for its next call: longer than the even gaps of a
// server that says nothing of its limits, and no worker is missed for that long.
const patience = 5 * time.Second

// IsWait says whether err is that the budget has no room.
func IsWait(err error) bool {
	var wait *budget.WaitError
	return errors.As(err, &wait)
}
