package fold

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// may reports whether a post may be stored, by the profiles that came with it. If it may not, may
// notes that a stored copy becomes a tombstone.
func (b *Batch) may(p *account.Post) bool {
	if p.Closed {
		b.Unwilling = append(b.Unwilling, Unwanted{p.Record.Post, p.ID, "it is not for everybody"})
		return false
	}
	for _, w := range [...]account.Writer{p.By, p.Boosted} {
		if wish := w.Wish(); wish != "" {
			b.unwanted(p, w, wish)
			return false
		}
	}
	return true
}

// bared removes from a post what must not be stored. bare says that the server's own object has
// texts of another author who opts out.
func bared(d *store.Record, bare bool) {
	if d.NoIndex || bare {
		d.Raw = nil
	}
	switch {
	case bare && d.BoostOf != "": // the text a server shows for a boost is the boosted text
		d.Text, d.Warning, d.Choices, d.Media, d.Links = "", "", nil, nil, nil
	case d.NoIndex:
		d.Text, d.Warning, d.Choices = "", "", nil
		for i := range d.Media {
			d.Media[i].Alt = ""
		}
	}
}

// Unwanted is a post that must not be stored, and why. A stored copy becomes a tombstone.
type Unwanted struct{ URI, ID, Why string }

// unwanted notes a post that must not be stored because its author's profile has that wish.
func (b *Batch) unwanted(p *account.Post, w account.Writer, wish string) {
	b.Unwilling = append(b.Unwilling, Unwanted{p.Record.Post, p.ID, "its author's profile says " + wish})
	b.Stop = "opted-out"
	if w.Key == b.key {
		b.Wish = wish
		return
	}
	b.shun(w.Key, wish)
}

// mostShunned is how many shunned accounts are remembered for a Key.
const mostShunned = 128

// shun notes that all stored texts of k under this Key become tombstones. An account that is
// already noted costs nothing more.
func (b *Batch) shun(k partition.Key, wish string) {
	if k == "" || slices.ContainsFunc(b.State.Shunned, func(s account.Shunned) bool { return s.Key == k }) {
		return
	}
	if len(b.State.Shunned) >= mostShunned {
		oldest := max(slices.IndexFunc(b.State.Shunned, func(s account.Shunned) bool { return s.Done }), 0)
		b.State.Shunned = slices.Delete(b.State.Shunned, oldest, oldest+1)
	}
	b.State.Shunned = append(b.State.Shunned, account.Shunned{Key: k, Wish: wish})
}

// Shuns returns why a stored post must be removed, "" if it may stay. All posts under the Key of an
// account count as its own.
func (b *Batch) Shuns(r *store.Record) string {
	by := cmp.Or(r.By, r.Key)
	for _, s := range b.State.Shunned {
		if !s.Done && (s.Key == by || s.Key == b.key) {
			return "its author's profile says " + s.Wish
		}
	}
	return ""
}

// TakeBack adds a tombstone for a post that must not be stored although its server may still have
// it.
func (b *Batch) TakeBack(u Unwanted) {
	b.Posts = slices.DeleteFunc(b.Posts, func(r store.Record) bool { return r.Post == u.URI })
	r := b.Tombstone(u.URI, u.ID)
	r.Status, r.Reason = http.StatusOK, u.Why
	b.Posts = append(b.Posts, r)
	delete(b.State.Names, u.ID)
}

// OptOut ends the visit of an account whose profile says wish. None of its texts stay. rec is its
// record, nil if there is none.
func (b *Batch) OptOut(rec *store.Record, wish string) {
	b.Gap(store.GapSkipped, "the profile says "+wish)
	if rec != nil {
		rec.Text, rec.Raw, rec.Fields, rec.Declared, rec.Media = "", nil, nil, nil, nil
		rec.NoArchive = true // its stored files are removed, too
		if !slices.Contains(rec.Flags, wish) {
			rec.Flags = append(slices.Clone(rec.Flags), wish)
			slices.Sort(rec.Flags)
		}
		b.Record = rec
	}
	b.Posts, b.Novel = nil, nil
	for _, m := range b.State.Marks() { // if the account changes its mind, all is read again
		*m = service.Mark{}
	}
	b.State.LookedUp, b.State.Rev, b.State.Names, b.State.Doubt, b.State.Langs = account.LookedUp{}, "", nil, nil, nil
	b.State.Shunned = []account.Shunned{{Key: b.key, Wish: wish}}
	b.Leave("opted-out", "the profile says "+wish, account.Ended)
}
