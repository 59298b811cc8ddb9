package twittertest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/storytest"
)

type (
	person = storytest.Person
	post   = storytest.Post
)

// Options of New. The zero value of a field is its default.
type Options struct {
	Seed   uint64
	People int               // default 40, at most 1,000,000
	Start  time.Time         // when the story begins; default 2026-01-01
	Clock  func() time.Time  // default: Start and thirty days, for ever
	Rate   float64           // posts a day of the least active; default 0.3, negative = nobody posts of himself
	Quiet  bool              // nothing is edited, deleted, suspended or unfollowed by itself
	Limits []storytest.Limit // default none; see XLimits
	Money  int               // users and posts that may be returned; 0 = any number
	Tokens []string          // bearer tokens that are accepted; default all, and none
	Lies   Lies
}

// XLimits are those of an application, in fifteen minutes.
func XLimits() []storytest.Limit {
	var out []storytest.Limit
	for class, most := range map[string]int{"users": 300, "posts": 10_000, "post": 3500, "followers": 300,
		"following": 300, "search": 450} {
		out = append(out, storytest.Limit{Name: class, Max: most, Window: 15 * time.Minute, Auth: true, Class: class,
			Rolling: true})
	}
	return out
}

// Lies are the ways in which the API does otherwise than its documents say.
type Lies struct {
	Posts     bool // answers have the spelling of 2026: referenced_posts, includes.posts, ...
	OnlyPosts bool // and parameters too: tweet.fields is refused, and each value with the older word in it
	// Refuses are parameters, or values of those that list fields, of which the first that a request has is refused by
	// its name.
	Refuses []string
	// Refusal is how a refusal reads, with PARAM for the parameter and VALUE for the value, which may be none; default:
	// as the API says it.
	Refusal      string
	Refused      string  // everything is a 400 that says so
	SaysNothing  bool    // what is not there is left out without a word
	MaxLimit     int     // the most that a page has, whatever is asked for; default as documented
	Most         int     // posts of a user that are shown; default 3200
	IgnoresSince bool    // since_id
	NoToken      bool    // no next_token, though there is more
	EmptyFirst   bool    // the first page has nothing, and leads on
	RepeatsToken bool    // the token leads to the same page for ever
	RefusesToken bool    // 400 for every token
	Ring         int     // tokens of a list go round in a ring of that many pages; 0 = no
	Endless      bool    // the last page of a list comes again and again, each time with another token
	Shuffles     bool    // a list has no end: pages of its members, drawn by lot
	EmptyTail    bool    // a list goes on for ever with empty pages
	EmptyLists   bool    // no followers, whatever the count
	CountsTimes  float64 // counts are that many times the truth; 0 = 1
	HTML200      bool    // a page of HTML with status 200 for everything
	Object       bool    // an object where a list belongs
	Down         int     // a status of 5xx for everything; 503 with Retry-After: 30
	Redirect     string  // everything is a 301 to that origin
	Truncated    bool    // half of the JSON
	Huge         int     // so many bytes of white space before each answer
	Garbage      bool    // every second element of a list is no object
}

// World is one simulated API. Safe for concurrent use.
type World struct {
	*storytest.Story
	o      Options
	meter  *storytest.Meter
	report storytest.Report
	spent  int
	bill   map[string]int64           // by UTC day
	billed map[string]map[string]bool // what is on it
	was    map[*post][]string         // the ids that a post had
}

// New is a World at Options.Start.
func New(o Options) (*World, error) {
	w := &World{o: o, was: map[*post][]string{}, bill: map[string]int64{}, billed: map[string]map[string]bool{}}
	var worst, err error
	w.meter, worst = storytest.NewMeter(o.Limits, storytest.EpochX, storytest.NoAfter)
	w.Story, err = storytest.New(storytest.Options{
		Seed: o.Seed, People: o.People, Remote: -1, Start: o.Start, Clock: o.Clock, Rate: o.Rate, Quiet: o.Quiet,
		Domain:   "x.test",
		PersonID: func(p *person, serial uint64) string { return strconv.FormatUint(serial, 10) },
		PostID:   func(p *post) string { return strconv.FormatUint(p.Serial, 10) },
		Edited: func(p *post) { // an edit is a post of its own, in place of the one before
			w.was[p] = append(w.was[p], p.ID)
			delete(w.Posts, p.ID)
			p.ID = strconv.FormatUint(uint64(p.Edited.UnixMilli())<<16+0x8000+p.Serial&0x7fff, 10)
			w.Posts[p.ID] = p
		},
	})
	if err := errors.Join(worst, err); err != nil {
		return nil, fmt.Errorf("twittertest: %w", err)
	}
	return w, nil
}

// Lie changes what the API does from now on.
func (w *World) Lie(change func(*Lies)) {
	w.Lock()
	defer w.Unlock()
	change(&w.o.Lies)
}

// Accept has one more bearer token be accepted.
func (w *World) Accept(token string) {
	w.Lock()
	defer w.Unlock()
	w.o.Tokens = append(w.o.Tokens, token)
}

// newest are the posts of a list that are shown, the newest id first.
func newest(list []*post) (out []*post) {
	for _, p := range list {
		if p.Shown() {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *post) int {
		return -cmp.Or(cmp.Compare(len(a.ID), len(b.ID)),
			cmp.Compare(a.ID, b.ID))
	})
	return out
}

// Truth is what there is to know now, copied.
type Truth struct {
	Accounts map[string]Account // by id
	Posts    map[string]Post    // by id
}

// Account is one user.
type Account struct {
	ID, User, Name, Bio, Place string
	Created                    time.Time
	Followers, Following       []string // ids, the newest first
	Posts                      []string // ids, the newest first
	Protected, Suspended       bool
}

// Post is one post.
type Post struct {
	ID, By, Text, Lang string
	At                 time.Time // when it was made, or changed last
	Versions           []string
	Tags, Mentions     []string
	Links              []string
	Reply, Boost       string
	Shown              bool
}

// Truth is what is true by now.
func (w *World) Truth() Truth {
	w.Lock()
	defer w.Unlock()
	w.Advance()
	t := Truth{map[string]Account{}, map[string]Post{}}
	for _, p := range w.People {
		a := Account{ID: p.ID, User: p.User, Name: p.Name, Bio: p.Bio, Place: p.Fields[0][1], Created: p.Created,
			Protected: p.Locked, Suspended: p.Suspended}
		for _, f := range slices.Backward(p.Followers) {
			a.Followers = append(a.Followers, f.Who.ID)
		}
		for _, f := range slices.Backward(p.Following) {
			a.Following = append(a.Following, f.Who.ID)
		}
		for _, q := range newest(p.Posts) {
			a.Posts = append(a.Posts, q.ID)
		}
		t.Accounts[p.ID] = a
	}
	for id, p := range w.Posts {
		out := Post{ID: id, By: p.By.ID, Lang: p.Lang, Versions: append(slices.Clone(w.was[p]), id),
			Tags: slices.Clone(p.Tags), Links: slices.Clone(p.Links), Shown: p.Shown()}
		for _, m := range p.Mentions {
			out.Mentions = append(out.Mentions, m.ID)
		}
		if out.At = p.Created; p.Edited.After(p.Created) {
			out.At = p.Edited
		}
		if len(p.Versions) > 0 {
			out.Text = p.Last().Text
		}
		if p.Reply != nil {
			out.Reply = p.Reply.ID
		}
		if p.Boost != nil {
			out.Boost = p.Boost.ID
		}
		t.Posts[id] = out
	}
	return t
}

// charge puts what an answer returns on the bill of the day: a user costs a cent and a post half a
// cent, each once a day.
func (w *World) charge(now time.Time, data ...any) {
	day := now.UTC().Format(time.DateOnly)
	if w.billed[day] == nil {
		w.billed[day] = map[string]bool{}
	}
	for _, x := range data {
		w.spent++
		thing, _ := x.(map[string]any)
		id, _ := thing["id"].(string)
		_, user := thing["username"]
		price := int64(5_000)
		if user {
			id, price = "user "+id, 10_000
		}
		if !w.billed[day][id] {
			w.billed[day][id] = true
			w.bill[day] += price
		}
	}
}

// Bill is what was charged on each UTC day, in millionths of a dollar.
func (w *World) Bill() map[string]int64 {
	w.Lock()
	defer w.Unlock()
	return maps.Clone(w.bill)
}

// Report is what the server saw so far.
func (w *World) Report() storytest.Report {
	w.Lock()
	defer w.Unlock()
	return w.report.Copy()
}
