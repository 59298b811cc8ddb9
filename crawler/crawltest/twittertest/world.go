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

// Options configures New. The zero value of a field is its default.
type Options struct {
	Seed   uint64
	People int              // default 40, at most 1,000,000
	Start  time.Time        // when the events begin; default 2026-01-01
	Clock  func() time.Time // default: always thirty days after Start
	// Rate is the number of posts per day of the least active person; default 0.3. Negative =
	// people post nothing by themselves.
	Rate   float64
	Quiet  bool              // no edits, deletions, suspensions or unfollows by themselves
	Limits []storytest.Limit // default none; see XLimits
	Money  int               // maximum number of returned users and posts; 0 = no limit
	Tokens []string          // accepted bearer tokens; default: any token, or none
	Lies   Lies
}

// XLimits returns the limits of an application per fifteen minutes.
func XLimits() []storytest.Limit {
	var out []storytest.Limit
	for class, most := range map[string]int{"users": 300, "posts": 10_000, "post": 3500, "followers": 300,
		"following": 300, "search": 450} {
		out = append(out, storytest.Limit{Name: class, Max: most, Window: 15 * time.Minute, Auth: true, Class: class,
			Rolling: true})
	}
	return out
}

// Lies are the ways in which the API differs from its documentation.
type Lies struct {
	Posts bool // responses use the names of 2026: referenced_posts, includes.posts, ...
	// OnlyPosts: requests must use these names too. tweet.fields is refused, and so is each value
	// that contains "tweet".
	OnlyPosts bool
	// Refuses are parameters, or values of the parameters that list fields. The first one that a
	// request has is refused by its name.
	Refuses []string
	// Refusal is the text of a refusal, with PARAM for the parameter and VALUE for the value, which
	// may be empty. The default is the text of the API.
	Refusal      string
	Refused      string  // everything is a 400 with this text
	SaysNothing  bool    // missing objects are left out without an error
	MaxLimit     int     // maximum page size, for every request; default as documented
	Most         int     // posts of a user that are reachable; default 3200
	IgnoresSince bool    // since_id has no effect
	NoToken      bool    // no next_token for a next page that exists
	EmptyFirst   bool    // the first page is empty but has a next_token
	RepeatsToken bool    // the token always leads to the same page
	RefusesToken bool    // 400 for every token
	Ring         int     // tokens of a list form a ring of that many pages; 0 = no ring
	Endless      bool    // the last page of a list repeats, each time with a new token
	Shuffles     bool    // a list has no end: its pages are random members
	EmptyTail    bool    // a list continues with empty pages for ever
	EmptyLists   bool    // empty lists, for every count
	CountsTimes  float64 // counts are multiplied by this; 0 = 1
	HTML200      bool    // an HTML page with status 200 for everything
	Object       bool    // an object instead of a list
	Down         int     // a 5xx status for everything; 503 with Retry-After: 30
	Redirect     string  // a 301 to that origin for everything
	Truncated    bool    // half of the JSON
	Huge         int     // bytes of white space before each response
	Garbage      bool    // every second element of a list is not an object
}

// World is one simulated API. It is safe for concurrent use.
type World struct {
	*storytest.Story
	o      Options
	meter  *storytest.Meter
	report storytest.Report
	spent  int
	bill   map[string]int64           // millionths of a dollar by UTC day
	billed map[string]map[string]bool // the charged items, by UTC day
	was    map[*post][]string         // the earlier IDs of a post
}

// New returns a World at Options.Start.
func New(o Options) (*World, error) {
	w := &World{o: o, was: map[*post][]string{}, bill: map[string]int64{}, billed: map[string]map[string]bool{}}
	var worst, err error
	w.meter, worst = storytest.NewMeter(o.Limits, storytest.EpochX, storytest.NoAfter)
	w.Story, err = storytest.New(storytest.Options{
		Seed: o.Seed, People: o.People, Remote: -1, Start: o.Start, Clock: o.Clock, Rate: o.Rate, Quiet: o.Quiet,
		Domain:   "x.test",
		PersonID: func(p *person, serial uint64) string { return strconv.FormatUint(serial, 10) },
		PostID:   func(p *post) string { return strconv.FormatUint(p.Serial, 10) },
		// An edit is a new post that replaces the old one.
		Edited: func(p *post) {
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

// Lie changes how the API behaves from now on.
func (w *World) Lie(change func(*Lies)) {
	w.Lock()
	defer w.Unlock()
	change(&w.o.Lies)
}

// Accept adds a bearer token to the accepted ones.
func (w *World) Accept(token string) {
	w.Lock()
	defer w.Unlock()
	w.o.Tokens = append(w.o.Tokens, token)
}

// newest returns the posts of a list that are shown, highest ID first.
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

// Truth is a copy of everything that is true now.
type Truth struct {
	Accounts map[string]Account // by id
	Posts    map[string]Post    // by id
}

// Account is one user.
type Account struct {
	ID, User, Name, Bio, Place string
	Created                    time.Time
	Followers, Following       []string // IDs, newest first
	Posts                      []string // IDs, newest first
	Protected, Suspended       bool
}

// Post is one post.
type Post struct {
	ID, By, Text, Lang string
	At                 time.Time // when the post was created or last edited
	Versions           []string
	Tags, Mentions     []string
	Links              []string
	Reply, Boost       string
	Shown              bool
}

// Truth returns what is true now.
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

// charge adds the returned data to the bill of the day. A user costs a cent and a post half a cent,
// each once a day.
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

// Bill returns the charges of each UTC day, in millionths of a dollar.
func (w *World) Bill() map[string]int64 {
	w.Lock()
	defer w.Unlock()
	return maps.Clone(w.bill)
}

// Report returns what the server measured so far.
func (w *World) Report() storytest.Report {
	w.Lock()
	defer w.Unlock()
	return w.report.Copy()
}
