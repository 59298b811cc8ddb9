package blueskytest

import (
	"slices"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/storytest"
)

// Truth is a copy of everything that is true now.
type Truth struct {
	At       time.Time
	Accounts map[string]Account // by DID
	Posts    map[string]Post    // by URI; includes deleted posts and reposts
}

// Account is one account. It names other accounts by DID.
type Account struct {
	ID, Handle, Name, Bio string
	Created               time.Time
	Followers, Following  []string // newest first
	Posts                 []string // URIs that an AppView shows, with reposts, newest first
	Records               []string // URIs of the posts in the repository, newest first
	Reposts               []string // URIs of the reposts in the repository, newest first
	Suspended             bool
	NoUnauthenticated     bool
}

// Post is one post. It names posts by URI and accounts by DID.
type Post struct {
	ID, By, Lang    string
	Text, ShownText string // the current text, and the text in the AppView
	CID             string // of the current version
	Created         time.Time
	Tags, Mentions  []string
	Links           []string
	Reply, Boost    string
	Kept, Shown     bool // in the repository; shown by the AppView
}

// Truth returns what is true now.
func (w *World) Truth() Truth {
	w.Lock()
	defer w.Unlock()
	t := Truth{At: w.Advance(), Accounts: map[string]Account{}, Posts: map[string]Post{}}
	for _, p := range w.People {
		a := Account{ID: p.ID, Handle: w.handle(p), Name: p.Name, Bio: p.Bio, Created: p.Created,
			Suspended: p.Suspended, NoUnauthenticated: p.NoIndex}
		for _, f := range slices.Backward(p.Followers) {
			a.Followers = append(a.Followers, f.Who.ID)
		}
		for _, f := range slices.Backward(p.Following) {
			a.Following = append(a.Following, f.Who.ID)
		}
		a.Posts = storytest.Shown(p.Posts)
		for _, q := range slices.Backward(p.Posts) {
			switch {
			case !kept(q):
			case q.Boost != nil:
				a.Reposts = append(a.Reposts, q.ID)
			default:
				a.Records = append(a.Records, q.ID)
			}
		}
		t.Accounts[p.ID] = a
	}
	for id, p := range w.Posts {
		out := Post{ID: id, By: p.By.ID, Lang: p.Lang, Created: p.Created, Tags: slices.Clone(p.Tags),
			Links: slices.Clone(p.Links), Kept: kept(p), Shown: p.Shown(), CID: version(p, len(p.Versions)-1)}
		for _, m := range p.Mentions {
			out.Mentions = append(out.Mentions, m.ID)
		}
		if p.Reply != nil {
			out.Reply = p.Reply.ID
		}
		if p.Boost != nil {
			out.Boost = p.Boost.ID
		} else {
			out.Text, out.ShownText = p.Last().Text, p.Versions[0].Text
		}
		t.Posts[id] = out
	}
	return t
}

// Handle returns the handle of a DID, "" if the DID is unknown.
func (w *World) Handle(id string) string {
	w.Lock()
	defer w.Unlock()
	if p := w.ByID[id]; p != nil {
		return w.handle(p)
	}
	return ""
}

// Report returns what the servers measured so far.
func (w *World) Report() storytest.Report {
	w.Lock()
	defer w.Unlock()
	return w.report.Copy()
}
