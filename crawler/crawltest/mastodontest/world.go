package mastodontest

import (
	"cmp"
	"container/heap"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"
)

// World is one simulated server. Safe for concurrent use.
type World struct {
	o Options

	mu      sync.Mutex
	now     time.Time // up to which the story is told
	people  []*person
	local   []*person // of people, those of this server
	byID    map[string]*person
	byName  map[string]*person // user, or user@host of remote ones; lower case
	posts   map[string]*post   // deleted ones too
	public  []*post            // in order of serial, as all lists of posts
	tags    map[string][]*post
	recent  []*post // public ones, for answers and boosts
	due     events
	serial  uint64
	rows    uint64
	seq     uint64
	told    uint64 // changes of what is shown
	buckets map[string]*bucket
	report  Report
}

// person is an account; follow rows are in order of their id.
type person struct {
	n         int
	id        string
	user      string
	host      string // "" = of this server
	name      string
	note      string // HTML
	bio       string // and as text
	fields    [][2]string
	created   time.Time
	rate      float64 // posts a day
	rng       *rand.Rand
	bot       bool
	locked    bool
	noIndex   bool
	indexable bool
	hidden    bool // discoverable false
	suspended bool
	moved     *person
	posts     []*post
	followers []follow
	following []follow

	countedAt uint64 // World.told, when count and last were worked out
	count     int    // posts shown
	last      time.Time
}

// follow is one end of an edge.
type follow struct {
	row uint64
	who *person
}

func (p *person) acct() string {
	if p.host == "" {
		return p.user
	}
	return p.user + "@" + p.host
}

// post is a status; boosts have a boost and no text.
type post struct {
	serial   uint64
	id       string
	first    string // its id before any edit, which its uri has
	by       *person
	created  time.Time
	edited   time.Time
	versions []version
	lang     string
	tags     []string
	mentions []*person
	links    []string
	reply    *post
	boost    *post
	deleted  bool
	late     bool // not shown yet
}

type version struct {
	at         time.Time
	text, html string
}

func (p *post) last() version { return p.versions[len(p.versions)-1] }

// New is a World at Options.Start.
func New(o Options) (*World, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	w := &World{
		o: o, now: o.Start, byID: map[string]*person{}, byName: map[string]*person{}, posts: map[string]*post{}, tags: map[string][]*post{},
		buckets: map[string]*bucket{}, report: Report{ByAddr: map[netip.Addr]int{}, ByPath: map[string]int{}},
	}
	for n := range o.People {
		w.born(n)
	}
	w.befriend()
	for _, p := range w.local {
		if o.Rate > 0 {
			w.plan(o.Start.Add(p.pause()), event{do: w.speaks, who: p})
		}
	}
	if !o.Quiet {
		w.planFates()
	}
	return w, nil
}

// Lie changes what the server does from now on.
func (w *World) Lie(change func(*Lies)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.o.Lies)
}

// event is something that will happen: do is called once, with the time of it.
type event struct {
	at  time.Time
	seq uint64
	do  func(at time.Time, e event)
	who *person
	of  *post
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

// Push is of heap.Interface.
func (e *events) Push(x any) { *e = append(*e, x.(event)) }

// Pop is of heap.Interface.
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (w *World) plan(at time.Time, e event) {
	w.seq++
	e.at, e.seq = at, w.seq
	heap.Push(&w.due, e)
}

// advance tells the story up to the clock's now. A clock that goes back is where it was.
func (w *World) advance() time.Time {
	now := w.o.Clock()
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

// draw is the lot of person n.
func (w *World) draw(n int) *rand.Rand { return rand.New(rand.NewPCG(w.o.Seed, uint64(n)+1)) }

// born makes person n.
func (w *World) born(n int) {
	rng := w.draw(n)
	v := tongues()[rng.IntN(3)]
	given := v.names[rng.IntN(len(v.names))]
	place := v.places[rng.IntN(len(v.places))]
	p := &person{n: n, rng: rng, user: fmt.Sprintf("%s%d", ascii(given), n), name: given + " " + v.names[rng.IntN(len(v.names))]}
	p.created = w.o.Start.Add(-time.Duration(rng.IntN(2000*24)) * time.Hour)
	p.rate = min(w.o.Rate*math.Pow(1-rng.Float64(), -1/1.2), 200*w.o.Rate)
	if float64(n) >= float64(w.o.People)*(1-w.o.Remote) {
		p.host = fmt.Sprintf("far%d.test", n%5)
	}
	p.bot, p.locked, p.noIndex, p.indexable, p.hidden = rng.IntN(10) == 0, rng.IntN(10) == 0, rng.IntN(8) == 0, rng.IntN(3) == 0, rng.IntN(8) == 0
	p.bio = v.bio + " " + place + " & " + v.places[rng.IntN(len(v.places))] + "."
	p.note = "<p>" + escape(p.bio) + "</p>"
	switch rng.IntN(10) {
	case 0:
		p.bio += " #NoBot"
		p.note = "<p>" + escape(p.bio) + "</p>"
	case 1:
		p.bio, p.note = "", ""
	}
	p.fields = [][2]string{{v.placeField, place}}
	p.id = w.ident(uint64(p.created.UnixMilli())<<16+uint64(n), fmt.Sprint("person", n))
	w.people = append(w.people, p)
	if p.host == "" {
		w.local = append(w.local, p)
	}
	w.byID[p.id], w.byName[p.acct()] = p, p
}

// ident writes a serial as an id.
func (w *World) ident(serial uint64, salt string) string {
	switch w.o.IDs {
	case ULIDs:
		const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
		b := []byte("01000000000000000000000000")
		for i, x := len(b)-1, serial; i > 1 && x > 0; i, x = i-1, x/32 {
			b[i] = digits[x%32]
		}
		return string(b)
	case Hashes:
		sum := md5.Sum([]byte(salt + strconv.FormatUint(serial, 10)))
		return hex.EncodeToString(sum[:])
	}
	return strconv.FormatUint(serial, 10)
}

// befriend draws who follows whom: as many as the tail of a Pareto allows, the
// first of the people much more often than the last.
func (w *World) befriend() {
	for _, p := range w.people {
		many := min(int(2*math.Pow(1-p.rng.Float64(), -1/1.1)), len(w.people)-1, 500)
		for range many {
			w.follows(p, w.popular(p.rng))
		}
	}
}

// popular draws a person: the n-th with a chance that falls as 1/(n+1).
func (w *World) popular(rng *rand.Rand) *person {
	return w.people[min(int(math.Exp(rng.Float64()*math.Log(float64(len(w.people)+1))))-1, len(w.people)-1)]
}

func (w *World) follows(a, b *person) bool {
	if a == b || slices.ContainsFunc(a.following, func(f follow) bool { return f.who == b }) {
		return false
	}
	w.rows++
	a.following = append(a.following, follow{w.rows, b})
	b.followers = append(b.followers, follow{w.rows, a})
	return true
}

func (w *World) unfollows(a, b *person) {
	a.following = slices.DeleteFunc(a.following, func(f follow) bool { return f.who == b })
	b.followers = slices.DeleteFunc(b.followers, func(f follow) bool { return f.who == a })
}

// pause is drawn until the person's next chance to post.
func (p *person) pause() time.Duration {
	return time.Duration(p.rng.ExpFloat64() / p.rate / awake * float64(24*time.Hour))
}

// awake is how much the rhythm of the day leaves of a rate, upside down.
const awake = 1 / 0.5

// day is the chance at an hour that somebody is up.
func day(at time.Time) float64 {
	hour := float64(at.UTC().Hour()) + float64(at.Minute())/60
	return 0.5 - 0.45*math.Cos((hour-3)/24*2*math.Pi)
}

// speaks is a person's chance to post, and plans the next one.
func (w *World) speaks(at time.Time, e event) {
	p := e.who
	if p.suspended || p.moved != nil {
		return
	}
	w.plan(at.Add(p.pause()), event{do: w.speaks, who: p})
	if p.rng.Float64() > day(at) {
		return
	}
	if len(w.recent) > 0 && p.rng.IntN(5) == 0 {
		if of := w.recent[p.rng.IntN(len(w.recent))]; !of.deleted && of.by != p {
			w.publish(&post{by: p, created: at, boost: of})
			return
		}
	}
	v := tongues()[p.rng.IntN(3)]
	of := &post{by: p, created: at, lang: v.lang}
	for _, f := range p.following {
		if p.rng.IntN(6) == 0 && len(of.mentions) < 3 {
			of.mentions = append(of.mentions, f.who)
		}
	}
	if len(w.recent) > 0 && p.rng.IntN(4) == 0 {
		if to := w.recent[p.rng.IntN(len(w.recent))]; !to.deleted {
			of.reply = to
		}
	}
	for range p.rng.IntN(3) {
		if tag := v.tags[p.rng.IntN(len(v.tags))]; !slices.Contains(of.tags, tag) {
			of.tags = append(of.tags, tag)
		}
	}
	if p.rng.IntN(4) == 0 {
		of.links = []string{fmt.Sprintf("https://site%d.test/a/%d?x=1&y=2", p.rng.IntN(20), p.rng.IntN(1000))}
	}
	w.compose(of, at, v.sentence(p.rng))
	w.publish(of)
	if w.o.Quiet {
		return
	}
	if p.rng.IntN(15) == 0 {
		w.plan(at.Add(time.Duration(p.rng.IntN(7200))*time.Second), event{do: func(at time.Time, e event) {
			w.edit(e.of, at, e.of.last().text+" (edit)")
		}, of: of})
	}
	if p.rng.IntN(15) == 0 {
		w.plan(at.Add(time.Duration(p.rng.IntN(72*3600))*time.Second), event{do: func(_ time.Time, e event) { w.remove(e.of) }, of: of})
	}
}

// publish gives a post its id, and shows it.
func (w *World) publish(p *post) {
	w.serial = max(w.serial+1, uint64(p.created.UnixMilli())<<16)
	p.serial = w.serial
	p.id = w.ident(p.serial, p.by.id)
	p.first, w.posts[p.id] = p.id, p
	w.told++
	if w.o.Lies.Late > 0 && p.serial%3 == 0 {
		p.late = true
		w.plan(p.created.Add(w.o.Lies.Late), event{do: func(time.Time, event) { p.late, w.told = false, w.told+1 }, of: p})
	}
	p.by.posts = insert(p.by.posts, p)
	if p.boost != nil {
		return
	}
	w.public = insert(w.public, p)
	for _, t := range p.tags {
		w.tags[t] = insert(w.tags[t], p)
	}
	if w.recent = append(w.recent, p); len(w.recent) > 50 {
		w.recent = w.recent[1:]
	}
}

// insert keeps a list of posts in order.
func insert(list []*post, p *post) []*post {
	i, _ := slices.BinarySearchFunc(list, p, func(a, b *post) int { return cmp.Compare(a.serial, b.serial) })
	return slices.Insert(list, i, p)
}

func (w *World) edit(p *post, at time.Time, text string) {
	if !p.deleted && !p.by.suspended && p.boost == nil {
		w.compose(p, at, text)
		p.edited = at
		if w.o.Lies.EditRenames {
			p.id = w.ident(p.serial+uint64(len(p.versions)), p.by.id)
			w.posts[p.id] = p
		}
	}
}

func (w *World) remove(p *post) { p.deleted, w.told = true, w.told+1 }

// planFates draws the suspensions, moves, and changes of heart of the first ninety days.
func (w *World) planFates() {
	rng := w.draw(-2)
	at := func() time.Time { return w.o.Start.Add(time.Duration(rng.IntN(90*24*3600)) * time.Second) }
	for _, p := range w.local {
		switch rng.IntN(15) {
		case 0:
			w.plan(at(), event{do: func(time.Time, event) { w.suspend(p) }})
		case 1:
			if to := w.people[len(w.people)-1]; to.host != "" {
				w.plan(at(), event{do: func(time.Time, event) { p.moved = to }})
			}
		}
	}
	for range w.o.People {
		a, b := w.popular(rng), w.popular(rng)
		if rng.IntN(2) == 0 {
			w.plan(at(), event{do: func(time.Time, event) { w.unfollows(a, b) }})
		} else {
			w.plan(at(), event{do: func(time.Time, event) {
				if !a.suspended && !b.suspended {
					w.follows(a, b)
				}
			}})
		}
	}
}

// suspend takes a person's edges away, as Mastodon does, and hides the posts.
func (w *World) suspend(p *person) {
	p.suspended, w.told = true, w.told+1
	for _, f := range slices.Clone(p.following) {
		w.unfollows(p, f.who)
	}
	for _, f := range slices.Clone(p.followers) {
		w.unfollows(f.who, p)
	}
}
