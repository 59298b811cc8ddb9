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

// Probe finds out what the server is and does, with about fifteen requests. sample is a local
// account with a few public posts, "" = choose one from the public timeline. Without an account,
// the questions that need one stay in Unsure.
//
// The error is a Fault that may pass (Again) and with which nothing was learned, or the error of
// ctx. Any other failure becomes a Doubt and makes the Server expire sooner.
func (c *Client) Probe(ctx context.Context, sample string) (Server, error) {
	return c.Resume(ctx, sample, Server{})
}

// Resume continues an earlier Probe, was, that ended with doubts that may pass, for example after a
// rate limit. It asks only the doubtful questions, so five calls at a time are enough. If was is of
// another server, or older than serverFresh, Resume starts a complete probe.
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
	if p.s.Domain != "" { // accounts have this host from here on
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

// passes reports whether a later probe may settle the doubt.
func passes(d service.Doubt) bool { return (&service.Fault{Word: d.Why}).Again() }

// ofSample returns the doubts that need an account.
func ofSample() []string {
	return []string{"sample account", "posts of an account", "min_id", "since_id", "max_id", "tag timeline", "batch",
		string(service.Followers), string(service.Following)}
}

// account answers the questions that need an account.
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

// probe is one Probe in progress.
type probe struct {
	c    *Client
	s    Server
	was  []service.Doubt // of the probe that this one continues
	anew bool            // a complete probe, not a continued one
}

// asks reports whether one of these questions is open.
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

// instance reads the server's description of itself.
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
	if p.s.Software == "" { // else nodeinfo has set it
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

// access reads timelines_access (Mastodon 4.5). An open timeline is still tested.
func (p *probe) access(t text) service.Access {
	switch t {
	case "disabled":
		return service.Disabled
	case "authenticated":
		return service.Token
	}
	return ""
}

// host returns the host in an instance's name, which is a host or a URL.
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

// software parses a version such as "4.5.2+glitch", "2.7.2 (compatible; Pleroma 2.6.0)" or "4.0.0
// (not true; really snac/2.75)".
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

// nodeinfo reads the name of the software from nodeinfo.
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
				path = u.EscapedPath() // at this server, even if the link has another host
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
	// snac reports 0 in the instance and the true number in nodeinfo
	if n.Usage.Posts.N() > 0 || p.s.Posts < 0 {
		p.s.Posts = n.Usage.Posts.N()
	}
	if n.Usage.Users.Total.N() > 0 || p.s.People < 0 {
		p.s.People = n.Usage.Users.Total.N()
	}
}

// feed tests a timeline, unless the server already said that it is closed.
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

// sample returns the account for the tests.
func (p *probe) sample(ctx context.Context, acct string, posts []Post) (Profile, bool) {
	if acct == "" {
		// prefer an author with many posts, so that there is something to page through
		for _, post := range posts {
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

// ids fetches a page of an account's posts.
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

// posts finds out what the parameters of a timeline do, with the posts of who. Each is requested
// with the middle post of a page and a limit of 2. since_id has a limit that could include the
// middle post. Each response is compared with that page.
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
		right []string // the response of an obedient server
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

// verdict returns what a page shows about the parameter that requested it with page[k]. "" =
// unclear, because posts were created or deleted since the first page.
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
	case param == "min_id" && k == 2: // here the next two posts are the newest two
		return ""
	case slices.Equal(got, right):
		return service.Obeyed
	case param == "min_id" && slices.Equal(got, page[:2]):
		return service.Newest
	}
	return ""
}

// tags tests the timeline of a tag of one of posts.
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

// batch tests whether several profiles can be fetched with one request.
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

// edges reads one page of the lists of who and compares them with their counts. With a credential
// it also checks whether the server returns the list of the credential's owner instead.
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

// own compares the accounts that who follows with those that the credential's owner follows.
func (p *probe) own(ctx context.Context, who Profile, theirs []string) {
	a, err := p.get(ctx, ask{"own account", ClassAccount, "/api/v1/accounts/verify_credentials", nil})
	if err != nil {
		if service.Again(err) { // otherwise it is an application's token, which has no account
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
	// Two people may follow the same accounts. But nobody follows themselves, and the owner's list
	// may contain who.
	if slices.Contains(theirs, who.ID) || p.s.Lists != "" {
		p.s.Lists = service.NotTheirs
	}
}

// search tests a search for a profile.
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
