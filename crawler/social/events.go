package social

import (
	"errors"
	"slices"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// applyEvents takes what streams said of the account. It says whether the visit ends with that, as it is not yet time
// to ask its server.
func (v *visit) applyEvents() (ends bool, err error) {
	k := v.t.Due.Key
	if !v.s.subscriptions.open || k.Kind() != partition.KindAccount || v.st.Poll.IsZero() {
		return false, nil
	}
	some, more, plain, lost := v.s.subscriptions.events(k)
	look := false
	for _, w := range some {
		if v.told = w.at; v.told.After(v.now) {
			v.told = v.now
		}
		if err := w.tell(v); err != nil {
			return false, &storeError{err}
		}
		look = look || w.ends
	}
	v.told = time.Time{}
	if plain && !v.st.Plain.IsZero() {
		v.st.Poll, v.st.Plain = v.st.Plain, time.Time{}
	}
	last := uint64(0)
	if len(some) > 0 {
		last = some[len(some)-1].seq
	}
	if last > 0 || plain || lost > 0 {
		v.res.Kept = func() { v.s.subscriptions.kept(k, last, plain, lost) }
	}
	if lost > 0 {
		v.gap(store.GapIncomplete,
			"what a stream told for a while was not had: what was edited or deleted of older posts may not be known")
	}
	if look && v.now.Sub(v.st.Looked) >= v.s.o.Least { // and so no stream has it asked for more often
		v.st.Profiled = time.Time{}
		return false, nil
	}
	if !v.st.Poll.After(v.now) && !more {
		return false, nil
	}
	v.res.Next = store.Next{State: store.StateDone, At: v.st.Poll, Reason: v.t.Due.Reason}
	if more {
		v.res.Next.At = v.now
	}
	v.heardOnly = true
	return true, nil
}

// news says whether what a stream tells of a post is later than what is kept of it, and what that is.
func (v *visit) news(uri string) (had *store.Record, later bool, err error) {
	for i := range slices.Backward(v.res.Posts) {
		if v.res.Posts[i].Post == uri {
			return &v.res.Posts[i], true, nil
		}
	}
	r, _, err := v.s.o.Store.Post(v.t.Due.Key, uri)
	if errors.Is(err, store.ErrNotExist) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	return &r, v.told.After(r.FetchedAt), nil
}

// unsaid makes a tombstone of a post that a stream says was deleted, when it is kept. id is what the Mark calls it: a
// reading need not miss it any more.
func (v *visit) unsaid(uri, id string) error {
	had, later, err := v.news(uri)
	if err != nil || had == nil || had.Deleted || !later {
		return err
	}
	r := v.tombstone(uri, id)
	r.FetchedAt = v.told
	v.res.Posts = append(v.res.Posts, r)
	for _, m := range v.st.marks() {
		if left := slices.DeleteFunc(slices.Clone(m.Recent),
			func(s service.Seen) bool { return s.ID == id }); len(left) > 0 {
			m.Recent = left
		}
	}
	return nil
}

// proved holds the posts that a reading found new against what the stream had told.
func (v *visit) proved() error {
	on := v.s.subscriptions.since(v.t.Due.Key)
	if on.IsZero() {
		return nil
	}
	for _, i := range v.novel {
		r := &v.res.Posts[i]
		if r.PublishedAt == nil || !r.PublishedAt.After(on) || r.PublishedAt.After(v.now.Add(-time.Minute)) {
			continue
		}
		_, _, err := v.s.o.Store.Post(v.t.Due.Key, r.Post)
		switch {
		case err == nil || v.toldOf[r.Post]:
			v.foretold++
		case errors.Is(err, store.ErrNotExist):
			v.untold++
		default:
			return &storeError{err}
		}
	}
	return nil
}

// trust is after a whole reading.
func (v *visit) trust() error {
	if err := v.proved(); err != nil {
		return err
	}
	switch {
	case v.untold > 0:
		v.st.Trust = 0
	case v.foretold > 0:
		v.st.Trust = min(v.st.Trust+1, trustedAfter)
	}
	return nil
}

// listen tells the subscriptions how the account stands after this visit.
func (v *visit) listen() error {
	k := v.t.Due.Key
	if !v.s.subscriptions.open || k.Kind() != partition.KindAccount || v.heardOnly {
		return nil
	}
	v.s.posted.read(k, &v.st, v.res.Posts)
	if v.st.Poll.IsZero() {
		v.s.subscriptions.leave(k)
		return nil
	}
	sl, err := v.s.o.Store.Where(k)
	if err != nil {
		return err
	}
	v.st.Poll = v.res.Next.At
	v.s.subscriptions.join(k, sl, &v.st)
	return nil
}

// trusted says whether the stream need be held against readings only now and then.
func (v *visit) trusted() bool {
	return v.st.Trust >= trustedAfter && !v.s.subscriptions.since(v.t.Due.Key).IsZero()
}
