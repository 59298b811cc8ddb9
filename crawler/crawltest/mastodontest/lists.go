package mastodontest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// timeline answers a page of posts, which are in order of their serials: at
// most limit of them, the newest first. max_id: the newest before that post; since_id: the newest
// after it; min_id: the next ones after it.
func (v *visit) timeline(all []*post, most int, path string) {
	serial := func(param string) (uint64, bool) {
		id := v.q.Get(param)
		p := v.w.posts[id]
		if p == nil {
			return 0, false
		}
		return p.serial, true
	}
	limit := v.limit(most)
	if v.l.IgnoresLimit {
		limit = 1000
	}
	below, hasMax := serial("max_id")
	above, hasSince := serial("since_id")
	next, hasMin := serial("min_id")
	hasMax, hasSince, hasMin = hasMax && !v.l.IgnoresMax, hasSince && !v.l.IgnoresSince, hasMin && !v.l.IgnoresMin
	if hasMin && v.l.MinIsSince {
		above, hasSince, hasMin = next, true, false
	}
	var in []*post
	for _, p := range all {
		if !p.shown() || hasMax && p.serial >= below || hasSince && p.serial <= above || hasMin && p.serial <= next {
			continue
		}
		if v.q.Get("local") == "true" && p.by.host != "" {
			continue
		}
		in = append(in, p)
	}
	if hasMin {
		in = in[:min(len(in), limit)]
	} else {
		in = in[max(len(in)-limit, 0):]
	}
	in = slices.Clone(in)
	slices.Reverse(in)
	if len(in) > 0 {
		pages := [][2]string{{"prev", "min_id=" + url.QueryEscape(in[0].id)}}
		if len(in) == limit {
			pages = append([][2]string{{"next", "max_id=" + url.QueryEscape(in[len(in)-1].id)}}, pages...)
		}
		v.link(path, pages...)
	}
	if hasMin && v.l.Ascending {
		slices.Reverse(in)
	}
	if v.l.PinsFirst && len(all) > 0 && !hasMax && !hasMin && !hasSince && strings.HasPrefix(path, "/api/v1/accounts/") && all[0].shown() {
		in = append([]*post{all[0]}, slices.DeleteFunc(in, func(p *post) bool { return p == all[0] })...)
	}
	out := []any{}
	for _, p := range in {
		out = append(out, v.status(p))
	}
	v.send(out)
}

// edges answers a page of one side of an account's edges, the newest first; the
// cursor is the id of the follow, and stands in the Link header only.
func (v *visit) edges(p *person, all []follow, side string) {
	path := "/api/v1/accounts/" + p.id + "/" + side
	switch {
	case v.l.EmptyLists && side == "followers", v.l.HidesLists:
		v.send([]any{})
		return
	case v.l.Shuffles && len(all) > 0:
		v.shuffled(all, path)
		return
	}
	limit := v.limit(80)
	below, err := strconv.ParseUint(v.q.Get("max_id"), 10, 64)
	paged := err == nil
	ring, _ := strconv.Atoi(v.q.Get("ring"))
	var in []follow
	for _, f := range slices.Backward(all) {
		if (!paged || f.row < below) && len(in) < limit {
			in = append(in, f)
		}
	}
	last := ""
	if len(in) > 0 {
		last = "max_id=" + strconv.FormatUint(in[len(in)-1].row, 10)
	}
	switch {
	case v.l.RepeatsCursor && last != "":
		last = "max_id=" + strconv.FormatUint(all[len(all)-1].row, 10) // of the first page
		v.link(path, [2]string{"next", last})
	case v.l.Ring > 0:
		in = in[:0]
		for i := range min(len(all), limit) {
			in = append(in, all[(ring*limit+i)%len(all)])
		}
		v.link(path, [2]string{"next", fmt.Sprintf("ring=%d", (ring+1)%v.l.Ring)})
	case v.l.Endless && (last == "" || len(in) < limit):
		if last == "" { // behind the end stands the end again
			in = append(in, all[:min(len(all), 2)]...)
		}
		v.link(path, [2]string{"next", fmt.Sprintf("max_id=1&nonce=%d", v.w.report.Requests)})
	case v.l.EmptyTail && (last == "" || len(in) < limit):
		v.link(path, [2]string{"next", fmt.Sprintf("max_id=1&nonce=%d", v.w.report.Requests)})
	case len(in) == limit:
		v.link(path, [2]string{"next", last})
	}
	out := []any{}
	for _, f := range in {
		out = append(out, v.account(f.who))
	}
	v.send(out)
}

// shuffled answers a page of a list without an end.
func (v *visit) shuffled(all []follow, path string) {
	rng := rand.New(rand.NewPCG(v.w.o.Seed, uint64(v.w.report.Requests)))
	out := []any{}
	for _, i := range rng.Perm(len(all))[:min(len(all), 1+rng.IntN(20))] {
		out = append(out, v.account(all[i].who))
	}
	v.link(path, [2]string{"next", fmt.Sprintf("max_id=%d", v.w.report.Requests)})
	v.send(out)
}

// bucket is one Limit for one key.
type bucket struct {
	begins time.Time
	used   int
}

// allow counts a request in every bucket that it belongs to, and says what the
// closest of them has left. What is refused is counted as well, as Mastodon does.
func (w *World) allow(h http.Header, from netip.Addr, token string, paging bool, now time.Time) bool {
	var closest *Limit
	left, ends, ok := 0, time.Time{}, true
	for i := range w.o.Limits {
		l := &w.o.Limits[i]
		if l.Paging && !paging || !l.All && l.Auth != (token != "") {
			continue
		}
		who := from.String()
		if from.Is6() {
			who = netip.PrefixFrom(from, 64).Masked().String()
		}
		if l.Auth && !l.All {
			who = token
		}
		key := l.Name + " " + who
		b := w.buckets[key]
		begins := now.Truncate(l.Window)
		if l.Rolling {
			begins = now
		}
		if b == nil || !now.Before(b.begins.Add(l.Window)) {
			b = &bucket{begins: begins}
			w.buckets[key] = b
		}
		b.used++
		ok = ok && b.used <= l.Max
		if rest := max(l.Max-b.used, 0); closest == nil || rest < left {
			closest, left, ends = l, rest, b.begins.Add(l.Window)
		}
	}
	if closest != nil {
		w.tell(h, closest.Max, left, ends, now)
	}
	if !ok {
		switch w.o.After {
		case AfterSeconds:
			h.Set("Retry-After", strconv.Itoa(int(ends.Sub(now).Seconds())+1))
		case AfterDate:
			h.Set("Retry-After", ends.UTC().Add(time.Second).Format(http.TimeFormat))
		}
	}
	return ok
}

// tell writes the headers of a limit.
func (w *World) tell(h http.Header, limit, left int, ends, now time.Time) {
	prefix, reset := "X-RateLimit-", ends.UTC().Format("2006-01-02T15:04:05.000000Z")
	switch w.o.Says {
	case NoHeaders:
		return
	case DraftLine:
		h.Set("RateLimit", fmt.Sprintf(`"default";r=%d;t=%d`, left, int(ends.Sub(now).Seconds())))
		h.Set("RateLimit-Policy", fmt.Sprintf(`"default";q=%d`, limit))
		return
	case Epoch:
		reset = strconv.FormatInt(ends.Unix(), 10)
	case Draft:
		prefix, reset = "RateLimit-", strconv.FormatInt(ends.Unix(), 10)
	case DraftSeconds:
		prefix, reset = "RateLimit-", strconv.Itoa(int(ends.Sub(now).Seconds()))
	}
	h.Set(prefix+"Limit", strconv.Itoa(limit))
	h.Set(prefix+"Remaining", strconv.Itoa(left))
	h.Set(prefix+"Reset", reset)
}
