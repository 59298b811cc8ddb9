package mastodon

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/web"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Profile is an account as one server shows it. Texts have no HTML; times are UTC, zero = unknown;
// counts are as claimed by the server, -1 if unknown.
type Profile struct {
	ID   string // of that server, opaque
	Acct string // user@host; the host is always present and in lower case
	// the account is local to this server; a server knows only a part of other accounts
	Local  bool
	Name   string
	Note   string
	Fields []Field
	Links  []store.Link // in the note and the fields
	URL    string       // the web page
	URI    string       // its ActivityPub id
	Avatar string
	Header string

	Created    time.Time
	LastPost   time.Time // a day
	Followers  int64
	Following  int64
	Posts      int64
	Bot        bool
	Group      bool
	Locked     bool // the owner approves follow requests; public posts are still public
	Suspended  bool
	Limited    bool // its server shows it to its followers only
	Memorial   bool
	HidesLists service.Said // of followers and following

	Moved *Move // the new account, nil = none

	// The account's wishes about being found. Mastodon's default for indexable is no.
	Discoverable service.Said // shown in directories and suggestions
	Indexable    service.Said // its posts may be in a full-text search
	NoIndex      service.Said // search engines should leave it out
	OptOuts      []OptOut

	Raw json.RawMessage // the server's own object, nil = over Options.MaxRaw
}

// Field is one line of a profile's table; a place is usually in one.
type Field struct {
	Name, Value string
	Verified    time.Time // when the link in Value was found to link back; zero = not verified
}

// Move is the new account of an account that moved.
type Move struct{ ID, Acct, URL string }

// OptOut is a wish not to be collected, in its original form.
type OptOut string

// The opt-outs. The crawl's policy decides which of them it obeys. The first three are flags of the
// server, the others are hashtags in a note or a field.
const (
	OptNoIndex         OptOut = "noindex"
	OptNotIndexable    OptOut = "indexable:false"
	OptNotDiscoverable OptOut = "discoverable:false"
	OptNoBotTag        OptOut = "#nobot"
	OptNoArchiveTag    OptOut = "#noarchive"
	OptNoIndexTag      OptOut = "#noindex"
	OptNoSearchTag     OptOut = "#nosearch"
	OptNoCrawlTag      OptOut = "#nocrawl"
)

// Key returns the key of the account.
func (p Profile) Key() (partition.Key, error) { return partition.ParseKey("mastodon:" + p.Acct) }

// TagKey returns the key of a hashtag's timeline at host.
func TagKey(host, tag string) (partition.Key, error) {
	return partition.ParseKey("mastodon:" + host + "/tag/" + tag)
}

type wireField struct {
	Name     text  `json:"name"`
	Value    text  `json:"value"`
	Verified stamp `json:"verified_at"`
}

type wireAccount struct {
	ID           text            `json:"id"`
	Username     text            `json:"username"`
	Acct         text            `json:"acct"`
	Name         text            `json:"display_name"`
	Note         text            `json:"note"`
	URL          text            `json:"url"`
	URI          text            `json:"uri"`
	Avatar       text            `json:"avatar"`
	Header       text            `json:"header"`
	Created      stamp           `json:"created_at"`
	LastPost     stamp           `json:"last_status_at"`
	Followers    count           `json:"followers_count"`
	Following    count           `json:"following_count"`
	Posts        count           `json:"statuses_count"`
	Bot          flag            `json:"bot"`
	Group        flag            `json:"group"`
	Locked       flag            `json:"locked"`
	Suspended    flag            `json:"suspended"`
	Limited      flag            `json:"limited"`
	Memorial     flag            `json:"memorial"`
	HidesLists   flag            `json:"hide_collections"`
	Discoverable flag            `json:"discoverable"`
	Indexable    flag            `json:"indexable"`
	NoIndex      flag            `json:"noindex"`
	Moved        *wireMoved      `json:"moved"`
	Fields       list[wireField] `json:"fields"`
	Pleroma      struct {
		HidesFollowers flag `json:"hide_followers"`
		Deactivated    flag `json:"deactivated"`
	} `json:"pleroma"`
}

type wireMoved struct {
	ID       text `json:"id"`
	Username text `json:"username"`
	Acct     text `json:"acct"`
	URL      text `json:"url"`
}

// profile converts w to a Profile. ok is false if it has no id or no name, because it is then
// useless. b is w's own JSON, nil = do not store it.
func (c *Client) profile(w wireAccount, b []byte) (p Profile, ok bool) {
	acct, local := c.acct(w.Acct, w.Username)
	p = Profile{
		ID: service.Ident(w.ID), Acct: acct, Local: local, Name: service.Line(string(w.Name), service.MaxName),
		URL: service.Address(w.URL), URI: service.Address(w.URI), Avatar: service.Address(w.Avatar),
		Header:  service.Address(w.Header),
		Created: w.Created.Time, LastPost: w.LastPost.Time, Followers: w.Followers.N(), Following: w.Following.N(),
		Posts: w.Posts.N(),
		Bot:   w.Bot.Said == service.Yes, Group: w.Group.Said == service.Yes, Locked: w.Locked.Said == service.Yes,
		Suspended: w.Suspended.Said == service.Yes || w.Pleroma.Deactivated.Said == service.Yes,
		Limited:   w.Limited.Said == service.Yes, Memorial: w.Memorial.Said == service.Yes,
		HidesLists:   max(w.HidesLists.Said, w.Pleroma.HidesFollowers.Said),
		Discoverable: w.Discoverable.Said, Indexable: w.Indexable.Said, NoIndex: w.NoIndex.Said,
	}
	if p.ID == "" || p.Acct == "" {
		return Profile{}, false
	}
	at := p.URL
	if at == "" {
		at = c.base + "/"
	}
	p.Note, p.Links = c.plain(string(w.Note), at)
	for _, f := range w.Fields.All {
		if len(p.Fields) == maxFields {
			break
		}
		name, _ := c.plain(string(f.Name), at)
		value, links := c.plain(string(f.Value), at)
		p.Fields = append(p.Fields, Field{service.Line(name, service.MaxName), service.Clip(value, 4*service.MaxName),
			f.Verified.Time})
		p.Links = append(p.Links, links[:min(len(links), maxLinks-min(maxLinks, len(p.Links)))]...)
	}
	if w.Moved != nil {
		acct, _ := c.acct(w.Moved.Acct, w.Moved.Username)
		if m := (Move{service.Ident(w.Moved.ID), acct, service.Address(w.Moved.URL)}); m != (Move{}) {
			p.Moved = &m
		}
	}
	p.OptOuts = optOuts(p)
	if b != nil {
		p.Raw = service.Raw(b, c.o.MaxRaw)
	}
	return p, true
}

// plain returns the text and the links of an HTML fragment. If the parser fails, the text is empty.
func (c *Client) plain(fragment, at string) (string, []store.Link) {
	text, links, _, err := web.Fragment(fragment, at, c.o.MaxText, maxLinks)
	if err != nil {
		return "", nil
	}
	return text, links
}

// maxAcct is the longest user@host in bytes; DNS limits the host to 253 bytes.
const maxAcct = 512

// acct returns user@host for a server's name of an account. Mastodon leaves out the host of local
// accounts; snac does not. "" = not an account.
func (c *Client) acct(acct, username text) (full string, local bool) {
	name := strings.TrimPrefix(string(acct), "@")
	if name == "" {
		name = string(username)
	}
	user, host, remote := strings.Cut(name, "@")
	if !remote {
		host = c.o.Domain
	}
	host = strings.ToLower(host)
	bad := func(r rune) bool { return r <= ' ' || r == '@' || r == '/' || r == 0x7f || r == '\uFFFD' }
	if user == "" || host == "" || len(user)+len(host) >= maxAcct || strings.ContainsFunc(user, bad) ||
		strings.ContainsFunc(host, bad) {
		return "", false
	}
	return user + "@" + host, host == c.o.Domain || host == c.host
}

// optOuts returns the opt-outs in p.
func optOuts(p Profile) (out []OptOut) {
	if p.NoIndex == service.Yes {
		out = append(out, OptNoIndex)
	}
	if p.Indexable == service.No {
		out = append(out, OptNotIndexable)
	}
	if p.Discoverable == service.No {
		out = append(out, OptNotDiscoverable)
	}
	texts := []string{p.Name, p.Note}
	for _, f := range p.Fields {
		texts = append(texts, f.Name, f.Value)
	}
	for _, tag := range service.Wishes(texts...) {
		out = append(out, OptOut(tag))
	}
	return out
}
