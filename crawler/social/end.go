package social

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/crawler/budget"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/crawler/social/calls"
	"github.com/echo-node/echo-node/store"
)

// end returns the Result of what was done up to err.
func (v *visit) end(ctx context.Context, err error) (fetch.Result, error) {
	var gate *calls.GateError
	var lost *calls.StoreError
	var wait *budget.WaitError
	if v.session.Answered {
		v.b.State.Good = v.now
	}
	switch {
	case errors.As(err, &gate):
		return v.result(), gate.Err
	case errors.As(err, &lost):
		return v.result(), lost.Err
	case ctx.Err() != nil:
		return v.result(), ctx.Err()
	case errors.As(err, &wait):
		v.wait(wait)
	case errors.Is(err, calls.ErrEnough), service.WordOf(err) == service.Limited && v.session.Had:
		v.b.Next = store.Next{State: store.StatePending, At: v.now}
	case service.WordOf(err) == service.Limited && !v.session.Ours():
		v.b.Next = store.Next{State: store.StatePending, At: v.now.Add(time.Second)}
	case service.WordOf(err) == service.Limited:
		// The budget now knows how long to wait, and says so at the next call.
		v.b.Again = true
		v.b.Hold = v.o.Now().Add(time.Second)
	case err != nil:
		v.failed(err)
	}
	if v.b.Again {
		return v.result(), nil
	}
	if err == nil && v.session.Reqs > 0 && !v.round.Silent() {
		v.retry.Answered(&v.b.Site)
	}
	if err == nil {
		v.b.Reached()
	}
	if err := withdraw(v.o.Store, v.key, v.now, v.b); err != nil {
		return v.result(), errors.Unwrap(err)
	}
	v.b.Files()
	v.b.Site.Fetched++
	if err := v.events.listen(); err != nil {
		return v.result(), err
	}
	v.round.Sooner()
	v.b.Checkpoint, err = json.Marshal(v.b.State)
	if err == nil && len(v.b.Checkpoint) > store.MaxCheckpointBytes {
		err = fmt.Errorf("a state of %d bytes", len(v.b.Checkpoint))
	}
	if err != nil { // names and languages can be fetched again
		v.o.Logger.Warn("state", "key", v.key, "err", err)
		v.b.State.Names, v.b.State.Langs = nil, nil
		if v.b.Checkpoint, err = json.Marshal(v.b.State); err != nil || len(v.b.Checkpoint) > store.MaxCheckpointBytes {
			v.b.Checkpoint = []byte{}
		}
	}
	return v.result(), nil
}

// result returns the Result as it is now.
func (v *visit) result() fetch.Result {
	v.b.Reqs, v.b.Bytes, v.b.Asked = v.session.Reqs, v.session.Bytes, v.session.At
	return v.b.Result
}

// wait handles a budget that is used up. That is not a failure. If nothing was fetched of the Key,
// its row stays as it is, and the site is not asked before there is room. Otherwise what was
// fetched is kept.
func (v *visit) wait(w *budget.WaitError) {
	at := w.At
	if at.IsZero() { // until a person changes a limit; cheaper calls may be made
		v.b.Gap(store.GapSkipped, w.Error())
		v.b.Stop = "budget"
		v.b.Next = store.Next{State: store.StateDone, At: v.now.Add(24 * time.Hour), Reason: w.Error()}
		return
	}
	if !v.session.Had && v.session.Ours() {
		if free := v.calls.Budgets.Room(v.key.Site(), v.api.Class()); free.Before(at) {
			at = free
		}
		// v.now would be wrong: a wait that is over must not delay anything, or fetches would
		// repeat at once
		if at.After(v.o.Now()) {
			v.b.Again, v.b.Hold = true, at
			return
		}
		at = w.At // only this class of calls has no room: other accounts are looked up meanwhile
	}
	v.b.Next = store.Next{State: store.StatePending, At: at}
}

// If a server is down longer than fetch.Retry tries, its Keys are asked for again after unreached.
// For a Key that was never fetched the wait doubles each time, up to account.Outsiders.
const unreached = 6 * time.Hour

// failed handles an error of the service. A Key that was fetched before is never given up.
func (v *visit) failed(err error) {
	word := service.WordOf(err)
	known := !v.b.State.Visited.IsZero() || v.b.State.ID != "" || !v.b.State.Good.IsZero() && v.t.Due.Attempts == 0
	reason := fetch.Reason(err)
	var f *service.Fault
	switch {
	case errors.As(err, &f) && f.Again():
		if v.session.Ours() {
			v.retry.Failed(&v.b.Site, v.now)
			v.pace.Prices.Failed(v.key.Site(), v.now)
		}
		v.b.Stop = string(word)
		v.b.Down(reason)
		v.b.Next = v.retry.Again(v.t.Due, v.now, reason)
		if v.b.Next.State == store.StateRefused { // never given up: the server is down, not the Key
			v.b.Next = store.Next{State: store.StateDone, At: v.now.Add(unreached), Attempts: v.t.Due.Attempts,
				Reason: reason}
			if !known { // the account may not exist at all
				wait := unreached << min(v.retry.Beyond(v.t.Due), 10)
				v.b.Next.At, v.b.Next.Attempts = v.now.Add(min(wait, account.Outsiders)), v.t.Due.Attempts+1
			}
		}
	// closed, needs a token, does not exist: asked again in a day, or with another token, as a
	// person may change that
	case word != "":
		v.barred(f)
		v.b.Stop = string(word)
		v.b.Gap(store.GapSkipped, reason)
		v.b.Next = store.Next{State: store.StateDone, At: v.now.Add(24 * time.Hour), Reason: reason}
		if word == service.Spent {
			v.b.Hold = v.now.Add(6 * time.Hour)
		}
	default:
		v.b.Stop = "error"
		v.b.Next = v.retry.Again(v.t.Due, v.now, reason)
	}
}

// barred notes that the Key waits for another token, if f says so.
func (v *visit) barred(f *service.Fault) {
	if f == nil || f.Word != service.NeedsToken && f.Word != service.Closed {
		return
	}
	site := v.key.Site()
	if v.b.State.Barred = v.calls.Tokens.Sum(site); v.b.State.Barred == "" {
		v.b.State.Barred = calls.NoToken
	}
	rejects := f.Word == service.NeedsToken || f.Code == "client-forbidden" || f.Code == "unsupported-authentication"
	if !rejects || f.Status == 0 || !v.calls.Tokens.At(v.session.Asked)[v.session.Used].Set() {
		return
	}
	v.session.Reject(v.session.Asked, f.Said)
}
