package blueskytest

import "time"

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// claimed returns the count that the AppView reports for the true count n.
func (v *visit) claimed(n int) int {
	if v.l.CountsTimes != 0 {
		return int(float64(n) * v.l.CountsTimes)
	}
	return n
}

// or returns x, or null if x is empty and Lies.Nulls is set.
func (v *visit) or(x any, empty bool) any {
	if v.l.Nulls && empty {
		return nil
	}
	return x
}

// basic returns the profile form used in lists and as the author of posts.
func (v *visit) basic(p *person) map[string]any {
	handle := v.w.handle(p)
	if v.l.InvalidHandles {
		handle = "handle.invalid"
	}
	labels := []any{}
	if p.NoIndex {
		labels = append(labels, map[string]any{"src": p.ID, "uri": "at://" + p.ID + "/app.bsky.actor.profile/self",
			"val": "!no-unauthenticated", "cts": stamp(p.Created)})
	}
	return map[string]any{
		"did": p.ID, "handle": handle, "displayName": v.or(p.Name, p.Name == ""),
		"description": v.or(p.Bio, p.Bio == ""), "createdAt": stamp(p.Created), "indexedAt": stamp(p.Created),
		"avatar": "https://cdn.test/" + p.ID, "labels": v.or(labels, len(labels) == 0), "viewer": map[string]any{},
	}
}

func (v *visit) profile(p *person) map[string]any {
	out := v.basic(p)
	shown := 0
	for _, q := range p.Posts {
		if q.Shown() && q.Boost == nil {
			shown++
		}
	}
	out["followersCount"], out["followsCount"], out["postsCount"] = v.claimed(len(p.Followers)),
		v.claimed(len(p.Following)), shown
	return out
}

// record returns version n of the record of p.
func (v *visit) record(p *post, n int) map[string]any {
	if p.Boost != nil {
		return map[string]any{"$type": reposts, "createdAt": stamp(p.Created), "subject": ref(p.Boost)}
	}
	out := map[string]any{"$type": posts, "text": p.Versions[n].Text, "createdAt": stamp(p.Created),
		"langs": []any{p.Lang}}
	facets := []any{}
	facet := func(kind, name, value string) {
		facets = append(facets, map[string]any{"index": map[string]any{"byteStart": 0, "byteEnd": 1},
			"features": []any{map[string]any{"$type": "app.bsky.richtext.facet#" + kind, name: value}}})
	}
	for _, m := range p.Mentions {
		facet("mention", "did", m.ID)
	}
	for _, t := range p.Tags {
		facet("tag", "tag", t)
	}
	for _, l := range p.Links {
		facet("link", "uri", l)
	}
	out["facets"] = v.or(facets, len(facets) == 0)
	if p.Reply != nil {
		root := p.Reply
		for root.Reply != nil {
			root = root.Reply
		}
		out["reply"] = map[string]any{"parent": ref(p.Reply), "root": ref(root)}
	}
	return out
}

func ref(p *post) map[string]any { return map[string]any{"uri": p.ID, "cid": version(p, 0)} }

// view returns a post as the AppView shows it: always the first version.
func (v *visit) view(p *post) map[string]any {
	return map[string]any{
		"uri": p.ID, "cid": version(p, 0), "author": v.basic(p.By), "record": v.record(p, 0),
		"indexedAt":  stamp(p.Created),
		"replyCount": 0, "repostCount": 0, "likeCount": 0, "quoteCount": 0, "labels": v.or([]any{}, true),
	}
}

// item returns one entry of a feed.
func (v *visit) item(p *post) map[string]any {
	if p.Boost == nil {
		return map[string]any{"post": v.view(p)}
	}
	reason := map[string]any{"$type": "app.bsky.feed.defs#reasonRepost", "by": v.basic(p.By),
		"indexedAt": stamp(p.Created)}
	if !v.l.AnonReposts {
		reason["uri"], reason["cid"] = p.ID, version(p, 0)
	}
	return map[string]any{"post": v.view(p.Boost), "reason": reason}
}
