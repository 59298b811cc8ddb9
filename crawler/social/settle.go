package social

import (
	"slices"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/focus/who"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// reconsider judges somebody by what is kept, before any call is thought of.
func (v *visit) reconsider() (ends bool, err error) {
	if v.t.Due.Key.Kind() != partition.KindAccount {
		return false, nil
	}
	rec, err := v.waiting()
	if rec == nil || err != nil {
		return false, err
	}
	v.judged = true
	return v.settle(rec, false)
}

// settle judges the account by rec, and says that the visit ends with that. fresh: rec was
// fetched by this visit; else it is what is kept, and is written when the verdict is another.
func (v *visit) settle(rec *store.Record, fresh bool) (ends bool, err error) {
	before := rec.Verdict
	stands, err := v.weigh(rec)
	if err != nil {
		return false, err
	}
	if fresh {
		v.res.Record = rec
	} else if changed(before, rec.Verdict) {
		v.res.Record = rec
	}
	was := v.st.Outside
	if v.st.Outside = stands; stands == who.IsIn {
		v.st.Outside = ""
	}
	switch stands {
	case who.IsOut:
		v.st.Judged = judged{Known: v.st.Judged.Known, Said: v.st.Judged.Said}
		v.stop("outside", "out: "+v.events(rec.Verdict), outsiders)
		return true, nil
	case who.IsUndecided:
		return v.more(rec), nil
	}
	v.st.Judged = judged{Known: v.st.Judged.Known, Said: v.st.Judged.Said}
	if was != "" { // so far no more was read than to judge by
		for _, m := range v.st.marks() {
			*m = service.Mark{}
		}
		v.st.Told = told{}
		if err := v.grow(); err != nil {
			return false, err
		}
	}
	if v.s.o.Lists {
		v.lists(rec)
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

// events says what speaks loudest.
func (v *visit) events(of *store.Verdict) string {
	if of == nil {
		return "only seeds are followed"
	}
	var all []string
	for _, e := range of.Evidence[:min(len(of.Evidence), 4)] {
		all = append(all, e.Kind+" "+e.Text)
	}
	return strings.Join(all, "; ")
}

// hidesLists says that the lists of an account are not for us.
func hidesLists(rec *store.Record) bool {
	return slices.Contains(rec.Flags, "hides-lists") || slices.Contains(rec.Flags, "protected")
}

// lists has the lists of the account read, unless it hides them.
func (v *visit) lists(rec *store.Record) {
	if hidesLists(rec) {
		return
	}
	for _, side := range [...]string{"/followers", "/following"} {
		v.res.Links = append(v.res.Links, store.Link{Key: rec.Key + partition.Key(side), Rel: "list"})
	}
}

// more is what is done about somebody who cannot be decided on: what would tell most for its
// calls is asked for, and it waits for that the less the likelier it decides, so that of many the most
// promising are asked first. It answers false when posts are to be read now.
func (v *visit) more(rec *store.Record) (ends bool) {
	j := &v.st.Judged
	reason := "undecided: " + v.events(rec.Verdict)
	for _, a := range j.Ask {
		switch {
		case slices.Contains(j.Had, a.What), a.What == who.AskNeighbours && hidesLists(rec):
			continue
		case j.Next != a.What:
			j.Next = a.What
			v.stop("undecided", reason, max(time.Duration((1-a.Value)*float64(askMost)), time.Second))
			return true
		case a.What == who.AskTexts:
			return false
		}
		v.askedFor(a.What)
		v.lists(rec)
		v.stop("undecided", reason, listsTime)
		return true
	}
	j.Next = ""
	j.Wait = min(max(2*j.Wait, openLeast), outsiders)
	v.stop("undecided", reason, j.Wait)
	return true
}

func (v *visit) askedFor(what string) {
	j := &v.st.Judged
	j.Next, j.Had = "", append(j.Had, what)
}

// back is how many posts are read the first time.
func (v *visit) back() int {
	if v.st.Outside == who.IsUndecided && (v.s.o.Back == 0 || v.s.o.Back > askedPosts) {
		return askedPosts
	}
	return v.s.o.Back
}

// applied ends a visit that has read posts of somebody who could not be decided on.
func (v *visit) applied() error {
	v.askedFor(who.AskTexts)
	rec, fresh := v.res.Record, true
	if rec == nil {
		var err error
		if rec, err = v.stored(); err != nil || rec == nil {
			return err
		}
		fresh = false
	}
	if ends, err := v.settle(rec, fresh); ends || err != nil {
		return err
	}
	if v.st.Outside == "" { // and now all of them
		v.res.Next = store.Next{State: store.StatePending, At: v.now}
		return nil
	}
	v.stop("undecided", "undecided: "+v.events(rec.Verdict), openLeast)
	return nil
}

// grow makes candidates of those whom the lists name that were read while nobody knew that the account belongs.
func (v *visit) grow() error {
	if !v.s.o.Lists {
		return nil
	}
	k := v.t.Due.Key
	sl, err := v.s.o.Store.Where(k)
	if err != nil {
		return &storeError{err}
	}
	for _, side := range [...]string{"followers", "following"} {
		n := 0
		if err := v.s.o.Store.Edges(sl, k+partition.Key("/"+side), "", func(e store.Edge) (bool, error) {
			if e.GoneAt == nil && e.Sure != store.SureDoubted {
				v.candidate(e.To, side)
				n++
			}
			return n < grownFromList, nil
		}); err != nil {
			return &storeError{err}
		}
	}
	return nil
}
