package format

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition/strictjson"
	"github.com/echo-node/echo-node/store"
)

// PostRow is the stored state of one post. It is a set: the versions that were ever fetched, each
// with the time of its last fetch, and a time up to which all versions are forgotten. Record is the
// latest version. Two states join as these sets do, so copies may meet in any order.
type PostRow struct {
	Record store.Record `json:"record"` // the latest, or a tombstone
	Edits  []store.Edit `json:"edits,omitempty"`
	// Gone is the time up to which fetched versions are not stored; later ones are. The post was
	// seen deleted at that time, or just after it with the wish not to be archived.
	Gone time.Time `json:"gone,omitzero"`
}

// maxPostRow is the maximum size of a PostRow as JSON.
const maxPostRow = (store.MaxPostEdits+1)*(store.MaxPostBytes+1<<10) + 1<<10

// maxPostWord is the maximum length in bytes of a name, as opposed to a text, in a post.
const maxPostWord = 2 << 10

// ParsePost decodes the unpacked row of a post.
func ParsePost(b []byte) (PostRow, error) {
	var p PostRow
	if err := strictjson.Unmarshal(b, &p); err != nil {
		return p, fmt.Errorf("post: %w: %w", ErrBadRow, err)
	}
	if p.Record.V != store.RecordVersion {
		return p, fmt.Errorf("post: version %d, this program knows %d: %w", p.Record.V, store.RecordVersion, ErrBadRow)
	}
	return p, nil
}

// Shown returns p as a Record for display.
func (p PostRow) Shown() store.Record {
	r := p.Record
	r.Edits = p.Edits
	return r
}

// checkPost is CheckItem for posts.
func checkPost(id ItemID, b []byte) ([]byte, time.Time, error) {
	p, err := ParsePost(b)
	if err != nil {
		return nil, time.Time{}, err
	}
	r := &p.Record
	switch {
	case r.Key != id.Key || r.Post != id.Part || r.Kind != store.KindPost || len(r.Post) == 0 ||
		len(r.Post) > store.MaxPostURI:
		return nil, time.Time{}, fmt.Errorf("the post is %.80q of %.80q", r.Post, r.Key)
	case !r.FetchedAt.Equal(r.FetchedAt.Truncate(store.Tick)) || r.FetchedAt.Before(p.Gone) || !r.Deleted &&
		!r.FetchedAt.After(p.Gone) || r.Deleted && !r.FetchedAt.Equal(p.Gone):
		return nil, time.Time{}, fmt.Errorf("the post was fetched at %s, and is gone since %s", r.FetchedAt, p.Gone)
	case r.Deleted && (len(p.Edits) > 0 || r.Text != "" || len(r.Media) > 0 || len(r.Raw) > 0):
		return nil, time.Time{}, errors.New("a tombstone with text")
	case len(p.Edits) > store.MaxPostEdits || len(r.Captures)+len(r.Edges)+len(r.Walks)+len(r.Edits) > 0 ||
		r.Gap != nil:
		return nil, time.Time{}, fmt.Errorf("a post with %d earlier versions, at most %d, or what no post has",
			len(p.Edits), store.MaxPostEdits)
	}
	tidy, err := NewPost(p.Record)
	if err != nil {
		return nil, time.Time{}, err
	}
	for _, e := range p.Edits {
		if len(e.Text) > store.MaxPostText || len(e.Warning) > maxPostWord || !e.SeenAt.After(p.Gone) ||
			e.SeenAt.After(r.FetchedAt) {
			return nil, time.Time{}, fmt.Errorf("an earlier version of %d bytes, seen at %s", len(e.Text), e.SeenAt)
		}
	}
	tidy.Edits, tidy.Gone = p.Edits, store.Latest(tidy.Gone, p.Gone).UTC()
	out, err := tidy.join(tidy).Encode()
	return out, r.FetchedAt, err
}

// NewPost returns the state of a post that was just fetched, cut to the limits.
func NewPost(r store.Record) (PostRow, error) {
	r.Unload()
	r.Unhad()
	r.Edits = nil
	r.FetchedAt = r.FetchedAt.UTC().Truncate(store.Tick)
	if r.Deleted {
		was := r
		r = store.Record{V: was.V, Key: was.Key, Kind: was.Kind, Post: was.Post, URL: was.URL, FetchedAt: was.FetchedAt,
			Source: was.Source,
			Peer:   was.Peer, Status: was.Status, PublishedAt: was.PublishedAt, Deleted: true, Reason: was.Reason,
			Social: store.Social{By: was.By}}
	}
	r.Text = store.Clip(r.Text, store.MaxPostText)
	for _, s := range []*string{&r.URL, &r.Source, &r.Peer, &r.Digest, &r.Title, &r.Author, &r.Lang, &r.Reason, &r.ID,
		&r.URI, &r.Name, &r.Warning,
		&r.InReplyTo, &r.BoostOf, &r.QuoteOf, &r.Visibility} {
		*s = store.Clip(*s, maxPostWord)
	}
	p := PostRow{}
	var err error
	if p.Record, _, err = r.FitTo(store.MaxPostBytes); err != nil {
		return p, err
	}
	switch {
	case r.Deleted:
		p.Gone = r.FetchedAt
	case !r.Archived():
		p.Gone = r.FetchedAt.Add(-store.Tick)
	}
	return p, nil
}

// Encode returns the unpacked row of p.
func (p PostRow) Encode() ([]byte, error) { return store.PlainJSON(p) }

// above reports whether p is the later of two versions of one post.
func (p PostRow) above(q PostRow) bool {
	if c := p.Record.FetchedAt.Compare(q.Record.FetchedAt); c != 0 {
		return c > 0
	}
	if p.Record.Deleted != q.Record.Deleted {
		return p.Record.Deleted
	}
	a, errA := store.PlainJSON(p.Record)
	b, errB := store.PlainJSON(q.Record)
	return errA == nil && errB == nil && bytes.Compare(a, b) > 0 // both were valid JSON
}

// version is the content that an edit changes.
type version struct{ warning, text string }

func versionOf(e store.Edit) version { return version{e.Warning, e.Text} }

// edit returns the latest version as an earlier one.
func (p PostRow) edit() store.Edit {
	r := &p.Record
	return store.Edit{SeenAt: r.FetchedAt, EditedAt: r.EditedAt, Warning: r.Warning, Text: r.Text}
}

// compareEdits orders the edits of a post by the time of their last fetch.
func compareEdits(e, o store.Edit) int {
	var a, b time.Time
	if e.EditedAt != nil {
		a = *e.EditedAt
	}
	if o.EditedAt != nil {
		b = *o.EditedAt
	}
	return cmp.Or(e.SeenAt.Compare(o.SeenAt), cmp.Compare(e.Text, o.Text), cmp.Compare(e.Warning, o.Warning),
		a.Compare(b))
}

// join returns the joined state of both.
func (p PostRow) join(q PostRow) PostRow {
	if q.above(p) {
		p, q = q, p
	}
	out := PostRow{Record: p.Record, Gone: store.Latest(p.Gone, q.Gone)}
	had := map[version]store.Edit{}
	old := append(slices.Clone(p.Edits), q.Edits...)
	if !q.Record.Deleted && q.Record.Archived() {
		old = append(old, q.edit())
	}
	for _, e := range old {
		v := versionOf(e)
		if was, ok := had[v]; (!ok || compareEdits(e, was) > 0) && e.SeenAt.After(out.Gone) && v != (version{}) {
			had[v] = e
		}
	}
	if !out.Record.Deleted {
		delete(had, versionOf(p.edit()))
	}
	for _, e := range had {
		out.Edits = append(out.Edits, e)
	}
	slices.SortFunc(out.Edits, func(a, b store.Edit) int { return compareEdits(b, a) })
	out.Edits = out.Edits[:min(len(out.Edits), store.MaxPostEdits)]
	return out
}

// joinPosts joins two encoded PostRows.
func joinPosts(a, b []byte) ([]byte, error) {
	p, err := ParsePost(a)
	if err != nil {
		return nil, err
	}
	q, err := ParsePost(b)
	if err != nil {
		return nil, err
	}
	return p.join(q).Encode()
}
