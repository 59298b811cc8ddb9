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

// may says whether a post may be kept, by the profiles that came with it just now; one that is kept and may not be is
// taken back.
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

// bared takes out of a post what is not to be kept of it. bare: the source's own object has words of somebody who does
// not want them kept.
func bared(d *store.Record, bare bool) {
	if d.NoIndex || bare {
		d.Raw = nil
	}
	switch {
	case bare && d.BoostOf != "": // what a server shows of a boost is what was boosted
		d.Text, d.Warning, d.Choices, d.Media, d.Links = "", "", nil, nil, nil
	case d.NoIndex:
		d.Text, d.Warning, d.Choices = "", "", nil
		for i := range d.Media {
			d.Media[i].Alt = ""
		}
	}
}

// Unwanted is a post that is not to be kept, and why not: what is kept of it is taken back.
type Unwanted struct{ URI, ID, Why string }

// unwanted notes a post that was met and is not to be kept, as who wrote it says wish.
func (b *Batch) unwanted(p *account.Post, w account.Writer, wish string) {
	b.Unwilling = append(b.Unwilling, Unwanted{p.Record.Post, p.ID, "its author's profile says " + wish})
	b.Stop = "opted-out"
	if w.Key == b.key {
		b.Wish = wish
		return
	}
	b.shun(w.Key, wish)
}

// mostShunned is how many shunned people are remembered for a Key.
const mostShunned = 128

// shun has all that is kept under this Key of k taken back. Who was met before costs nothing more.
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

// Shuns says why a kept post is not to be kept any more, "" = it is. Under the Key of an account all is its own.
func (b *Batch) Shuns(r *store.Record) string {
	by := cmp.Or(r.By, r.Key)
	for _, s := range b.State.Shunned {
		if !s.Done && (s.Key == by || s.Key == b.key) {
			return "its author's profile says " + s.Wish
		}
	}
	return ""
}

// TakeBack makes a tombstone of a post that its server may well have.
func (b *Batch) TakeBack(u Unwanted) {
	b.Posts = slices.DeleteFunc(b.Posts, func(r store.Record) bool { return r.Post == u.URI })
	r := b.Tombstone(u.URI, u.ID)
	r.Status, r.Reason = http.StatusOK, u.Why
	b.Posts = append(b.Posts, r)
	delete(b.State.Names, u.ID)
}

// OptOut ends the visit of an account that says wish: of what it said nothing stays. rec is its record, nil = there is
// none.
func (b *Batch) OptOut(rec *store.Record, wish string) {
	b.Gap(store.GapSkipped, "the profile says "+wish)
	if rec != nil {
		rec.Text, rec.Raw, rec.Fields, rec.Declared, rec.Media = "", nil, nil, nil, nil
		rec.NoArchive = true // and what was kept of its files goes
		if !slices.Contains(rec.Flags, wish) {
			rec.Flags = append(slices.Clone(rec.Flags), wish)
			slices.Sort(rec.Flags)
		}
		b.Record = rec
	}
	b.Posts, b.Novel = nil, nil
	for _, m := range b.State.Marks() { // should it change its mind, all is read anew
		*m = service.Mark{}
	}
	b.State.Told, b.State.Rev, b.State.Names, b.State.Doubt, b.State.Langs = account.Told{}, "", nil, nil, nil
	b.State.Shunned = []account.Shunned{{Key: b.key, Wish: wish}}
	b.Leave("opted-out", "the profile says "+wish, account.Ended)
}
