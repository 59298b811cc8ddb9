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

// Caller has what all fetches of a peer share. Safe for concurrent use.
type Caller struct {
	Budgets *Budgets
	Tokens  *Tokens
	Client  *fetch.Client
	Now     func() time.Time
	Logger  *slog.Logger
}

// Budget returns the rate budget of a site, with that table, for the credentials known for the
// site. Its errors are StoreErrors.
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
	Full() bool // with one more page it may not fit in one commit
}

// Session makes the calls of one fetch. Not safe for concurrent use.
type Session struct {
	c     *Caller
	task  fetch.Task
	now   time.Time
	found Found
	ended func() // reports that the last answer was read; nil = already reported

	Left  int            // calls that may still be made
	Only  string         // the name of the credential that the next calls must carry; "" = any
	Used  string         // the credential of the last call
	Asked partition.Site // the site of the budget that paid for the last call
	// an answer with a status below 300 was received; another session may set it, too
	Had      bool
	Answered bool      // some server answered
	Reqs     int       // requests made
	Bytes    int64     // bytes received
	At       time.Time // time of the last request that was sent
}

// Begin starts the calls of a fetch that began at now. most is how many calls it may make.
func (c *Caller) Begin(t fetch.Task, now time.Time, most int, found Found) *Session {
	return &Session{c: c, task: t, now: now, Left: most, found: found}
}

// Ours reports whether the last call went to the site of the Key. A server that only keeps the
// records of some accounts must not delay others when it is overloaded or down.
func (s *Session) Ours() bool { return s.Asked == "" || s.Asked == s.task.Due.Key.Site() }

// Reject notes that a site did not accept the token of the last call.
func (s *Session) Reject(site partition.Site, said string) {
	x := Rejected{Site: site, Credential: s.Used, Since: s.now, Said: said}
	if s.c.Tokens.rejected.add(x) {
		s.c.Logger.Warn("a token is rejected", "site", x.Site, "token", x.Credential, "said", x.Said)
	}
}

// Within returns a service.Do that makes its calls within the budget of p. The budget chooses one
// of creds for each call. of returns the cost of a call.
func (s *Session) Within(p *Budget, creds map[string]service.Credential, of func(service.Call) Charge) service.Do {
	return func(ctx context.Context, call service.Call) (*fetch.Response, error) {
		if s.Left <= 0 || s.found.Full() {
			return nil, ErrEnough
		}
		s.Asked = p.Site
		if s.ended != nil { // report the answer before
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
				// need is 0: MaxBody limits the size of an answer
				done, judging := s.task.Judging(ctx, 0)
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
		for range len(creds) - 1 { // one of several tokens was rejected: try the others
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

// patient makes one call. If the budget has room within patience, it waits for that.
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

// patience is how long a fetch waits for its next call. It is longer than the regular gaps between
// calls to a server that does not announce its limits. It is short enough to keep a worker busy.
const patience = 5 * time.Second

// IsWait reports whether err says that the budget has no room.
func IsWait(err error) bool {
	var wait *budget.WaitError
	return errors.As(err, &wait)
}
