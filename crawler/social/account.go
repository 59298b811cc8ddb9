package social

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/echo-node/echo-node/crawler/focus/who"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Times of who needs no frequent visit.
const (
	silent    = 30 * 24 * time.Hour // without a post: looked at in the quiet hours only
	outsiders = 30 * 24 * time.Hour // whoever does not belong, or cannot be decided on, is judged again
	ended     = 90 * 24 * time.Hour // suspended or moved: some come back
)

// told is what a look-up said of an account before its posts were read last. As long as it says the same,
// nothing was posted or deleted.
type told struct {
	At    time.Time `json:"at,omitzero"` // when they were read; zero = never whole
	Posts int64     `json:"posts,omitempty"`
	Last  time.Time `json:"last,omitzero"`
	// Lies is for how many visits to come that is not believed, as it said the same and there were new posts.
	Lies int `json:"lies,omitempty"`
}

// Posts are read though a look-up says that none is new: those of who posts are edited, too (Options.Profile),
// and of who does not, the counter may be one that never changes.
const (
	readSilent = 7 * 24 * time.Hour
	notBelief  = 16 // told.Lies after a lie
)

// looks says whether a visit to a Key of this service, with that state, begins with a look-up of its subject.
func (v *visit) looks(k partition.Key, st *state) bool {
	switch k.Kind() {
	case partition.KindName:
		return true
	case partition.KindFollowers, partition.KindFollowing:
		return st.List == nil || len(st.List.At) == 0
	case partition.KindAccount:
		// judged again by what is kept
		if st.Outside == who.IsUndecided && st.ID != "" && v.now.Sub(st.Profiled) < outsiders {
			return false
		}
		return v.profileDue(st) || v.mayBeIdle(st)
	}
	return false
}

// profileDue says whether the profile of an account is to be fetched anew.
func (v *visit) profileDue(st *state) bool {
	return st.ID == "" || v.now.Sub(st.Profiled) >= v.s.o.Profile || st.Outside != ""
}

// mayBeIdle says whether a look-up can tell that an account has nothing new: all its posts were read, and its counter
// is believed.
func (v *visit) mayBeIdle(st *state) bool {
	return !st.Told.At.IsZero() && st.Told.Lies == 0 && st.Mark.Walk == nil && st.Boosts.Walk == nil &&
		v.api.counts(st.Claimed)
}

// account refreshes the profile when that is due, judges, and reads the posts since the mark, unless
// a look-up says that there are none.
func (v *visit) account(ctx context.Context) error {
	if !v.judged {
		ends, err := v.lookUp(ctx)
		if gone, known := notThere(err); gone {
			return v.lost(known, err)
		}
		if ends || err != nil {
			return err
		}
	}
	if v.idle() {
		return errors.Join(v.round(ctx), v.again())
	}
	if err := v.posts(ctx); err != nil {
		return err
	}
	if v.wish != "" {
		return v.optedMeanwhile()
	}
	if v.st.Outside != "" {
		return v.applied()
	}
	v.st.Visited, v.st.Rev = v.now, v.rev
	v.heed()
	if err := v.trust(); err != nil {
		return err
	}
	return errors.Join(v.round(ctx), v.again())
}

// lookUp looks the account up where its profile is due, or where that costs a part of a call and may save
// one. It says whether the visit ends with that.
func (v *visit) lookUp(ctx context.Context) (ends bool, err error) {
	due := v.profileDue(&v.st)
	if !due && !v.mayBeIdle(&v.st) {
		return false, nil
	}
	had, several, err := v.looked(ctx)
	if err != nil || !due && (!several || had.profile == nil) {
		return false, err
	}
	p, err := v.profile(ctx, had)
	if err != nil {
		return false, err
	}
	v.st.Lost = 0
	if !due && !p.suspended && !p.protected && p.moved == "" && opted(p.record.Flags) == "" {
		v.res.Record = nil // the one of the day is kept
		return false, nil
	}
	first := v.st.Profiled.IsZero()
	v.st.Profiled = v.st.Looked
	if ends, err := v.stays(p); ends || err != nil {
		return ends, err
	}
	// whose profile was never seen goes before posts: rows of a later hour come later
	if first && had.crowd && v.st.Outside == "" {
		v.res.Next = store.Next{State: store.StatePending, At: v.now.Truncate(time.Hour).Add(time.Hour)}
		return true, nil
	}
	return false, nil
}

// idle says that nothing was posted or deleted since the posts were read, as far as a look-up of this visit tells.
func (v *visit) idle() bool {
	t := &v.st.Told
	if v.st.Outside != "" || !v.same() || !v.mayBeIdle(&v.st) {
		return false
	}
	again := readSilent
	if gap, ok := v.between(); ok { // where calls are scarce, what is new goes before what may have been edited
		again = min(max(v.s.o.Profile, editFactor*v.s.prices.wait(v.t.Due.Key.Site(), gap)), readSilent)
	}
	return v.now.Sub(t.At) < again
}

// same says that the look-up of this visit said what the one before the last reading did.
func (v *visit) same() bool {
	return v.fresh && v.st.Claimed == v.st.Told.Posts && v.st.LastPost.Equal(v.st.Told.Last)
}

// heed holds what was read against what the look-up had said.
func (v *visit) heed() {
	t := &v.st.Told
	switch {
	case t.At.IsZero():
	case v.older > 0 && v.same():
		t.Lies = notBelief
	case t.Lies > 0:
		t.Lies--
	}
	if v.st.Looked.After(t.At) { // for this reading, in this visit or before
		t.Posts, t.Last = v.st.Claimed, v.st.LastPost
	} else { // counted on: a claim that differs costs a call, and loses nothing
		t.Posts += int64(v.new)
	}
	t.At = v.now
}

// profile has the account by what is known of it, or asks.
func (v *visit) profile(ctx context.Context, had found) (person, error) {
	p, err := v.api.profile(ctx, had.profile)
	if err != nil {
		return p, err
	}
	at := v.now
	if had.profile != nil {
		at, v.had = had.at, true
	} else if p.as != nil {
		v.s.ahead.put(subject(v.t.Due.Key), found{at: v.now, profile: p.as})
	}
	if p.record != nil {
		p.record.FetchedAt = at
	}
	v.fresh = true
	v.st.ID, v.st.Looked, v.st.Claimed, v.st.LastPost, v.st.NoIndex = p.id, at, p.posts, p.lastPost, p.noIndex
	v.res.Record = p.record
	return p, nil
}

// name finds out whose a name is, which is then followed as if it had been named so. Names change
// hands; who is followed does not.
func (v *visit) name(ctx context.Context) error {
	had, _, err := v.looked(ctx)
	if err != nil {
		return err
	}
	k, err := v.api.named(ctx, had.profile)
	if gone, known := notThere(err); gone {
		return v.lost(known, err)
	}
	if err != nil {
		return err
	}
	v.st.Visited, v.st.Lost = v.now, 0
	v.res.Links = append(v.res.Links, store.Link{Key: k, Rel: "named"})
	v.res.Next = store.Next{State: store.StateDone, Reason: "is " + string(k)}
	return nil
}

// notThere says whether err is that the account is not there, and whether the API itself said so.
func notThere(err error) (gone, api bool) {
	var f *service.Fault
	if errors.As(err, &f) && f.Word == service.Gone {
		return true, f.FromAPI
	}
	return false, false
}

// lost is for an account that is not found: gone when that is said a second time.
func (v *visit) lost(api bool, err error) error {
	v.st.Lost++
	v.st.Poll = time.Time{}
	v.res.Stop = string(service.Gone)
	if v.st.Lost >= 2 && (api || v.st.Lost >= 5) {
		v.res.Next = store.Next{State: store.StateGone, Reason: "the server does not know it"}
		v.gap(store.GapExpired, err.Error())
		return nil
	}
	v.res.Next = store.Next{State: store.StatePending, At: v.now.Add(time.Duration(v.st.Lost) * time.Hour),
		Reason: "not found: asked once more"}
	return nil
}

// stays says that the visit ends with the profile: who is suspended, has moved, does not
// want to be collected or does not belong costs a call in a long while.
func (v *visit) stays(p person) (bool, error) {
	k := v.t.Due.Key
	overrides, err := v.overrides()
	if err != nil {
		return false, err
	}
	if p.suspended && p.record == nil { // nothing is shown of it
		v.gap(store.GapExpired, "suspended")
		v.leave("suspended", "suspended", ended)
		return true, nil
	}
	v.res.Record.Verdict = overruled(k, nil, overrides)
	if wish := opted(v.res.Record.Flags); wish != "" {
		v.optOut(v.res.Record, wish)
		return true, nil
	}
	switch {
	case p.suspended:
		v.gap(store.GapExpired, "suspended")
		v.leave("suspended", "suspended", ended)
		return true, nil
	case p.moved != "":
		if to := p.movedTo; to != "" && to != k && !v.linked[to] { // the same person: as seed as it was
			v.linked[to] = true
			v.res.Links = append(v.res.Links, store.Link{Key: to, Rel: "moved"})
		}
	}
	ends, err := v.settle(v.res.Record, true)
	switch {
	case err != nil || ends:
		return ends, err
	case v.st.Outside == "" && p.moved != "":
		v.leave("moved", "moved to "+p.moved, ended)
		return true, nil
	case p.protected:
		v.gap(store.GapSkipped, "protected: its posts are for whom it lets follow")
		v.leave("protected", "protected", outsiders)
		return true, nil
	}
	return false, nil
}

// leave is stop for somebody whose posts are not to be read as long as the profile says the same: whenever the account
// is visited next, be it because a person asks for it, its profile goes first.
func (v *visit) leave(word, reason string, again time.Duration) {
	v.stop(word, reason, again)
	v.st.Profiled = time.Time{}
}

// stop ends the visit of an account that is looked at again after that time, 0 = never.
func (v *visit) stop(word, reason string, again time.Duration) {
	v.res.Stop = word
	v.st.Visited, v.st.Poll = v.now, time.Time{}
	v.res.Next = store.Next{State: store.StateDone, Reason: reason}
	if again > 0 {
		v.res.Next.At = v.now.Add(again)
	}
}

// seeded says that a person named this account, by its Key or by its name, or one that moved here.
func (v *visit) seeded() bool {
	return v.t.Due.Depth == 0 || v.t.Due.Referrer.Kind() == partition.KindName || v.movedHere()
}

// movedHere says that somebody who was followed moved to this account.
func (v *visit) movedHere() bool {
	return v.t.Due.Depth == 1 && v.t.Due.Referrer.Kind() == partition.KindAccount && !v.s.o.Rules.grows()
}

// posts reads the feeds of the Key.
func (v *visit) posts(ctx context.Context) error {
	feeds, err := v.api.feeds(ctx)
	if err != nil {
		return err
	}
	for _, f := range feeds {
		if err := v.read(ctx, f); err != nil || v.wish != "" {
			return err
		}
	}
	return nil
}

// read reads one feed as far as it goes.
func (v *visit) read(ctx context.Context, f feed) (err error) {
	for !f.Done() && err == nil && v.wish == "" {
		err = f.page(ctx)
	}
	if v.wish != "" && err == nil {
		return nil
	}
	*f.mark = f.Mark()
	defer v.prune()
	l := f.Listing()
	// some let nobody past the first page of a search
	if err != nil && !(f.Done() && l.Pages > 0 && l.Why == service.Closed) {
		return err
	}
	if v.st.Outside != "" { // so many were read as to judge by
		return nil
	}
	switch l.Why {
	case "":
	case service.FarEnough, service.MaxPages, service.MaxItems, service.ShowsNoMore, service.Closed:
		v.gap(store.GapCut, fmt.Sprintf("%s: %d posts read", l.Why, l.Seen))
	case service.NothingNew: // the server has one page only: what lies below it cannot be fetched
		of := "how many there are is not said"
		if v.st.Claimed > 0 {
			of = fmt.Sprintf("of %d", v.st.Claimed)
		}
		v.gap(store.GapIncomplete, fmt.Sprintf("%s: %d posts read, %s", l.Why, l.Seen, of))
	default:
		v.gap(store.GapIncomplete, string(l.Why))
	}
	v.emptied(f)
	return v.absent(ctx, f)
}

// prune keeps the names of the posts that the marks have.
func (v *visit) prune() {
	keep := map[string]bool{}
	for _, m := range v.st.marks() {
		all := slices.Concat(m.Recent, m.Base)
		if w := m.Walk; w != nil {
			all = slices.Concat(all, w.Base, w.Top)
		}
		for _, s := range all {
			keep[s.ID] = true
		}
	}
	maps.DeleteFunc(v.st.Names, func(id, _ string) bool { return !keep[id] })
	maps.DeleteFunc(v.st.Doubt, func(id string, _ time.Time) bool { return !keep[id] })
}
