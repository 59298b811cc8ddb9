package storytest

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Options configures New. The zero value of a field is its default.
type Options struct {
	Seed   uint64
	People int              // default 40, at most 1,000,000
	Remote float64          // share of people on other servers; default 0.15, negative = none
	Start  time.Time        // when the events begin; default 2026-01-01
	Clock  func() time.Time // default: always thirty days after Start
	// Rate is the number of posts per day of the least active person, default 0.3. The mean is
	// about four times that. Negative = people post nothing by themselves.
	Rate   float64
	Quiet  bool   // no edits, deletions, suspensions, moves or unfollows by themselves
	Domain string // domain of the people of this server, for Full

	// PersonID and PostID return the service's IDs; both are required. Serials are in order of
	// time.
	PersonID func(p *Person, serial uint64) string
	PostID   func(p *Post) string
	Late     func(p *Post) time.Duration // delay after which a post is shown; default none
	Edited   func(p *Post)               // called after an edit; it may change the ID
	// Heard, if not nil, is called for every new, edited or deleted post, every follow and
	// unfollow, and every suspension. New calls it for the first follows, at Options.Start.
	Heard func(h Happening)
}

// Kind is the kind of a Happening.
type Kind int

// Kinds of Happening.
const (
	Made Kind = iota
	Changed
	Gone
)

// Happening is an event: a change of a post, a follow or a person (suspended: Gone).
type Happening struct {
	At   time.Time
	Kind Kind
	Who  *Person
	Post *Post  // nil = not about a post
	Edge Follow // an edge of Who; Edge.Who nil = not about an edge
}

// Story holds the people of one service and the events among them. A server that holds the lock may
// read the exported fields. The methods for people's acts (Post, Edit, ...) take the lock
// themselves.
type Story struct {
	sync.Mutex
	O Options

	People  []*Person
	Local   []*Person // the People of this server
	ByID    map[string]*Person
	ByName  map[string]*Person // by User, or user@host if remote; lower case
	Posts   map[string]*Post   // with deleted ones
	Public  []*Post            // in order of Serial, like all lists of posts
	Tags    map[string][]*Post
	Changes uint64 // counts the changes of what is shown

	now    time.Time // all events up to this time have happened
	recent []*Post   // public posts to answer and boost
	due    events
	serial uint64
	rows   uint64
	seq    uint64
}

// Person is an account. Its follows are in order of Row.
type Person struct {
	N         int
	ID        string
	User      string
	Host      string // "" = this server
	Name      string
	Bio       string
	Lang      string
	Fields    [][2]string
	Created   time.Time
	Bot       bool
	Locked    bool
	NoIndex   bool
	Indexable bool
	Hidden    bool // not discoverable
	Suspended bool
	Moved     *Person
	Posts     []*Post
	Followers []Follow
	Following []Follow

	rate      float64 // posts per day
	rng       *rand.Rand
	countedAt uint64 // Story.Changes+1 at the time of count and last
	count     int    // shown posts
	last      time.Time
}

// Follow is one end of an edge.
type Follow struct {
	Row uint64
	At  time.Time // Options.Start for an edge from before the story
	Who *Person
}

// Acct returns User, or user@host if the person is remote.
func (p *Person) Acct() string {
	if p.Host == "" {
		return p.User
	}
	return p.User + "@" + p.Host
}

// Post is a post. A boost has a Boost and no text.
type Post struct {
	Serial   uint64
	ID       string
	First    string // its ID before any edit
	By       *Person
	Created  time.Time
	Edited   time.Time
	Versions []Version
	Lang     string
	Tags     []string
	Mentions []*Person
	Links    []string
	Files    []string // URLs of pictures
	Reply    *Post
	Boost    *Post
	Deleted  bool
	Late     bool // not shown yet
}

// Version is the text of a post from At on. Said is what its author wrote. In Text, the mentions,
// tags and links follow.
type Version struct {
	At         time.Time
	Said, Text string
}

// Last returns the newest version, which is the shown one.
func (p *Post) Last() Version { return p.Versions[len(p.Versions)-1] }

func (o Options) withDefaults() Options {
	if o.People == 0 {
		o.People = 40
	}
	if o.Remote == 0 {
		o.Remote = 0.15
	}
	if o.Start.IsZero() {
		o.Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if o.Clock == nil {
		end := o.Start.Add(30 * 24 * time.Hour)
		o.Clock = func() time.Time { return end }
	}
	if o.Rate == 0 {
		o.Rate = 0.3
	}
	if o.Late == nil {
		o.Late = func(*Post) time.Duration { return 0 }
	}
	if o.Heard == nil {
		o.Heard = func(Happening) {}
	}
	if o.Edited == nil {
		o.Edited = func(*Post) {}
	}
	return o
}

func (o Options) validate() error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf("storytest: "+format, args...))
		}
	}
	check(o.People > 0 && o.People <= 1_000_000, "people %d: want 1 to 1000000", o.People)
	check(o.Remote <= 0.9, "remote %v: want at most 0.9", o.Remote)
	check(o.Rate <= 1000, "rate %v: want at most 1000 a day", o.Rate)
	return errors.Join(faults...)
}

// New returns a Story at Options.Start.
func New(o Options) (*Story, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	w := &Story{O: o, now: o.Start, ByID: map[string]*Person{}, ByName: map[string]*Person{}, Posts: map[string]*Post{},
		Tags: map[string][]*Post{}}
	for n := range o.People {
		w.born(n)
	}
	for _, p := range w.People {
		w.befriend(p)
	}
	for _, p := range w.Local {
		if o.Rate > 0 {
			w.plan(o.Start.Add(p.pause()), event{do: w.speaks, who: p})
		}
	}
	if !o.Quiet {
		w.planFates()
	}
	return w, nil
}

// event is a future event. do is called once, with the event's time.
type event struct {
	at  time.Time
	seq uint64
	do  func(at time.Time, e event)
	who *Person
	of  *Post
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	if c := e[i].at.Compare(e[j].at); c != 0 {
		return c < 0
	}
	return e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push implements heap.Interface.
func (e *events) Push(x any) { *e = append(*e, x.(event)) }

// Pop implements heap.Interface.
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// plan adds an event at a time.
func (w *Story) plan(at time.Time, e event) {
	w.seq++
	e.at, e.seq = at, w.seq
	heap.Push(&w.due, e)
}

// Advance runs all events up to the clock's time and returns it. If the clock goes back, the time
// of the story stays.
func (w *Story) Advance() time.Time {
	now := w.O.Clock()
	for len(w.due) > 0 && !w.due[0].at.After(now) {
		e := heap.Pop(&w.due).(event)
		w.now = e.at
		e.do(e.at, e)
	}
	if now.After(w.now) {
		w.now = now
	}
	return w.now
}

// draw returns the random numbers of person n.
func (w *Story) draw(n int) *rand.Rand { return rand.New(rand.NewPCG(w.O.Seed, uint64(n)+1)) }

// born creates person n.
func (w *Story) born(n int) *Person {
	rng := w.draw(n)
	v := tongues()[rng.IntN(3)]
	given := v.names[rng.IntN(len(v.names))]
	place := v.places[rng.IntN(len(v.places))]
	p := &Person{N: n, rng: rng, User: fmt.Sprintf("%s%d", ascii(given), n), Lang: v.lang, Name: given +
		" " + v.names[rng.IntN(len(v.names))]}
	p.Created = w.O.Start.Add(-time.Duration(rng.IntN(2000*24)) * time.Hour)
	p.rate = min(w.O.Rate*math.Pow(1-rng.Float64(), -1/1.2), 200*w.O.Rate)
	if newcomer := n >= w.O.People; newcomer {
		p.Created = w.now
	} else if float64(n) >= float64(w.O.People)*(1-w.O.Remote) {
		p.Host = fmt.Sprintf("far%d.test", n%5)
	}
	p.Bot, p.Locked, p.NoIndex, p.Indexable, p.Hidden = rng.IntN(10) == 0, rng.IntN(10) == 0, rng.IntN(8) == 0,
		rng.IntN(3) == 0, rng.IntN(8) == 0
	p.Bio = v.bio + " " + place + " & " + v.places[rng.IntN(len(v.places))] + "."
	switch rng.IntN(10) {
	case 0:
		p.Bio += " #NoBot"
	case 1:
		p.Bio = ""
	}
	p.Fields = [][2]string{{v.placeField, place}}
	p.ID = w.O.PersonID(p, uint64(p.Created.UnixMilli())<<16+uint64(n))
	w.People = append(w.People, p)
	if p.Host == "" {
		w.Local = append(w.Local, p)
	}
	w.ByID[p.ID], w.ByName[p.Acct()] = p, p
	return p
}

// befriend makes p follow random people, at most 500. Their number has a Pareto distribution. The
// first people are chosen much more often than the last.
func (w *Story) befriend(p *Person) {
	many := min(int(2*math.Pow(1-p.rng.Float64(), -1/1.1)), len(w.People)-1, 500)
	for range many {
		w.follows(p, w.popular(p.rng))
	}
}

// popular returns a random person. The probability of the nth is about proportional to 1/(n+1).
func (w *Story) popular(rng *rand.Rand) *Person {
	return w.People[min(int(math.Exp(rng.Float64()*math.Log(float64(len(w.People)+1))))-1, len(w.People)-1)]
}

func (w *Story) follows(a, b *Person) bool {
	if a == b || slices.ContainsFunc(a.Following, func(f Follow) bool { return f.Who == b }) {
		return false
	}
	w.rows++
	a.Following = append(a.Following, Follow{w.rows, w.now, b})
	b.Followers = append(b.Followers, Follow{w.rows, w.now, a})
	w.O.Heard(Happening{w.now, Made, a, nil, Follow{w.rows, w.now, b}})
	return true
}

func (w *Story) unfollows(a, b *Person) {
	if i := slices.IndexFunc(a.Following, func(f Follow) bool { return f.Who == b }); i >= 0 {
		w.O.Heard(Happening{w.now, Gone, a, nil, a.Following[i]})
	}
	a.Following = slices.DeleteFunc(a.Following, func(f Follow) bool { return f.Who == b })
	b.Followers = slices.DeleteFunc(b.Followers, func(f Follow) bool { return f.Who == a })
}

// pause returns a random time until the person's next chance to post.
func (p *Person) pause() time.Duration {
	return time.Duration(p.rng.ExpFloat64() / p.rate / awake * float64(24*time.Hour))
}

// awake corrects the rate for the rhythm of the day: day returns 0.5 on average.
const awake = 1 / 0.5

// day returns the probability that a person is awake at a time.
func day(at time.Time) float64 {
	hour := float64(at.UTC().Hour()) + float64(at.Minute())/60
	return 0.5 - 0.45*math.Cos((hour-3)/24*2*math.Pi)
}

// speaks is a person's chance to post. It also plans the next chance.
func (w *Story) speaks(at time.Time, e event) {
	p := e.who
	if p.Suspended || p.Moved != nil {
		return
	}
	w.plan(at.Add(p.pause()), event{do: w.speaks, who: p})
	if p.rng.Float64() > day(at) {
		return
	}
	if len(w.recent) > 0 && p.rng.IntN(5) == 0 {
		if of := w.recent[p.rng.IntN(len(w.recent))]; !of.Deleted && of.By != p {
			w.publish(&Post{By: p, Created: at, Boost: of})
			return
		}
	}
	v := tongues()[p.rng.IntN(3)]
	of := &Post{By: p, Created: at, Lang: v.lang}
	for _, f := range p.Following {
		if p.rng.IntN(6) == 0 && len(of.Mentions) < 3 {
			of.Mentions = append(of.Mentions, f.Who)
		}
	}
	if len(w.recent) > 0 && p.rng.IntN(4) == 0 {
		if to := w.recent[p.rng.IntN(len(w.recent))]; !to.Deleted {
			of.Reply = to
		}
	}
	for range p.rng.IntN(3) {
		if tag := v.tags[p.rng.IntN(len(v.tags))]; !slices.Contains(of.Tags, tag) {
			of.Tags = append(of.Tags, tag)
		}
	}
	if p.rng.IntN(4) == 0 {
		of.Links = []string{fmt.Sprintf("https://site%d.test/a/%d?x=1&y=2", p.rng.IntN(20), p.rng.IntN(1000))}
	}
	w.compose(of, at, v.sentence(p.rng))
	w.publish(of)
	if w.O.Quiet {
		return
	}
	if p.rng.IntN(15) == 0 {
		w.plan(at.Add(time.Duration(p.rng.IntN(7200))*time.Second), event{do: func(at time.Time, e event) {
			w.edit(e.of, at, e.of.Last().Text+" (edit)")
		}, of: of})
	}
	if p.rng.IntN(15) == 0 {
		w.plan(at.Add(time.Duration(p.rng.IntN(72*3600))*time.Second),
			event{do: func(_ time.Time, e event) { w.remove(e.of) }, of: of})
	}
}

// publish gives a post its ID and shows it.
func (w *Story) publish(p *Post) {
	w.serial = max(w.serial+1, uint64(p.Created.UnixMilli())<<16)
	p.Serial = w.serial
	p.ID = w.O.PostID(p)
	p.First, w.Posts[p.ID] = p.ID, p
	w.Changes++
	if late := w.O.Late(p); late > 0 {
		p.Late = true
		w.plan(p.Created.Add(late), event{do: func(time.Time, event) { p.Late, w.Changes = false, w.Changes+1 }, of: p})
	}
	p.By.Posts = insert(p.By.Posts, p)
	w.O.Heard(Happening{p.Created, Made, p.By, p, Follow{}})
	if p.Boost != nil {
		return
	}
	w.Public = insert(w.Public, p)
	for _, t := range p.Tags {
		w.Tags[t] = insert(w.Tags[t], p)
	}
	if w.recent = append(w.recent, p); len(w.recent) > 50 {
		w.recent = w.recent[1:]
	}
}

// insert adds p to a list of posts in order of Serial.
func insert(list []*Post, p *Post) []*Post {
	i, _ := slices.BinarySearchFunc(list, p, func(a, b *Post) int { return cmp.Compare(a.Serial, b.Serial) })
	return slices.Insert(list, i, p)
}

func (w *Story) edit(p *Post, at time.Time, text string) {
	if !p.Deleted && !p.By.Suspended && p.Boost == nil {
		w.compose(p, at, text)
		p.Edited = at
		w.O.Edited(p)
		w.O.Heard(Happening{at, Changed, p.By, p, Follow{}})
		w.Changes++
	}
}

func (w *Story) remove(p *Post) {
	if !p.Deleted {
		p.Deleted, w.Changes = true, w.Changes+1
		w.O.Heard(Happening{w.now, Gone, p.By, p, Follow{}})
	}
}

// planFates draws the suspensions, moves, follows and unfollows of the first ninety days.
func (w *Story) planFates() {
	rng := w.draw(-2)
	at := func() time.Time { return w.O.Start.Add(time.Duration(rng.IntN(90*24*3600)) * time.Second) }
	for _, p := range w.Local {
		switch rng.IntN(15) {
		case 0:
			w.plan(at(), event{do: func(time.Time, event) { w.suspend(p) }})
		case 1:
			if to := w.People[len(w.People)-1]; to.Host != "" {
				w.plan(at(), event{do: func(time.Time, event) { p.Moved = to }})
			}
		}
	}
	for range w.O.People {
		a, b := w.popular(rng), w.popular(rng)
		if rng.IntN(2) == 0 {
			w.plan(at(), event{do: func(time.Time, event) { w.unfollows(a, b) }})
		} else {
			w.plan(at(), event{do: func(time.Time, event) {
				if !a.Suspended && !b.Suspended {
					w.follows(a, b)
				}
			}})
		}
	}
}

// suspend removes a person's edges, as Mastodon does, and hides the posts.
func (w *Story) suspend(p *Person) {
	p.Suspended, w.Changes = true, w.Changes+1
	w.O.Heard(Happening{w.now, Gone, p, nil, Follow{}})
	for _, f := range slices.Clone(p.Following) {
		w.unfollows(p, f.Who)
	}
	for _, f := range slices.Clone(p.Followers) {
		w.unfollows(f.Who, p)
	}
}
