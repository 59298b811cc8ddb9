package social

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/echo-node/echo-node/crawler/budget"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// A reading shows the newest posts of a feed, and no edit or deletion of an older one. So all kept posts of a Key are
// looked at again in a slow round, in the order of their URIs, each once a round: whichever is next is the one that the
// round looked at longest ago. Many are looked at with one call where the service can. What such calls may use is a
// share of the budget, whatever else there is to do; where that is too little the round takes longer, which status
// shows and, from twice its time on, the ledger of gaps.
const (
	roundShare  = 0.1             // of each limit, that the rounds of a site may use
	roundCalls  = 4               // of one visit
	roundScan   = 2000            // kept posts that one visit passes over
	roundRests  = 500             // that part of a round passes, where the share is used up or there is no answer
	roundWindow = 5 * time.Minute // of a limit, at least: of some only the server knows
	roundMost   = 1 << 20         // posts of a Key that are counted
	roundNewest = 40              // posts of a feed that its readings look at
	roundLate   = 2               // times Options.Round that a round may take without a gap
	maxRounds   = 100_000         // Keys whose rounds are shown
)

// round is how far the round of a Key is.
type round struct {
	Began  time.Time `json:"began,omitzero"` // of the round under way; in the future: none is
	From   string    `json:"from,omitempty"` // posts up to this one are done
	Passed int       `json:"passed,omitempty"`
	Alive  int       `json:"alive,omitempty"` // of these, no tombstones
	// and of these, not found, of a server whose API has no words for it
	Unfound int           `json:"unfound,omitempty"`
	Size    int           `json:"size,omitempty"` // posts when the round began
	Took    time.Duration `json:"took,omitempty"` // by the last whole round
	Had     int           `json:"had,omitempty"`  // posts of that
	// when the Key is visited for the sake of it alone; zero = with its visits
	Next time.Time `json:"next,omitzero"`
	Late time.Time `json:"late,omitzero"` // when the ledger was told last that this round is late

	Counted bool  `json:"counted,omitempty"` // Missed is known
	Missed  int64 `json:"missed,omitempty"`  // posts that the profile claimed more than were kept
}

// target is where a round of so many posts should be by now.
func (r *round) target(now time.Time, every time.Duration) int {
	return int(float64(r.Size) * min(float64(now.Sub(r.Began))/float64(every), 1))
}

// due says whether a batch of that size is to be looked at now.
func (r *round) due(now time.Time, every time.Duration, batch int) bool {
	if r.Began.After(now) {
		return false
	}
	return r.Size > 0 && (now.Sub(r.Began) >= every || r.Passed+batch <= r.target(now, every))
}

// next is when it is.
func (r *round) next(every time.Duration, batch int) time.Time {
	if r.Size == 0 || r.Began.IsZero() {
		return r.Began // a visit counts the posts
	}
	part := min(float64(r.Passed+batch)/float64(r.Size), 1)
	return r.Began.Add(time.Duration(part * float64(every)))
}

// period is how long the round takes, by what is known; 0 = nothing is.
func (r *round) period(now time.Time) time.Duration {
	return max(r.Took, now.Sub(r.Began))
}

// rounds says whether the Key has posts that are looked at again.
func (v *visit) rounds() bool {
	switch v.t.Due.Key.Kind() {
	case partition.KindAccount:
		return v.st.Outside == "" && v.st.ID != ""
	case partition.KindTag, partition.KindTimeline, partition.KindSearch:
		return true
	}
	return false
}

// roundAlone says whether this visit was planned for the sake of the round alone.
func (v *visit) roundAlone() bool {
	r := &v.st.Round
	return v.t.Due.Key.Kind() == partition.KindAccount && v.rounds() && !r.Next.IsZero() && r.Next.Equal(v.t.Due.At) &&
		v.st.Poll.After(v.now)
}

// alone is such a visit. planned is what streams have asked for meanwhile.
func (v *visit) alone(ctx context.Context, planned bool) error {
	if !planned {
		v.res.Next = store.Next{State: store.StateDone, At: v.st.Poll, Reason: v.t.Due.Reason}
	}
	v.heardOnly = true
	if err := v.api.enter(ctx); err != nil {
		v.silent = true
		return ours(ctx, err)
	}
	return v.round(ctx)
}

// ours is err if it is of this peer: what a server does not answer of old posts is asked for later.
func ours(ctx context.Context, err error) error {
	var gate *gateError
	var lost *storeError
	if errors.As(err, &gate) || errors.As(err, &lost) || ctx.Err() != nil {
		return err
	}
	return nil
}

// round goes on with the round of the Key as far as is due.
func (v *visit) round(ctx context.Context) error {
	if !v.rounds() {
		return nil
	}
	r := &v.st.Round
	if r.Began.IsZero() {
		r.Began = v.now
	}
	if r.Size == 0 && !r.Began.After(v.now) {
		var err error
		if r.Size, err = v.keeps(); err != nil {
			return &storeError{err}
		}
		if r.Size == 0 { // nothing to look at yet
			r.Began = v.now
			return nil
		}
	}
	apart := v.apart
	v.apart = true // nobody in an old post is a candidate
	defer func() { v.apart, v.looking = apart, nil }()
	every, batch := v.s.o.Round, v.api.batch()
	for v.lookCalls = 0; v.lookCalls < roundCalls && r.due(v.now, every, batch); {
		posts, marks, err := v.oldest(batch)
		if err != nil {
			return &storeError{err}
		}
		done := 0
		if len(posts) > 0 {
			done, err = v.looksAgain(ctx, posts)
		}
		if done == len(posts) {
			done++ // and all that was passed over behind them
		}
		if done > 0 {
			at := marks[done-1]
			r.From, r.Passed, r.Alive = at.uri, r.Passed+at.passed, r.Alive+at.alive
			if at.end {
				v.wholeRound()
			}
		}
		if err != nil {
			v.silent = v.heardOnly
			v.lateRound()
			return ours(ctx, err)
		}
		if done <= len(posts) {
			break
		}
	}
	v.lateRound()
	return nil
}

// keeps is how many posts are kept of the Key.
func (v *visit) keeps() (int, error) {
	sl, err := v.s.o.Store.Where(v.t.Due.Key)
	if err != nil {
		return 0, err
	}
	return v.s.o.Store.PostsOf(sl, v.t.Due.Key, roundMost)
}

// passed is how far a round is once a post of a batch is done.
type passed struct {
	uri           string
	passed, alive int
	end           bool // there is no post behind
}

// oldest are the next posts of the round, most of them at most, and how far it is when each of them is done; the last
// mark is behind all that was passed over.
func (v *visit) oldest(most int) (posts []store.Record, marks []passed, err error) {
	r := &v.st.Round
	sl, err := v.s.o.Store.Where(v.t.Due.Key)
	if err != nil {
		return nil, nil, err
	}
	newest := map[string]bool{}
	for _, m := range v.st.marks() {
		for _, s := range m.Recent[:min(len(m.Recent), roundNewest)] {
			newest[s.ID] = !v.deserted() // then no reading looks at them
		}
	}
	read := map[string]bool{} // in this visit: what is kept of them is of before
	for _, p := range v.res.Posts {
		read[p.Post] = true
	}
	at := passed{uri: r.From, end: true}
	err = v.s.o.Store.Posts(sl, v.t.Due.Key, r.From, func(p store.Record) (bool, error) {
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

// keyPart is what is behind the last / of an address: what a Mark calls a record of a repository.
func keyPart(uri string) string {
	for i := len(uri) - 1; i >= 0; i-- {
		if uri[i] == '/' {
			return uri[i+1:]
		}
	}
	return uri
}

// looksAgain looks at posts, and says how many of them, from the first on, are done. What is not in the answer to all
// is asked for alone: only that can say that it is gone.
func (v *visit) looksAgain(ctx context.Context, posts []store.Record) (done int, err error) {
	v.looking = map[string]*store.Record{}
	for i := range posts {
		v.looking[posts[i].Post] = &posts[i]
	}
	absent := posts
	if v.api.batch() > roundCalls { // else each is asked for alone
		if !v.spare(len(posts)) {
			return 0, nil
		}
		if absent, err = v.api.lookAgain(ctx, posts); service.WordOf(err) == service.Unsupported {
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
		if !v.spare(1) {
			return i, nil
		}
		err := v.api.lookAt(ctx, p)
		switch gone, api := notThere(err); {
		case gone && (api || v.deserted()):
			v.isGone(p)
		case gone: // of a server whose API has no words for it: it may have another id by now
			v.st.Round.Unfound++
		case err != nil:
			return i, err
		}
	}
	return len(posts), nil
}

// isGone makes a tombstone of a kept post.
func (v *visit) isGone(p store.Record) {
	r := v.tombstone(p.Post, p.ID)
	r.By = p.By
	v.res.Posts = append(v.res.Posts, r)
	for _, m := range v.st.marks() {
		m.Recent = slices.DeleteFunc(slices.Clone(m.Recent), func(s service.Seen) bool { return s.ID == p.ID })
	}
}

// spare takes a call for so many posts out of what rounds may use; false = that is used up.
func (v *visit) spare(posts int) bool {
	class := classRead
	if v.t.Due.Key.Service() == "twitter" {
		class = "posts"
	}
	if v.lookCalls >= roundCalls || v.left <= 0 {
		return false
	}
	if v.spent = !v.s.budgets.spare(v.t.Due.Key.Site(), class, int64(posts)); v.spent {
		return false
	}
	v.lookCalls++
	return true
}

// spare is of a site: it is asked before a call of that class for so many things.
func (b *Budgets) spare(site partition.Site, class string, items int64) bool {
	b.mu.Lock()
	p := b.sites[site]
	b.mu.Unlock()
	return p != nil && p.spare(class, items)
}

// spare takes a call out of the share of the rounds: each limit has its own, which grows as time goes by, up to the
// share of one window, and a call that is larger than what is there is paid back by waiting.
func (p *rateBudget) spare(class string, items int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.b.now()
	of := p.classes[class]
	buckets := slices.DeleteFunc(p.book.Status(now).Buckets,
		func(b budget.BucketStatus) bool { return !slices.Contains(of.Buckets, b.Name) })
	if p.share == nil {
		p.share, p.wide = map[string]float64{}, map[string]time.Duration{}
	}
	elapsed := now.Sub(p.shared)
	p.shared = now
	room := len(buckets) > 0
	for _, b := range buckets {
		name := b.Credential + " " + b.Name
		// a server's may be longer than that of the table
		p.wide[name] = max(p.wide[name], b.Window, b.Full.Sub(now), roundWindow)
		had, known := p.share[name]
		if had += roundShare * min(float64(elapsed)/float64(p.wide[name]), 1); !known || had > roundShare {
			had = roundShare
		}
		p.share[name] = had
		room = room && had > 0 && b.Limit > 0 && (b.Kind == budget.Adaptive || b.Free > b.Limit/4) // new posts go first
	}
	if !room {
		return false
	}
	for _, b := range buckets {
		cost := 1.0
		switch b.Unit {
		case budget.Items:
			cost = float64(items)
		case budget.Micro:
			cost = float64(of.Price.Call + items*of.Price.Item)
		}
		p.share[b.Credential+" "+b.Name] -= cost / float64(b.Limit)
	}
	return true
}

// wholeRound ends a round, and plans the next one.
func (v *visit) wholeRound() {
	r := &v.st.Round
	if !r.Late.IsZero() {
		v.roundGap(v.now, 0)
	}
	if r.Unfound > 0 {
		reason := fmt.Sprintf("%d posts are not found any more; their server does not say whether they were deleted, and they are kept", r.Unfound)
		v.res.Gaps = append(v.res.Gaps, store.Gap{Source: v.t.Due.Key.Service(), From: r.Began, To: v.now,
			What: store.GapExpired, Reason: reason, At: v.now})
	}
	v.countAgain()
	r.Took, r.Had, r.Size = v.now.Sub(r.Began), r.Passed, 0 // counted when the next one begins
	if r.Began = r.Began.Add(v.s.o.Round); r.Began.Before(v.now) {
		r.Began = v.now
	}
	r.From, r.Passed, r.Alive, r.Unfound, r.Late = "", 0, 0, 0, time.Time{}
}

// countAgain holds the number of posts against what the profile claims. The claim may well be another: it has posts
// that are shown to few. When it runs ahead of what is kept, posts came that stand below the newest, as imported ones
// do: all is read anew.
func (v *visit) countAgain() {
	r := &v.st.Round
	if v.t.Due.Key.Kind() != partition.KindAccount || !v.api.counts(v.st.Claimed) {
		return
	}
	missed := v.st.Claimed - int64(r.Alive)
	if r.Counted && missed > r.Missed+max(10, v.st.Claimed/20) { // boosts of people who opted out are not kept either
		for _, m := range v.st.marks() {
			*m = service.Mark{}
		}
		v.st.Told = told{}
	}
	r.Counted, r.Missed = true, missed
}

// lateRound notes how the round stands, in the ledger, too, if it is late: once a day.
func (v *visit) lateRound() {
	r := &v.st.Round
	v.s.rounds.note(v.t.Due.Key, Round{Posts: max(r.Size, r.Had), Period: r.period(v.now)},
		v.now.Sub(r.Began) > roundLate*v.s.o.Round)
	if v.now.Sub(r.Began) <= roundLate*v.s.o.Round || v.now.Sub(r.Late) < 24*time.Hour {
		return
	}
	r.Late = v.now
	v.roundGap(time.Time{}, max(r.Size-r.Passed, 1))
}

// roundGap is the row of a round that is late in the ledger; to is when it ended, zero = it goes on.
func (v *visit) roundGap(to time.Time, left int) {
	r := &v.st.Round
	reason := fmt.Sprintf("%d posts were not looked at since then: what of them was edited or deleted may not be known",
		left)
	if !to.IsZero() {
		reason = "posts were not looked at for so long; all are by now"
	}
	v.res.Gaps = append(v.res.Gaps, store.Gap{Source: v.t.Due.Key.Service(), From: r.Began, To: to,
		What: store.GapSkipped, Reason: reason, At: v.now})
}

// sooner has an account visited for the sake of its round, where that is before its next visit.
func (v *visit) sooner() {
	r := &v.st.Round
	r.Next = time.Time{}
	if v.t.Due.Key.Kind() != partition.KindAccount || !v.rounds() || v.st.Poll.IsZero() ||
		v.res.Next.State != store.StateDone || v.res.Next.At.IsZero() {
		return
	}
	if r.Began.IsZero() || r.Size == 0 && !r.Began.After(v.now) { // nothing is kept yet
		return
	}
	at := r.next(v.s.o.Round, v.api.batch())
	least := v.s.o.Least
	if v.spent || v.silent {
		least = max(least, v.s.o.Round/roundRests)
	}
	if least := v.now.Add(least); at.Before(least) {
		at = least
	}
	if at = at.Truncate(time.Microsecond); at.Before(v.res.Next.At) {
		v.res.Next.At, r.Next = at, at
	}
}
