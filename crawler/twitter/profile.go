package twitter

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Profile is a user as the API shows it. Times are UTC, zero = unknown; counts are as claimed by
// the API, -1 if unknown.
type Profile struct {
	ID        string // a number
	Acct      string // the name after the @
	Name      string
	Note      string
	Location  string       // free text
	Links     []store.Link // in the note and the profile's own URL
	URL       string       // the web page
	Avatar    string
	Created   time.Time
	Followers int64
	Following int64
	Posts     int64
	Listed    int64
	Last      string // the id of the newest post, "" = unknown
	Pinned    string // the id of a post
	Protected bool   // posts and lists are visible to followers only
	Verified  bool
	Withheld  []string // countries where it is not shown

	Raw json.RawMessage // the server's own object, nil = over Options.MaxRaw
}

// Key returns the key of the account.
func (p Profile) Key() (partition.Key, error) { return partition.ParseKey(name + ":" + p.ID) }

// Limits of the stored values of one object; lists are cut at their end.
const (
	maxMentions  = 256
	maxTags      = 128
	maxMedia     = 64
	maxLinks     = 100
	maxCountries = 64
	maxVersions  = 16
)

type wireURL struct {
	Long text `json:"expanded_url"`
	Show text `json:"display_url"`
}

type wireUser struct {
	ID          text  `json:"id"`
	User        text  `json:"username"`
	Name        text  `json:"name"`
	Note        text  `json:"description"`
	Location    text  `json:"location"`
	Avatar      text  `json:"profile_image_url"`
	Created     stamp `json:"created_at"`
	Protected   flag  `json:"protected"`
	Verified    flag  `json:"verified"`
	LastTweet   text  `json:"most_recent_tweet_id"`
	LastPost    text  `json:"most_recent_post_id"`
	PinnedTweet text  `json:"pinned_tweet_id"`
	PinnedPost  text  `json:"pinned_post_id"`
	Metrics     struct {
		Followers count `json:"followers_count"`
		Following count `json:"following_count"`
		Tweets    count `json:"tweet_count"`
		Posts     count `json:"post_count"`
		Listed    count `json:"listed_count"`
	} `json:"public_metrics"`
	Withheld struct {
		Countries list[text] `json:"country_codes"`
	} `json:"withheld"`
	Entities struct {
		URL struct {
			URLs list[wireURL] `json:"urls"`
		} `json:"url"`
		Note struct {
			URLs list[wireURL] `json:"urls"`
		} `json:"description"`
	} `json:"entities"`
}

// number returns t if it is an id, else "". An id has digits only, as in keys.
func number(t text) string {
	s := string(t)
	if s == "" || len(s) > 19 || s[0] == '0' || strings.Trim(s, "0123456789") != "" {
		return ""
	}
	return s
}

// either returns a, or b if a is empty: one field in two spellings.
func either(a, b text) text {
	if a != "" {
		return a
	}
	return b
}

// userName returns the name after the @, "" if it is not a name.
func userName(s string) string {
	s = strings.TrimPrefix(s, "@")
	if s == "" || len(s) > 50 || strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_')
	}) {
		return ""
	}
	return s
}

// profile converts w to a Profile; ok is false if it has no id or no name. b is w's own JSON, nil =
// do not store it.
func (c *Client) profile(w wireUser, b []byte) (p Profile, ok bool) {
	m := w.Metrics
	p = Profile{
		ID: number(w.ID), Acct: userName(string(w.User)), Name: service.Line(string(w.Name), service.MaxName),
		Note:     service.Clip(string(w.Note), c.o.MaxText),
		Location: service.Line(string(w.Location), service.MaxName), Avatar: service.Address(w.Avatar),
		Created:   w.Created.Time,
		Followers: m.Followers.N(), Following: m.Following.N(), Posts: max(m.Tweets.N(), m.Posts.N()),
		Listed: m.Listed.N(),
		Last:   number(either(w.LastTweet, w.LastPost)), Pinned: number(either(w.PinnedTweet, w.PinnedPost)),
		Protected: w.Protected.Said == service.Yes, Verified: w.Verified.Said == service.Yes,
	}
	if p.ID == "" || p.Acct == "" {
		return Profile{}, false
	}
	p.URL = "https://x.com/" + p.Acct
	for _, l := range [...]list[wireURL]{w.Entities.Note.URLs, w.Entities.URL.URLs} {
		p.Links = links(p.Links, l)
	}
	for _, t := range w.Withheld.Countries.All {
		if cc := service.Line(string(t), 8); cc != "" && len(p.Withheld) < maxCountries {
			p.Withheld = append(p.Withheld, cc)
		}
	}
	if b != nil {
		p.Raw = service.Raw(b, c.o.MaxRaw)
	}
	return p, true
}

// links appends the links of entities, with their expanded URLs.
func links(had []store.Link, l list[wireURL]) []store.Link {
	for _, w := range l.All {
		if link, ok := service.LinkTo(string(w.Long), string(w.Show)); ok && len(had) < maxLinks {
			had = append(had, link)
		}
	}
	return had
}
