package mastodontest

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/crawler/crawltest/storytest"
)

// Handler serves the world.
func (w *World) Handler() http.Handler { return http.HandlerFunc(w.serve) }

// Serve creates a World and serves it over TCP at addr (HOST:PORT, port 0 for any). That address
// becomes its Domain. stop ends the server and returns when none of its goroutines runs any more.
func Serve(addr string, o Options) (w *World, stop func() error, err error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, nil, fmt.Errorf("mastodontest: %w", err)
	}
	o.Domain = ln.Addr().String()
	if w, err = New(o); err != nil {
		return nil, nil, errors.Join(err, ln.Close())
	}
	return w, crawltest.Served(w.Handler(), ln), nil
}

// Domain returns Options.Domain.
func (w *World) Domain() string { return w.o.Domain }

// RoundTripper answers requests directly from the world, without a connection. Requests seem to
// come from the address from.
func (w *World) RoundTripper(from netip.Addr) http.RoundTripper {
	return crawltest.Transport(http.HandlerFunc(w.serve), from)
}

// visit is one request in progress.
type visit struct {
	storytest.Answer
	w     *World
	l     *Lies
	now   time.Time
	path  []string // the path after /api/v1/
	q     url.Values
	token string
	me    *person // the owner of the token
}

func (w *World) serve(rw http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, streamPath) {
		w.stream(rw, r)
		return
	}
	w.Lock()
	defer w.Unlock()
	v := &visit{w: w, l: &w.o.Lies, now: w.Advance(), q: r.URL.Query()}
	v.Answer = storytest.Answer{RW: rw, Truncated: v.l.Truncated, Huge: v.l.Huge}
	from := storytest.From(r)
	w.report.Saw(from, v.shape(r.URL.Path))
	rw.Header().Set("Date", v.now.UTC().Format(http.TimeFormat))
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		user, known := w.o.Tokens[bearer]
		if !known {
			v.fail(http.StatusUnauthorized, "The access token is invalid")
			return
		}
		v.token, v.me = bearer, w.ByName[user]
	}
	paging := v.q.Has("max_id") || v.q.Has("min_id") || v.q.Has("since_id") || v.q.Has("page")
	if !w.meter.Allow(rw.Header(), storytest.Visitor{From: from, Token: v.token, Paging: paging}, v.now) {
		w.report.Refused++
		v.fail(http.StatusTooManyRequests, "Too many requests")
		return
	}
	if v.Broken(v.l.Down, v.l.Redirect, v.l.HTML200) {
		return
	}
	switch {
	case r.URL.Path == "/.well-known/nodeinfo" && !v.l.NoNodeinfo:
		v.send(map[string]any{"links": []any{map[string]any{"rel": "http://nodeinfo.diaspora.software/ns/schema/2.0",
			"href": "https://" + w.o.Domain + "/nodeinfo/2.0"}}})
	case r.URL.Path == "/nodeinfo/2.0" && !v.l.NoNodeinfo:
		v.send(map[string]any{"version": "2.0",
			"software": map[string]any{"name": w.o.Software, "version": w.o.Version},
			"usage":    map[string]any{"users": map[string]any{"total": len(w.Local)}, "localPosts": len(w.Public)}})
	case r.URL.Path == "/api/v2/instance" && !v.l.NoV2:
		v.instance(2)
	case r.URL.Path == "/api/v2/search":
		v.search()
	case strings.HasPrefix(r.URL.Path, "/api/v1/"):
		v.path = strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/")
		v.api()
	default:
		v.notFound()
	}
}

// shape returns a path without its IDs and names.
func (v *visit) shape(path string) string {
	parts := strings.Split(path, "/")
	for i := 4; i < len(parts); i++ {
		if parts[i-1] == "accounts" && parts[i] != "lookup" && parts[i] != "verify_credentials" ||
			parts[i-1] == "statuses" || parts[i-1] == "tag" {
			parts[i] = ":id"
		}
	}
	return strings.Join(parts, "/")
}

func (v *visit) api() {
	closed := v.l.ClosedAPI && v.token == ""
	switch v.path[0] {
	case "instance":
		v.instance(1)
	case "accounts":
		if closed {
			v.fail(http.StatusUnauthorized, "Unauthorized: token not supplied")
			return
		}
		v.accounts()
	case "statuses":
		if closed {
			v.fail(http.StatusUnauthorized, "Unauthorized: token not supplied")
			return
		}
		v.statuses()
	case "timelines":
		v.timelines()
	default:
		v.notFound()
	}
}

func (v *visit) fail(status int, what string) {
	v.Answer.Truncated, v.Answer.Huge = false, 0
	v.JSON(status, map[string]string{"error": what})
}

func (v *visit) notFound() {
	if v.l.HTML404 {
		v.Page(http.StatusNotFound, "<h1>404 Not Found</h1>")
		return
	}
	v.fail(http.StatusNotFound, "Record not found")
}

// send writes x as JSON, changed by the Lies.
func (v *visit) send(x any) {
	if l, ok := x.([]any); ok {
		switch {
		case v.l.Object:
			x = map[string]any{"error": "not a list", "items": len(l)}
		case v.l.Garbage:
			x = storytest.Garbage(l)
		}
	}
	v.JSON(http.StatusOK, x)
}

func (v *visit) instance(api int) {
	w := v.w
	version := w.o.Version
	if w.o.Software != "mastodon" {
		version = "4.0.0 (compatible; " + w.o.Software + " " + w.o.Version + ")"
	}
	out := map[string]any{"title": "A world", "version": version, "languages": []string{"pt", "es", "en"}}
	if api == 1 {
		out["uri"] = w.o.Domain
		out["stats"] = map[string]any{"user_count": len(w.Local), "status_count": len(w.Public), "domain_count": 5}
		out["urls"] = map[string]any{"streaming_api": "wss://" + w.o.Domain}
	} else {
		access := "public"
		if v.l.EmptyTimelines {
			access = "disabled"
		}
		feed := map[string]any{"local": access, "remote": access}
		out["domain"] = w.o.Domain
		out["api_versions"] = map[string]any{"mastodon": 7}
		out["configuration"] = map[string]any{"urls": map[string]any{"streaming": "wss://" + w.o.Domain},
			"timelines_access": map[string]any{"live_feeds": feed, "hashtag_feeds": feed}}
	}
	v.send(out)
}

func (v *visit) accounts() {
	w := v.w
	if len(v.path) == 1 {
		v.batch(func(id string) any {
			if p := w.ByID[id]; p != nil {
				return v.account(p)
			}
			return nil
		})
		return
	}
	switch v.path[1] {
	case "lookup":
		name := strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(v.q.Get("acct"), "@"), "@"+w.o.Domain))
		p := w.ByName[name]
		if v.l.WrongOne {
			p = w.People[0]
		}
		v.one(p)
		return
	case "verify_credentials":
		if v.me == nil {
			v.fail(http.StatusUnauthorized, "This method requires an authenticated user")
			return
		}
		v.one(v.me)
		return
	}
	p := w.ByID[v.path[1]]
	if p == nil {
		v.notFound()
		return
	}
	if len(v.path) == 2 {
		v.one(p)
		return
	}
	switch v.path[2] {
	case "statuses":
		list := p.Posts
		if p.Suspended {
			list = nil
		}
		v.timeline(list, 40, "/api/v1/accounts/"+p.ID+"/statuses")
	case "followers":
		if v.l.OwnFollowers && v.me != nil {
			p = v.me
		}
		v.edges(p, p.Followers, "followers")
	case "following":
		if v.l.OwnLists && v.me != nil {
			p = v.me
		}
		v.edges(p, p.Following, "following")
	default:
		v.notFound()
	}
}

func (v *visit) one(p *person) {
	if p == nil {
		v.notFound()
		return
	}
	v.send(v.account(p))
}

// batch answers ?id[]= and leaves out unknown IDs.
func (v *visit) batch(one func(id string) any) {
	switch {
	case v.l.NoBatch == http.StatusNotFound:
		v.notFound()
		return
	case v.l.NoBatch != 0:
		v.fail(v.l.NoBatch, "Method Not Allowed")
		return
	}
	v.w.batches++
	out := []any{}
	ids := slices.Clone(v.q["id[]"])
	slices.Sort(ids) // not in the order of the request
	for _, id := range slices.Compact(ids) {
		if x := one(id); x != nil {
			out = append(out, x)
		}
	}
	v.send(out)
}

func (v *visit) statuses() {
	w := v.w
	if len(v.path) == 1 {
		v.batch(func(id string) any {
			if p := w.Posts[id]; p != nil && p.Shown() {
				return v.status(p)
			}
			return nil
		})
		return
	}
	p := w.Posts[v.path[1]]
	switch {
	case p == nil || !p.Shown() && !(v.l.Lingers && p.Deleted):
		v.notFound()
	case len(v.path) == 2:
		v.send(v.status(p))
	case v.path[2] == "history":
		out := []any{}
		for i, version := range p.Versions {
			out = append(out, map[string]any{"content": w.html(p, i), "spoiler_text": "",
				"created_at": stamp(version.At), "account": v.account(p.By), "media_attachments": []any{}})
		}
		v.send(out)
	default:
		v.notFound()
	}
}

func (v *visit) timelines() {
	w := v.w
	switch {
	case v.l.ClosedTimelines != 0 && v.token == "":
		v.fail(v.l.ClosedTimelines, "This method requires an authenticated user")
	case v.l.EmptyTimelines:
		v.send([]any{})
	case len(v.path) == 2 && v.path[1] == "public":
		v.timeline(w.Public, 40, "/api/v1/timelines/public")
	case len(v.path) == 3 && v.path[1] == "tag":
		v.timeline(w.Tags[strings.ToLower(v.path[2])], 40, "/api/v1/timelines/tag/"+url.PathEscape(v.path[2]))
	default:
		v.notFound()
	}
}

func (v *visit) search() {
	if v.l.NoSearch && v.token == "" {
		v.fail(http.StatusUnauthorized, "This method requires an authenticated user")
		return
	}
	q, kind := strings.ToLower(v.q.Get("q")), v.q.Get("type")
	accounts, tags := []any{}, []any{}
	for _, p := range v.w.People {
		if (kind == "" || kind == "accounts") && len(accounts) < v.limit(40) &&
			strings.Contains(strings.ToLower(p.Acct()+" "+p.Name), q) {
			accounts = append(accounts, v.account(p))
		}
	}
	for t := range v.w.Tags {
		if (kind == "" || kind == "hashtags") && strings.HasPrefix(t, q) {
			tags = append(tags, map[string]any{"name": t})
		}
	}
	v.send(map[string]any{"accounts": accounts, "statuses": []any{}, "hashtags": tags})
}

// limit returns the maximum number of items on a page.
func (v *visit) limit(most int) int {
	if v.l.MaxLimit > 0 {
		most = min(most, v.l.MaxLimit)
	}
	n, err := strconv.Atoi(v.q.Get("limit"))
	if err != nil || n < 1 {
		n = most / 2
	}
	return min(n, most)
}

// link sets the Link header. Each page is a rel and a query.
func (v *visit) link(path string, pages ...[2]string) {
	if v.l.NoLink || len(pages) == 0 {
		return
	}
	origin := "https://" + v.w.o.Domain
	if v.l.ForeignLink {
		origin = "http://internal.example:3000"
	}
	var out []string
	for _, p := range pages {
		out = append(out, fmt.Sprintf(`<%s%s?limit=%s&%s>; rel="%s"`, origin, path, v.q.Get("limit"), p[1], p[0]))
	}
	v.RW.Header().Set("Link", strings.Join(out, ", "))
}
