package social

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/mastodon"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// record is a Record of this Key and this fetch.
func (v *visit) record(kind string) *store.Record {
	return &store.Record{V: store.RecordVersion, Key: v.t.Due.Key, Kind: kind, FetchedAt: v.now, Source: v.s.Name(), Status: http.StatusOK, URL: base(v.host) + "/"}
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// profileRecord is the record of an account.
func (v *visit) profileRecord(p mastodon.Profile) *store.Record {
	r := v.record(store.KindProfile)
	if p.URL != "" {
		r.URL = p.URL
	}
	r.Title, r.Text, r.Author, r.Raw, r.Digest = p.Name, p.Note, p.Acct, p.Raw, digest(p.Raw)
	r.Links = p.Links
	r.ID, r.URI, r.CreatedAt, r.LastPost = p.ID, p.URI, moment(p.Created), moment(p.LastPost)
	for _, f := range p.Fields {
		r.Fields = append(r.Fields, store.Field{Name: f.Name, Value: f.Value, Verified: moment(f.Verified)})
		if placeName(f.Name) {
			r.Declared = append(r.Declared, f.Value)
		}
	}
	r.Counts = map[string]int64{}
	for name, n := range map[string]int64{"followers": p.Followers, "following": p.Following, "posts": p.Posts} {
		if n >= 0 {
			r.Counts[name] = n
		}
	}
	for word, is := range map[string]bool{"bot": p.Bot, "group": p.Group, "locked": p.Locked, "suspended": p.Suspended, "limited": p.Limited, "memorial": p.Memorial, "hides-lists": p.HidesLists == service.Yes} {
		if is {
			r.Flags = append(r.Flags, word)
		}
	}
	for _, o := range p.OptOuts {
		r.Flags = append(r.Flags, string(o))
		switch o {
		case mastodon.OptNoArchiveTag:
			r.NoArchive = true
		case mastodon.OptNoIndex, mastodon.OptNoIndexTag, mastodon.OptNoSearchTag:
			r.NoIndex, v.st.NoIndex = true, true
		}
	}
	if p.Moved != nil {
		r.MovedTo = keyOf(p.Moved.Acct)
	}
	for kind, u := range map[string]string{"avatar": p.Avatar, "header": p.Header} {
		if u != "" {
			r.Media = append(r.Media, store.Media{Type: kind, URL: u})
		}
	}
	slices.Sort(r.Flags)
	slices.SortFunc(r.Media, func(a, b store.Media) int { return strings.Compare(a.Type, b.Type) })
	if r.NoIndex {
		r.Text = ""
	}
	return r
}

// placeName says whether a line of a profile is named as the one with a place mostly is.
func placeName(name string) bool {
	name = strings.ToLower(name)
	for _, word := range [...]string{"locali", "location", "ubicaci", "lugar", "place", "onde", "where", "cidade", "city", "país", "country", "📍", "ort", "lieu", "ville", "based"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// uriOf is the name of a post that it has on every server, and after an edit.
func uriOf(p mastodon.Post) string {
	for _, s := range [...]string{p.URI, p.URL} {
		if s != "" && len(s) <= store.MaxPostURI {
			return s
		}
	}
	return "id:" + p.ID
}

// post takes in one post.
func (v *visit) post(p mastodon.Post) {
	if p.Visibility == "private" || p.Visibility == "direct" {
		return // a credential may see more than is public
	}
	r := v.record(store.KindPost)
	r.Post, r.ID, r.PublishedAt, r.EditedAt = uriOf(p), p.ID, moment(p.Created), moment(p.Edited)
	if p.URL != "" {
		r.URL = p.URL
	}
	r.Author, r.Name, r.Text, r.Warning, r.Lang, r.Visibility = p.Author.Acct, p.Author.Name, p.Text, p.Warning, p.Lang, p.Visibility
	r.Tags, r.Choices, r.Links, r.Raw, r.Digest = p.Tags, p.Choices, p.Links, p.Raw, digest(p.Raw)
	if by := keyOf(p.Author.Acct); by != v.t.Due.Key {
		r.By = by
		v.candidate(by, "author")
	}
	for _, m := range p.Mentions {
		k := keyOf(m.Acct)
		r.Mentions = append(r.Mentions, store.Mention{Key: k, Name: m.Acct})
		if m.ID != "" && m.ID == p.ReplyToAuthor {
			r.InReplyToUser = k
			v.candidate(k, "reply")
		}
		v.candidate(k, "mention")
	}
	if p.ReplyTo != "" {
		if r.InReplyTo = v.st.Names[p.ReplyTo]; r.InReplyTo == "" {
			r.InReplyTo = "id:" + p.ReplyTo
		}
	}
	if p.Boost != nil {
		r.BoostOf, r.Text = uriOf(*p.Boost), ""
		v.candidate(keyOf(p.Boost.Author.Acct), "boost")
	}
	if p.Quote != nil {
		r.QuoteOf = uriOf(*p.Quote)
		v.candidate(keyOf(p.Quote.Author.Acct), "quote")
	}
	for _, m := range p.Media {
		r.Media = append(r.Media, store.Media{Type: m.Type, URL: m.URL, Remote: m.Remote, Alt: m.Alt})
	}
	r.Counts = map[string]int64{}
	for name, n := range map[string]int64{"replies": p.Replies, "boosts": p.Boosts, "likes": p.Favourites} {
		if n >= 0 {
			r.Counts[name] = n
		}
	}
	if p.Sensitive {
		r.Flags = append(r.Flags, "sensitive")
	}
	if v.st.NoIndex && v.t.Due.Key.Kind() == partition.KindAccount || p.Author.NoIndex == service.Yes {
		r.NoIndex, r.Text = true, ""
	}
	if v.st.Names == nil {
		v.st.Names = map[string]string{}
	}
	if v.st.Names[p.ID] == "" && p.Lang != "" && len(v.st.Langs) < 32 {
		if v.st.Langs == nil {
			v.st.Langs = map[string]int{}
		}
		v.st.Langs[p.Lang]++
	}
	v.st.Names[p.ID] = r.Post
	v.res.Posts = append(v.res.Posts, *r)
}

// tombstone is a post that its server says is not there any more.
func (v *visit) tombstone(uri, id string) store.Record {
	r := v.record(store.KindPost)
	r.Post, r.ID, r.Deleted, r.Status, r.Reason = uri, id, true, http.StatusNotFound, "the server has it no more"
	return *r
}
