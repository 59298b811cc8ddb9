package social

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// record is a Record of this Key and this fetch.
func (v *visit) record(kind string) *store.Record {
	return &store.Record{V: store.RecordVersion, Key: v.t.Due.Key, Kind: kind, FetchedAt: v.now,
		Source: v.t.Due.Key.Service(), Status: http.StatusOK, URL: v.url}
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

// wrote says who wrote r.
func (v *visit) wrote(r *store.Record, by partition.Key) {
	if by != v.t.Due.Key {
		r.By = by
		v.candidate(by, "author")
	}
}

// profileRecord is the beginning of an account's record.
func (v *visit) profileRecord(url string, raw []byte, links []store.Link) *store.Record {
	r := v.record(store.KindProfile)
	if url != "" {
		r.URL = url
	}
	r.Raw, r.Digest, r.Links = raw, digest(raw), links
	return r
}

// wished notes in r the wishes of an account that are hashtags in its texts.
func wished(r *store.Record, wishes []string) {
	for _, w := range wishes {
		r.Flags = append(r.Flags, w)
		switch w {
		case "#noarchive":
			r.NoArchive = true
		case "#noindex", "#nosearch":
			r.NoIndex = true
		}
	}
}

// counts are those that were said.
func counts(of map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for name, n := range of {
		if n >= 0 {
			out[name] = n
		}
	}
	return out
}

// flagged are the words of of that hold, added to r.
func flagged(r *store.Record, of map[string]bool) {
	for word, is := range of {
		if is {
			r.Flags = append(r.Flags, word)
		}
	}
	slices.Sort(r.Flags)
}

// pictures of a profile.
func pictures(avatar, header string) (out []store.Media) {
	for _, m := range [...]store.Media{{Type: "avatar", URL: avatar}, {Type: "header", URL: header}} {
		if m.URL != "" {
			out = append(out, m)
		}
	}
	return out
}

// placeholder is what Mastodon shows of who has no picture: the same file for all.
const placeholder = "/missing.png"

// files asks for the files that the profile and the posts of this visit name.
func (v *visit) files() {
	k := v.t.Due.Key
	if !v.s.o.Media || k.Kind() != partition.KindAccount || v.st.Outside != "" {
		return
	}
	add := func(r *store.Record) {
		if r.Deleted || r.NoIndex || r.NoArchive {
			return
		}
		for _, m := range r.Media {
			if f, ok := m.File(k); ok && !v.linked[f] && !strings.HasSuffix(m.URL, placeholder) {
				v.linked[f] = true
				v.res.Links = append(v.res.Links, store.Link{Key: f, Rel: "media"})
			}
		}
	}
	if v.res.Record != nil {
		add(v.res.Record)
	}
	for i := range v.res.Posts {
		add(&v.res.Posts[i])
	}
}

// take takes in a post.
func (v *visit) take(d *draft) {
	id, r := d.id, d.Record
	if v.st.NoIndex && v.t.Due.Key.Kind() == partition.KindAccount {
		r.NoIndex = true
	}
	d.bared()
	if v.looking != nil { // what is as it was needs no writing
		if had := v.looking[r.Post]; had == nil || !had.Says(r) {
			v.res.Posts = append(v.res.Posts, *r)
		}
		return
	}
	if !v.told.IsZero() { // by a stream: a reading has it in its place
		r.FetchedAt = v.told
		v.toldOf[r.Post] = true
		v.res.Posts = append(v.res.Posts, *r)
		return
	}
	if v.st.Names == nil {
		v.st.Names = map[string]string{}
	}
	if v.st.Names[id] == "" && r.Lang != "" && len(v.st.Langs) < 32 {
		if v.st.Langs == nil {
			v.st.Langs = map[string]int{}
		}
		v.st.Langs[r.Lang]++
	}
	if v.st.Names[id] == "" {
		v.novel = append(v.novel, len(v.res.Posts))
		if v.new++; r.PublishedAt != nil && r.PublishedAt.Before(v.st.Looked) {
			v.older++
		}
		if at := r.PublishedAt; at != nil && v.t.Due.Key.Kind() == partition.KindAccount && v.now.Sub(*at) < quietOld &&
			!at.After(v.now) {
			v.made = append(v.made, *at)
		}
	}
	v.st.Names[id] = r.Post
	v.res.Posts = append(v.res.Posts, *r)
}

// tombstone is a post that its server says is not there any more.
func (v *visit) tombstone(uri, id string) store.Record {
	r := v.record(store.KindPost)
	r.Post, r.ID, r.Deleted, r.Status, r.Reason = uri, id, true, http.StatusNotFound, "the server has it no more"
	if r.Key.Service() == "bluesky" { // the URI names it, whatever its version
		r.ID = ""
	}
	return *r
}
