package mastodontest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Truth is what there is to know now, copied.
type Truth struct {
	At       time.Time
	Accounts map[string]Account // by user@host
	Posts    map[string]Post    // by id; deleted ones, and those not shown yet, too
	Public   []string           // ids of the public timeline, the newest first
}

// Account is one account. Acct and those it names are user@host.
type Account struct {
	ID, Acct, Name, Bio  string
	Fields               [][2]string
	Created              time.Time
	Followers, Following []string // the newest first
	Posts                []string // ids that a reader may see, boosts included, the newest first
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
	Reply, Boost       string   // ids
	Versions           []string // texts, the oldest first
	Shown              bool     // not deleted, its author not suspended, not held back by Lies.Late
}

// Truth is what is true by now.
func (w *World) Truth() Truth {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := Truth{At: w.advance(), Accounts: map[string]Account{}, Posts: map[string]Post{}}
	for _, p := range w.people {
		a := Account{
			ID: p.id, Acct: w.full(p), Name: p.name, Bio: p.bio, Fields: slices.Clone(p.fields), Created: p.created, Local: p.host == "",
			Bot: p.bot, Locked: p.locked, NoIndex: p.noIndex, Indexable: p.indexable, Discoverable: !p.hidden, Suspended: p.suspended,
		}
		if p.moved != nil {
			a.Moved = w.full(p.moved)
		}
		for _, f := range slices.Backward(p.followers) {
			a.Followers = append(a.Followers, w.full(f.who))
		}
		for _, f := range slices.Backward(p.following) {
			a.Following = append(a.Following, w.full(f.who))
		}
		a.Posts = shownIDs(p.posts)
		t.Accounts[a.Acct] = a
	}
	for id, p := range w.posts {
		t.Posts[id] = w.truthOf(p)
	}
	t.Public = shownIDs(w.public)
	return t
}

func (w *World) truthOf(p *post) Post {
	out := Post{ID: p.id, By: w.full(p.by), Lang: p.lang, Created: p.created, Edited: p.edited, Tags: slices.Clone(p.tags), Links: slices.Clone(p.links), Shown: p.shown()}
	for _, m := range p.mentions {
		out.Mentions = append(out.Mentions, w.full(m))
	}
	for _, v := range p.versions {
		out.Versions = append(out.Versions, v.text)
		out.Text = v.text
	}
	if p.reply != nil {
		out.Reply = p.reply.id
	}
	if p.boost != nil {
		out.Boost = p.boost.id
	}
	return out
}

// Tagged are the ids of the posts with a tag, the newest first.
func (w *World) Tagged(tag string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.advance()
	return shownIDs(w.tags[tag])
}

func shownIDs(list []*post) (ids []string) {
	for _, p := range slices.Backward(list) {
		if p.shown() {
			ids = append(ids, p.id)
		}
	}
	return ids
}

// shown says whether a reader may see p: a boost goes with what it boosts.
func (p *post) shown() bool {
	return !p.deleted && !p.late && !p.by.suspended && (p.boost == nil || p.boost.shown())
}

// full is user@host of p.
func (w *World) full(p *person) string {
	if p.host == "" {
		return p.user + "@" + w.o.Domain
	}
	return p.acct()
}

// Report is what the server saw.
type Report struct {
	Requests int
	Refused  int // for a limit
	Batches  int // answered ?id[]=
	ByAddr   map[netip.Addr]int
	ByPath   map[string]int // ids are written as :id
}

// Report is what the server saw so far.
func (w *World) Report() Report {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.report
	r.ByAddr, r.ByPath = map[netip.Addr]int{}, map[string]int{}
	for k, v := range w.report.ByAddr {
		r.ByAddr[k] = v
	}
	for k, v := range w.report.ByPath {
		r.ByPath[k] = v
	}
	return r
}

// act does f to the story at its present, on the person of that name.
func (w *World) act(acct string, f func(p *person, now time.Time) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.advance()
	p := w.byName[strings.TrimSuffix(strings.ToLower(acct), "@"+w.o.Domain)]
	if p == nil {
		return fmt.Errorf("mastodontest: nobody is called %q", acct)
	}
	return f(p, now)
}

// Post has somebody post text now, with tags, and gives the id.
func (w *World) Post(acct, text string, tags ...string) (id string, err error) {
	err = w.act(acct, func(p *person, now time.Time) error {
		of := &post{by: p, created: now, lang: "pt", tags: tags}
		w.compose(of, now, text)
		w.publish(of)
		id = of.id
		return nil
	})
	return id, err
}

func (w *World) onPost(id string, f func(p *post, now time.Time)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.advance()
	p := w.posts[id]
	if p == nil {
		return fmt.Errorf("mastodontest: no post %q", id)
	}
	f(p, now)
	return nil
}

// Edit changes the text of a post now.
func (w *World) Edit(id, text string) error {
	return w.onPost(id, func(p *post, now time.Time) { w.edit(p, now, text) })
}

// Delete takes a post away now.
func (w *World) Delete(id string) error {
	return w.onPost(id, func(p *post, _ time.Time) { w.remove(p) })
}

// Suspend suspends an account now.
func (w *World) Suspend(acct string) error {
	return w.act(acct, func(p *person, _ time.Time) error { w.suspend(p); return nil })
}

// Move has an account move to another one now.
func (w *World) Move(acct, to string) error {
	return w.act(acct, func(p *person, _ time.Time) error {
		if p.moved = w.byName[strings.TrimSuffix(to, "@"+w.o.Domain)]; p.moved == nil {
			return fmt.Errorf("mastodontest: nobody is called %q", to)
		}
		return nil
	})
}

// Follow has a follow b now.
func (w *World) Follow(a, b string) error {
	return w.act(a, func(p *person, _ time.Time) error {
		to := w.byName[strings.TrimSuffix(b, "@"+w.o.Domain)]
		if to == nil || !w.follows(p, to) {
			return fmt.Errorf("mastodontest: %q cannot follow %q", a, b)
		}
		return nil
	})
}

// Users are the accounts of this server, user@host, the most followed first.
func (w *World) Users() (out []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.advance()
	people := slices.Clone(w.local)
	slices.SortStableFunc(people, func(a, b *person) int { return len(b.followers) - len(a.followers) })
	for _, p := range people {
		out = append(out, w.full(p))
	}
	return out
}
