package fold

import (
	"net/http"

	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// NewRecord returns a Record of this Key and this fetch.
func (b *Batch) NewRecord(kind string) *store.Record {
	r := &store.Record{}
	b.head(r, kind)
	return r
}

// Profile makes r the record of the Key's account. A URL that r already has stays.
func (b *Batch) Profile(r *store.Record) {
	if r == nil {
		return
	}
	url := r.URL
	b.head(r, store.KindProfile)
	if url != "" {
		r.URL = url
	}
}

// head sets the fields that all records of this fetch share.
func (b *Batch) head(r *store.Record, kind string) {
	r.V, r.Key, r.Kind, r.FetchedAt = store.RecordVersion, b.key, kind, b.now
	r.Source, r.Status, r.URL = b.key.Service(), http.StatusOK, b.url
}

// Take adds those of posts that may be stored.
func (b *Batch) Take(posts ...account.Post) {
	for i := range posts {
		if p := &posts[i]; b.may(p) && !p.Same {
			b.take(p)
		}
	}
}

// take adds a post that may be stored.
func (b *Batch) take(p *account.Post) {
	r, url := p.Record, p.Record.URL
	b.head(&r, store.KindPost)
	if url != "" {
		r.URL = url
	}
	if p.ReplyTo != "" && b.State.Names[p.ReplyTo] != "" {
		r.InReplyTo = b.State.Names[p.ReplyTo]
	}
	if p.By.Key != b.key {
		r.By = p.By.Key
		b.Candidate(p.By.Key, "author")
	}
	for _, l := range p.Leads {
		b.Candidate(l.Key, l.Rel)
	}
	r.NoIndex = p.By.NoIndex || b.State.NoIndex && b.key.Kind() == partition.KindAccount
	bared(&r, p.Boosted.NoIndex || p.Quoted.NoIndex || p.Quoted.Wish() != "")
	switch {
	case b.Looking != nil: // an unchanged post is not written
		if had := b.Looking[r.Post]; had == nil || !had.Says(&r) {
			b.Posts = append(b.Posts, r)
		}
	case !b.Streamed.IsZero(): // from a stream: the Mark is left to the next reading
		r.FetchedAt = b.Streamed
		b.StreamedPosts[r.Post] = true
		b.Posts = append(b.Posts, r)
	default:
		b.read(p.ID, r)
	}
}

// read adds a post from a reading. id is its id in the Mark.
func (b *Batch) read(id string, r store.Record) {
	st := &b.State
	if st.Names == nil {
		st.Names = map[string]string{}
	}
	if st.Names[id] == "" {
		if r.Lang != "" && len(st.Langs) < 32 {
			if st.Langs == nil {
				st.Langs = map[string]int{}
			}
			st.Langs[r.Lang]++
		}
		b.Novel = append(b.Novel, len(b.Posts))
		if b.New++; r.PublishedAt != nil && r.PublishedAt.Before(st.Looked) {
			b.Older++
		}
		if r.PublishedAt != nil && b.key.Kind() == partition.KindAccount {
			b.Made = append(b.Made, *r.PublishedAt)
		}
	}
	st.Names[id] = r.Post
	b.Posts = append(b.Posts, r)
}

// Tombstone returns the record of a post that its server no longer has.
func (b *Batch) Tombstone(uri, id string) store.Record {
	r := b.NewRecord(store.KindPost)
	r.Post, r.ID, r.Deleted, r.Status, r.Reason = uri, id, true, http.StatusNotFound,
		"the server does not have it any more"
	if r.Key.Service() == "bluesky" { // the URI identifies the post in all its versions
		r.ID = ""
	}
	return *r
}
