package social

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/echo-node/echo-node/crawler/budget"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/strictjson"
	"github.com/echo-node/echo-node/store"
)

// errEnough ends a fetch that has made its calls; the next one goes on.
var errEnough = errors.New("social: enough for one fetch")

// visit is one Fetch.
type visit struct {
	s      *Source
	t      fetch.Task
	now    time.Time
	api    api
	url    string         // of the server, for people
	asked  partition.Site // whose budget the last call was in
	used   string         // the name of the credential that the last call carried
	only   string         // of the one that the next calls must carry; "" = of whichever
	left   int            // calls
	had    bool
	fresh  bool        // it was looked up
	new    int         // posts that were not known before
	older  int         // of these, made before the look-up
	made   []time.Time // when these were made, as far as that tells of the site's hours
	rev    string      // of the repository that is read
	st     state
	res    fetch.Result
	ended  func() // says that the last answer has been read; nil = that was said
	judged bool   // by what is kept: the profile is not asked for
	apart  bool   // a list of somebody who is not followed: nobody in it is a candidate
	linked map[partition.Key]bool
	before time.Time // the visit before this one

	looking   map[string]*store.Record // kept posts that are being looked at again, by URI; nil = none (round.go)
	lookCalls int                      // made for them
	spent     bool                     // what rounds may use of the budget is used up
	silent    bool                     // nothing was asked for but old posts, and those were not answered

	// Of an account that does not want to be collected (wishes.go).
	wish      string     // that of the account of the Key, as its posts say
	unwilling []unwanted // posts that were met

	// Of streams (subscriptions.go).
	told             time.Time       // when what is being taken in was told; zero = it is read
	toldOf           map[string]bool // posts that were told, by URI
	heardOnly        bool            // nobody is asked
	novel            []int           // of res.Posts, those that were not known before
	foretold, untold int             // of these, that a stream had told, and had not
}

// state is a Key's Checkpoint, as JSON.
type state struct {
	V       int       `json:"v"`
	ID      string    `json:"id,omitempty"`      // of the account at its server
	Visited time.Time `json:"visited,omitzero"`  // when all that there was had been read
	Good    time.Time `json:"good,omitzero"`     // when the server answered last
	Outage  outage    `json:"outage,omitzero"`   // that has not been followed by a whole reading
	Lost    int       `json:"lost,omitempty"`    // times in a row that the account was not found
	Outside string    `json:"outside,omitempty"` // not followed, and why not: out or undecided
	Barred  string    `json:"barred,omitempty"`  // by which tokens the last visit was refused (Source.sum)

	Profiled time.Time    `json:"profiled,omitzero"` // when the profile was read, for its record
	Looked   time.Time    `json:"looked,omitzero"`   // when it was looked up last, be it for what it claims only
	Claimed  int64        `json:"claimed,omitempty"` // posts, by the profile
	LastPost time.Time    `json:"last_post,omitzero"`
	Told     told         `json:"told,omitzero"`
	NoIndex  bool         `json:"noindex,omitempty"`
	Mark     service.Mark `json:"mark,omitzero"`
	// URI of each post of Mark.Recent, by id: how a deleted one is named
	Names map[string]string `json:"names,omitempty"`
	Langs map[string]int    `json:"langs,omitempty"`

	// Doubt are posts that are missing from their place and yet found, by id, since when.
	Doubt map[string]time.Time `json:"doubt,omitempty"`
	// Empty is since when an account has shown no post, of which posts had been read.
	Empty  time.Time `json:"empty,omitzero"`
	Judged judged    `json:"judged,omitzero"`

	Shunned []shunned `json:"shunned,omitempty"`
	Round   round     `json:"round,omitzero"`

	// Of who is followed.
	Poll  time.Time `json:"poll,omitzero"`   // when its server is asked again; zero = it is not followed
	Trust int       `json:"trust,omitempty"` // readings in a row of which the stream had told all, trustedAfter at most
	Plain time.Time `json:"plain,omitzero"`  // Poll without a stream, where that is sooner

	List *listState `json:"list,omitempty"`

	// Of Bluesky, where an account's reposts are a feed of their own.
	Boosts service.Mark `json:"boosts,omitzero"`
	Acct   string       `json:"acct,omitempty"` // its handle
	Name   string       `json:"name,omitempty"`
	PDS    string       `json:"pds,omitempty"` // where its records are
	Rev    string       `json:"rev,omitempty"` // of its repository, when all of it had been read
}

// marks are where the Marks of st are.
func (st *state) marks() []*service.Mark { return []*service.Mark{&st.Mark, &st.Boosts} }

const stateVersion = 1

// Fetch is of crawler.Source.
func (s *Source) Fetch(ctx context.Context, t fetch.Task) (fetch.Result, error) {
	v := &visit{s: s, t: t, now: s.o.Now().UTC(), left: s.o.Calls, linked: map[partition.Key]bool{},
		toldOf: map[string]bool{}}
	v.res = fetch.Result{Site: t.Site, Planned: true}
	s.serve(v)
	if err := v.load(); err != nil {
		s.o.Logger.Warn("a state is begun anew", "key", t.Due.Key, "err", err)
		v.st = state{V: stateVersion}
	}
	if v.before = v.st.Visited; v.st.Looked.After(v.before) {
		v.before = v.st.Looked
	}
	ends, err := v.reconsider()
	if err == nil && !ends {
		ends, err = v.applyEvents()
	}
	if v.wish != "" && err == nil { // a stream told of it
		ends, err = true, v.optedMeanwhile()
	}
	if err == nil && v.wish == "" && v.roundAlone() && (ends || !v.s.subscriptions.open) {
		return v.end(ctx, v.alone(ctx, ends))
	}
	if ends && err == nil {
		return v.end(ctx, nil)
	}
	v.st.Plain, v.st.Barred = time.Time{}, ""
	if err == nil {
		err = v.api.enter(ctx)
	}
	if err == nil {
		switch t.Due.Key.Kind() {
		case partition.KindName:
			err = v.name(ctx)
		case partition.KindAccount:
			err = errors.Join(v.account(ctx), v.s.hours.saw(t.Due.Key.Site(), v.made))
		case partition.KindTag, partition.KindTimeline, partition.KindSearch:
			err = v.feed(ctx)
		default:
			err = v.list(ctx)
		}
	}
	return v.end(ctx, err)
}

func (v *visit) load() (err error) {
	v.st, err = decodeState(v.t.Checkpoint)
	return err
}

// decodeState reads a Checkpoint; nil is the state of a Key never visited.
func decodeState(b []byte) (state, error) {
	st := state{V: stateVersion}
	if len(b) == 0 {
		return st, nil
	}
	if err := strictjson.Unmarshal(b, &st); err != nil {
		return st, err
	}
	if st.V != stateVersion {
		return st, fmt.Errorf("version %d", st.V)
	}
	for _, m := range st.marks() {
		var err error
		if *m, err = service.DecodeMark(m.Encode()); err != nil {
			return st, err
		}
	}
	return st, nil
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
	case service.WordOf(err) == service.Limited && !v.ours():
		v.res.Next = store.Next{State: store.StatePending, At: v.now.Add(time.Second)}
	case service.WordOf(err) == service.Limited:
		// The budget knows by now for how long, and says so when it is asked again.
		v.res.Again = true
		v.res.Hold = v.s.o.Now().Add(time.Second)
	case err != nil:
		v.failed(err)
	}
	if v.res.Again {
		return v.res, nil
	}
	if err == nil && v.res.Reqs > 0 && !v.silent {
		v.s.retry.Answered(&v.res.Site)
	}
	if err == nil {
		v.reached()
	}
	if err := v.withdraw(); err != nil {
		return v.res, errors.Unwrap(err)
	}
	v.files()
	v.res.Site.Fetched++
	if err := v.listen(); err != nil {
		return v.res, err
	}
	v.sooner()
	v.res.Checkpoint, err = json.Marshal(v.st)
	if err == nil && len(v.res.Checkpoint) > store.MaxCheckpointBytes {
		err = fmt.Errorf("a state of %d bytes", len(v.res.Checkpoint))
	}
	if err != nil { // names and languages can be fetched again
		v.s.o.Logger.Warn("state", "key", v.t.Due.Key, "err", err)
		v.st.Names, v.st.Langs = nil, nil
		if v.res.Checkpoint, err = json.Marshal(v.st); err != nil || len(v.res.Checkpoint) > store.MaxCheckpointBytes {
			v.res.Checkpoint = []byte{}
		}
	}
	return v.res, nil
}

// wait is for when the budget is used up: nothing has failed. A Key of which nothing was fetched
// stays as it is, and nothing is asked of the site before there is room; one that got
// further keeps that.
func (v *visit) wait(w *budget.WaitError) {
	at := w.At
	if at.IsZero() { // not before a person changes a limit; cheaper calls may be made
		v.gap(store.GapSkipped, w.Error())
		v.res.Stop = "budget"
		v.res.Next = store.Next{State: store.StateDone, At: v.now.Add(24 * time.Hour), Reason: w.Error()}
		return
	}
	if !v.had && v.ours() {
		if free := v.s.budgets.room(v.t.Due.Key.Site(), v.api.class()); free.Before(at) {
			at = free
		}
		if at.After(v.s.o.Now()) { // not v.now: a wait that is over holds nothing up, and a fetch would follow a fetch
			v.res.Again, v.res.Hold = true, at
			return
		}
		at = w.At // only calls of that kind have no room: others are looked up meanwhile
	}
	v.res.Next = store.Next{State: store.StatePending, At: at}
}

// ours says whether what was asked last is what the site of the Key is called by; a server that keeps the
// records of some accounts, and is full or down, holds up no others.
func (v *visit) ours() bool { return v.asked == "" || v.asked == v.t.Due.Key.Site() }

// A Key whose server is down longer than a fetch.Retry tries is asked for again after unreached; one of which nothing
// was ever had after twice as long each time, outsiders at most.
const unreached = 6 * time.Hour

// failed is for answers that were none. What had been fetched before is never given up.
func (v *visit) failed(err error) {
	word := service.WordOf(err)
	known := !v.st.Visited.IsZero() || v.st.ID != "" || !v.st.Good.IsZero() && v.t.Due.Attempts == 0
	reason := fetch.Reason(err)
	var f *service.Fault
	switch {
	case errors.As(err, &f) && f.Again():
		if v.ours() {
			v.s.retry.Failed(&v.res.Site, v.now)
			v.s.prices.failed(v.t.Due.Key.Site(), v.now)
		}
		v.res.Stop = string(word)
		v.down(reason)
		v.res.Next = v.s.retry.Again(v.t.Due, v.now, reason)
		if v.res.Next.State == store.StateRefused { // never given up: it is the server that is down, and not the Key
			v.res.Next = store.Next{State: store.StateDone, At: v.now.Add(unreached), Attempts: v.t.Due.Attempts,
				Reason: reason}
			if !known { // and may be none at all
				wait := unreached << min(v.s.retry.Beyond(v.t.Due), 10)
				v.res.Next.At, v.res.Next.Attempts = v.now.Add(min(wait, outsiders)), v.t.Due.Attempts+1
			}
		}
	// closed, needs a token, no such thing: asked again in a day, or with another token, as a person may change that
	case word != "":
		v.barred(f)
		v.res.Stop = string(word)
		v.gap(store.GapSkipped, reason)
		v.res.Next = store.Next{State: store.StateDone, At: v.now.Add(24 * time.Hour), Reason: reason}
		if word == service.Spent {
			v.res.Hold = v.now.Add(6 * time.Hour)
		}
	default:
		v.res.Stop = "error"
		v.res.Next = v.s.retry.Again(v.t.Due, v.now, reason)
	}
}

// gap adds to the ledger what was not had since the last visit.
func (v *visit) gap(what, reason string) {
	from := v.st.Visited
	if v.st.Looked.After(from) && !v.st.Told.At.IsZero() { // that nothing was new by then is known
		from = v.st.Looked
	}
	if from.IsZero() {
		from = v.now
	}
	v.res.Gaps = append(v.res.Gaps, store.Gap{Source: v.t.Due.Key.Service(), From: from, To: v.now, What: what,
		Reason: reason, At: v.now})
}

// outage is the time in which a server could not be reached, as the ledger has it.
type outage struct {
	From   time.Time `json:"from,omitzero"`
	To     time.Time `json:"to,omitzero"`
	Reason string    `json:"reason,omitempty"`
}

// down adds to the ledger that the server was not reached; an outage grows in one row.
func (v *visit) down(reason string) {
	v.gap(store.GapUnreachable, reason)
	g := &v.res.Gaps[len(v.res.Gaps)-1]
	if !v.st.Outage.From.IsZero() {
		g.From = v.st.Outage.From
	}
	v.st.Outage = outage{From: g.From, To: g.To, Reason: reason}
}

// reached says in the row of an outage that what was still there has been read since. It is for a visit without a fault
// that left nothing out.
func (v *visit) reached() {
	o := v.st.Outage
	if o.From.IsZero() || v.res.Next.State != store.StateDone || !v.st.Visited.Equal(v.now) &&
		!v.st.Looked.Equal(v.now) {
		return
	}
	v.st.Outage = outage{}
	if len(v.res.Gaps) > 0 { // these tell why not all was read
		return
	}
	v.res.Gaps = append(v.res.Gaps, store.Gap{Source: v.t.Due.Key.Service(), From: o.From, To: o.To,
		What:   store.GapUnreachable,
		Reason: o.Reason, At: v.now, ReadAt: v.now})
}

// candidate notes somebody that a post or a list leads to.
func (v *visit) candidate(k partition.Key, rel string) {
	if k == "" || k == v.t.Due.Key.Account() || !v.s.o.Rules.grows() || v.st.Outside != "" || v.apart ||
		v.s.o.Rules.Exclude[k] || v.linked[k] ||
		k.Service() != v.t.Due.Key.Service() {
		return
	}
	v.linked[k] = true
	v.res.Links = append(v.res.Links, store.Link{Key: k, Rel: rel})
}

// keyOf is the Key of an account, "" when it is none.
func keyOf(text string) partition.Key {
	k, err := partition.ParseKey(text)
	if err != nil || k.Kind() != partition.KindAccount {
		return ""
	}
	return k
}

// unescaped is a part of a Key as it was before it was one.
func unescaped(part string) string {
	text, err := url.PathUnescape(part)
	if err != nil {
		return part // a Key has no other escapes than good ones
	}
	return text
}
