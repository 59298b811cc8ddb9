package storytest

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Shown returns the IDs of the posts in list that a reader may see, newest first.
func Shown(list []*Post) (ids []string) {
	for _, p := range slices.Backward(list) {
		if p.Shown() {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// Shown reports whether a reader may see p. A boost is shown only if the boosted post is.
func (p *Post) Shown() bool {
	return !p.Deleted && !p.Late && !p.By.Suspended && (p.Boost == nil || p.Boost.Shown())
}

// Full returns the name of p as user@host.
func (w *Story) Full(p *Person) string {
	if p.Host == "" {
		return p.User + "@" + w.O.Domain
	}
	return p.Acct()
}

// Count returns the number of shown posts of p, and the creation time of the last one.
func (w *Story) Count(p *Person) (n int, last time.Time) {
	if p.countedAt != w.Changes+1 {
		p.count, p.countedAt = 0, w.Changes+1
		for _, q := range p.Posts {
			if q.Shown() {
				p.count++
				p.last = q.Created
			}
		}
	}
	return p.count, p.last
}

// act calls f on the person with that name, at the current time of the story.
func (w *Story) act(acct string, f func(p *Person, now time.Time) error) error {
	w.Lock()
	defer w.Unlock()
	now := w.Advance()
	p := w.ByName[strings.TrimSuffix(strings.ToLower(acct), "@"+w.O.Domain)]
	if p == nil {
		return fmt.Errorf("storytest: nobody is called %q", acct)
	}
	return f(p, now)
}

// Post makes acct post text now, with tags. It returns the ID.
func (w *Story) Post(acct, text string, tags ...string) (id string, err error) {
	err = w.act(acct, func(p *Person, now time.Time) error {
		of := &Post{By: p, Created: now, Lang: "pt", Tags: tags}
		w.compose(of, now, text)
		w.publish(of)
		id = of.ID
		return nil
	})
	return id, err
}

// Import makes acct's old post appear now, like a post imported from another server. at is its
// creation time. It returns the ID.
func (w *Story) Import(acct, text string, at time.Time) (id string, err error) {
	err = w.act(acct, func(p *Person, now time.Time) error {
		of := &Post{By: p, Created: at, Lang: "pt"}
		w.compose(of, at, text)
		serial := w.serial
		w.serial = uint64(at.UnixMilli()) << 16
		w.publish(of)
		w.serial = max(serial, w.serial)
		id = of.ID
		return nil
	})
	return id, err
}

// Boost makes acct boost a post now. It returns the ID of the boost.
func (w *Story) Boost(acct, post string) (id string, err error) {
	err = w.act(acct, func(p *Person, now time.Time) error {
		of := w.Posts[post]
		if of == nil {
			return fmt.Errorf("storytest: no post %q", post)
		}
		boost := &Post{By: p, Created: now, Boost: of}
		w.publish(boost)
		id = boost.ID
		return nil
	})
	return id, err
}

// onPost calls f on the post with that ID, at the current time of the story.
func (w *Story) onPost(id string, f func(p *Post, now time.Time)) error {
	w.Lock()
	defer w.Unlock()
	now := w.Advance()
	p := w.Posts[id]
	if p == nil {
		return fmt.Errorf("storytest: no post %q", id)
	}
	f(p, now)
	return nil
}

// Edit changes the text of a post now.
func (w *Story) Edit(id, text string) error {
	return w.onPost(id, func(p *Post, now time.Time) { w.edit(p, now, text) })
}

// Delete deletes a post now.
func (w *Story) Delete(id string) error {
	return w.onPost(id, func(p *Post, _ time.Time) { w.remove(p) })
}

// Attach sets the pictures of a post to urls now.
func (w *Story) Attach(id string, urls ...string) error {
	return w.onPost(id, func(p *Post, _ time.Time) { p.Files = urls })
}

// Describe changes the bio of an account now.
func (w *Story) Describe(acct, bio string) error {
	return w.act(acct, func(p *Person, _ time.Time) error { p.Bio = bio; return nil })
}

// Suspend suspends an account now.
func (w *Story) Suspend(acct string) error {
	return w.act(acct, func(p *Person, _ time.Time) error { w.suspend(p); return nil })
}

// Move makes an account move to another one now.
func (w *Story) Move(acct, to string) error {
	return w.act(acct, func(p *Person, _ time.Time) error {
		if p.Moved = w.ByName[strings.TrimSuffix(to, "@"+w.O.Domain)]; p.Moved == nil {
			return fmt.Errorf("storytest: nobody is called %q", to)
		}
		return nil
	})
}

// Follow makes a follow b now.
func (w *Story) Follow(a, b string) error {
	return w.act(a, func(p *Person, _ time.Time) error {
		to := w.ByName[strings.TrimSuffix(b, "@"+w.O.Domain)]
		if to == nil || !w.follows(p, to) {
			return fmt.Errorf("storytest: %q cannot follow %q", a, b)
		}
		return nil
	})
}

// Join creates a new account on this server now. It follows some of the others and posts as they
// do. Join returns its name, user@host.
func (w *Story) Join() (acct string) {
	w.Lock()
	defer w.Unlock()
	now := w.Advance()
	p := w.born(len(w.People))
	for len(p.Following) == 0 && len(w.People) > 1 {
		w.befriend(p)
	}
	if w.O.Rate > 0 {
		w.plan(now.Add(p.pause()), event{do: w.speaks, who: p})
	}
	return w.Full(p)
}

// Users returns the accounts of this server as user@host, the most followed first.
func (w *Story) Users() []string { return w.mostFollowed(w.Full) }

// IDs returns the IDs of the accounts of this server, the most followed first.
func (w *Story) IDs() []string { return w.mostFollowed(func(p *Person) string { return p.ID }) }

func (w *Story) mostFollowed(name func(*Person) string) (out []string) {
	w.Lock()
	defer w.Unlock()
	w.Advance()
	people := slices.Clone(w.Local)
	slices.SortStableFunc(people, func(a, b *Person) int { return len(b.Followers) - len(a.Followers) })
	for _, p := range people {
		out = append(out, name(p))
	}
	return out
}
