package mastodontest

import (
	"slices"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/storytest"
)

// Truth is a copy of everything that is true now.
type Truth struct {
	At       time.Time
	Accounts map[string]Account // by user@host
	Posts    map[string]Post    // by ID; includes deleted posts and those not shown yet
	Public   []string           // IDs of the public timeline, newest first
}

// Account is one account. Acct and the accounts that it names have the form user@host.
type Account struct {
	ID, Acct, Name, Bio  string
	Fields               [][2]string
	Created              time.Time
	Followers, Following []string // newest first
	Posts                []string // IDs that a reader may see, with boosts, newest first
	Local, Bot, Locked   bool
	NoIndex, Indexable   bool
	Discoverable         bool
	Suspended            bool
	Moved                string
}

// Post is one post.
type Post struct {
	ID, By, Text, Lang string
	Created, Edited    time.Time
	Tags               []string
	Mentions           []string
	Links              []string
	Reply, Boost       string   // IDs
	Versions           []string // texts, oldest first
	Shown              bool     // not deleted, author not suspended, not delayed by Lies.Late
}

// Truth returns what is true now.
func (w *World) Truth() Truth {
	w.Lock()
	defer w.Unlock()
	t := Truth{At: w.Advance(), Accounts: map[string]Account{}, Posts: map[string]Post{}}
	for _, p := range w.People {
		a := Account{
			ID: p.ID, Acct: w.Full(p), Name: p.Name, Bio: p.Bio, Fields: slices.Clone(p.Fields), Created: p.Created,
			Local: p.Host == "",
			Bot:   p.Bot, Locked: p.Locked, NoIndex: p.NoIndex, Indexable: p.Indexable, Discoverable: !p.Hidden,
			Suspended: p.Suspended,
		}
		if p.Moved != nil {
			a.Moved = w.Full(p.Moved)
		}
		for _, f := range slices.Backward(p.Followers) {
			a.Followers = append(a.Followers, w.Full(f.Who))
		}
		for _, f := range slices.Backward(p.Following) {
			a.Following = append(a.Following, w.Full(f.Who))
		}
		a.Posts = storytest.Shown(p.Posts)
		t.Accounts[a.Acct] = a
	}
	for id, p := range w.Posts {
		t.Posts[id] = w.truthOf(p)
	}
	t.Public = storytest.Shown(w.Public)
	return t
}

func (w *World) truthOf(p *post) Post {
	out := Post{ID: p.ID, By: w.Full(p.By), Lang: p.Lang, Created: p.Created, Edited: p.Edited,
		Tags: slices.Clone(p.Tags), Links: slices.Clone(p.Links), Shown: p.Shown()}
	for _, m := range p.Mentions {
		out.Mentions = append(out.Mentions, w.Full(m))
	}
	for _, v := range p.Versions {
		out.Versions = append(out.Versions, v.Text)
		out.Text = v.Text
	}
	if p.Reply != nil {
		out.Reply = p.Reply.ID
	}
	if p.Boost != nil {
		out.Boost = p.Boost.ID
	}
	return out
}

// Tagged returns the IDs of the posts with a tag, newest first.
func (w *World) Tagged(tag string) []string {
	w.Lock()
	defer w.Unlock()
	w.Advance()
	return storytest.Shown(w.Tags[tag])
}

// Report is what the server measured.
type Report struct {
	storytest.Report
	Batches int // answered ?id[]= requests
	Streams int // attempts to open a stream; not counted in Requests
	Readers int // streams that are open now
}

// Report returns what the server measured so far.
func (w *World) Report() Report {
	w.Lock()
	defer w.Unlock()
	return Report{w.report.Copy(), w.batches, w.streams, w.readers}
}
