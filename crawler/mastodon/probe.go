package mastodon

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/echo-node/echo-node/crawler/service"
)

// Probe finds out what the server is and does, in about fifteen requests.
// sample is an account of its own with a few public posts, "" = one from its public timeline; without
// any, what needs one stays in Unsure. An error is a Fault that may pass (Again) with which nothing at all was learnt,
// or that of ctx; whatever else goes wrong is a Doubt, and makes the Server expire sooner.
func (c *Client) Probe(ctx context.Context, sample string) (Server, error) {
	return c.Resume(ctx, sample, Server{})
}

// Resume is a Probe that goes on where an earlier one, was, ended in doubts that may pass, as of a limit: only what
// they are of is asked, so that five calls at a time are enough for all. One that is none of this server, or older than
// a Server is fresh, is begun anew.
func (c *Client) Resume(ctx context.Context, sample string, was Server) (Server, error) {
	now := c.o.Now().UTC().Round(0)
	p := &probe{c: c, s: Server{V: serverVersion, Base: c.base, WithAuth: c.o.Credential.Set(), People: -1, Posts: -1,
		Probed: now}, anew: true}
	if was.V == serverVersion && was.Base == c.base && was.WithAuth == c.o.Credential.Set() &&
		now.Before(was.Probed.Add(serverFresh)) && !now.Before(was.Probed) {
		p.s, p.was, p.anew = was, was.Unsure, false
		p.s.Unsure = slices.DeleteFunc(slices.Clone(was.Unsure), passes)
	}
	var first error
	if p.asks("instance") {
		first = p.instance(ctx)
	}
	if p.asks("nodeinfo") {
		p.nodeinfo(ctx)
	}
	if first != nil && p.s.Software == "" && service.Again(first) {
		return Server{}, first
	}
	if p.s.Domain != "" { // accounts are named by it from here on
		o := c.o
		o.Domain = p.s.Domain
		p.c = &Client{c.s, o, c.base, c.host}
	}
	var local []Post
	if p.asks("local timeline") || sample == "" && p.asks(ofSample()...) {
		local = p.feed(ctx, Public(true), &p.s.Local, "local timeline")
	}
	if p.asks("public timeline") {
		p.feed(ctx, Public(false), &p.s.Remote, "public timeline")
	}
	who := Profile{Acct: sample}
	if p.asks(ofSample()...) {
		who = p.account(ctx, sample, local)
	}
	if p.asks("search") {
		p.search(ctx, who)
	}
	p.s.Expires = p.s.Probed.Add(serverFresh)
	if slices.ContainsFunc(p.s.Unsure, passes) {
		p.s.Expires = now.Add(serverUnsure)
	}
	return p.s, ctx.Err()
}

// passes says whether a doubt may be settled later.
func passes(d service.Doubt) bool { return (&service.Fault{Word: d.Why}).Again() }

// ofSample are the doubts that an account is needed to settle.
func ofSample() []string {
	return []string{"sample account", "posts of an account", "min_id", "since_id", "max_id", "tag timeline", "batch",
		string(service.Followers), string(service.Following)}
}

// account tries things on an account.
func (p *probe) account(ctx context.Context, sample string, local []Post) Profile {
	who, ok := p.sample(ctx, sample, local)
	if !ok {
		return who
	}
	posts := local
	if p.asks("sample account", "posts of an account", "min_id", "since_id", "max_id", "tag timeline") {
		posts = append(p.posts(ctx, who), local...)
	}
	if p.asks("sample account", "tag timeline") {
		p.tags(ctx, posts)
	}
	if p.asks("sample account", "batch") {
		p.batch(ctx, who)
	}
	if p.asks("sample account", string(service.Followers), string(service.Following)) {
		p.edges(ctx, who)
	}
	return who
}

// probe is one Probe under way.
type probe struct {
	c    *Client
	s    Server
	was  []service.Doubt // of the one that this goes on with
	anew bool            // it goes on with none
}

// asks says whether one of these is to be found out.
func (p *probe) asks(what ...string) bool {
	return p.anew || slices.ContainsFunc(p.was, func(d service.Doubt) bool {
		return passes(d) &&
			slices.Contains(what, d.What)
	})
}

func (p *probe) get(ctx context.Context, a ask) (answer, error) {
	p.s.Calls++
	return p.c.get(ctx, a)
}

func (p *probe) doubt(what string, err error) {
	if w := service.WordOf(err); w != "" {
		p.s.Unsure = append(p.s.Unsure, service.Doubt{What: what, Why: w})
	}
}

type wireInstance struct {
	Domain    text       `json:"domain"`
	URI       text       `json:"uri"`
	Version   text       `json:"version"`
	Languages list[text] `json:"languages"`
	Stats     struct {
		People count `json:"user_count"`
		Posts  count `json:"status_count"`
	} `json:"stats"`
	URLs struct {
		Streaming text `json:"streaming_api"`
	} `json:"urls"`
	API struct {
		Mastodon count `json:"mastodon"`
	} `json:"api_versions"`
	Config struct {
		URLs struct {
			Streaming text `json:"streaming"`
		} `json:"urls"`
		Access struct {
			Live wireAccess `json:"live_feeds"`
			Tags wireAccess `json:"hashtag_feeds"`
		} `json:"timelines_access"`
	} `json:"configuration"`
}

type wireAccess struct {
	Local  text `json:"local"`
	Remote text `json:"remote"`
}

// instance asks what the server says of itself.
func (p *probe) instance(ctx context.Context) error {
	var w wireInstance
	var err error
	for _, path := range [...]string{"/api/v2/instance", "/api/v1/instance"} {
		var a answer
		a, err = p.get(ctx, ask{"instance", ClassInstance, path, nil})
		if err == nil && service.Object(a.body) && service.Decoded(json.Unmarshal(a.body, &w)) && w.Version != "" {
			break
		}
		if err == nil {
			err = misshapen("instance")
		}
		if wd := service.WordOf(err); wd == service.Limited || wd == service.Unreachable {
			break
		}
	}
	if err != nil && w.Version == "" {
		p.doubt("instance", err)
		return err
	}
	p.s.Domain = host(w.Domain)
	if p.s.Domain == "" {
		p.s.Domain = host(w.URI)
	}
	if p.s.Software == "" { // else nodeinfo has said it
		p.s.Software, p.s.Version = software(service.Line(string(w.Version), service.MaxName))
	}
	p.s.API = max(w.API.Mastodon.N(), 0)
	p.s.People, p.s.Posts = w.Stats.People.N(), w.Stats.Posts.N()
	for _, l := range w.Languages.All {
		if tag := service.Line(string(l), 35); tag != "" && len(p.s.Languages) < maxLanguages {
			p.s.Languages = append(p.s.Languages, tag)
		}
	}
	p.s.Streaming = service.Clip(string(w.URLs.Streaming+w.Config.URLs.Streaming), service.MaxName)
	p.s.Local, p.s.Remote = p.access(w.Config.Access.Live.Local), p.access(w.Config.Access.Live.Remote)
	p.s.Tags = p.access(w.Config.Access.Tags.Local)
	return nil
}

// access is what timelines_access (Mastodon 4.5) says; what is open is asked all the same.
func (p *probe) access(t text) service.Access {
	switch t {
	case "disabled":
		return service.Disabled
	case "authenticated":
		return service.Token
	}
	return ""
}

// host is the host of what an instance calls itself: a host, or an address.
func host(t text) string {
	s := strings.ToLower(string(t))
	if u, err := url.Parse(s); err == nil && u.Host != "" {
		s = u.Host
	}
	if len(s) > service.MaxName || strings.ContainsAny(s, "/@ \t\n?#") {
		return ""
	}
	return s
}

// software reads a version such as "4.5.2+glitch", "2.7.2 (compatible; Pleroma
// 2.6.0)" or "4.0.0 (not true; really snac/2.75)".
func software(version string) (name, number string) {
	low := strings.ToLower(version)
	for _, known := range [...]string{"snac", "gotosocial", "pleroma", "akkoma", "sharkey", "iceshrimp", "firefish",
		"pixelfed", "friendica", "hometown", "mitra", "takahe"} {
		if i := strings.Index(low, known); i >= 0 {
			number = strings.TrimLeft(version[min(i+len(known), len(version)):], " /")
			number, _, _ = strings.Cut(number, ")")
			return known, strings.TrimSpace(number)
		}
	}
	return "mastodon", version
}

// nodeinfo asks for the name of the software, in the words of its own.
func (p *probe) nodeinfo(ctx context.Context) {
	a, err := p.get(ctx, ask{"nodeinfo", ClassInstance, "/.well-known/nodeinfo", nil})
	if err != nil {
		p.doubt("nodeinfo", err)
		return
	}
	var w struct {
		Links list[struct {
			Rel  text `json:"rel"`
			Href text `json:"href"`
		}] `json:"links"`
	}
	path := ""
	if service.Object(a.body) && service.Decoded(json.Unmarshal(a.body, &w)) {
		for _, l := range w.Links.All {
			u, err := url.Parse(string(l.Href))
			if err == nil && strings.HasPrefix(string(l.Rel), "http://nodeinfo.diaspora.software/ns/schema/2.") &&
				strings.HasPrefix(u.Path, "/") && len(u.Path) <= service.MaxName {
				path = u.EscapedPath() // at this server, whatever host it names
			}
		}
	}
	if path == "" {
		p.doubt("nodeinfo", misshapen("nodeinfo"))
		return
	}
	if a, err = p.get(ctx, ask{"nodeinfo", ClassInstance, path, nil}); err != nil {
		p.doubt("nodeinfo", err)
		return
	}
	var n struct {
		Software struct {
			Name    text `json:"name"`
			Version text `json:"version"`
		} `json:"software"`
		Usage struct {
			Posts count `json:"localPosts"`
			Users struct {
				Total count `json:"total"`
			} `json:"users"`
		} `json:"usage"`
	}
	if !service.Object(a.body) || !service.Decoded(json.Unmarshal(a.body, &n)) || n.Software.Name == "" {
		p.doubt("nodeinfo", misshapen("nodeinfo"))
		return
	}
	p.s.Software, p.s.Version = strings.ToLower(service.Line(string(n.Software.Name), service.MaxName)),
		service.Line(string(n.Software.Version), service.MaxName)
	if n.Usage.Posts.N() > 0 || p.s.Posts < 0 { // snac says 0 in the one and the truth in the other
		p.s.Posts = n.Usage.Posts.N()
	}
	if n.Usage.Users.Total.N() > 0 || p.s.People < 0 {
		p.s.People = n.Usage.Users.Total.N()
	}
}

// feed looks at a timeline, unless the server said already that it is closed.
func (p *probe) feed(ctx context.Context, f Feed, to *service.Access, what string) []Post {
	if *to == service.Disabled || *to == service.Token && !p.s.WithAuth {
		return nil
	}
	q := url.Values{"limit": {"20"}}
	for k, v := range f.fixed {
		q[k] = v
	}
	a, err := p.get(ctx, ask{f.op, f.class, f.path, q})
	if err != nil {
		if *to = service.AccessOf(err); *to == "" {
			p.doubt(what, err)
		}
		return nil
	}
	posts, _, ok := p.c.posts(a.body)
	switch {
	case !ok:
		p.doubt(what, misshapen(f.op))
	case len(posts) == 0 && p.s.Posts > 0:
		*to = service.Silent
	default:
		*to = service.Open
	}
	return posts
}

// sample finds the account to try things on.
func (p *probe) sample(ctx context.Context, acct string, posts []Post) (Profile, bool) {
	if acct == "" {
		for _, post := range posts { // who has most, so that there is something to page through
			if post.Author.Local && (acct == "" || post.Author.Posts > 0) {
				acct = post.Author.Acct
				if post.Author.Posts >= 10 {
					break
				}
			}
		}
	}
	if acct == "" {
		p.s.Unsure = append(p.s.Unsure, service.Doubt{What: "sample account", Why: service.EmptyPages})
		return Profile{}, false
	}
	p.s.Calls++
	who, err := p.c.Lookup(ctx, acct)
	if err != nil {
		if service.WordOf(err) == service.NeedsToken || service.WordOf(err) == service.Closed {
			p.s.Accounts = service.AccessOf(err)
		}
		p.doubt("sample account", err)
		return Profile{}, false
	}
	p.s.Accounts = service.Open
	return who, true
}

// ids asks for a page of an account's posts.
func (p *probe) ids(ctx context.Context, who Profile, param, value string, limit int) ([]Post, error) {
	q := url.Values{"limit": {strconv.Itoa(limit)}}
	if param != "" {
		q.Set(param, value)
	}
	f := PostsOf(who.ID)
	a, err := p.get(ctx, ask{f.op, f.class, f.path, q})
	if err != nil {
		return nil, err
	}
	posts, _, ok := p.c.posts(a.body)
	if !ok {
		return nil, misshapen(f.op)
	}
	newestFirst(posts)
	return posts, nil
}

// posts finds out what the parameters of a timeline do, on the posts of who:
// each is asked with the middle one of a page and a limit of 2, since_id with a
// limit that would let the middle one in, and the answer is held against that page.
func (p *probe) posts(ctx context.Context, who Profile) []Post {
	posts, err := p.ids(ctx, who, "", "", postPage)
	if err != nil {
		p.s.Statuses = service.AccessOf(err)
		p.doubt("posts of an account", err)
		return nil
	}
	p.s.Statuses = service.Open
	inLine, _ := inOrder(posts)
	page := make([]string, len(inLine))
	for i, s := range inLine {
		page[i] = s.ID
	}
	if len(page) < 5 {
		p.s.Unsure = append(p.s.Unsure, service.Doubt{What: "paging", Why: service.FewerThanClaim})
		return posts
	}
	k := len(page) / 2
	for _, try := range [...]struct {
		param string
		to    *service.Obeys
		limit int
		right []string // what an obedient server answers
	}{
		{"min_id", &p.s.Timeline.Min, 2, page[k-2 : k]},
		{"since_id", &p.s.Timeline.Since, k + 1, page[:k]},
		{"max_id", &p.s.Timeline.Max, 2, page[k+1 : k+3]},
	} {
		if *try.to != "" {
			continue
		}
		got, err := p.ids(ctx, who, try.param, page[k], try.limit)
		if err != nil {
			p.doubt(try.param, err)
			continue
		}
		*try.to = p.verdict(page, idsOf(got), k, try.limit, try.param, try.right)
	}
	return posts
}

// verdict is what a page, asked for with a parameter and page[k], says of the
// parameter; "" = nothing, because posts were made or deleted meanwhile.
func (p *probe) verdict(page, got []string, k, limit int, param string, right []string) service.Obeys {
	if len(got) > limit {
		p.s.Timeline.Limit = service.Ignored
		if right = page[:k]; param == "max_id" {
			right = page[k+1:]
		}
	} else if p.s.Timeline.Limit == "" {
		p.s.Timeline.Limit = service.Obeyed
	}
	wrongSide := slices.ContainsFunc(got, func(id string) bool {
		i := slices.Index(page, id)
		return i == k || i >= 0 && (i > k) != (param == "max_id")
	})
	switch {
	case wrongSide:
		return service.Ignored
	case param == "min_id" && k == 2: // the next two are the newest two
		return ""
	case slices.Equal(got, right):
		return service.Obeyed
	case param == "min_id" && slices.Equal(got, page[:2]):
		return service.Newest
	}
	return ""
}

// tags tries the timeline of a tag of one of posts.
func (p *probe) tags(ctx context.Context, posts []Post) {
	for _, post := range posts {
		if len(post.Tags) > 0 {
			p.feed(ctx, Tagged(post.Tags[0], false), &p.s.Tags, "tag timeline")
			return
		}
	}
	if p.s.Tags == "" {
		p.s.Unsure = append(p.s.Unsure, service.Doubt{What: "tag timeline", Why: service.EmptyPages})
	}
}

// batch tries whether several profiles can be fetched at once.
func (p *probe) batch(ctx context.Context, who Profile) {
	p.s.Calls++
	found, _, err := p.c.Accounts(ctx, []string{who.ID})
	switch w := service.WordOf(err); {
	case err == nil && len(found) == 1:
		p.s.Batch = service.Obeyed
	case err == nil, w == service.Unsupported, w == service.Refused, w == service.Misshapen, w == service.NotJSON:
		p.s.Batch = service.Ignored
	default:
		p.doubt("batch", err)
	}
}

// edges reads the lists of who as far as one page goes, and holds them against
// their counts; and, with a credential, whether the asker's own list comes instead.
func (p *probe) edges(ctx context.Context, who Profile) {
	var theirs []string
	for _, side := range [...]service.Side{service.Followers, service.Following} {
		e, err := p.c.Edges(who, side, "", service.Limits{Pages: 1})
		if err != nil {
			p.doubt(string(side), err)
			return
		}
		p.s.Calls++
		got, err := e.Next(ctx)
		if err != nil {
			if p.s.Edges = service.AccessOf(err); p.s.Edges == "" {
				p.doubt(string(side), err)
			}
			return
		}
		p.s.Edges = service.Open
		switch why := e.Listing().Why; why {
		case service.EmptyButClaims, service.FewerThanClaim, service.MoreThanClaim, service.NoCursor:
			p.s.Lists = why
		}
		theirs = theirs[:0]
		for _, g := range got {
			theirs = append(theirs, g.ID)
		}
	}
	if p.s.WithAuth && len(theirs) > 0 {
		p.own(ctx, who, theirs)
	}
}

// own compares whom who follows with whom the asker follows.
func (p *probe) own(ctx context.Context, who Profile, theirs []string) {
	a, err := p.get(ctx, ask{"own account", ClassAccount, "/api/v1/accounts/verify_credentials", nil})
	if err != nil {
		if service.Again(err) { // else a token of an application, which has no account
			p.doubt(string(service.Following), err)
		}
		return
	}
	me, err := p.c.oneProfile("own account", a)
	if err != nil || me.ID == who.ID {
		return
	}
	e, err := p.c.Edges(me, service.Following, "", service.Limits{Pages: 1})
	if err != nil {
		return
	}
	p.s.Calls++
	got, err := e.Next(ctx)
	if service.Again(err) {
		p.doubt(string(service.Following), err)
	}
	if err != nil || len(got) != len(theirs) {
		return
	}
	for _, g := range got {
		if !slices.Contains(theirs, g.ID) {
			return
		}
	}
	// Two people may follow the same; but nobody follows himself, as the asker's list
	// may say of who.
	if slices.Contains(theirs, who.ID) || p.s.Lists != "" {
		p.s.Lists = service.NotTheirs
	}
}

// search tries a search for a profile.
func (p *probe) search(ctx context.Context, who Profile) {
	q := user(who.Acct)
	if q == "" {
		q = "a"
	}
	p.s.Calls++
	if _, err := p.c.Search(ctx, SearchProfiles, q, 0); err != nil {
		if p.s.Search = service.AccessOf(err); p.s.Search == "" {
			p.doubt("search", err)
		}
		return
	}
	p.s.Search = service.Open
}
