package social

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/echo-node/echo-node/crawler/bluesky"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Times of who needs no frequent visit.
const (
	silent    = 30 * 24 * time.Hour // without a post: looked at in the quiet hours only
	outsiders = 30 * 24 * time.Hour // whoever does not belong, or cannot be decided on, is judged again
	ended     = 90 * 24 * time.Hour // suspended or moved: some come back
	quietFrom = 3                   // hours UTC of the quiet window: when nobody who is followed posts much
	quietFor  = 4 * time.Hour
)

// account refreshes the profile when that is due, judges, and reads the posts since the mark.
func (v *visit) account(ctx context.Context) error {
	if !v.judged && (v.st.ID == "" || v.now.Sub(v.st.Profiled) >= v.s.o.Profile || v.st.Outside != "") {
		p, err := v.profile(ctx)
		if gone, known := notThere(err); gone {
			return v.lost(known, err)
		}
		if err != nil {
			return err
		}
		v.st.Lost = 0
		if ends, err := v.stays(p); ends || err != nil {
			return err
		}
	}
	if err := v.posts(ctx); err != nil {
		return err
	}
	if v.st.Outside != "" {
		return v.heard()
	}
	v.st.Visited, v.st.Rev = v.now, v.rev
	v.res.Next = store.Next{State: store.StateDone, At: v.next()}
	return nil
}

// profile asks for the profile, for the record and for what is to be known the next time.
func (v *visit) profile(ctx context.Context) (person, error) {
	p, err := v.api.profile(ctx)
	if err != nil {
		return p, err
	}
	v.st.ID, v.st.Profiled, v.st.Claimed, v.st.LastPost, v.st.NoIndex = p.id, v.now, p.posts, p.lastPost, p.noIndex
	v.res.Record = p.record
	return p, nil
}

// name finds out whose a name is, which is then followed as if it had been named so. Names change
// hands; who is followed does not.
func (v *visit) name(ctx context.Context) error {
	k, err := v.api.named(ctx)
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
	v.res.Stop = string(service.Gone)
	if v.st.Lost >= 2 && (api || v.st.Lost >= 5) {
		v.res.Next = store.Next{State: store.StateGone, Reason: "the server does not know it"}
		v.gap(store.GapExpired, err.Error())
		return nil
	}
	v.res.Next = store.Next{State: store.StatePending, At: v.now.Add(time.Duration(v.st.Lost) * time.Hour), Reason: "not found: asked once more"}
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
		v.stop("suspended", "suspended", ended)
		return true, nil
	}
	v.res.Record.Verdict = overruled(k, nil, overrides)
	if wish := opted(v.res.Record.Flags); wish != "" {
		v.gap(store.GapSkipped, "the profile says "+wish)
		v.res.Record.Text, v.res.Record.Raw, v.res.Record.Fields, v.res.Record.Declared = "", nil, nil, nil
		v.stop("opted-out", "the profile says "+wish, ended)
		return true, nil
	}
	switch {
	case p.suspended:
		v.gap(store.GapExpired, "suspended")
		v.stop("suspended", "suspended", ended)
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
		v.stop("moved", "moved to "+p.moved, ended)
		return true, nil
	case p.protected:
		v.gap(store.GapSkipped, "protected: its posts are for whom it lets follow")
		v.stop("protected", "protected", outsiders)
		return true, nil
	}
	return false, nil
}

// stop ends the visit of an account that is looked at again after that time, 0 = never.
func (v *visit) stop(word, reason string, again time.Duration) {
	v.res.Stop = word
	v.st.Visited = v.now
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
		if err := v.read(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// read reads one feed as far as it goes.
func (v *visit) read(ctx context.Context, f feed) (err error) {
	for !f.Done() && err == nil {
		err = f.page(ctx)
	}
	*f.mark = f.Mark()
	defer v.prune()
	l := f.Listing()
	if err != nil && !(f.Done() && l.Pages > 0 && l.Why == service.Closed) { // some let nobody past the first page of a search
		return err
	}
	if v.st.Outside != "" { // so many were read as to judge by
		return nil
	}
	switch l.Why {
	case "":
	case service.FarEnough, service.MaxPages, service.MaxItems, service.ShowsNoMore, service.Closed:
		v.gap(store.GapCut, fmt.Sprintf("%s: %d posts read", l.Why, l.Seen))
	case service.NothingNew: // the server has one page only: what lies below it cannot be had
		v.gap(store.GapIncomplete, fmt.Sprintf("%s: %d posts read of %d", l.Why, l.Seen, v.st.Claimed))
	default:
		v.gap(store.GapIncomplete, string(l.Why))
	}
	return v.absent(ctx, f)
}

// mostAbsent is how many posts that are missing from their place are asked for in one visit.
const mostAbsent = 5

// absent asks for posts that should have come again and did not.
func (v *visit) absent(ctx context.Context, f feed) error {
	ids := f.Absent()
	for _, id := range ids[:min(len(ids), mostAbsent)] {
		err := f.post(ctx, id)
		switch gone, api := notThere(err); {
		case gone && !api:
			continue // a web server in between may have said so
		case gone:
			if uri := f.uri(id); uri != "" {
				v.res.Posts = append(v.res.Posts, v.tombstone(uri, id))
			}
		case err != nil:
			return err
		}
		f.mark.Recent = slices.DeleteFunc(slices.Clone(f.mark.Recent), func(s service.Seen) bool { return s.ID == id })
	}
	return nil
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
}

// times are when the last posts were made, the newest first.
func (v *visit) times() (out []time.Time) {
	for _, m := range v.st.marks() {
		for _, s := range m.Recent {
			at := s.At
			if at.IsZero() {
				at = bluesky.KeyTime(s.ID)
			}
			if !at.After(v.now) {
				out = append(out, at)
			}
		}
	}
	if len(v.st.Boosts.Recent) > 0 {
		slices.SortFunc(out, func(a, b time.Time) int { return b.Compare(a) })
	}
	return out
}

// next is when an account is looked at again: after half of the mean gap between its last
// posts, the time since the latest counted, so that a burst is met by a page.
// Who has not posted for a month waits for the quiet hours of a day.
func (v *visit) next() time.Time {
	recent := v.times()
	if n := min(len(recent), 20); n > 0 && !recent[0].IsZero() && v.now.Sub(recent[0]) < silent {
		gap := v.now.Sub(recent[n-1]) / time.Duration(n)
		return v.now.Add(min(max(gap/2, v.s.o.Least), v.s.o.Most))
	}
	if v.s.o.Most < 24*time.Hour {
		return v.now.Add(v.s.o.Most)
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(v.t.Due.Key)) // never fails
	at := v.now.Add(12 * time.Hour).Truncate(24 * time.Hour).Add(24*time.Hour + quietFrom*time.Hour)
	return at.Add(time.Duration(float64(h.Sum32()) / (1 << 32) * float64(quietFor)))
}
