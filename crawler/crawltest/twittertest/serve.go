package twittertest

import (
	"fmt"
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

// RoundTripper answers requests directly from the world, without a connection. Requests seem to
// come from the address from.
func (w *World) RoundTripper(from netip.Addr) http.RoundTripper {
	return crawltest.Transport(http.HandlerFunc(w.serve), from)
}

// visit is one request in progress.
type visit struct {
	storytest.Answer
	w    *World
	l    *Lies
	now  time.Time
	q    url.Values
	word string // "tweet" or "post"
}

const problems = "https://api.twitter.com/2/problems/"

func (w *World) serve(rw http.ResponseWriter, r *http.Request) {
	w.Lock()
	defer w.Unlock()
	v := &visit{w: w, l: &w.o.Lies, now: w.Advance(), q: r.URL.Query(), word: "tweet"}
	v.Answer = storytest.Answer{RW: rw, Truncated: v.l.Truncated, Huge: v.l.Huge}
	if v.l.Posts {
		v.word = "post"
	}
	class, answer := v.route(strings.TrimPrefix(r.URL.Path, "/2/"))
	from := storytest.From(r)
	w.report.Saw(from, class)
	rw.Header().Set("Date", v.now.UTC().Format(http.TimeFormat))
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if len(w.o.Tokens) > 0 && !slices.Contains(w.o.Tokens, token) {
		v.JSON(http.StatusUnauthorized, map[string]any{"title": "Unauthorized", "type": "about:blank", "status": 401,
			"detail": "Unauthorized"})
		return
	}
	if !w.meter.Allow(rw.Header(), storytest.Visitor{From: from, Token: token, Class: class}, v.now) {
		w.report.Refused++
		v.JSON(http.StatusTooManyRequests, map[string]any{"title": "Too Many Requests", "detail": "Too Many Requests",
			"type": "about:blank", "status": 429})
		return
	}
	switch {
	case v.Broken(v.l.Down, v.l.Redirect, v.l.HTML200):
	case w.o.Money > 0 && w.spent >= w.o.Money:
		v.JSON(http.StatusTooManyRequests,
			map[string]any{"title": "UsageCapExceeded", "detail": "Usage cap exceeded: Monthly product cap",
				"type": problems + "usage-capped", "period": "Monthly"})
	case answer == nil:
		v.JSON(http.StatusNotFound, map[string]any{"title": "Not Found", "type": "about:blank", "status": 404})
	case v.l.Refused != "":
		v.invalid(v.l.Refused)
	case v.refuses():
	default:
		answer()
	}
}

// route returns the class of a path and the function that answers it, nil if there is none.
func (v *visit) route(path string) (class string, answer func()) {
	parts := strings.Split(path, "/")
	switch {
	case path == "users":
		return "users", func() { v.users(v.q.Get("ids"), func(id string) *person { return v.w.ByID[id] }) }
	case path == "users/by":
		return "users", func() {
			v.users(v.q.Get("usernames"), func(name string) *person { return v.w.ByName[strings.ToLower(name)] })
		}
	case len(parts) == 2 && parts[0] == "users":
		return "users", func() { v.user(parts[1]) }
	case path == "tweets":
		return "post", v.byID
	case path == "tweets/search/recent":
		return "search", v.search
	case len(parts) == 3 && parts[0] == "users" && parts[2] == "tweets":
		return "posts", func() {
			if p := v.who(parts[1]); p != nil {
				most := 3200
				if v.l.Most > 0 {
					most = v.l.Most
				}
				all := newest(p.Posts)
				v.timeline(all[:min(len(all), most)], "pagination_token", 5)
			}
		}
	case len(parts) == 3 && parts[0] == "users" && (parts[2] == "followers" || parts[2] == "following"):
		return parts[2], func() { v.edges(parts[1], parts[2]) }
	}
	return "unknown", nil
}

// listed returns the parameters that list fields and expansions.
func listed() []string {
	return []string{"tweet.fields", "post.fields", "user.fields", "media.fields", "expansions"}
}

// refuses reports whether the Lies refuse a parameter or value of the request. If so, it sends the
// response.
func (v *visit) refuses() bool {
	bad := func(s string) bool {
		return slices.Contains(v.l.Refuses, s) || v.l.OnlyPosts && strings.Contains(s, "tweet")
	}
	for _, param := range listed() {
		if !v.q.Has(param) {
			continue
		}
		say := v.l.Refusal
		if bad(param) {
			if say == "" {
				say = "The query parameter [PARAM] is not one of [id,expansions,post.fields,user.fields]"
			}
			v.invalid(strings.NewReplacer("PARAM", param, "VALUE", "").Replace(say))
			return true
		}
		for value := range strings.SplitSeq(v.q.Get(param), ",") {
			if bad(value) || bad(param+" "+value) {
				if say == "" {
					say = "The `PARAM` query parameter value [VALUE] is not one of [affiliation,created_at,id,name,username]"
				}
				v.invalid(strings.NewReplacer("PARAM", param, "VALUE", value).Replace(say))
				return true
			}
		}
	}
	return false
}

func (v *visit) invalid(detail string) {
	v.w.report.Invalid++
	v.JSON(http.StatusBadRequest,
		map[string]any{"title": "Invalid Request", "detail": "One or more parameters to your request was invalid.",
			"type": problems + "invalid-request", "errors": []any{map[string]any{"message": detail}}})
}

// missing returns the entry in errors[] for an object that is not shown.
func missing(kind, id string, suspended, protected bool) map[string]any {
	out := map[string]any{"value": id, "resource_id": id, "parameter": "id", "resource_type": kind,
		"title": "Not Found Error", "type": problems + "resource-not-found",
		"detail": fmt.Sprintf("Could not find %s with id: [%s].", kind, id)}
	switch {
	case suspended:
		out["title"], out["detail"] = "Forbidden", "User has been suspended: ["+id+"]."
	case protected:
		out["title"], out["type"], out["detail"] = "Authorization Error", problems+"not-authorized-for-resource",
			"Sorry, you are not authorized to see the "+kind+" with id: ["+id+"]."
	}
	return out
}

// send writes data and errors, changed by the Lies, and charges for the data.
func (v *visit) send(data []any, faults []any, more map[string]any) {
	v.w.charge(v.now, data...)
	out := map[string]any{}
	switch {
	case v.l.Object:
		out["data"] = map[string]any{"items": len(data)}
	case v.l.Garbage:
		out["data"] = storytest.Garbage(data)
	case len(data) > 0:
		out["data"] = data
	}
	if len(faults) > 0 && !v.l.SaysNothing {
		out["errors"] = faults
	}
	for k, x := range more {
		out[k] = x
	}
	v.JSON(http.StatusOK, out)
}

func (v *visit) users(asked string, find func(string) *person) {
	ids := strings.Split(asked, ",")
	if len(ids) > 100 || asked == "" {
		v.invalid("The number of values in the list must be between 1 and 100")
		return
	}
	data, faults := []any{}, []any{}
	for _, id := range ids {
		switch p := find(id); {
		case p == nil || p.Suspended:
			faults = append(faults, missing("user", id, p != nil, false))
		default:
			data = append(data, v.profile(p))
		}
	}
	slices.Reverse(data) // not in the order of the request
	v.send(data, faults, map[string]any{"meta": map[string]any{"result_count": len(data)}})
}

func (v *visit) user(id string) {
	if p := v.w.ByID[id]; p != nil && !p.Suspended {
		one := v.profile(p)
		v.w.charge(v.now, one)
		v.JSON(http.StatusOK, map[string]any{"data": one})
	} else {
		v.JSON(http.StatusOK, map[string]any{"errors": []any{missing("user", id, p != nil, false)}})
	}
}

// who returns the user whose posts or lists are requested. If the user is unknown, suspended or
// protected, it sends the error response and returns nil.
func (v *visit) who(id string) *person {
	p := v.w.ByID[id]
	if p == nil || p.Suspended || p.Locked {
		v.JSON(http.StatusOK,
			map[string]any{"errors": []any{missing("user", id, p != nil && p.Suspended, p != nil && p.Locked)}})
		return nil
	}
	return p
}

// limit returns the maximum number of items on a page. 0 means that the request was refused.
func (v *visit) limit(least, most int) int {
	n, err := strconv.Atoi(v.q.Get("max_results"))
	if err != nil || n < least || n > most {
		v.invalid(fmt.Sprintf("The max_results query parameter value [%s] is not between %d and %d",
			v.q.Get("max_results"), least, most))
		return 0
	}
	if v.l.MaxLimit > 0 {
		n = min(n, v.l.MaxLimit)
	}
	return n
}

func (v *visit) byID() {
	ids := strings.Split(v.q.Get("ids"), ",")
	data, faults := []any{}, []any{}
	in := includes{v: v}
	for _, id := range ids {
		switch p := v.w.Posts[id]; {
		case p == nil || !p.Shown() || p.By.Locked:
			faults = append(faults, missing(v.word, id, p != nil && p.By.Suspended, p != nil && !p.Deleted &&
				p.By.Locked))
		default:
			data = append(data, v.post(p))
			in.of(p)
		}
	}
	v.send(data, faults, map[string]any{"includes": in.all()})
}

func (v *visit) search() {
	if since := v.w.Posts[v.q.Get("since_id")]; since != nil && v.now.Sub(since.Created) > 7*24*time.Hour {
		v.invalid("since_id must be a tweet id created after 7 days ago")
		return
	}
	var found []*post
	for _, p := range v.w.Public {
		if q := strings.ToLower(strings.TrimPrefix(v.q.Get("query"), "#")); v.now.Sub(p.Created) <= 7*24*time.Hour &&
			!p.By.Locked && p.Boost == nil && strings.Contains(strings.ToLower(p.Last().Text), q) {
			found = append(found, p)
		}
	}
	v.timeline(newest(found), "next_token", 10)
}

// timeline sends a page of posts, the newest first.
func (v *visit) timeline(all []*post, param string, least int) {
	limit, token := v.limit(least, 100), v.q.Get(param)
	if limit == 0 {
		return
	}
	above := func(a, b string) bool { return len(a) > len(b) || len(a) == len(b) && a > b }
	at, isToken := strings.CutPrefix(token, "b26v")
	if token != "" && (!isToken || v.l.RefusesToken) {
		v.invalid("The '" + param + "' query parameter value [" + token + "] is not valid")
		return
	}
	if v.l.EmptyFirst && token == "" && len(all) > 0 && !v.q.Has("until_id") {
		v.send(nil, nil, map[string]any{"meta": map[string]any{"result_count": 0,
			"next_token": "b26v9999999999999999999"}})
		return
	}
	var in []*post
	more := false
	for _, p := range all {
		if token != "" && !above(at, p.ID) || v.q.Has("until_id") && !above(v.q.Get("until_id"), p.ID) ||
			v.q.Has("since_id") && !v.l.IgnoresSince && !above(p.ID, v.q.Get("since_id")) {
			continue
		}
		if len(in) == limit {
			more = true
			break
		}
		in = append(in, p)
	}
	data, inc, meta := []any{}, includes{v: v}, map[string]any{"result_count": len(in)}
	for _, p := range in {
		data = append(data, v.post(p))
		inc.of(p)
	}
	switch {
	case v.l.NoToken || len(in) == 0:
	case v.l.RepeatsToken && more:
		meta["next_token"] = "b26v" + all[min(limit, len(all))-1].ID
	case more:
		meta["next_token"] = "b26v" + in[len(in)-1].ID
	}
	v.send(data, nil, map[string]any{"meta": meta, "includes": inc.all()})
}

// edges sends a page of one side of a user's edges, the newest first.
func (v *visit) edges(id, side string) {
	p := v.who(id)
	if p == nil {
		return
	}
	limit := v.limit(1, 1000)
	if limit == 0 {
		return
	}
	all := p.Followers
	if side == "following" {
		all = p.Following
	}
	if v.l.EmptyLists {
		all = nil
	}
	l := v.l
	in, next := storytest.Ways{Repeats: l.RepeatsToken, Ring: l.Ring, Endless: l.Endless, Shuffles: l.Shuffles,
		EmptyTail: l.EmptyTail}.
		Cut(all, limit, v.q.Get("pagination_token"), v.w.report.Requests)
	data, meta := []any{}, map[string]any{"result_count": len(in)}
	for _, f := range in {
		data = append(data, v.profile(f.Who))
	}
	if next != "" && !l.NoToken {
		meta["next_token"] = next
	}
	v.send(data, nil, map[string]any{"meta": meta})
}
