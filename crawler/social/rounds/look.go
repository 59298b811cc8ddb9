package rounds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/crawler/social/calls"
	"github.com/echo-node/echo-node/crawler/social/fold"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// A reading shows the newest posts of a feed, but not edits and deletions of older posts. So all
// kept posts of a Key are looked at again in a slow round, in the order of their URIs, each once a
// round. The next post is always the one that was looked at longest ago. One call looks at many
// posts if the service allows it. These calls use a share of the rate budget, whatever else there
// is to do. If the share is too small, the round takes longer: the status shows this, and from
// twice its time on the gap ledger does.
const (
	roundScan = 2000 // kept posts that one visit passes over
	// the pause is a round divided by this, when the share is used up or the server does not answer
	roundRests  = 500
	roundMost   = 1 << 20 // posts of a Key that are counted, at most
	roundNewest = 40      // posts of a feed that its readings look at
	// a gap is written when a round takes longer than this many times Options.Round
	roundLate = 2
)

// Look looks at the kept posts of a Key again, in one fetch of the Key. Not safe for concurrent
// use.
type Look struct {
	Store   *db.Store
	Budgets *calls.Budgets
	Session *calls.Session
	API     account.API
	Batch   *fold.Batch
	Shown   *Shown
	Due     store.Due
	Now     time.Time
	Every   time.Duration // the time that a round takes if the budget allows it
	Least   time.Duration // the least time between two visits

	made   int  // calls
	spent  bool // the share of the budget for rounds is used up
	silent bool // only old posts were asked for, and the server did not answer
}

// Silent reports whether only old posts were asked for and the server did not answer.
func (l *Look) Silent() bool { return l.silent }

// Has reports whether the Key has posts that are looked at again.
func (l *Look) Has() bool {
	switch l.Due.Key.Kind() {
	case partition.KindAccount:
		return l.Batch.State.Outside == "" && l.Batch.State.ID != ""
	case partition.KindTag, partition.KindTimeline, partition.KindSearch:
		return true
	}
	return false
}

// Alone reports whether this visit was planned for the round only.
func (l *Look) Alone() bool {
	r := &l.Batch.State.Round
	return l.Due.Key.Kind() == partition.KindAccount && l.Has() && !r.Next.IsZero() && r.Next.Equal(l.Due.At) &&
		l.Batch.State.Poll.After(l.Now)
}

// RunAlone makes a visit that was planned for the round only. planned says that an event from a
// stream has already set the next visit.
func (l *Look) RunAlone(ctx context.Context, planned bool) error {
	if !planned {
		l.Batch.Next = store.Next{State: store.StateDone, At: l.Batch.State.Poll, Reason: l.Due.Reason}
	}
	if err := l.API.Enter(ctx); err != nil {
		l.silent = true
		return ours(ctx, err)
	}
	return l.run(ctx, true)
}

// ours returns err if it is an error of this peer, else nil. If a server does not answer about old
// posts, they are asked for later.
func ours(ctx context.Context, err error) error {
	var gate *calls.GateError
	var lost *calls.StoreError
	if errors.As(err, &gate) || errors.As(err, &lost) || ctx.Err() != nil {
		return err
	}
	return nil
}

// Run continues the round of the Key as far as it is due.
func (l *Look) Run(ctx context.Context) error { return l.run(ctx, false) }

// run implements Run. alone says that the visit asks for nothing else.
func (l *Look) run(ctx context.Context, alone bool) error {
	if !l.Has() {
		return nil
	}
	r := &l.Batch.State.Round
	if r.Began.IsZero() {
		r.Began = l.Now
	}
	if r.Size == 0 && !r.Began.After(l.Now) {
		var err error
		if r.Size, err = l.keeps(); err != nil {
			return &calls.StoreError{Err: err}
		}
		if r.Size == 0 { // nothing to look at yet
			r.Began = l.Now
			return nil
		}
	}
	apart := l.Batch.Apart
	l.Batch.Apart = true // accounts in an old post do not become candidates
	defer func() { l.Batch.Apart, l.Batch.Looking = apart, nil }()
	every, batch := l.Every, l.API.Batch()
	for l.made = 0; l.made < account.LooksAlone && r.Due(l.Now, every, batch); {
		posts, marks, err := l.oldest(batch)
		if err != nil {
			return &calls.StoreError{Err: err}
		}
		done := 0
		if len(posts) > 0 {
			done, err = l.looksAgain(ctx, posts)
		}
		if done == len(posts) {
			done++ // include what was passed over behind the last post
		}
		if done > 0 {
			at := marks[done-1]
			r.From, r.Passed, r.Alive = at.uri, r.Passed+at.passed, r.Alive+at.alive
			if at.end {
				l.wholeRound()
			}
		}
		if err != nil {
			l.silent = alone
			l.lateRound()
			return ours(ctx, err)
		}
		if done <= len(posts) {
			break
		}
	}
	l.lateRound()
	return nil
}

// keeps returns how many posts of the Key are kept.
func (l *Look) keeps() (int, error) {
	sl, err := l.Store.Archive.Where(l.Due.Key)
	if err != nil {
		return 0, err
	}
	return l.Store.Accounts.PostsOf(sl, l.Due.Key, roundMost)
}

// passed is the progress of a round after one post of a batch.
type passed struct {
	uri           string
	passed, alive int
	end           bool // there is no later post
}

// oldest returns the next posts of the round, at most most of them, and the progress after each of
// them. The last mark is the progress behind everything that was passed over.
func (l *Look) oldest(most int) (posts []store.Record, marks []passed, err error) {
	r := &l.Batch.State.Round
	sl, err := l.Store.Archive.Where(l.Due.Key)
	if err != nil {
		return nil, nil, err
	}
	newest := map[string]bool{}
	for _, m := range l.Batch.State.Marks() {
		for _, s := range m.Recent[:min(len(m.Recent), roundNewest)] {
			newest[s.ID] = !l.Batch.Deserted() // of a deserted Key no reading looks at them
		}
	}
	read := map[string]bool{} // posts read in this visit: their kept version is outdated
	for _, p := range l.Batch.Posts {
		read[p.Post] = true
	}
	at := passed{uri: r.From, end: true}
	err = l.Store.Accounts.Posts(sl, l.Due.Key, r.From, func(p store.Record) (bool, error) {
		if len(posts) == most || at.passed >= roundScan {
			at.end = false
			return false, nil
		}
		at.uri = p.Post
		at.passed++
		if p.Deleted {
			return true, nil
		}
		at.alive++
		if p.ID == "" || read[p.Post] || newest[p.ID] || newest[keyPart(p.Post)] || !p.FetchedAt.Before(r.Began) {
			return true, nil
		}
		posts = append(posts, p)
		marks = append(marks, passed{uri: at.uri, passed: at.passed, alive: at.alive})
		return true, nil
	})
	return posts, append(marks, at), err
}

// keyPart returns what follows the last / of an address. It is the id that a Mark has for a record
// of a repository.
func keyPart(uri string) string {
	for i := len(uri) - 1; i >= 0; i-- {
		if uri[i] == '/' {
			return uri[i+1:]
		}
	}
	return uri
}

// looksAgain looks at posts and returns how many of them are done, from the first on. Posts that
// the common answer does not have are asked for one by one: only that answer can say that a post is
// gone.
func (l *Look) looksAgain(ctx context.Context, posts []store.Record) (done int, err error) {
	l.Batch.Looking = map[string]*store.Record{}
	for i := range posts {
		l.Batch.Looking[posts[i].Post] = &posts[i]
	}
	absent := posts
	if l.API.Batch() > account.LooksAlone { // else each is asked for alone
		if !l.spare(len(posts)) {
			return 0, nil
		}
		if absent, err = l.lookAgain(ctx, posts); service.WordOf(err) == service.Unsupported {
			absent, err = posts, nil
		}
		if err != nil {
			return 0, err
		}
	}
	for i, p := range posts {
		if !slices.ContainsFunc(absent, func(a store.Record) bool { return a.Post == p.Post }) {
			continue
		}
		if !l.spare(1) {
			return i, nil
		}
		found, err := l.API.LookAt(ctx, p)
		l.Batch.Take(found...)
		switch gone, api := account.NotThere(err); {
		case gone && (api || l.Batch.Deserted()):
			l.Batch.IsGone(p)
		case gone: // the API does not say why, and the post may have another id now
			l.Batch.State.Round.Unfound++
		case err != nil:
			return i, err
		}
	}
	return len(posts), nil
}

// lookAgain looks at posts in one call and returns those that the answer does not have.
func (l *Look) lookAgain(ctx context.Context, posts []store.Record) ([]store.Record, error) {
	found, absent, err := l.API.LookAgain(ctx, posts)
	l.Batch.Take(found...)
	return absent, err
}

// spare takes a call for so many posts out of the share of rounds. It returns false if the share,
// or the calls of this fetch, are used up.
func (l *Look) spare(posts int) bool {
	class := calls.ClassRead
	if l.Due.Key.Service() == "twitter" {
		class = "posts"
	}
	if l.made >= account.LooksAlone || l.Session.Left <= 0 {
		return false
	}
	if l.spent = !l.Budgets.Spare(l.Due.Key.Site(), class, int64(posts)); l.spent {
		return false
	}
	l.made++
	return true
}

// wholeRound ends a round and plans the next one.
func (l *Look) wholeRound() {
	r := &l.Batch.State.Round
	if !r.Late.IsZero() {
		l.roundGap(l.Now, 0)
	}
	if r.Unfound > 0 {
		reason := fmt.Sprintf("%d posts are not found any more; their server does not say whether they were deleted, and they are kept", r.Unfound)
		l.Batch.Gaps = append(l.Batch.Gaps, store.Gap{Source: l.Due.Key.Service(), From: r.Began, To: l.Now,
			What: store.GapExpired, Reason: reason, At: l.Now})
	}
	l.countAgain()
	r.Took, r.Had, r.Size = l.Now.Sub(r.Began), r.Passed, 0 // counted when the next round begins
	if r.Began = r.Began.Add(l.Every); r.Began.Before(l.Now) {
		r.Began = l.Now
	}
	r.From, r.Passed, r.Alive, r.Unfound, r.Late = "", 0, 0, 0, time.Time{}
}

// countAgain compares the number of kept posts with the number that the profile claims. The two may
// differ, as the claim includes posts that are not public. If the difference grows, posts were
// added below the newest, such as imported ones. Then all is read again.
func (l *Look) countAgain() {
	r := &l.Batch.State.Round
	if l.Due.Key.Kind() != partition.KindAccount || !l.API.Counts(l.Batch.State.Claimed) {
		return
	}
	missed := l.Batch.State.Claimed - int64(r.Alive)
	// boosts of accounts that opted out are not stored either
	if r.Counted && missed > r.Missed+max(10, l.Batch.State.Claimed/20) {
		for _, m := range l.Batch.State.Marks() {
			*m = service.Mark{}
		}
		l.Batch.State.LookedUp = account.LookedUp{}
	}
	r.Counted, r.Missed = true, missed
}

// lateRound updates the status of the round. If the round is late, it also adds a gap, once a day.
func (l *Look) lateRound() {
	r := &l.Batch.State.Round
	l.Shown.note(l.Due.Key, Round{Posts: max(r.Size, r.Had), Period: r.Period(l.Now)},
		l.Now.Sub(r.Began) > roundLate*l.Every)
	if l.Now.Sub(r.Began) <= roundLate*l.Every || l.Now.Sub(r.Late) < 24*time.Hour {
		return
	}
	r.Late = l.Now
	l.roundGap(time.Time{}, max(r.Size-r.Passed, 1))
}

// roundGap adds the ledger row of a late round. to is when it ended; zero means that it goes on.
func (l *Look) roundGap(to time.Time, left int) {
	r := &l.Batch.State.Round
	reason := fmt.Sprintf("%d posts were not looked at since then: what of them was edited or deleted may not be known",
		left)
	if !to.IsZero() {
		reason = "posts waited too long for a look; all have had it now"
	}
	l.Batch.Gaps = append(l.Batch.Gaps, store.Gap{Source: l.Due.Key.Service(), From: r.Began, To: to,
		What: store.GapSkipped, Reason: reason, At: l.Now})
}

// Sooner plans a visit for the round, if that is before the next visit of the account.
func (l *Look) Sooner() {
	r := &l.Batch.State.Round
	r.Next = time.Time{}
	if l.Due.Key.Kind() != partition.KindAccount || !l.Has() || l.Batch.State.Poll.IsZero() ||
		l.Batch.Next.State != store.StateDone || l.Batch.Next.At.IsZero() {
		return
	}
	if r.Began.IsZero() || r.Size == 0 && !r.Began.After(l.Now) { // nothing is kept yet
		return
	}
	at := r.NextAt(l.Every, l.API.Batch())
	least := l.Least
	if l.spent || l.silent {
		least = max(least, l.Every/roundRests)
	}
	if least := l.Now.Add(least); at.Before(least) {
		at = least
	}
	if at = at.Truncate(time.Microsecond); at.Before(l.Batch.Next.At) {
		l.Batch.Next.At, r.Next = at, at
	}
}
