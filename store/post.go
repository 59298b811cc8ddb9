package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/strictjson"
)

// postRow is what is kept of one post. Seen as a set it is: the versions that
// were ever fetched, each with the time when it was fetched last, of which the
// latest is Record; and the time up to which all versions are forgotten. Two of
// them join as these sets do: that is why copies may meet in any order.
type postRow struct {
	Record Record `json:"record"` // the latest, or a tombstone
	Edits  []Edit `json:"edits,omitempty"`
	// Gone: versions fetched up to then are not kept: the post was seen deleted
	// then, or just after with the wish not to be archived. A later one is.
	Gone time.Time `json:"gone,omitzero"`
}

// maxPostRow is the most that a postRow has as JSON.
const maxPostRow = (MaxPostEdits+1)*(MaxPostBytes+1<<10) + 1<<10

// maxPostWord caps what is a name and not a text in a post, in bytes.
const maxPostWord = 2 << 10

func parsePost(b []byte) (postRow, error) {
	var p postRow
	if err := strictjson.Unmarshal(b, &p); err != nil {
		return p, fmt.Errorf("post: %w: %w", errBadRow, err)
	}
	if p.Record.V != RecordVersion {
		return p, fmt.Errorf("post: version %d, this program knows %d: %w", p.Record.V, RecordVersion, errBadRow)
	}
	return p, nil
}

// record is p as a Record to be shown.
func (p postRow) record() Record {
	r := p.Record
	r.Edits = p.Edits
	return r
}

func checkPost(id itemID, b []byte) ([]byte, time.Time, error) {
	p, err := parsePost(b)
	if err != nil {
		return nil, time.Time{}, err
	}
	r := &p.Record
	switch {
	case r.Key != id.key || r.Post != id.part || r.Kind != KindPost || len(r.Post) == 0 || len(r.Post) > MaxPostURI:
		return nil, time.Time{}, fmt.Errorf("the post is %.80q of %.80q", r.Post, r.Key)
	case !r.FetchedAt.Equal(r.FetchedAt.Truncate(tick)) || r.FetchedAt.Before(p.Gone) || !r.Deleted &&
		!r.FetchedAt.After(p.Gone) || r.Deleted && !r.FetchedAt.Equal(p.Gone):
		return nil, time.Time{}, fmt.Errorf("the post was fetched at %s, and is gone since %s", r.FetchedAt, p.Gone)
	case r.Deleted && (len(p.Edits) > 0 || r.Text != "" || len(r.Media) > 0 || len(r.Raw) > 0):
		return nil, time.Time{}, errors.New("a tombstone with text")
	case len(p.Edits) > MaxPostEdits || len(r.Captures)+len(r.Edges)+len(r.Walks)+len(r.Edits) > 0 || r.Gap != nil:
		return nil, time.Time{}, fmt.Errorf("a post with %d earlier versions, at most %d, or what no post has",
			len(p.Edits), MaxPostEdits)
	}
	tidy, err := newPost(p.Record)
	if err != nil {
		return nil, time.Time{}, err
	}
	for _, e := range p.Edits {
		if len(e.Text) > MaxPostText || len(e.Warning) > maxPostWord || !e.SeenAt.After(p.Gone) ||
			e.SeenAt.After(r.FetchedAt) {
			return nil, time.Time{}, fmt.Errorf("an earlier version of %d bytes, seen at %s", len(e.Text), e.SeenAt)
		}
	}
	tidy.Edits, tidy.Gone = p.Edits, last(tidy.Gone, p.Gone).UTC()
	out, err := tidy.join(tidy).encode()
	return out, r.FetchedAt, err
}

// newPost is a post just fetched, within the caps.
func newPost(r Record) (postRow, error) {
	r.unload()
	r.unhad()
	r.Edits = nil
	r.FetchedAt = r.FetchedAt.UTC().Truncate(tick)
	if r.Deleted {
		was := r
		r = Record{V: was.V, Key: was.Key, Kind: was.Kind, Post: was.Post, URL: was.URL, FetchedAt: was.FetchedAt,
			Source: was.Source,
			Peer:   was.Peer, Status: was.Status, PublishedAt: was.PublishedAt, Deleted: true, Reason: was.Reason,
			Social: Social{By: was.By}}
	}
	r.Text = clip(r.Text, MaxPostText)
	for _, s := range []*string{&r.URL, &r.Source, &r.Peer, &r.Digest, &r.Title, &r.Author, &r.Lang, &r.Reason, &r.ID,
		&r.URI, &r.Name, &r.Warning,
		&r.InReplyTo, &r.BoostOf, &r.QuoteOf, &r.Visibility} {
		*s = clip(*s, maxPostWord)
	}
	p := postRow{}
	var err error
	if p.Record, _, err = r.fitTo(MaxPostBytes); err != nil {
		return p, err
	}
	switch {
	case r.Deleted:
		p.Gone = r.FetchedAt
	case !r.archived():
		p.Gone = r.FetchedAt.Add(-tick)
	}
	return p, nil
}

func (p postRow) encode() ([]byte, error) { return plainJSON(p) }

// above is the order of the versions of one post.
func (p postRow) above(q postRow) bool {
	if c := p.Record.FetchedAt.Compare(q.Record.FetchedAt); c != 0 {
		return c > 0
	}
	if p.Record.Deleted != q.Record.Deleted {
		return p.Record.Deleted
	}
	a, errA := plainJSON(p.Record)
	b, errB := plainJSON(q.Record)
	return errA == nil && errB == nil && bytes.Compare(a, b) > 0 // both were JSON
}

// version is what an edit changes.
type version struct{ warning, text string }

func (e Edit) version() version { return version{e.Warning, e.Text} }

// edit is the latest version as one that is over.
func (p postRow) edit() Edit {
	r := &p.Record
	return Edit{SeenAt: r.FetchedAt, EditedAt: r.EditedAt, Warning: r.Warning, Text: r.Text}
}

func (e Edit) compare(o Edit) int {
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

// join is both as one.
func (p postRow) join(q postRow) postRow {
	if q.above(p) {
		p, q = q, p
	}
	out := postRow{Record: p.Record, Gone: last(p.Gone, q.Gone)}
	had := map[version]Edit{}
	old := append(slices.Clone(p.Edits), q.Edits...)
	if !q.Record.Deleted && q.Record.archived() {
		old = append(old, q.edit())
	}
	for _, e := range old {
		v := e.version()
		if was, ok := had[v]; (!ok || e.compare(was) > 0) && e.SeenAt.After(out.Gone) && v != (version{}) {
			had[v] = e
		}
	}
	if !out.Record.Deleted {
		delete(had, p.edit().version())
	}
	for _, e := range had {
		out.Edits = append(out.Edits, e)
	}
	slices.SortFunc(out.Edits, func(a, b Edit) int { return b.compare(a) })
	out.Edits = out.Edits[:min(len(out.Edits), MaxPostEdits)]
	return out
}

func joinPosts(a, b []byte) ([]byte, error) {
	p, err := parsePost(a)
	if err != nil {
		return nil, err
	}
	q, err := parsePost(b)
	if err != nil {
		return nil, err
	}
	return p.join(q).encode()
}

// post writes one of a commit. It was fetched just now, so it is later than what
// there is, whatever the clock says; but an older copy of a post that was seen
// deleted since stays out.
func (t *txn) post(id siteID, r Record, now time.Time) error {
	if r.FetchedAt.IsZero() {
		r.FetchedAt = now
	}
	p, err := newPost(r)
	if err != nil {
		return fmt.Errorf("post %.100q: %w", r.Post, err)
	}
	at := itemID{siteID: id, table: tabPost, key: r.Key, part: r.Post}
	had, err := t.state(at)
	if err != nil {
		return fmt.Errorf("post %.100q: %w", r.Post, err)
	}
	var was *Record
	if had != nil {
		old, err := parsePost(had)
		if err != nil {
			return err
		}
		was = &old.Record
		if before := old.Record.FetchedAt; !p.Record.FetchedAt.After(before) {
			if old.Record.Deleted && !r.Deleted {
				return nil
			}
			p.Record.FetchedAt = before.Add(tick)
			if p, err = newPost(p.Record); err != nil {
				return err
			}
		}
	}
	t.names(was, &p.Record)
	state, err := p.encode()
	if err != nil {
		return err
	}
	return t.item(at, state)
}

// Post is one post of k, its earlier versions included, and the slice that it is
// in. ErrNotExist: there is none. A tombstone is a post (Record.Deleted).
func (s *Store) Post(k partition.Key, uri string) (Record, partition.Slice, error) {
	if err := s.enter(); err != nil {
		return Record{}, 0, err
	}
	defer s.leave()
	id := itemID{siteID: s.idOf(k), table: tabPost, key: k, part: uri}
	v, err := s.get(id.row())
	if errors.Is(err, ErrNotExist) {
		if id.slice, err = s.whereIs(k); err == nil {
			v, err = s.get(id.row())
		}
	}
	if err == nil {
		v, err = s.packer.openItem(tabPost, v)
	}
	var p postRow
	if err == nil {
		p, err = parsePost(v)
	}
	if err != nil {
		return Record{}, 0, fmt.Errorf("store: post %.100q of %s: %w", uri, k, err)
	}
	r := p.record()
	if err := s.had(id.slice, &r); err != nil {
		return Record{}, 0, fmt.Errorf("store: post %.100q of %s: %w", uri, k, err)
	}
	return r, id.slice, nil
}

// Posts calls fn for the posts of k in sl (0: its hash slice), tombstones
// included, in order of Record.Post after from, until it answers false.
func (s *Store) Posts(sl partition.Slice, k partition.Key, from string, fn func(Record) (bool, error)) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	p := itemKey(tabPost, s.idIn(sl, k), k)
	return s.posts(k, lowerItem(p, from), after(p), fn)
}

// PostsOf counts the posts of k in sl (0: its hash slice), tombstones included, without reading them: most of them at
// most.
func (s *Store) PostsOf(sl partition.Slice, k partition.Key, most int) (n int, err error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.leave()
	p := itemKey(tabPost, s.idIn(sl, k), k)
	err = s.scan(p, after(p), func([]byte, []byte) (bool, error) {
		n++
		return n < most, nil
	})
	return n, err
}

// SlicePosts calls fn for the posts of sl in order of site, Key and Post, those
// after the post from of k, until it answers false; k "" begins.
func (s *Store) SlicePosts(sl partition.Slice, k partition.Key, from string, fn func(Record) (bool, error)) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	p := slicePrefix(tabPost, sl)
	lower := p
	if k != "" {
		lower = lowerItem(itemKey(tabPost, s.idIn(sl, k), k), from)
	}
	return s.posts("", lower, after(p), fn)
}

// lowerItem is where the leaves after the part from begin; "" is before all.
func lowerItem(prefix []byte, from string) []byte {
	if from == "" {
		return prefix
	}
	return append(append(bytes.Clone(prefix), from...), 0)
}

func (s *Store) posts(k partition.Key, lower, upper []byte, fn func(Record) (bool, error)) error {
	err := s.scan(lower, upper, func(key, value []byte) (bool, error) {
		v, err := s.packer.openItem(tabPost, value)
		if err != nil {
			return false, err
		}
		p, err := parsePost(v)
		if err != nil {
			return false, fmt.Errorf("row %q: %w", key, err)
		}
		id, err := splitItem(tabPost, key)
		if err != nil {
			return false, err
		}
		r := p.record()
		if err := s.had(id.slice, &r); err != nil {
			return false, err
		}
		return fn(r)
	})
	if err != nil {
		return fmt.Errorf("store: posts of %s: %w", k, err)
	}
	return nil
}
