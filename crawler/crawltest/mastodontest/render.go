package mastodontest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// id returns the JSON form of an ID.
func (v *visit) id(id string) any {
	if _, err := strconv.ParseUint(id, 10, 64); v.l.NumberIDs && err == nil {
		return json.Number(id)
	}
	return id
}

// claimed returns the count that the server reports for the true count n.
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

func (v *visit) account(p *person) map[string]any {
	w := v.w
	acct := p.Acct()
	if v.l.FullAccts {
		acct = w.Full(p)
	}
	shown, at := w.Count(p)
	lists := p
	if v.l.OwnCounts && v.me != nil {
		lists = v.me
	}
	if v.l.NoPosts {
		shown = 0
	}
	if v.l.Posted > 0 {
		shown, at = v.l.Posted, w.O.Start.Add(-24*time.Hour)
	}
	fields := []any{}
	for _, f := range p.Fields {
		fields = append(fields, map[string]any{"name": f[0], "value": escape(f[1]), "verified_at": nil})
	}
	last := any(nil)
	if shown > 0 {
		last = at.UTC().Format(time.DateOnly)
	}
	out := map[string]any{
		"id": v.id(p.ID), "username": p.User, "acct": acct, "display_name": v.or(p.Name, p.Name == ""),
		"note": v.or(note(p), note(p) == ""),
		"url":  w.personURL(p), "uri": w.personURL(p) + "#me", "avatar": w.personURL(p) + "/a.png",
		"header":     v.or("", true),
		"created_at": stamp(p.Created.Truncate(24 * time.Hour)), "last_status_at": last,
		"followers_count": v.claimed(len(lists.Followers)), "following_count": v.claimed(len(lists.Following)),
		"statuses_count": shown,
		"bot":            p.Bot, "locked": p.Locked, "group": v.or(false, true), "discoverable": !p.Hidden,
		"indexable": p.Indexable, "noindex": p.NoIndex,
		"hide_collections": v.l.HidesLists, "fields": v.or(fields, len(fields) == 0), "emojis": v.or([]any{}, true),
		"roles": []any{},
	}
	if p.Suspended { // as in Mastodon: the account stays, its profile text is removed
		out["suspended"] = true
		out["note"], out["display_name"], out["fields"] = "", "", []any{}
	}
	if p.Moved != nil {
		moved := *p.Moved
		moved.Moved = nil
		out["moved"] = map[string]any{"id": v.id(moved.ID), "username": moved.User, "acct": moved.Acct(),
			"url": w.personURL(&moved)}
	}
	return out
}

func (v *visit) status(p *post) map[string]any {
	w := v.w
	lang := any(p.Lang)
	if v.l.Lang != "" {
		lang = v.l.Lang
	}
	visibility := v.l.Visibility
	if visibility == "" {
		visibility = "public"
	}
	at := w.personURL(p.By) + "/" + p.First
	created := p.Created
	if v.l.Seconds {
		created = created.Truncate(time.Second)
	}
	out := map[string]any{
		"id": v.id(p.ID), "uri": at, "url": at, "account": v.account(p.By),
		"created_at": stamp(created), "edited_at": nil,
		"content": "", "spoiler_text": v.or("", true), "language": v.or(lang, lang == ""), "visibility": visibility,
		"sensitive":      v.or(false, true),
		"in_reply_to_id": nil, "in_reply_to_account_id": nil, "reblog": nil, "poll": nil, "card": nil,
		"media_attachments": v.or([]any{}, true),
		"replies_count":     0, "reblogs_count": 0, "favourites_count": 0,
	}
	if !p.Edited.IsZero() {
		out["edited_at"] = stamp(p.Edited)
	}
	if len(p.Files) > 0 {
		files := []any{}
		for i, at := range p.Files {
			files = append(files, map[string]any{"id": fmt.Sprint(p.First, i), "type": "image", "url": at,
				"preview_url": at, "remote_url": nil, "description": "a picture"})
		}
		out["media_attachments"] = files
	}
	mentions, tags := []any{}, []any{}
	for _, m := range p.Mentions {
		mentions = append(mentions, map[string]any{"id": v.id(m.ID), "username": m.User, "acct": m.Acct(),
			"url": w.personURL(m)})
	}
	for _, t := range p.Tags {
		tags = append(tags, map[string]any{"name": t, "url": "https://" + w.o.Domain + "/tags/" + t})
	}
	out["mentions"], out["tags"] = v.or(mentions, len(mentions) == 0), v.or(tags, len(tags) == 0)
	if len(p.Versions) > 0 {
		out["content"] = w.html(p, len(p.Versions)-1)
	}
	if p.Reply != nil {
		out["in_reply_to_id"], out["in_reply_to_account_id"] = v.id(p.Reply.ID), v.id(p.Reply.By.ID)
	}
	if p.Boost != nil {
		out["reblog"] = v.status(p.Boost)
	}
	return out
}
