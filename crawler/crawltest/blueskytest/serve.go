package blueskytest

import (
	"encoding/json"
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

// Serve creates a World that listens on two addresses of this machine, with plain HTTP. The AppView
// and the directory are at view, the PDS at pds. stop ends the servers.
func Serve(view, pds string, o Options) (w *World, at string, stop func() error, err error) {
	front, err := net.Listen("tcp", view)
	if err != nil {
		return nil, "", nil, fmt.Errorf("blueskytest: %w", err)
	}
	back, err := net.Listen("tcp", pds)
	if err != nil {
		return nil, "", nil, errors.Join(fmt.Errorf("blueskytest: %w", err), front.Close())
	}
	o.PDS = "http://" + back.Addr().String()
	if w, err = New(o); err != nil {
		return nil, "", nil, errors.Join(err, front.Close(), back.Close())
	}
	return w, "http://" + front.Addr().String(), crawltest.Served(w.Handler(), front, back), nil
}

// RoundTripper answers requests directly from the world, without a connection. Requests seem to
// come from the address from.
func (w *World) RoundTripper(from netip.Addr) http.RoundTripper {
	return crawltest.Transport(http.HandlerFunc(w.serve), from)
}

// visit is one request in progress.
type visit struct {
	storytest.Answer
	w   *World
	l   *Lies
	now time.Time
	q   url.Values
}

func (w *World) serve(rw http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/subscribe" {
		w.subscribe(rw, r)
		return
	}
	w.Lock()
	defer w.Unlock()
	v := &visit{w: w, l: &w.o.Lies, now: w.Advance(), q: r.URL.Query()}
	v.Answer = storytest.Answer{RW: rw, Truncated: v.l.Truncated, Huge: v.l.Huge}
	from := storytest.From(r)
	shape := r.URL.Path
	if !strings.HasPrefix(shape, "/xrpc/") {
		shape = "/:did"
	}
	w.report.Saw(from, shape)
	rw.Header().Set("Date", v.now.UTC().Format(http.TimeFormat))
	if (strings.HasPrefix(r.Host, "pds") || strings.HasSuffix(w.o.PDS, "://"+r.Host)) &&
		!w.meter.Allow(rw.Header(), storytest.Visitor{From: from, Paging: v.q.Has("cursor")}, v.now) {
		w.report.Refused++
		v.fail(http.StatusTooManyRequests, "RateLimitExceeded", "Rate Limit Exceeded")
		return
	}
	if v.Broken(v.l.Down, v.l.Redirect, v.l.HTML200) {
		return
	}
	method, xrpc := strings.CutPrefix(r.URL.Path, "/xrpc/")
	if !xrpc {
		v.document(r.Host, strings.TrimPrefix(r.URL.Path, "/"))
		return
	}
	answer, ok := map[string]func(){
		"app.bsky.actor.getProfile": v.getProfile, "app.bsky.actor.getProfiles": v.getProfiles,
		"app.bsky.actor.searchActors": v.searchActors,
		"app.bsky.feed.getAuthorFeed": v.getAuthorFeed, "app.bsky.feed.getPosts": v.getPosts,
		"app.bsky.feed.searchPosts":          v.searchPosts,
		"app.bsky.graph.getFollowers":        func() { v.edges("followers") },
		"app.bsky.graph.getFollows":          func() { v.edges("follows") },
		"com.atproto.identity.resolveHandle": v.resolveHandle, "com.atproto.repo.listRecords": v.listRecords,
		"com.atproto.repo.getRecord":     v.getRecord,
		"com.atproto.sync.getRepoStatus": v.getRepoStatus,
	}[method]
	if !ok {
		v.fail(http.StatusNotImplemented, "MethodNotImplemented", "Method Not Implemented")
		return
	}
	answer()
}

func (v *visit) fail(status int, name, message string) {
	v.JSON(status, map[string]any{"error": name, "message": message})
}

func (v *visit) invalid(message string) {
	v.fail(http.StatusBadRequest, "InvalidRequest", message)
}

// send writes an object with a list in it, changed by the Lies.
func (v *visit) send(name string, all []any, more map[string]any) {
	out := map[string]any{name: all}
	switch {
	case v.l.Object:
		out[name] = map[string]any{"items": len(all)}
	case v.l.Garbage:
		out[name] = storytest.Garbage(all)
	}
	for k, x := range more {
		out[k] = x
	}
	v.JSON(http.StatusOK, out)
}

// limit returns the maximum number of items on a page. 0 means that the request was refused.
func (v *visit) limit(most, normal int) int {
	n, err := strconv.Atoi(v.q.Get("limit"))
	switch {
	case v.q.Get("limit") == "":
		n = normal
	case err != nil || n < 1 || n > most:
		v.invalid(fmt.Sprintf("Error: limit must be between 1 and %d", most))
		return 0
	}
	if v.l.MaxLimit > 0 {
		n = min(n, v.l.MaxLimit)
	}
	return n
}

// actor returns the requested account. If the account is unknown or suspended, it sends the error
// response and returns nil.
func (v *visit) actor(param string) *person {
	p := v.find(v.q.Get(param))
	switch {
	case p == nil:
		v.invalid("Profile not found")
	case p.Suspended:
		v.fail(http.StatusBadRequest, "AccountTakedown", "Account has been suspended")
		return nil
	}
	return p
}

func (v *visit) find(who string) *person {
	if p := v.w.ByID[who]; p != nil {
		return p
	}
	return v.w.byHandle[strings.ToLower(who)]
}

func (v *visit) getProfile() {
	p := v.actor("actor")
	if p == nil {
		return
	}
	if v.l.WrongOne {
		p = v.w.People[(p.N+1)%len(v.w.People)]
	}
	v.JSON(http.StatusOK, v.profile(p))
}

func (v *visit) getProfiles() {
	if n := len(v.q["actors"]); n < 1 || n > 25 {
		v.invalid("Error: actors must not have more than 25 elements")
		return
	}
	out := []any{}
	who := slices.Clone(v.q["actors"])
	slices.Sort(who) // not in the order of the request
	for _, a := range slices.Compact(who) {
		if p := v.find(a); p != nil && !p.Suspended {
			out = append(out, v.profile(p))
		}
	}
	v.send("profiles", out, nil)
}

func (v *visit) searchActors() {
	out := []any{}
	for _, p := range v.w.People {
		if strings.Contains(strings.ToLower(v.w.handle(p)+" "+p.Name), strings.ToLower(v.q.Get("q"))) &&
			len(out) < 100 {
			out = append(out, v.basic(p))
		}
	}
	v.send("actors", out, nil)
}

func (v *visit) resolveHandle() {
	p := v.w.byHandle[strings.ToLower(v.q.Get("handle"))]
	if p == nil {
		v.invalid("Unable to resolve handle")
		return
	}
	v.JSON(http.StatusOK, map[string]any{"did": p.ID})
}

// document sends the document of a DID. The path names the DID. For a did:web, the path is
// .well-known/did.json and the host names the DID.
func (v *visit) document(host, path string) {
	id := path
	if path == ".well-known/did.json" {
		id = "did:web:" + host
	}
	p := v.w.ByID[id]
	if p == nil {
		v.JSON(http.StatusNotFound, map[string]any{"message": "DID not registered: " + id})
		return
	}
	v.JSON(http.StatusOK, map[string]any{"id": p.ID, "alsoKnownAs": []any{"at://" + v.w.handle(p)}, "service": []any{
		map[string]any{"id": "#atproto_pds", "type": "AtprotoPersonalDataServer", "serviceEndpoint": v.w.o.PDS}}})
}

// feedCursor returns the cursor of a post in a feed.
func (v *visit) feedCursor(p *post) string {
	if v.l.BareCursor {
		return stamp(p.Created)
	}
	return stamp(p.Created) + "::" + key(p.ID)
}

// feed sends a page of posts below the cursor, the newest first.
func (v *visit) feed(all []*post, name string, one func(*post) map[string]any) {
	limit, cursor := v.limit(100, 50), v.q.Get("cursor")
	if limit == 0 {
		return
	}
	if cursor != "" && (v.l.RefusesCursor || len(cursor) < 24 || !strings.HasPrefix(cursor, "20")) {
		v.fail(http.StatusInternalServerError, "InternalServerError", "Internal Server Error")
		return
	}
	out := []any{}
	more := map[string]any{}
	if v.l.PinsFirst && cursor == "" && len(all) > 0 && all[0].Shown() && all[0].Boost == nil && name == "feed" {
		pin := one(all[0])
		pin["reason"] = map[string]any{"$type": "app.bsky.feed.defs#reasonPin"}
		out = append(out, pin)
	}
	n := 0
	for _, p := range slices.Backward(all) {
		at := v.feedCursor(p)
		if !p.Shown() || cursor != "" && at >= cursor {
			continue
		}
		if n == limit {
			break
		}
		n++
		out = append(out, one(p))
		more["cursor"] = at
	}
	if n < limit || v.l.NoCursor {
		delete(more, "cursor")
	}
	v.send(name, out, more)
}

func (v *visit) getAuthorFeed() {
	if p := v.actor("actor"); p != nil {
		v.feed(p.Posts, "feed", v.item)
	}
}

func (v *visit) searchPosts() {
	switch q := strings.ToLower(strings.TrimPrefix(v.q.Get("q"), "#")); {
	case v.l.SearchClosed:
		v.Page(http.StatusForbidden, "<html><body>403 Forbidden</body></html>")
	case v.l.SearchPaging && v.q.Has("cursor"):
		v.fail(http.StatusForbidden, "Forbidden", "Forbidden")
	case v.q.Get("tag") != "":
		v.feed(v.w.Tags[strings.ToLower(v.q.Get("tag"))], "posts", v.view)
	default:
		var found []*post
		for _, p := range v.w.Public {
			if strings.Contains(strings.ToLower(p.Versions[0].Text), q) {
				found = append(found, p)
			}
		}
		v.feed(found, "posts", v.view)
	}
}

func (v *visit) getPosts() {
	if n := len(v.q["uris"]); n < 1 || n > 25 {
		v.invalid("Error: uris must not have more than 25 elements")
		return
	}
	out := []any{}
	ids := slices.Clone(v.q["uris"])
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		if p := v.w.Posts[id]; p != nil && p.Shown() && p.Boost == nil {
			out = append(out, v.view(p))
		}
	}
	v.send("posts", out, nil)
}

// edges sends a page of one side of an account's edges, the newest first.
func (v *visit) edges(name string) {
	p, limit := v.actor("actor"), v.limit(100, 50)
	if p == nil || limit == 0 {
		return
	}
	if v.l.WrongSubject {
		p = v.w.People[(p.N+1)%len(v.w.People)]
	}
	all := p.Followers
	if name == "follows" {
		all = p.Following
	}
	if v.l.EmptyLists {
		all = nil
	}
	in, next := v.cut(all, limit)
	more := map[string]any{"subject": v.basic(p)}
	if next != "" && !v.l.NoCursor {
		more["cursor"] = next
	}
	out := []any{}
	for _, f := range in {
		out = append(out, v.basic(f.Who))
	}
	v.send(name, out, more)
}

// cut returns the page of a list at the cursor, and the next cursor.
func (v *visit) cut(all []follow, limit int) (in []follow, next string) {
	l := v.l
	return storytest.Ways{Repeats: l.RepeatsCursor, Ring: l.Ring, Endless: l.Endless, Shuffles: l.Shuffles,
		EmptyTail: l.EmptyTail}.
		Cut(all, limit, v.q.Get("cursor"), v.w.report.Requests)
}

// repo returns the account of the requested repository. If the account is unknown or (with "repo")
// suspended, it sends the error response and returns nil.
func (v *visit) repo(param string) *person {
	p := v.find(v.q.Get(param))
	switch {
	case p == nil:
		v.fail(http.StatusBadRequest, "RepoNotFound", "Could not find repo for DID: "+v.q.Get(param))
	case p.Suspended && param == "repo":
		v.fail(http.StatusBadRequest, "RepoTakendown", "Repo has been takendown: "+p.ID)
		return nil
	}
	return p
}

func (v *visit) getRepoStatus() {
	p := v.repo("did")
	if p == nil {
		return
	}
	out := map[string]any{"did": p.ID, "active": !p.Suspended, "rev": tid(v.w.revs[p] << 16)}
	if p.Suspended {
		out["status"] = "takendown"
		delete(out, "rev")
	}
	v.JSON(http.StatusOK, out)
}

// lying returns the stored records of a collection, in the order of their keys.
func (v *visit) lying(p *person, collection string) (out []map[string]any) {
	for _, q := range p.Posts {
		if kept(q) && (q.Boost != nil) == (collection == reposts) && collection != follows {
			out = append(out, map[string]any{"uri": q.ID, "cid": version(q, len(q.Versions)-1),
				"value": v.record(q, len(q.Versions)-1)})
		}
	}
	if collection == follows {
		for _, f := range p.Following {
			at := followURI(p, f)
			out = append(out, map[string]any{"uri": at, "cid": cid(at),
				"value": map[string]any{"$type": follows, "subject": f.Who.ID, "createdAt": stamp(f.At)}})
		}
	}
	slices.SortFunc(out, func(a, b map[string]any) int { return strings.Compare(a["uri"].(string), b["uri"].(string)) })
	return out
}

func (v *visit) listRecords() {
	p, limit := v.repo("repo"), v.limit(100, 50)
	if p == nil || limit == 0 {
		return
	}
	if v.l.NoRecords {
		v.fail(http.StatusNotImplemented, "MethodNotImplemented", "Method Not Implemented")
		return
	}
	all, cursor, up := v.lying(p, v.q.Get("collection")), v.q.Get("cursor"), v.q.Get("reverse") == "true" &&
		!v.l.IgnoresReverse
	if v.l.IgnoresCursor {
		cursor = ""
	}
	if !up {
		slices.Reverse(all)
	}
	out := []any{}
	more := map[string]any{}
	left := 0
	for _, r := range all {
		k := key(r["uri"].(string))
		if cursor != "" && (up && k <= cursor || !up && k >= cursor) {
			continue
		}
		if len(out) == limit {
			left++
			continue
		}
		out = append(out, r)
		more["cursor"] = k
	}
	if left == 0 && !v.l.EndsWithCursor || v.l.NoCursor {
		delete(more, "cursor")
	}
	v.send("records", out, more)
}

func (v *visit) getRecord() {
	p := v.repo("repo")
	if p == nil {
		return
	}
	at := "at://" + p.ID + "/" + v.q.Get("collection") + "/" + v.q.Get("rkey")
	for _, r := range v.lying(p, v.q.Get("collection")) {
		if r["uri"] == at {
			v.JSON(http.StatusOK, r)
			return
		}
	}
	v.fail(http.StatusBadRequest, "RecordNotFound", "Could not locate record: "+at)
}

// line returns one event in Jetstream's form.
func (v *visit) line(e event) []byte {
	h := e.h
	out := map[string]any{"did": h.Who.ID, "time_us": e.micros}
	op := []string{"create", "update", "delete"}[h.Kind]
	commit := func(uri, cid string, record any) {
		part := strings.Split(strings.TrimPrefix(uri, "at://"), "/")
		c := map[string]any{"rev": tid(e.rev << 16), "operation": op, "collection": part[1], "rkey": part[2]}
		if op != "delete" {
			c["record"], c["cid"] = record, cid
		}
		out["kind"], out["commit"] = "commit", c
	}
	switch {
	case h.Post != nil:
		n := 0
		if h.Kind == storytest.Changed {
			n = len(h.Post.Versions) - 1
		}
		commit(h.Post.ID, version(h.Post, n), v.record(h.Post, n))
	case h.Edge.Who != nil:
		commit(followURI(h.Who, h.Edge), cid(h.Edge.Row), map[string]any{"$type": follows, "subject": h.Edge.Who.ID,
			"createdAt": stamp(h.At)})
	default:
		out["kind"], out["account"] = "account", map[string]any{"active": false, "did": h.Who.ID, "seq": e.rev,
			"status": "takendown", "time": stamp(h.At)}
	}
	b, err := json.Marshal(out)
	if err != nil {
		panic(err) // plain values always have a JSON form
	}
	return b
}
