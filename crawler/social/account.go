package social

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/mastodon"
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
	if v.st.ID == "" || v.now.Sub(v.st.Profiled) >= v.s.o.Profile || v.st.Outside != "" {
		p, err := v.profile(ctx)
		if gone, known := notThere(err); gone {
			return v.lost(known, err)
		}
		if err != nil {
			return err
		}
		v.st.Lost = 0
		if v.stays(p) {
			return nil
		}
	}
	if err := v.posts(ctx, mastodon.PostsOf(v.st.ID), v.s.o.Back); err != nil {
		return err
	}
	v.st.Visited = v.now
	v.res.Next = store.Next{State: store.StateDone, At: v.next()}
	return nil
}

// profile asks for the profile: by name the first time, later by the id, which stays when a name
// is given to somebody else.
func (v *visit) profile(ctx context.Context) (p mastodon.Profile, err error) {
	if v.st.ID == "" {
		user, _, _ := strings.Cut(string(v.t.Due.Key.Account())[len("mastodon:"):], "@")
		p, err = v.c.Lookup(ctx, user)
	} else {
		p, err = v.c.Account(ctx, v.st.ID)
	}
	if err != nil {
		return p, err
	}
	v.st.ID, v.st.Profiled, v.st.Claimed, v.st.LastPost = p.ID, v.now, p.Posts, p.LastPost
	v.st.NoIndex = p.NoIndex == service.Yes
	v.res.Record = v.profileRecord(p)
	return p, nil
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
func (v *visit) stays(p mastodon.Profile) bool {
	k := v.t.Due.Key
	stop := func(word, reason string, again time.Duration) bool {
		v.res.Stop = word
		v.st.Visited = v.now
		v.res.Next = store.Next{State: store.StateDone, Reason: reason}
		if again > 0 {
			v.res.Next.At = v.now.Add(again)
		}
		return true
	}
	if wish := opted(v.res.Record.Flags); wish != "" {
		v.gap(store.GapSkipped, "the profile says "+wish)
		v.res.Record.Text, v.res.Record.Raw, v.res.Record.Fields, v.res.Record.Declared = "", nil, nil, nil
		return stop("opted-out", "the profile says "+wish, ended)
	}
	switch {
	case p.Suspended:
		v.gap(store.GapExpired, "suspended")
		return stop("suspended", "suspended", ended)
	case p.Moved != nil:
		if to := keyOf(p.Moved.Acct); to != "" && to != k && !v.linked[to] { // the same person: as seed as it was
			v.linked[to] = true
			v.res.Links = append(v.res.Links, store.Link{Key: to, Rel: "moved"})
		}
	}
	verdict := v.s.o.Rules.verdict(Person{Key: k, Profile: v.res.Record, Langs: v.st.Langs}, v.t.Due.Depth == 0 || v.movedHere())
	v.st.Outside = ""
	switch {
	case verdict.Is == Out:
		v.st.Outside = Out
		return stop("outside", "out: "+strings.Join(verdict.Why, "; "), outsiders)
	case verdict.Is == Undecided && (len(v.s.o.Rules.Langs) == 0 || v.judged()): // posts may tell more
		v.st.Outside = Undecided
		return stop("undecided", "undecided: "+strings.Join(verdict.Why, "; "), outsiders)
	}
	if v.s.o.Lists && verdict.Is == In && p.HidesLists != service.Yes {
		for _, side := range [...]string{"/followers", "/following"} {
			v.res.Links = append(v.res.Links, store.Link{Key: k + partition.Key(side), Rel: "list"})
		}
	}
	if p.Moved != nil {
		return stop("moved", "moved to "+p.Moved.Acct, ended)
	}
	return false
}

// movedHere says that somebody who was followed moved to this account.
func (v *visit) movedHere() bool {
	return v.t.Due.Depth == 1 && v.t.Due.Referrer.Kind() == partition.KindAccount && !v.s.o.Rules.grows()
}

// judged says whether enough posts were read to judge by their languages.
func (v *visit) judged() bool {
	n := 0
	for _, k := range v.st.Langs {
		n += k
	}
	return n >= leastPosts || !v.st.Visited.IsZero()
}

// posts reads a feed from the newest down to what was read before. That costs no paging, of
// which a Mastodon allows a third as much as of other calls, as long as a page is enough;
// and each page shows what was edited or deleted of the last forty.
func (v *visit) posts(ctx context.Context, f mastodon.Feed, back int) error {
	tl, err := v.c.Timeline(f, v.st.Mark, mastodon.Reading{
		Paging: mastodon.Paging{Min: service.Ignored, Max: v.server.Timeline.Max}, Back: back, Claimed: v.st.Claimed,
	})
	if err != nil {
		return err
	}
	for !tl.Done() {
		var b mastodon.Batch
		if b, err = tl.Next(ctx); err != nil {
			break
		}
		for _, p := range b.Posts {
			v.post(p)
		}
		for _, p := range b.Again {
			if !p.Edited.IsZero() && p.Edited.After(v.st.Visited.Add(-time.Hour)) || v.st.Names[p.ID] == "" {
				v.post(p)
			}
		}
	}
	v.st.Mark = tl.Mark()
	defer v.prune()
	if err != nil {
		return err
	}
	switch l := tl.Listing(); l.Why {
	case "":
	case service.FarEnough, service.MaxPages, service.MaxItems:
		v.gap(store.GapCut, fmt.Sprintf("%s: %d posts read", l.Why, l.Seen))
	case service.NothingNew: // the server has one page only: what lies below it cannot be had
		v.gap(store.GapIncomplete, fmt.Sprintf("%s: %d posts read of %d", l.Why, l.Seen, v.st.Claimed))
	default:
		v.gap(store.GapIncomplete, string(l.Why))
	}
	return v.absent(ctx, tl.Absent())
}

// mostAbsent is how many posts that are missing from their place are asked for in one visit.
const mostAbsent = 5

// absent asks for posts that should have come again and did not.
func (v *visit) absent(ctx context.Context, ids []string) error {
	for _, id := range ids[:min(len(ids), mostAbsent)] {
		p, err := v.c.Post(ctx, id)
		switch gone, api := notThere(err); {
		case gone && !api:
			continue // a web server in between may have said so
		case gone:
			if uri := v.st.Names[id]; uri != "" {
				v.res.Posts = append(v.res.Posts, v.tombstone(uri, id))
			}
		case err != nil:
			return err
		default: // it is there, under this id or another (an edit at snac)
			v.post(p)
		}
		v.st.Mark.Recent = slices.DeleteFunc(slices.Clone(v.st.Mark.Recent), func(s service.Seen) bool { return s.ID == id })
	}
	return nil
}

// prune keeps the names of the posts that the mark has.
func (v *visit) prune() {
	keep := map[string]bool{}
	for _, s := range v.st.Mark.Recent {
		keep[s.ID] = true
	}
	for _, s := range v.st.Mark.Base {
		keep[s.ID] = true
	}
	if w := v.st.Mark.Walk; w != nil {
		for _, s := range slices.Concat(w.Base, w.Top) {
			keep[s.ID] = true
		}
	}
	maps.DeleteFunc(v.st.Names, func(id, _ string) bool { return !keep[id] })
}

// next is when an account is looked at again: after half of the mean gap between its last
// posts, the time since the latest counted, so that a burst is met by a page.
// Who has not posted for a month waits for the quiet hours of a day.
func (v *visit) next() time.Time {
	recent := v.st.Mark.Recent
	if n := min(len(recent), 20); n > 0 && !recent[0].At.IsZero() && v.now.Sub(recent[0].At) < silent {
		gap := v.now.Sub(recent[n-1].At) / time.Duration(n)
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
