package mastodontest

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// timeline sends a page of posts: at most limit of them, the newest first. all is sorted by serial.
// max_id selects the newest posts before that post, since_id the newest after it, and min_id the
// next ones after it.
func (v *visit) timeline(all []*post, most int, path string) {
	serial := func(param string) (uint64, bool) {
		id := v.q.Get(param)
		p := v.w.Posts[id]
		if p == nil {
			return 0, false
		}
		return p.Serial, true
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
		if !p.Shown() || hasMax && p.Serial >= below || hasSince && p.Serial <= above || hasMin && p.Serial <= next {
			continue
		}
		if v.q.Get("local") == "true" && p.By.Host != "" {
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
		pages := [][2]string{{"prev", "min_id=" + url.QueryEscape(in[0].ID)}}
		if len(in) == limit {
			pages = append([][2]string{{"next", "max_id=" + url.QueryEscape(in[len(in)-1].ID)}}, pages...)
		}
		v.link(path, pages...)
	}
	if hasMin && v.l.Ascending {
		slices.Reverse(in)
	}
	if v.l.PinsFirst && len(all) > 0 && !hasMax && !hasMin && !hasSince &&
		strings.HasPrefix(path, "/api/v1/accounts/") && all[0].Shown() {
		in = append([]*post{all[0]}, slices.DeleteFunc(in, func(p *post) bool { return p == all[0] })...)
	}
	out := []any{}
	for _, p := range in {
		out = append(out, v.status(p))
	}
	v.send(out)
}

// edges sends a page of one side of an account's edges, the newest first. The cursor is the ID of
// the follow. Only the Link header contains it.
func (v *visit) edges(p *person, all []follow, side string) {
	path := "/api/v1/accounts/" + p.ID + "/" + side
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
		if (!paged || f.Row < below) && len(in) < limit {
			in = append(in, f)
		}
	}
	last := ""
	if len(in) > 0 {
		last = "max_id=" + strconv.FormatUint(in[len(in)-1].Row, 10)
	}
	switch {
	case v.l.RepeatsCursor && last != "":
		// the cursor of the first page
		last = "max_id=" + strconv.FormatUint(all[len(all)-1].Row, 10)
		v.link(path, [2]string{"next", last})
	case v.l.Ring > 0:
		in = in[:0]
		for i := range min(len(all), limit) {
			in = append(in, all[(ring*limit+i)%len(all)])
		}
		v.link(path, [2]string{"next", fmt.Sprintf("ring=%d", (ring+1)%v.l.Ring)})
	case v.l.Endless && (last == "" || len(in) < limit):
		if last == "" { // after the end, the last page comes again
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
		out = append(out, v.account(f.Who))
	}
	v.send(out)
}

// shuffled sends a page of a list without an end.
func (v *visit) shuffled(all []follow, path string) {
	rng := rand.New(rand.NewPCG(v.w.o.Seed, uint64(v.w.report.Requests)))
	out := []any{}
	for _, i := range rng.Perm(len(all))[:min(len(all), 1+rng.IntN(20))] {
		out = append(out, v.account(all[i].Who))
	}
	v.link(path, [2]string{"next", fmt.Sprintf("max_id=%d", v.w.report.Requests)})
	v.send(out)
}
