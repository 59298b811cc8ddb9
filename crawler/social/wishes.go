package social

import (
	"cmp"
	"errors"
	"net/http"
	"slices"

	"github.com/echo-node/echo-node/crawler/bluesky"
	"github.com/echo-node/echo-node/crawler/mastodon"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/twitter"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Every post is judged by the profile that came with it, in one place for all services (visit.draft): it does not
// matter whether its author is followed, which timeline or stream brought it, and what the profile said a day ago. Of
// who does not want to be collected no post is kept, and those that were kept before become tombstones.

// writer is somebody as an answer shows them beside what they wrote. The zero value is nobody, or somebody of whom the
// answer shows nothing.
type writer struct {
	key     partition.Key // "" = not known
	wishes  []string      // in the words of opted
	noIndex bool          // asks not to be in search engines
}

// wish is the wish of w not to be collected, "" = none.
func (w writer) wish() string { return opted(w.wishes) }

// said is a writer with those hashtags in its profile.
func said(key partition.Key, tags []string) writer {
	return writer{key: key, wishes: tags, noIndex: slices.Contains(tags, "#noindex") ||
		slices.Contains(tags, "#nosearch")}
}

func writerAtMastodon(p mastodon.Profile) writer {
	var tags []string
	for _, o := range p.OptOuts {
		tags = append(tags, string(o))
	}
	w := said(keyOf("mastodon:"+p.Acct), tags)
	w.noIndex = w.noIndex || p.NoIndex == service.Yes
	return w
}

func peopleAtMastodon(p mastodon.Post) people {
	of := people{by: writerAtMastodon(p.Author), closed: !p.ForAll()}
	if p.Boost != nil {
		of.boosted = writerAtMastodon(p.Boost.Author)
	}
	if p.Quote != nil {
		of.quoted = writerAtMastodon(p.Quote.Author)
	}
	return of
}

func writerAtBluesky(p bluesky.Profile) writer {
	w := said(keyOf("bluesky:"+p.ID), service.Wishes(p.Name, p.Note))
	if p.NoUnauthenticated {
		w.wishes = append(w.wishes, notLoggedIn)
	}
	return w
}

func peopleAtBluesky(p bluesky.Post) people {
	of := people{by: writerAtBluesky(p.Author)}
	if p.Boost != nil {
		of.boosted = writerAtBluesky(p.Boost.Author)
	}
	if p.Quoted != nil {
		of.quoted = writerAtBluesky(*p.Quoted)
	}
	return of
}

func writerAtX(p twitter.Profile) writer {
	return said(keyOf("twitter:"+p.ID), service.Wishes(p.Name, p.Note))
}

func peopleAtX(p twitter.Post) people {
	of := people{by: writerAtX(p.Author), closed: p.Author.Protected}
	if p.Boost != nil {
		of.boosted = writerAtX(p.Boost.Author)
	}
	if p.Quote != nil {
		of.quoted = writerAtX(p.Quote.Author)
	}
	return of
}

// people are those whose words are in a post.
type people struct {
	by, boosted, quoted writer
	closed              bool // it is not for everybody: a credential may see more than is public
}

// draft is a post that may be kept, being filled in. Only visit.draft makes one, so that no post is taken in that was
// not judged.
type draft struct {
	*store.Record
	id   string // what its feed's Mark calls it
	bare bool   // the source's own object has words of somebody who does not want them kept
}

// may says whether a post may be kept, by the profiles that came with it just now; one that is kept and may not be is
// taken back.
func (v *visit) may(uri, id string, of people) bool {
	if of.closed {
		v.unwilling = append(v.unwilling, unwanted{uri, id, "it is not for everybody"})
		return false
	}
	for _, w := range [...]writer{of.by, of.boosted} {
		if wish := w.wish(); wish != "" {
			v.unwanted(uri, id, w, wish)
			return false
		}
	}
	return true
}

// draft begins the post of that URI, which its feed's Mark calls id; nil = it is not to be kept.
func (v *visit) draft(uri, id string, of people) *draft {
	if !v.may(uri, id, of) {
		return nil
	}
	d := &draft{v.record(store.KindPost), id, of.boosted.noIndex || of.quoted.noIndex || of.quoted.wish() != ""}
	d.Post, d.NoIndex = uri, of.by.noIndex
	return d
}

// bared takes out of a post what is not to be kept of it.
func (d *draft) bared() {
	if d.NoIndex || d.bare {
		d.Raw = nil
	}
	switch {
	case d.bare && d.BoostOf != "": // what a server shows of a boost is what was boosted
		d.Text, d.Warning, d.Choices, d.Media, d.Links = "", "", nil, nil, nil
	case d.NoIndex:
		d.Text, d.Warning, d.Choices = "", "", nil
		for i := range d.Media {
			d.Media[i].Alt = ""
		}
	}
}

// unwanted is a post that is not to be kept, and why not: what is kept of it is taken back.
type unwanted struct{ uri, id, why string }

// unwanted notes a post that was met and is not to be kept, as who wrote it says wish.
func (v *visit) unwanted(uri, id string, w writer, wish string) {
	v.unwilling = append(v.unwilling, unwanted{uri, id, "its author's profile says " + wish})
	v.res.Stop = "opted-out"
	if w.key == v.t.Due.Key {
		v.wish = wish
		return
	}
	v.shun(w.key, wish)
}

// shunned is somebody of whom nothing is to be kept under a Key.
type shunned struct {
	Key  partition.Key `json:"key"`
	Wish string        `json:"wish"`
	From string        `json:"from,omitempty"` // the posts up to this one, in the order of their URIs, were looked at
	Done bool          `json:"done,omitempty"` // all were
}

const (
	mostShunned = 128    // that are remembered for a Key
	shunnedScan = 10_000 // posts looked at in one visit, to find those of shunned people
)

// shun has all that is kept under this Key of k taken back. Who was met before costs nothing more.
func (v *visit) shun(k partition.Key, wish string) {
	if k == "" || slices.ContainsFunc(v.st.Shunned, func(s shunned) bool { return s.Key == k }) {
		return
	}
	if len(v.st.Shunned) >= mostShunned {
		oldest := max(slices.IndexFunc(v.st.Shunned, func(s shunned) bool { return s.Done }), 0)
		v.st.Shunned = slices.Delete(v.st.Shunned, oldest, oldest+1)
	}
	v.st.Shunned = append(v.st.Shunned, shunned{Key: k, Wish: wish})
}

// withdraw takes back what is kept of posts that are not to be: those that were met, and those of shunned people. What
// does not fit this visit is for the next one.
func (v *visit) withdraw() error {
	for _, u := range v.unwilling {
		if len(v.res.Posts) >= store.MaxPosts {
			break // they are met again
		}
		r, _, err := v.s.o.Store.Post(v.t.Due.Key, u.uri)
		if errors.Is(err, store.ErrNotExist) || err == nil && r.Deleted {
			continue
		}
		if err != nil {
			return &storeError{err}
		}
		v.takeBack(u)
	}
	from, some := "", false
	for _, s := range v.st.Shunned {
		if !s.Done && (!some || s.From < from) {
			from, some = s.From, true
		}
	}
	if !some {
		return nil
	}
	sl, err := v.s.o.Store.Where(v.t.Due.Key)
	if err != nil {
		return &storeError{err}
	}
	n, last, whole := 0, from, true
	err = v.s.o.Store.Posts(sl, v.t.Due.Key, from, func(r store.Record) (bool, error) {
		if n++; n > shunnedScan || len(v.res.Posts) >= store.MaxPosts {
			whole = false
			return false, nil
		}
		last = r.Post
		if why := v.shuns(&r); why != "" && !r.Deleted {
			v.takeBack(unwanted{r.Post, r.ID, why})
		}
		return true, nil
	})
	if err != nil {
		return &storeError{err}
	}
	for i := range v.st.Shunned {
		if s := &v.st.Shunned[i]; whole {
			s.From, s.Done = "", true
		} else if !s.Done {
			s.From = max(s.From, last)
		}
	}
	if !whole && v.t.Due.Key.Kind() == partition.KindAccount { // the visits of others come soon enough
		v.res.Next = store.Next{State: store.StatePending, At: v.now}
	}
	return nil
}

// shuns says why a kept post is not to be kept any more, "" = it is. Under the Key of an account all is its own.
func (v *visit) shuns(r *store.Record) string {
	by := cmp.Or(r.By, r.Key)
	for _, s := range v.st.Shunned {
		if !s.Done && (s.Key == by || s.Key == v.t.Due.Key) {
			return "its author's profile says " + s.Wish
		}
	}
	return ""
}

// takeBack makes a tombstone of a post that its server may well have.
func (v *visit) takeBack(u unwanted) {
	v.res.Posts = slices.DeleteFunc(v.res.Posts, func(r store.Record) bool { return r.Post == u.uri })
	r := v.tombstone(u.uri, u.id)
	r.Status, r.Reason = http.StatusOK, u.why
	v.res.Posts = append(v.res.Posts, r)
	delete(v.st.Names, u.id)
}

// optOut ends the visit of an account that says wish: of what it said nothing stays. rec is its record, nil = there is
// none.
func (v *visit) optOut(rec *store.Record, wish string) {
	v.gap(store.GapSkipped, "the profile says "+wish)
	if rec != nil {
		rec.Text, rec.Raw, rec.Fields, rec.Declared, rec.Media = "", nil, nil, nil, nil
		rec.NoArchive = true // and what was kept of its files goes
		if !slices.Contains(rec.Flags, wish) {
			rec.Flags = append(slices.Clone(rec.Flags), wish)
			slices.Sort(rec.Flags)
		}
		v.res.Record = rec
	}
	v.res.Posts, v.novel = nil, nil
	for _, m := range v.st.marks() { // should it change its mind, all is read anew
		*m = service.Mark{}
	}
	v.st.Told, v.st.Rev, v.st.Names, v.st.Doubt, v.st.Langs = told{}, "", nil, nil, nil
	v.st.Shunned = []shunned{{Key: v.t.Due.Key, Wish: wish}}
	v.leave("opted-out", "the profile says "+wish, ended)
}

// optedMeanwhile is optOut for an account whose posts came with a profile that says so, be it before its own is due.
func (v *visit) optedMeanwhile() error {
	rec := v.res.Record
	if rec == nil {
		var err error
		if rec, err = v.stored(); err != nil {
			return err
		}
	}
	if rec != nil {
		rec.FetchedAt = v.now
	}
	v.heardOnly = false
	v.optOut(rec, v.wish)
	return nil
}
