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

// Posts are read though a look-up says that none is new: those of who posts are edited, too (Options.Profile),
// and of who does not, the counter may be one that never changes.
const (
	editFactor = 6 // waits between two readings for edits alone, where those are longer than Options.Profile
	readSilent = 7 * 24 * time.Hour
	notBelief  = 16 // Told.Lies after a lie
)

// account refreshes the profile when that is due, judges, and reads the posts since the mark, unless
// a look-up says that there are none.
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

// lookUp looks the account up where its profile is due, or where that costs a part of a call and may save
// one. It says whether the visit ends with that.
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
		v.b.Record = nil // the one of the day is kept
		return false, nil
	}
	first := v.b.State.Profiled.IsZero()
	v.b.State.Profiled = v.b.State.Looked
	if ends, err := v.stays(p); ends || err != nil {
		return ends, err
	}
	// whose profile was never seen goes before posts: rows of a later hour come later
	if first && had.crowd && v.b.State.Outside == "" {
		v.b.Next = store.Next{State: store.StatePending, At: v.now.Truncate(time.Hour).Add(time.Hour)}
		return true, nil
	}
	return false, nil
}

// idle says that nothing was posted or deleted since the posts were read, as far as a look-up of this visit tells.
func (v *visit) idle() bool {
	t := &v.b.State.Told
	if v.b.State.Outside != "" || !v.same() || !v.b.State.MayBeIdle(v.counted()) {
		return false
	}
	again := readSilent
	// where calls are scarce, what is new goes before what may have been edited
	if gap, ok := pace.Between(&v.b.State, v.now); ok {
		again = min(max(v.o.Profile, editFactor*v.pace.Prices.Wait(v.key.Site(), gap)), readSilent)
	}
	return v.now.Sub(t.At) < again
}

// same says that the look-up of this visit said what the one before the last reading did.
func (v *visit) same() bool {
	return v.fresh && v.b.State.Claimed == v.b.State.Told.Posts && v.b.State.LastPost.Equal(v.b.State.Told.Last)
}

// heed holds what was read against what the look-up had said.
func (v *visit) heed() {
	t := &v.b.State.Told
	switch {
	case t.At.IsZero():
	case v.b.Older > 0 && v.same():
		t.Lies = notBelief
	case t.Lies > 0:
		t.Lies--
	}
	if v.b.State.Looked.After(t.At) { // for this reading, in this visit or before
		t.Posts, t.Last = v.b.State.Claimed, v.b.State.LastPost
	} else { // counted on: a claim that differs costs a call, and loses nothing
		t.Posts += int64(v.b.New)
	}
	t.At = v.now
}

// profile has the account by what is known of it, or asks.
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

// name finds out whose a name is, which is then followed as if it had been named so. Names change
// hands; who is followed does not.
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

// stays says that the visit ends with the profile: who is suspended, has moved, does not
// want to be collected or does not belong costs a call in a long while.
func (v *visit) stays(p account.Person) (bool, error) {
	k := v.key
	overrides, err := v.judge.overrides()
	if err != nil {
		return false, err
	}
	if p.Suspended && p.Record == nil { // nothing is shown of it
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
		if to := p.MovedTo; to != "" && to != k && !v.b.Linked(to) { // the same person: as seed as it was
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
