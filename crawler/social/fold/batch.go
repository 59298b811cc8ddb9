package fold

import (
	"maps"
	"slices"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Options say what a Batch notes.
type Options struct {
	Grows   bool                   // accounts that posts and lists lead to become candidates
	Exclude map[partition.Key]bool // except these
	Media   bool                   // the files that posts and profiles name are fetched
}

// Batch collects what one fetch of a Key found: its Result and the state of the Key after it. Both
// are committed in one batch. Not safe for concurrent use.
type Batch struct {
	fetch.Result
	State account.State

	// Apart says that no account in what is read now becomes a candidate.
	Apart bool
	// Looking has the kept posts that are being looked at again, by URI. A post that has not
	// changed is not written. nil means that no kept posts are looked at.
	Looking map[string]*store.Record
	// Streamed is when a stream reported the posts that are being taken in; zero means that they were
	// read.
	Streamed      time.Time
	StreamedPosts map[string]bool // posts that streams reported, by URI

	New   int         // posts that were not known before
	Older int         // those of New that were made before the last look-up
	Novel []int       // indexes in Posts of those that were not known before
	Made  []time.Time // when the new posts of an account were made

	// the wish of the Key's account not to be collected, from the profile beside its posts
	Wish      string
	Unwilling []Unwanted // posts that were read and must not be stored

	o      Options
	key    partition.Key
	now    time.Time
	url    string // of the server, for people
	linked map[partition.Key]bool
}

// New returns an empty Batch for a Key with that state. url is the address of its server, for
// people.
func New(k partition.Key, now time.Time, url string, st account.State, o Options) *Batch {
	return &Batch{Result: fetch.Result{Planned: true}, State: st, StreamedPosts: map[string]bool{}, o: o, key: k,
		now: now, url: url, linked: map[partition.Key]bool{}}
}

// Limits on what a fetch may hold when it asks for one more page: with that page it still fits in
// one commit.
const (
	fullPosts    = store.MaxPosts - 250
	fullAccounts = store.MaxListAccounts - 2000
)

// Full implements calls.Found.
func (b *Batch) Full() bool {
	listed := 0
	for _, l := range b.Lists {
		listed += len(l.Accounts)
	}
	return len(b.Posts) > fullPosts || listed > fullAccounts
}

// Linked reports whether k is linked already, and marks it as linked.
func (b *Batch) Linked(k partition.Key) bool {
	was := b.linked[k]
	b.linked[k] = true
	return was
}

// Gap adds to the ledger that something may be missing since the last visit.
func (b *Batch) Gap(what, reason string) {
	from := b.State.Visited
	// the look-up showed that nothing was new until then
	if b.State.Looked.After(from) && !b.State.LookedUp.At.IsZero() {
		from = b.State.Looked
	}
	if from.IsZero() {
		from = b.now
	}
	b.Gaps = append(b.Gaps, store.Gap{Source: b.key.Service(), From: from, To: b.now, What: what,
		Reason: reason, At: b.now})
}

// Down adds to the ledger that the server was not reached. One outage stays one row, which grows.
func (b *Batch) Down(reason string) {
	b.Gap(store.GapUnreachable, reason)
	g := &b.Gaps[len(b.Gaps)-1]
	if !b.State.Outage.From.IsZero() {
		g.From = b.State.Outage.From
	}
	b.State.Outage = account.Outage{From: g.From, To: g.To, Reason: reason}
}

// Reached notes in the row of an outage that what is still available has been read since. It has an
// effect only after a visit without a fault that left nothing out.
func (b *Batch) Reached() {
	o := b.State.Outage
	if o.From.IsZero() || b.Next.State != store.StateDone || !b.State.Visited.Equal(b.now) &&
		!b.State.Looked.Equal(b.now) {
		return
	}
	b.State.Outage = account.Outage{}
	if len(b.Gaps) > 0 { // they say why not all was read
		return
	}
	b.Gaps = append(b.Gaps, store.Gap{Source: b.key.Service(), From: o.From, To: o.To,
		What:   store.GapUnreachable,
		Reason: o.Reason, At: b.now, ReadAt: b.now})
}

// Candidate adds an account that a post or a list leads to.
func (b *Batch) Candidate(k partition.Key, rel string) {
	if k == "" || k == b.key.Account() || !b.o.Grows || b.State.Outside != "" || b.Apart ||
		b.o.Exclude[k] || b.linked[k] ||
		k.Service() != b.key.Service() {
		return
	}
	b.linked[k] = true
	b.Links = append(b.Links, store.Link{Key: k, Rel: rel})
}

// Missing handles an account that is not found. The account is gone when its API says so a second
// time, or after five visits if the API does not say it.
func (b *Batch) Missing(api bool, err error) {
	b.State.Lost++
	b.State.Poll = time.Time{}
	b.Stop = string(service.Gone)
	if b.State.Lost >= 2 && (api || b.State.Lost >= 5) {
		b.Next = store.Next{State: store.StateGone, Reason: "the server does not know it"}
		b.Gap(store.GapExpired, err.Error())
		return
	}
	b.Next = store.Next{State: store.StatePending, At: b.now.Add(time.Duration(b.State.Lost) * time.Hour),
		Reason: "not found: asked once more"}
}

// Leave is End for an account whose posts are not read while its profile stays the same. The next
// visit reads the profile first, also a visit that a person asks for.
func (b *Batch) Leave(word, reason string, again time.Duration) {
	b.End(word, reason, again)
	b.State.Profiled = time.Time{}
}

// End ends the visit of an account that is visited again after that time; 0 = never.
func (b *Batch) End(word, reason string, again time.Duration) {
	b.Stop = word
	b.State.Visited, b.State.Poll = b.now, time.Time{}
	b.Next = store.Next{State: store.StateDone, Reason: reason}
	if again > 0 {
		b.Next.At = b.now.Add(again)
	}
}

// Prune keeps only the names and doubts of posts that the Marks have.
func (b *Batch) Prune() {
	keep := map[string]bool{}
	for _, m := range b.State.Marks() {
		all := slices.Concat(m.Recent, m.Base)
		if w := m.Walk; w != nil {
			all = slices.Concat(all, w.Base, w.Top)
		}
		for _, s := range all {
			keep[s.ID] = true
		}
	}
	maps.DeleteFunc(b.State.Names, func(id, _ string) bool { return !keep[id] })
	maps.DeleteFunc(b.State.Doubt, func(id string, _ time.Time) bool { return !keep[id] })
}

// HidesLists reports whether the lists of an account are not public.
func HidesLists(rec *store.Record) bool {
	return slices.Contains(rec.Flags, "hides-lists") || slices.Contains(rec.Flags, "protected")
}

// ReadLists adds links to the lists of the account, unless it hides them.
func (b *Batch) ReadLists(rec *store.Record) {
	if HidesLists(rec) {
		return
	}
	for _, side := range [...]string{"/followers", "/following"} {
		b.Links = append(b.Links, store.Link{Key: rec.Key + partition.Key(side), Rel: "list"})
	}
}
