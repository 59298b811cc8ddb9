package social

import (
	"context"
	"errors"
	"time"

	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/crawler/social/follow"
	"github.com/echo-node/echo-node/crawler/social/pace"
	"github.com/echo-node/echo-node/store"
)

// Posts are read at times although a look-up says that none is new. Accounts that post also edit
// (Options.Profile). The counter of an account that seems silent may be one that never changes.
const (
	// at least this many waits are between two readings for edits alone, if that is longer than
	// Options.Profile
	editFactor = 6
	readSilent = 7 * 24 * time.Hour
	notBelief  = 16 // LookedUp.Lies after the claim turned out wrong
)

// account refreshes the profile if that is due, judges the account, and reads its posts since the
// Mark. It does not read posts if a look-up says that there are no new ones.
func (v *visit) account(ctx context.Context) error {
	if !v.judged {
		ends, err := v.lookUp(ctx)
		if gone, known := account.NotThere(err); gone {
			v.b.Missing(known, err)
			return nil
		}
		if ends || err != nil {
			return err
		}
	}
	if v.idle() {
		return errors.Join(v.round.Run(ctx), v.again())
	}
	if err := v.reading().posts(ctx, v.judge.back()); err != nil {
		return err
	}
	if v.b.Wish != "" {
		return v.optedMeanwhile()
	}
	if v.b.State.Outside != "" {
		return v.judge.applied()
	}
	v.b.State.Visited = v.now
	v.api.Whole()
	v.heed()
	if err := v.events.trust(); err != nil {
		return err
	}
	return errors.Join(v.round.Run(ctx), v.again())
}

// lookUp looks the account up if its profile is due, or if the look-up costs a part of a call and
// may save one. ends says that the visit ends with that.
func (v *visit) lookUp(ctx context.Context) (ends bool, err error) {
	due := v.b.State.ProfileDue(v.now, v.o.Profile)
	if !due && !v.b.State.MayBeIdle(v.counted()) {
		return false, nil
	}
	had, several, err := v.look.looked(ctx)
	if err != nil || !due && (!several || had.profile == nil) {
		return false, err
	}
	p, err := v.profile(ctx, had)
	if err != nil {
		return false, err
	}
	v.b.State.Lost = 0
	if !due && !p.Suspended && !p.Protected && p.Moved == "" && account.Opted(p.Record.Flags) == "" {
		v.b.Record = nil // the stored profile of the day stays
		return false, nil
	}
	first := v.b.State.Profiled.IsZero()
	v.b.State.Profiled = v.b.State.Looked
	if ends, err := v.stays(p); ends || err != nil {
		return ends, err
	}
	// profiles that were never fetched go before posts, so the posts wait for a row of the next
	// hour
	if first && had.crowd && v.b.State.Outside == "" {
		v.b.Next = store.Next{State: store.StatePending, At: v.now.Truncate(time.Hour).Add(time.Hour)}
		return true, nil
	}
	return false, nil
}

// idle reports whether nothing was posted or deleted since the posts were read, as far as a look-up
// of this visit shows.
func (v *visit) idle() bool {
	t := &v.b.State.LookedUp
	if v.b.State.Outside != "" || !v.same() || !v.b.State.MayBeIdle(v.counted()) {
		return false
	}
	again := readSilent
	// if calls are scarce, new posts go before posts that may have been edited
	if gap, ok := pace.Between(&v.b.State, v.now); ok {
		again = min(max(v.o.Profile, editFactor*v.pace.Prices.Wait(v.key.Site(), gap)), readSilent)
	}
	return v.now.Sub(t.At) < again
}

// same reports whether the look-up of this visit returned the same as the one before the last
// reading.
func (v *visit) same() bool {
	return v.fresh && v.b.State.Claimed == v.b.State.LookedUp.Posts && v.b.State.LastPost.Equal(v.b.State.LookedUp.Last)
}

// heed compares what was read with what the look-up had claimed.
func (v *visit) heed() {
	t := &v.b.State.LookedUp
	switch {
	case t.At.IsZero():
	case v.b.Older > 0 && v.same():
		t.Lies = notBelief
	case t.Lies > 0:
		t.Lies--
	}
	// there was a look-up for this reading, in this visit or before
	if v.b.State.Looked.After(t.At) {
		t.Posts, t.Last = v.b.State.Claimed, v.b.State.LastPost
	} else { // count on: if the next claim differs, that costs a call and loses nothing
		t.Posts += int64(v.b.New)
	}
	t.At = v.now
}

// profile returns the account from had, or asks the service for it, and makes it the record of the
// batch.
func (v *visit) profile(ctx context.Context, had found) (account.Person, error) {
	p, err := v.api.Profile(ctx, had.profile)
	if err != nil {
		return p, err
	}
	at := v.now
	if had.profile != nil {
		at, v.session.Had = had.at, true
	} else if p.As != nil {
		v.ahead.put(account.Subject(v.key), found{at: v.now, profile: p.As})
	}
	if v.b.Profile(p.Record); p.Record != nil {
		p.Record.FetchedAt = at
	}
	v.fresh = true
	st := &v.b.State
	st.ID, st.Looked, st.Claimed, st.LastPost, st.NoIndex = p.ID, at, p.Posts, p.LastPost, p.NoIndex
	v.b.Record = p.Record
	return p, nil
}

// name finds the account that has the name, and links to it. The account is then followed as if a
// person had named it. A name may pass to another account; the account that is followed stays.
func (v *visit) name(ctx context.Context) error {
	had, _, err := v.look.looked(ctx)
	if err != nil {
		return err
	}
	k, err := v.api.Named(ctx, had.profile)
	if gone, known := account.NotThere(err); gone {
		v.b.Missing(known, err)
		return nil
	}
	if err != nil {
		return err
	}
	v.b.State.Visited, v.b.State.Lost = v.now, 0
	v.b.Links = append(v.b.Links, store.Link{Key: k, Rel: "named"})
	v.b.Next = store.Next{State: store.StateDone, Reason: "is " + string(k)}
	return nil
}

// stays reports whether the visit ends with the profile. It does if the account is suspended, has
// moved, opts out or does not belong. Such accounts cost one call in a long time.
func (v *visit) stays(p account.Person) (bool, error) {
	k := v.key
	overrides, err := v.judge.overrides()
	if err != nil {
		return false, err
	}
	if p.Suspended && p.Record == nil { // nothing of it is shown
		v.b.Gap(store.GapExpired, "suspended")
		v.b.Leave("suspended", "suspended", account.Ended)
		return true, nil
	}
	v.b.Record.Verdict = follow.Overruled(k, nil, overrides)
	if wish := account.Opted(v.b.Record.Flags); wish != "" {
		v.b.OptOut(v.b.Record, wish)
		return true, nil
	}
	switch {
	case p.Suspended:
		v.b.Gap(store.GapExpired, "suspended")
		v.b.Leave("suspended", "suspended", account.Ended)
		return true, nil
	case p.Moved != "":
		// the same person: the new account is a seed if the old one is
		if to := p.MovedTo; to != "" && to != k && !v.b.Linked(to) {
			v.b.Links = append(v.b.Links, store.Link{Key: to, Rel: "moved"})
		}
	}
	ends, err := v.judge.settle(v.b.Record, true)
	switch {
	case err != nil || ends:
		return ends, err
	case v.b.State.Outside == "" && p.Moved != "":
		v.b.Leave("moved", "moved to "+p.Moved, account.Ended)
		return true, nil
	case p.Protected:
		v.b.Gap(store.GapSkipped, "protected: only followers that it accepts see its posts")
		v.b.Leave("protected", "protected", account.Outsiders)
		return true, nil
	}
	return false, nil
}
