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

// judging decides whether an account belongs, and what is asked for to know.
type judging struct {
	*parts
	b   *fold.Batch
	due store.Due
	key partition.Key
	now time.Time
}

// What is read of who cannot be decided on.
const (
	askedPosts    = 60   // posts
	grownFromList = 2000 // candidates of a list that was read before its account was found to belong
)

// reconsider judges somebody by what is kept, before any call is thought of: then the profile is not asked for.
// ends says that the visit ends with that.
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

// weigh gives rec its verdict, and says where the account stands.
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

// settle judges the account by rec, and says that the visit ends with that. fresh: rec was
// fetched by this visit; else it is what is kept, and is written when the verdict is another.
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
	if was != "" { // so far no more was read than to judge by
		for _, m := range j.b.State.Marks() {
			*m = service.Mark{}
		}
		j.b.State.Told = account.Told{}
		if err := j.grow(); err != nil {
			return false, err
		}
	}
	if j.o.Lists {
		j.b.ReadLists(rec)
	}
	return false, nil
}

// changed says whether b is worth a new record after a.
func changed(a, b *store.Verdict) bool {
	if a == nil || b == nil {
		return a != b
	}
	return a.Verdict != b.Verdict || a.Score != b.Score || a.By != b.By || (a.Override == nil) != (b.Override == nil) ||
		len(a.Evidence) != len(b.Evidence)
}

// evidence says what speaks loudest.
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

// more is what is done about somebody who cannot be decided on: what would tell most for its
// calls is asked for, and it waits for that the less the likelier it decides, so that of many the most
// promising are asked first. It answers false when posts are to be read now.
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

func (j *judging) askedFor(what string) {
	of := &j.b.State.Judged
	of.Next, of.Had = "", append(of.Had, what)
}

// back is how many posts are read the first time.
func (j *judging) back() int {
	if j.b.State.Outside == community.IsUndecided && (j.o.Back == 0 || j.o.Back > askedPosts) {
		return askedPosts
	}
	return j.o.Back
}

// applied ends a visit that has read posts of somebody who could not be decided on.
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
	if j.b.State.Outside == "" { // and now all of them
		j.b.Next = store.Next{State: store.StatePending, At: j.now}
		return nil
	}
	j.b.End("undecided", "undecided: "+evidence(rec.Verdict), openLeast)
	return nil
}

// grow makes candidates of those whom the lists name that were read while nobody knew that the account belongs.
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

// When somebody who cannot be decided on is looked at again.
const (
	askMost   = 30 * time.Minute // before more is asked for: the likelier that it decides, the sooner
	listsTime = time.Hour        // for lists to be read
	// with nothing left to ask for, its neighbours may be judged meanwhile; then twice as long, up to account.Outsiders
	openLeast = 6 * time.Hour
)

// stored is the account's record as it is kept, nil when there is none.
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

// waiting is the record of somebody who could not be decided on, or of whom a person said
// something: as long as the profile is not too old, judging again costs no call.
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

// overrides are what persons said of the account.
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

// optedMeanwhile is optOut for an account whose posts came with a profile that says so, be it before its own is due.
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
