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
	Grows   bool                   // whom posts and lists lead to is looked at
	Exclude map[partition.Key]bool // but for these
	Media   bool                   // the files that posts and profiles name are fetched
}

// Batch is what one fetch of a Key found, as it grows: its Result, which is committed whole, with where the Key stands
// after it. Not safe for concurrent use.
type Batch struct {
	fetch.Result
	State account.State

	// Apart says that nobody in what is read now is a candidate.
	Apart bool
	// Looking are kept posts that are being looked at again, by URI: one that is as it was needs no writing.
	// nil = none.
	Looking map[string]*store.Record
	// Told is when a stream told of what is being taken in; zero = it is read.
	Told   time.Time
	ToldOf map[string]bool // posts that streams told of, by URI

	New   int         // posts that were not known before
	Older int         // of these, made before the look-up
	Novel []int       // of Posts, those that were not known before
	Made  []time.Time // when these were made, of an account

	Wish      string     // that of the account of the Key not to be collected, as its posts say
	Unwilling []Unwanted // posts that were met and are not to be kept

	o      Options
	key    partition.Key
	now    time.Time
	url    string // of the server, for people
	linked map[partition.Key]bool
}

// New is an empty Batch of a Key of which that is known. url is its server, for people.
func New(k partition.Key, now time.Time, url string, st account.State, o Options) *Batch {
	return &Batch{Result: fetch.Result{Planned: true}, State: st, ToldOf: map[string]bool{}, o: o, key: k, now: now,
		url: url, linked: map[partition.Key]bool{}}
}

// Caps of what a fetch may have in hand when it asks once more: with the page that comes it fits one commit.
const (
	fullPosts    = store.MaxPosts - 250
	fullAccounts = store.MaxListAccounts - 2000
)

// Full is of calls.Found.
func (b *Batch) Full() bool {
	listed := 0
	for _, l := range b.Lists {
		listed += len(l.Accounts)
	}
	return len(b.Posts) > fullPosts || listed > fullAccounts
}

// Linked says whether k is led to already, and notes that it is from now on.
func (b *Batch) Linked(k partition.Key) bool {
	was := b.linked[k]
	b.linked[k] = true
	return was
}

// Gap adds to the ledger what was not had since the last visit.
func (b *Batch) Gap(what, reason string) {
	from := b.State.Visited
	if b.State.Looked.After(from) && !b.State.Told.At.IsZero() { // that nothing was new by then is known
		from = b.State.Looked
	}
	if from.IsZero() {
		from = b.now
	}
	b.Gaps = append(b.Gaps, store.Gap{Source: b.key.Service(), From: from, To: b.now, What: what,
		Reason: reason, At: b.now})
}

// Down adds to the ledger that the server was not reached; an outage grows in one row.
func (b *Batch) Down(reason string) {
	b.Gap(store.GapUnreachable, reason)
	g := &b.Gaps[len(b.Gaps)-1]
	if !b.State.Outage.From.IsZero() {
		g.From = b.State.Outage.From
	}
	b.State.Outage = account.Outage{From: g.From, To: g.To, Reason: reason}
}

// Reached says in the row of an outage that what was still there has been read since. It is for a visit without a fault
// that left nothing out.
func (b *Batch) Reached() {
	o := b.State.Outage
	if o.From.IsZero() || b.Next.State != store.StateDone || !b.State.Visited.Equal(b.now) &&
		!b.State.Looked.Equal(b.now) {
		return
	}
	b.State.Outage = account.Outage{}
	if len(b.Gaps) > 0 { // these tell why not all was read
		return
	}
	b.Gaps = append(b.Gaps, store.Gap{Source: b.key.Service(), From: o.From, To: o.To,
		What:   store.GapUnreachable,
		Reason: o.Reason, At: b.now, ReadAt: b.now})
}

// Candidate notes somebody that a post or a list leads to.
func (b *Batch) Candidate(k partition.Key, rel string) {
	if k == "" || k == b.key.Account() || !b.o.Grows || b.State.Outside != "" || b.Apart ||
		b.o.Exclude[k] || b.linked[k] ||
		k.Service() != b.key.Service() {
		return
	}
	b.linked[k] = true
	b.Links = append(b.Links, store.Link{Key: k, Rel: rel})
}

// Missing is for an account that is not found: gone when that is said a second time.
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

// Leave is End for somebody whose posts are not to be read as long as the profile says the same: whenever the account
// is visited next, be it because a person asks for it, its profile goes first.
func (b *Batch) Leave(word, reason string, again time.Duration) {
	b.End(word, reason, again)
	b.State.Profiled = time.Time{}
}

// End ends the visit of an account that is looked at again after that time, 0 = never.
func (b *Batch) End(word, reason string, again time.Duration) {
	b.Stop = word
	b.State.Visited, b.State.Poll = b.now, time.Time{}
	b.Next = store.Next{State: store.StateDone, Reason: reason}
	if again > 0 {
		b.Next.At = b.now.Add(again)
	}
}

// Prune keeps the names of the posts that the marks have.
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

// HidesLists says that the lists of an account are not for us.
func HidesLists(rec *store.Record) bool {
	return slices.Contains(rec.Flags, "hides-lists") || slices.Contains(rec.Flags, "protected")
}

// ReadLists has the lists of the account read, unless it hides them.
func (b *Batch) ReadLists(rec *store.Record) {
	if HidesLists(rec) {
		return
	}
	for _, side := range [...]string{"/followers", "/following"} {
		b.Links = append(b.Links, store.Link{Key: rec.Key + partition.Key(side), Rel: "list"})
	}
}
