package bluesky

import (
	"encoding/json"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Profile is an account as an AppView shows it. Times are UTC, zero when not said;
// counts are as claimed, -1 when not said. In a list or beside a post it is without counts.
type Profile struct {
	ID     string // its DID
	Acct   string // its handle, "" = it has none that is good
	Name   string
	Note   string
	Links  []store.Link // of the note and the website
	URL    string       // of the page for people
	Avatar string
	Header string

	Website  string
	Pronouns string

	Created   time.Time
	Indexed   time.Time
	Followers int64
	Following int64
	Posts     int64
	Pinned    string // the address of a post
	Labels    []Label

	// NoUnauthenticated says that the account asks not to be shown to who is not logged in.
	NoUnauthenticated bool

	Raw json.RawMessage // the server's own object, nil = over Options.MaxRaw
}

// Label is what somebody says of an account or a post: the account itself, or a labeler.
type Label struct {
	Value string
	By    string // a DID
}

// noUnauthenticated is the label by which an account asks not to be shown to who is not logged in.
const noUnauthenticated = "!no-unauthenticated"

// Key is the Key of the account.
func (p Profile) Key() (partition.Key, error) { return partition.ParseKey(name + ":" + p.ID) }

// Caps on what is kept of one object; lists are cut at their end.
const (
	maxLabels   = 32
	maxMentions = 256
	maxTags     = 128
	maxMedia    = 64
	maxLinks    = 100
	maxLangs    = 8
)

type wireLabel struct {
	Value text `json:"val"`
	By    text `json:"src"`
}

type wireProfile struct {
	DID       text            `json:"did"`
	Handle    text            `json:"handle"`
	Name      text            `json:"displayName"`
	Note      text            `json:"description"`
	Avatar    text            `json:"avatar"`
	Banner    text            `json:"banner"`
	Website   text            `json:"website"`
	Pronouns  text            `json:"pronouns"`
	Created   stamp           `json:"createdAt"`
	Indexed   stamp           `json:"indexedAt"`
	Followers count           `json:"followersCount"`
	Following count           `json:"followsCount"`
	Posts     count           `json:"postsCount"`
	Labels    list[wireLabel] `json:"labels"`
	Pinned    struct {
		URI text `json:"uri"`
	} `json:"pinnedPost"`
}

// labels are those of an object.
func labels(l list[wireLabel]) (out []Label) {
	for _, w := range l.All {
		if len(out) == maxLabels {
			break
		}
		if v := service.Line(string(w.Value), 128); v != "" {
			out = append(out, Label{v, did(string(w.By))})
		}
	}
	return out
}

// profile is w as a Profile; ok is false when it has no DID, without which it is
// of no use. b is w's own JSON, nil = not to be kept.
func (c *Client) profile(w wireProfile, b []byte) (p Profile, ok bool) {
	p = Profile{
		ID: did(string(w.DID)), Acct: handle(string(w.Handle)), Name: service.Line(string(w.Name), service.MaxName),
		Note:   service.Clip(string(w.Note), c.o.MaxText),
		Avatar: service.Address(w.Avatar), Header: service.Address(w.Banner), Website: service.Address(w.Website),
		Pronouns: service.Line(string(w.Pronouns), service.MaxName),
		Created:  w.Created.Time, Indexed: w.Indexed.Time, Followers: w.Followers.N(), Following: w.Following.N(),
		Posts:  w.Posts.N(),
		Pinned: uri(w.Pinned.URI), Labels: labels(w.Labels),
	}
	if p.ID == "" {
		return Profile{}, false
	}
	if p.Acct == "handle.invalid" { // what an AppView says of a handle that does not lead back
		p.Acct = ""
	}
	p.URL = "https://bsky.app/profile/" + p.ID
	p.Links = service.LinksIn(p.Note, maxLinks-1)
	if l, ok := service.LinkTo(p.Website, ""); ok {
		p.Links = append(p.Links, l)
	}
	for _, l := range p.Labels {
		p.NoUnauthenticated = p.NoUnauthenticated || l.Value == noUnauthenticated
	}
	if b != nil {
		p.Raw = service.Raw(b, c.o.MaxRaw)
	}
	return p, true
}

// profiles reads a list of profiles. bad is how many elements were none.
func (c *Client) profiles(l list[wireProfile]) (all []Profile, bad int) {
	return service.Each(l, func(w wireProfile, raw json.RawMessage) (Profile, bool) { return c.profile(w, raw) })
}
