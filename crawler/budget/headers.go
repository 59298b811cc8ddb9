package budget

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// policy is what the headers of one response say about one bucket; -1 = nothing.
type policy struct {
	limit  int64
	left   int64
	window int64 // nanoseconds
	// The reset, by our clock, is between lo and hi; 0 = not given.
	lo, hi int64
}

// unsaid is a policy that says nothing.
var unsaid = policy{limit: -1, left: -1, window: -1}

// readPolicies reads the headers of a response that arrived at now to a call sent at sent. If the
// server names several buckets, the first one is the closest to its limit. The forms are:
//
//   - X-RateLimit-{Limit,Remaining,Reset} and X-Rate-Limit-…;
//   - the same without X- and with RateLimit-Policy "3000;w=300"
//     (draft-ietf-httpapi-ratelimit-headers-00 to 06);
//   - one field RateLimit "limit=100, remaining=50, reset=5" (07);
//   - structured fields RateLimit: "default";r=50;t=30 with RateLimit-Policy: "default";q=100;w=10
//     (08 on).
//
// A reset is in seconds from now, in seconds or milliseconds since 1970, or a date of RFC 3339.
func readPolicies(h http.Header, sent, now int64, c *clock) []policy {
	r := reader{sent: sent, now: now, c: c}
	var all []policy
	for _, prefix := range []string{"X-Ratelimit-", "X-Rate-Limit-", "Ratelimit-"} {
		p := unsaid
		p.limit = number(first(get(h, prefix+"Limit")))
		p.left = number(first(get(h, prefix+"Remaining")))
		r.reset(&p, first(get(h, prefix+"Reset")))
		if p != unsaid && (p.limit >= 0 || p.left >= 0) {
			all = append(all, p)
			break
		}
	}
	named := map[string]int{}
	for _, item := range split(get(h, "Ratelimit"), len(all)) {
		r.structured(item, &all, named)
	}
	for _, item := range split(get(h, "Ratelimit-Policy")+","+rest(get(h, "Ratelimit-Limit")), len(all)) {
		r.described(item, &all, named)
	}
	return all
}

// reader reads the headers of one response; sent and now are when the call was sent and answered.
type reader struct {
	sent, now int64
	c         *clock
}

// get returns the first value of a header, cut to MaxHeader bytes.
func get(h http.Header, name string) string {
	v := h.Get(name)
	return v[:min(len(v), MaxHeader)]
}

// first returns the first item of a list, without its parameters.
func first(v string) string {
	v, _, _ = strings.Cut(v, ",")
	v, _, _ = strings.Cut(v, ";")
	return strings.TrimSpace(v)
}

// rest returns all items of a list but the first.
func rest(v string) string {
	_, v, _ = strings.Cut(v, ",")
	return v
}

// split returns the items of a list; with the have earlier ones they are at most MaxPolicies.
func split(v string, have int) []string {
	items := strings.SplitN(v, ",", MaxPolicies-min(have, MaxPolicies)+1)
	return items[:min(len(items), MaxPolicies-min(have, MaxPolicies))]
}

// number returns -1 for anything but a whole number from 0 to MaxLimit.
func number(v string) int64 {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 || n > MaxLimit {
		return -1
	}
	return n
}

// structured reads one item of a RateLimit field.
func (r *reader) structured(item string, all *[]policy, named map[string]int) {
	name, params := parameters(item)
	if key, value, ok := strings.Cut(name, "="); ok { // draft 07: a dictionary
		if len(*all) == 0 {
			*all = append(*all, unsaid)
		}
		p := &(*all)[0]
		switch strings.TrimSpace(key) {
		case "limit":
			p.limit = number(value)
		case "remaining":
			p.left = number(value)
		case "reset":
			r.reset(p, value)
		}
		return
	}
	if left := number(params["r"]); left >= 0 {
		p := unsaid
		p.left = left
		r.reset(&p, params["t"])
		named[name] = len(*all)
		*all = append(*all, p)
	}
}

// described reads one item of a RateLimit-Policy field.
func (r *reader) described(item string, all *[]policy, named map[string]int) {
	name, params := parameters(item)
	p := unsaid
	if p.limit = number(name); p.limit < 0 {
		p.limit = number(params["q"])
	}
	if w := number(params["w"]); w > 0 && w <= int64(MaxWindow/time.Second) {
		p.window = w * int64(time.Second)
	}
	if p.limit < 0 || p.window < 0 {
		return
	}
	for i := range *all {
		o := &(*all)[i]
		if at, ok := named[name]; ok && at == i || !ok && o.window < 0 && (o.limit == p.limit || o.limit < 0) {
			o.limit, o.window = p.limit, p.window
			return
		}
	}
	if len(*all) < MaxPolicies {
		*all = append(*all, p)
	}
}

// parameters parses `"name";a=1;b=2`.
func parameters(item string) (name string, params map[string]string) {
	parts := strings.Split(item, ";")
	params = map[string]string{}
	for _, p := range parts[1:] {
		key, value, _ := strings.Cut(p, "=")
		params[strings.TrimSpace(key)] = strings.Trim(strings.TrimSpace(value), `"`)
	}
	return strings.Trim(strings.TrimSpace(parts[0]), `"`), params
}

// A number of a reset below resetEpoch is in seconds from now, below resetMilli in seconds since
// 1970. Larger numbers are milliseconds since 1970.
const (
	resetEpoch = 100_000_000
	resetMilli = 100_000_000_000
)

// reset sets lo and hi. It ignores a reset that is more than MaxWindow away.
func (r *reader) reset(p *policy, v string) {
	v = strings.TrimSpace(v)
	whole, _, _ := strings.Cut(v, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	second, grain := int64(time.Second), grain
	var server int64
	switch {
	case v == "":
		return
	case err == nil && n < 0:
		return
	case err == nil && n < resetEpoch:
		n = min(n, int64(MaxWindow/time.Second)+1)
		p.lo, p.hi = r.sent+(n-1)*second, r.now+(n+1)*second
	case err == nil && n < resetMilli:
		server, grain = n*second, second
	case err == nil && n < resetMilli*1000:
		server = n * int64(time.Millisecond)
	default:
		t, err := time.Parse(time.RFC3339Nano, v)
		if err != nil || t.Year() < 1970 || t.Year() > 2200 {
			return
		}
		if server = t.UnixNano(); server%second == 0 {
			grain = second
		}
	}
	if server != 0 {
		p.lo, p.hi = server-grain-r.c.hi, server+grain-r.c.lo
	}
	if server != 0 && !r.c.trusted() || p.hi < r.sent || p.lo > r.now+int64(MaxWindow) {
		p.lo, p.hi = 0, 0
	}
}
