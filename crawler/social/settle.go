package social

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/judge/community"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/crawler/social/calls"
	"github.com/echo-node/echo-node/crawler/social/fold"
	"github.com/echo-node/echo-node/crawler/social/follow"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// judging decides whether an account belongs, and which evidence is fetched for that.
type judging struct {
	*parts
	b   *fold.Batch
	due store.Due
	key partition.Key
	now time.Time
}

// Limits on what is read of an undecided account.
const (
	askedPosts = 60 // posts
	// candidates from a list that was read before its account was found to belong
	grownFromList = 2000
)

// reconsider judges an account by what is stored, before any call is made. If judged is true, the
// profile is not asked for. ends says that the visit ends with that.
func (j *judging) reconsider() (judged, ends bool, err error) {
	if j.key.Kind() != partition.KindAccount {
		return false, false, nil
	}
	rec, err := j.waiting()
	if rec == nil || err != nil {
		return false, false, err
	}
	ends, err = j.settle(rec, false)
	return true, ends, err
}

// weigh puts the verdict into rec, and returns whether the account is followed: in, out, or
// undecided.
func (j *judging) weigh(rec *store.Record) (stands string, err error) {
	p, err := j.known.Person(j.due, rec, j.b.State.Langs, j.b.Posts)
	if err != nil {
		return "", &calls.StoreError{Err: err}
	}
	had, err := j.stored()
	if err != nil {
		return "", err
	}
	overrides, err := j.overrides()
	if err != nil {
		return "", err
	}
	rec.Verdict, stands, err = j.o.Rules.Weigh(p, had, overrides, &j.b.State.Judged, j.now)
	return stands, err
}

// settle judges the account by rec. ends says that the visit ends with that. fresh says that this
// visit fetched rec; otherwise rec is the stored record, which is written if the verdict has
// changed.
func (j *judging) settle(rec *store.Record, fresh bool) (ends bool, err error) {
	before := rec.Verdict
	stands, err := j.weigh(rec)
	if err != nil {
		return false, err
	}
	if fresh {
		j.b.Record = rec
	} else if changed(before, rec.Verdict) {
		j.b.Record = rec
	}
	was := j.b.State.Outside
	if j.b.State.Outside = stands; stands == community.IsIn {
		j.b.State.Outside = ""
	}
	switch stands {
	case community.IsOut:
		j.b.State.Judged = account.Judged{Known: j.b.State.Judged.Known, Said: j.b.State.Judged.Said}
		j.b.End("outside", "out: "+evidence(rec.Verdict), account.Outsiders)
		return true, nil
	case community.IsUndecided:
		return j.more(rec), nil
	}
	j.b.State.Judged = account.Judged{Known: j.b.State.Judged.Known, Said: j.b.State.Judged.Said}
	if was != "" { // so far only the posts to judge by were read
		for _, m := range j.b.State.Marks() {
			*m = service.Mark{}
		}
		j.b.State.LookedUp = account.LookedUp{}
		if err := j.grow(); err != nil {
			return false, err
		}
	}
	if j.o.Lists {
		j.b.ReadLists(rec)
	}
	return false, nil
}

// changed reports whether the verdict b must be written after a.
func changed(a, b *store.Verdict) bool {
	if a == nil || b == nil {
		return a != b
	}
	return a.Verdict != b.Verdict || a.Score != b.Score || a.By != b.By || (a.Override == nil) != (b.Override == nil) ||
		len(a.Evidence) != len(b.Evidence)
}

// evidence returns the strongest evidence as text.
func evidence(of *store.Verdict) string {
	if of == nil {
		return "only seeds are followed"
	}
	var all []string
	for _, e := range of.Evidence[:min(len(of.Evidence), 4)] {
		all = append(all, e.Kind+" "+e.Text)
	}
	return strings.Join(all, "; ")
}

// more decides what happens to an undecided account. The visit after a wait fetches the evidence
// that helps most for its calls. The wait is shorter if that evidence is likely to decide, so the
// most promising accounts come first. ends is false if posts must be read now.
func (j *judging) more(rec *store.Record) (ends bool) {
	of := &j.b.State.Judged
	reason := "undecided: " + evidence(rec.Verdict)
	for _, a := range of.Ask {
		switch {
		case slices.Contains(of.Had, a.What), a.What == community.AskNeighbours && fold.HidesLists(rec):
			continue
		case of.Next != a.What:
			of.Next = a.What
			j.b.End("undecided", reason, max(time.Duration((1-a.Value)*float64(askMost)), time.Second))
			return true
		case a.What == community.AskTexts:
			return false
		}
		j.askedFor(a.What)
		j.b.ReadLists(rec)
		j.b.End("undecided", reason, listsTime)
		return true
	}
	of.Next = ""
	of.Wait = min(max(2*of.Wait, openLeast), account.Outsiders)
	j.b.End("undecided", reason, of.Wait)
	return true
}

// askedFor notes that this evidence was fetched.
func (j *judging) askedFor(what string) {
	of := &j.b.State.Judged
	of.Next, of.Had = "", append(of.Had, what)
}

// back returns how many posts are read the first time.
func (j *judging) back() int {
	if j.b.State.Outside == community.IsUndecided && (j.o.Back == 0 || j.o.Back > askedPosts) {
		return askedPosts
	}
	return j.o.Back
}

// applied ends a visit that has read posts of an undecided account.
func (j *judging) applied() error {
	j.askedFor(community.AskTexts)
	rec, fresh := j.b.Record, true
	if rec == nil {
		var err error
		if rec, err = j.stored(); err != nil || rec == nil {
			return err
		}
		fresh = false
	}
	if ends, err := j.settle(rec, fresh); ends || err != nil {
		return err
	}
	if j.b.State.Outside == "" { // now all posts are read
		j.b.Next = store.Next{State: store.StatePending, At: j.now}
		return nil
	}
	j.b.End("undecided", "undecided: "+evidence(rec.Verdict), openLeast)
	return nil
}

// grow makes candidates of the accounts in lists that were read before the account was found to
// belong.
func (j *judging) grow() error {
	if !j.o.Lists {
		return nil
	}
	k := j.key
	sl, err := j.o.Store.Archive.Where(k)
	if err != nil {
		return &calls.StoreError{Err: err}
	}
	for _, side := range [...]string{"followers", "following"} {
		n := 0
		if err := j.o.Store.Accounts.Edges(sl, k+partition.Key("/"+side), "", func(e store.Edge) (bool, error) {
			if e.GoneAt == nil && e.Sure != store.SureDoubted {
				j.b.Candidate(e.To, side)
				n++
			}
			return n < grownFromList, nil
		}); err != nil {
			return &calls.StoreError{Err: err}
		}
	}
	return nil
}

// When an undecided account is visited again.
const (
	// the longest wait before more evidence is fetched; the wait is shorter if that is likely to
	// decide
	askMost   = 30 * time.Minute
	listsTime = time.Hour // for its lists to be read
	// if there is nothing left to fetch: the neighbours may be judged meanwhile; the wait then
	// doubles up to account.Outsiders
	openLeast = 6 * time.Hour
)

// stored returns the stored record of the account, nil if there is none.
func (j *judging) stored() (*store.Record, error) {
	r, err := j.o.Store.Archive.Record(j.key)
	if errors.Is(err, store.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &calls.StoreError{Err: err}
	}
	return &r, nil
}

// waiting returns the record of an account that is undecided, or that has a new human override.
// While the profile is not too old, another judgement costs no call.
func (j *judging) waiting() (*store.Record, error) {
	if j.b.State.ID == "" || j.now.Sub(j.b.State.Profiled) >= account.Outsiders {
		return nil, nil
	}
	if j.b.State.Outside != community.IsUndecided {
		all, err := j.overrides()
		if err != nil || follow.LastSaid(all).Equal(j.b.State.Judged.Said) {
			return nil, err
		}
	}
	r, err := j.stored()
	if r != nil && r.Kind != store.KindProfile {
		r = nil
	}
	return r, err
}

// overrides returns the human overrides of the account.
func (j *judging) overrides() ([]store.Override, error) {
	sl, err := j.o.Store.Archive.Where(j.key)
	if err != nil {
		return nil, &calls.StoreError{Err: err}
	}
	all, err := j.o.Store.Accounts.Overrides(sl, j.key)
	if err != nil {
		return nil, &calls.StoreError{Err: err}
	}
	return all, nil
}

// optedMeanwhile ends the visit of an account whose posts came with a profile that opts out. Its
// own profile may not be due yet.
func (j *judging) optedMeanwhile() error {
	rec := j.b.Record
	if rec == nil {
		var err error
		if rec, err = j.stored(); err != nil {
			return err
		}
	}
	if rec != nil {
		rec.FetchedAt = j.now
	}
	j.b.OptOut(rec, j.b.Wish)
	return nil
}
