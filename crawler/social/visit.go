package social

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/echo-node/echo-node/crawler/budget"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/mastodon"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// errEnough ends a fetch that has made its calls; the next one goes on.
var errEnough = errors.New("social: enough for one fetch")

// visit is one Fetch.
type visit struct {
	s      *Source
	t      fetch.Task
	now    time.Time
	host   string // of the server
	server mastodon.Server
	purse  *purse
	creds  map[string]service.Credential
	c      *mastodon.Client
	left   int // calls
	had    bool
	st     state
	res    fetch.Result
	linked map[partition.Key]bool
}

// state is a Key's Checkpoint, as JSON.
type state struct {
	V       int       `json:"v"`
	ID      string    `json:"id,omitempty"`      // of the account at its server
	Visited time.Time `json:"visited,omitzero"`  // when all that there was had been read
	Good    time.Time `json:"good,omitzero"`     // when the server answered last
	Lost    int       `json:"lost,omitempty"`    // times in a row that the account was not found
	Outside Standing  `json:"outside,omitempty"` // not followed, and why not: Out or Undecided

	Profiled time.Time         `json:"profiled,omitzero"` // when the profile was read
	Claimed  int64             `json:"claimed,omitempty"` // posts, by the profile
	LastPost time.Time         `json:"last_post,omitzero"`
	NoIndex  bool              `json:"noindex,omitempty"`
	Mark     service.Mark      `json:"mark,omitzero"`
	Names    map[string]string `json:"names,omitempty"` // URI of each post of Mark.Recent, by id: how a deleted one is named
	Langs    map[string]int    `json:"langs,omitempty"`

	List *listState `json:"list,omitempty"`
}

const stateVersion = 1

// Fetch is of crawler.Source.
func (s *Source) Fetch(ctx context.Context, t fetch.Task) (fetch.Result, error) {
	v := &visit{s: s, t: t, now: s.o.Now().UTC(), left: s.o.Calls, linked: map[partition.Key]bool{}}
	v.res = fetch.Result{Site: t.Site, Planned: true}
	v.host = string(t.Due.Key.Site())[len("mastodon:"):]
	if err := v.load(); err != nil {
		s.o.Logger.Warn("a state is begun anew", "key", t.Due.Key, "err", err)
		v.st = state{V: stateVersion}
	}
	err := v.enter(ctx)
	if err == nil {
		switch t.Due.Key.Kind() {
		case partition.KindAccount:
			err = v.account(ctx)
		case partition.KindTag, partition.KindTimeline:
			err = v.feed(ctx)
		default:
			err = v.list(ctx)
		}
	}
	return v.end(ctx, err)
}

func (v *visit) load() error {
	v.st = state{V: stateVersion}
	if len(v.t.Checkpoint) == 0 {
		return nil
	}
	if err := json.Unmarshal(v.t.Checkpoint, &v.st); err != nil {
		return err
	}
	if v.st.V != stateVersion {
		return fmt.Errorf("version %d", v.st.V)
	}
	m, err := service.DecodeMark(v.st.Mark.Encode())
	v.st.Mark = m
	return err
}

// enter opens the budget and finds out what the server is, if that is not known.
func (v *visit) enter(ctx context.Context) error {
	v.creds = v.s.tokens[v.host]
	info, known, err := v.s.server(v.host, v.now)
	if err != nil {
		return &storeError{err}
	}
	if err := v.open(info); err != nil {
		return err
	}
	if known {
		return nil
	}
	sample := ""
	if a := v.t.Due.Key.Account(); a != "" {
		sample = string(a)[len("mastodon:"):]
	}
	left := v.left
	v.left = maxCalls // of a probe; they are not of the work
	info, err = v.c.Probe(ctx, sample)
	v.left = left
	if err != nil {
		return err
	}
	if err := v.s.learn(v.host, info); err != nil {
		return &storeError{err}
	}
	return v.open(info)
}

// open makes the client for a server that is what info says.
func (v *visit) open(info mastodon.Server) (err error) {
	v.server = info
	names := []string{}
	for name := range v.creds {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) == 0 {
		names = []string{""}
	}
	if v.purse, err = v.s.budgets.of(v.t.Due.Key.Site(), tableOf(info.Software), names); err != nil {
		return &storeError{err}
	}
	domain := info.Domain
	if domain == "" {
		domain = v.host
	}
	o := mastodon.Options{Base: base(v.host), Domain: domain, Do: v.do, Now: v.s.o.Now, Credential: v.creds[names[0]]}
	v.c, err = mastodon.New(o)
	return err
}

// tableOf is the table of limits of a software. What is not known yet is asked as Mastodon may
// be; most of the others say nothing of limits.
func tableOf(software string) string {
	switch software {
	case "", "mastodon", "hometown":
		return "mastodon"
	case "gotosocial":
		return "gotosocial"
	}
	return "fediverse"
}

// patience is how long a fetch waits for its next call: longer than the even gaps of a
// server that says nothing of its limits, and no worker is missed for that long.
const patience = 5 * time.Second

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(max(d, time.Millisecond))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// do makes one call within the budget: it is mastodon.Options.Do.
func (v *visit) do(ctx context.Context, call service.Call) (*fetch.Response, error) {
	if v.left <= 0 {
		return nil, errEnough
	}
	class := "read"
	if call.Paging {
		class = "paging"
	}
	send := func(name string) (*fetch.Response, error) {
		req := call.Request
		v.creds[name].Sign(&req)
		v.left--
		resp, err := v.s.o.Client.Get(ctx, req, func(ctx context.Context) error {
			if err := v.t.Gate(ctx); err != nil {
				return &gateError{err}
			}
			v.res.Reqs++
			return nil
		})
		if resp != nil {
			v.res.Bytes += resp.Bytes
			v.res.Asked = resp.Asked
		}
		return resp, err
	}
	resp, err := v.purse.ask(ctx, class, send)
	for {
		var wait *budget.WaitError
		if !errors.As(err, &wait) || wait.At.IsZero() || wait.At.Sub(v.s.o.Now()) > patience {
			break
		}
		if err := sleep(ctx, wait.At.Sub(v.s.o.Now())); err != nil {
			return nil, err
		}
		resp, err = v.purse.ask(ctx, class, send)
	}
	if err == nil {
		v.had = v.had || resp.Status < 300
		v.st.Good = v.now
	}
	return resp, err
}

// end is the Result of what was done up to err.
func (v *visit) end(ctx context.Context, err error) (fetch.Result, error) {
	var gate *gateError
	var lost *storeError
	var wait *budget.WaitError
	switch {
	case errors.As(err, &gate):
		return v.res, gate.error
	case errors.As(err, &lost):
		return v.res, lost.error
	case ctx.Err() != nil:
		return v.res, ctx.Err()
	case errors.As(err, &wait):
		v.wait(wait)
	case errors.Is(err, errEnough), service.WordOf(err) == service.Limited && v.had:
		v.res.Next = store.Next{State: store.StatePending, At: v.now}
	case service.WordOf(err) == service.Limited:
		// The budget knows by now for how long, and says so when it is asked again.
		v.res.Again = true
		v.res.Hold = v.now.Add(time.Second)
	case err != nil:
		v.failed(err)
	}
	if v.res.Again {
		return v.res, nil
	}
	if err == nil {
		v.s.retry.Answered(&v.res.Site)
	}
	v.res.Site.Fetched++
	v.res.Checkpoint, err = json.Marshal(v.st)
	if err == nil && len(v.res.Checkpoint) > store.MaxCheckpointBytes {
		err = fmt.Errorf("a state of %d bytes", len(v.res.Checkpoint))
	}
	if err != nil { // names and languages can be had again
		v.s.o.Logger.Warn("state", "key", v.t.Due.Key, "err", err)
		v.st.Names, v.st.Langs = nil, nil
		if v.res.Checkpoint, err = json.Marshal(v.st); err != nil || len(v.res.Checkpoint) > store.MaxCheckpointBytes {
			v.res.Checkpoint = []byte{}
		}
	}
	return v.res, nil
}

// wait is for when the budget is used up: nothing has failed. A Key of which nothing was had
// stays as it is, and nothing is asked of the site before there is room; one that got
// further keeps that.
func (v *visit) wait(w *budget.WaitError) {
	at := w.At
	if at.IsZero() { // until a person changes a limit
		at = v.now.Add(time.Hour)
	}
	if !v.had {
		v.res.Again, v.res.Hold = true, at
		return
	}
	v.res.Next = store.Next{State: store.StatePending, At: at}
}

// failed is for answers that were none. What had been fetched before is never given up.
func (v *visit) failed(err error) {
	word := service.WordOf(err)
	known := !v.st.Visited.IsZero() || v.st.ID != "" || !v.st.Good.IsZero() && v.t.Due.Attempts == 0
	reason := fetch.Reason(err)
	var f *service.Fault
	switch {
	case errors.As(err, &f) && f.Again():
		v.s.retry.Failed(&v.res.Site, v.now)
		v.res.Stop = string(word)
		v.gap(store.GapUnreachable, reason)
		v.res.Next = v.s.retry.Again(v.t.Due, v.now, reason)
		if known && v.res.Next.State == store.StateRefused {
			v.res.Next = store.Next{State: store.StateDone, At: v.now.Add(6 * time.Hour), Attempts: v.t.Due.Attempts, Reason: reason}
		}
	case word != "": // closed, needs a token, no such thing: asked again in a day, as a person may change that
		v.res.Stop = string(word)
		v.gap(store.GapSkipped, reason)
		v.res.Next = store.Next{State: store.StateDone, At: v.now.Add(24 * time.Hour), Reason: reason}
	default:
		v.res.Stop = "error"
		v.res.Next = v.s.retry.Again(v.t.Due, v.now, reason)
	}
}

// gap adds to the ledger what was not had since the last visit.
func (v *visit) gap(what, reason string) {
	from := v.st.Visited
	if from.IsZero() {
		from = v.now
	}
	v.res.Gaps = append(v.res.Gaps, store.Gap{Source: v.s.Name(), From: from, To: v.now, What: what, Reason: reason, At: v.now})
}

// candidate notes somebody that a post or a list leads to.
func (v *visit) candidate(k partition.Key, rel string) {
	if k == "" || k == v.t.Due.Key.Account() || !v.s.o.Rules.grows() || v.s.o.Rules.Exclude[k] || v.linked[k] || k.Service() != "mastodon" {
		return
	}
	v.linked[k] = true
	v.res.Links = append(v.res.Links, store.Link{Key: k, Rel: rel})
}

// keyOf is the Key of an account by its name, "" when it is none.
func keyOf(acct string) partition.Key {
	k, err := partition.ParseKey("mastodon:" + acct)
	if err != nil || k.Kind() != partition.KindAccount {
		return ""
	}
	return k
}
