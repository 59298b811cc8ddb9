package twittertest

import "time"

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// claimed returns the count that the API reports for the true count n.
func (v *visit) claimed(n int) int {
	if v.l.CountsTimes != 0 {
		return int(float64(n) * v.l.CountsTimes)
	}
	return n
}

func (v *visit) profile(p *person) map[string]any {
	shown, _ := v.w.Count(p)
	return map[string]any{
		"id": p.ID, "username": p.User, "name": p.Name, "description": p.Bio, "location": p.Fields[0][1],
		"created_at": stamp(p.Created), "protected": p.Locked, "verified": false,
		"profile_image_url": "https://pbs.test/" + p.ID,
		"public_metrics": map[string]any{"followers_count": v.claimed(len(p.Followers)),
			"following_count": v.claimed(len(p.Following)), v.word + "_count": shown, "listed_count": 0},
	}
}

func (v *visit) post(p *post) map[string]any {
	at := p.Created
	if !p.Edited.IsZero() {
		at = p.Edited
	}
	history := []any{}
	for _, id := range v.w.was[p] {
		history = append(history, id)
	}
	out := map[string]any{
		"id": p.ID, "author_id": p.By.ID, "created_at": stamp(at), "lang": p.Lang, "conversation_id": p.First,
		"edit_history_" + v.word + "_ids": append(history, p.ID),
		"public_metrics": map[string]any{"retweet_count": 0, "reply_count": 0, "like_count": 0,
			"quote_count": 0},
	}
	tags, mentions, urls, refs := []any{}, []any{}, []any{}, []any{}
	for _, t := range p.Tags {
		tags = append(tags, map[string]any{"start": 0, "end": 1, "tag": t})
	}
	for _, m := range p.Mentions {
		mentions = append(mentions, map[string]any{"start": 0, "end": 1, "username": m.User, "id": m.ID})
	}
	for _, l := range p.Links {
		urls = append(urls, map[string]any{"start": 0, "end": 1, "url": "https://t.co/x", "expanded_url": l,
			"display_url": l})
	}
	out["entities"] = map[string]any{"hashtags": tags, "mentions": mentions, "urls": urls}
	switch {
	case p.Boost != nil:
		refs = append(refs, map[string]any{"type": "retweeted", "id": p.Boost.ID})
		out["text"] = "RT @" + p.Boost.By.User + ": ..."
	default:
		out["text"] = p.Last().Text
		if len(out["text"].(string)) > 100 { // long posts have the text twice
			out["note_"+v.word] = map[string]any{"text": out["text"], "entities": out["entities"]}
			out["text"] = out["text"].(string)[:10] + "…"
		}
	}
	if p.Reply != nil {
		refs = append(refs, map[string]any{"type": "replied_to", "id": p.Reply.ID})
		out["in_reply_to_user_id"] = p.Reply.By.ID
	}
	if len(refs) > 0 {
		out["referenced_"+v.word+"s"] = refs
	}
	return out
}

// includes collects the objects that accompany the posts of a response, each once.
type includes struct {
	v     *visit
	had   map[string]bool
	users []any
	posts []any
}

// of adds the author of p and the post that p boosts.
func (in *includes) of(p *post) {
	if in.had == nil {
		in.had = map[string]bool{}
	}
	if id := "u" + p.By.ID; !in.had[id] {
		in.had[id] = true
		in.users = append(in.users, in.v.profile(p.By))
	}
	if q := p.Boost; q != nil && !in.had[q.ID] {
		in.had[q.ID] = true
		in.posts = append(in.posts, in.v.post(q))
		in.of(q)
	}
}

func (in *includes) all() map[string]any {
	return map[string]any{"users": in.users, in.v.word + "s": in.posts}
}
