package bluesky

import (
	"encoding/json"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Profile is an account as an AppView shows it. Times are UTC, zero = unknown; counts are as
// claimed by the server, -1 if unknown. In a list or with a post it has no counts.
type Profile struct {
	ID     string // its DID
	Acct   string // its handle, "" = it has no valid one
	Name   string
	Note   string
	Links  []store.Link // in the note and the website
	URL    string       // the web page
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

	// NoUnauthenticated says that the account asks not to be shown to visitors without login.
	NoUnauthenticated bool

	Raw json.RawMessage // the server's own object, nil = over Options.MaxRaw
}

// Label is a statement about an account or a post, by the account itself or by a labeler.
type Label struct {
	Value string
	By    string // a DID
}

// noUnauthenticated is the label of accounts that ask not to be shown to visitors without login.
const noUnauthenticated = "!no-unauthenticated"

// Key returns the key of the account.
func (p Profile) Key() (partition.Key, error) { return partition.ParseKey(name + ":" + p.ID) }

// Limits of the stored values of one object; lists are cut at their end.
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

// labels returns the labels of an object.
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

// profile converts w to a Profile. ok is false if it has no DID, because it is then useless. b is
// w's own JSON, nil = do not store it.
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
	// an AppView's mark for a handle that does not resolve to its DID
	if p.Acct == "handle.invalid" {
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

// profiles converts a list of profiles. bad is the number of unreadable elements.
func (c *Client) profiles(l list[wireProfile]) (all []Profile, bad int) {
	return service.Each(l, func(w wireProfile, raw json.RawMessage) (Profile, bool) { return c.profile(w, raw) })
}
