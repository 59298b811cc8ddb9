package mastodontest

import (
	"encoding/json"
	"strconv"
	"time"
)

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// id writes an id as the server does.
func (v *visit) id(id string) any {
	if _, err := strconv.ParseUint(id, 10, 64); v.l.NumberIDs && err == nil {
		return json.Number(id)
	}
	return id
}

// claimed is what the server makes of a count.
func (v *visit) claimed(n int) int {
	if v.l.CountsTimes != 0 {
		return int(float64(n) * v.l.CountsTimes)
	}
	return n
}

// or is x, or null where the server has nulls.
func (v *visit) or(x any, empty bool) any {
	if v.l.Nulls && empty {
		return nil
	}
	return x
}

// count works out how many posts of p are shown, if that may have changed.
func (w *World) count(p *person) {
	if p.countedAt == w.told+1 {
		return
	}
	p.count, p.countedAt = 0, w.told+1
	for _, q := range p.posts {
		if q.shown() {
			p.count++
			p.last = q.created
		}
	}
}

func (v *visit) account(p *person) map[string]any {
	w := v.w
	acct := p.acct()
	if v.l.FullAccts {
		acct = w.full(p)
	}
	w.count(p)
	shown := p.count
	if v.l.NoPosts {
		shown = 0
	}
	fields := []any{}
	for _, f := range p.fields {
		fields = append(fields, map[string]any{"name": f[0], "value": escape(f[1]), "verified_at": nil})
	}
	last := any(nil)
	if shown > 0 {
		last = p.last.UTC().Format(time.DateOnly)
	}
	out := map[string]any{
		"id": v.id(p.id), "username": p.user, "acct": acct, "display_name": v.or(p.name, p.name == ""), "note": v.or(p.note, p.note == ""),
		"url": w.personURL(p), "uri": w.personURL(p) + "#me", "avatar": w.personURL(p) + "/a.png", "header": v.or("", true),
		"created_at": stamp(p.created.Truncate(24 * time.Hour)), "last_status_at": last,
		"followers_count": v.claimed(len(p.followers)), "following_count": v.claimed(len(p.following)), "statuses_count": shown,
		"bot": p.bot, "locked": p.locked, "group": v.or(false, true), "discoverable": !p.hidden, "indexable": p.indexable, "noindex": p.noIndex,
		"hide_collections": v.l.HidesLists, "fields": v.or(fields, len(fields) == 0), "emojis": v.or([]any{}, true), "roles": []any{},
	}
	if p.suspended { // as Mastodon: the account stays, what it said goes
		out["suspended"] = true
		out["note"], out["display_name"], out["fields"] = "", "", []any{}
	}
	if p.moved != nil {
		moved := *p.moved
		moved.moved = nil
		out["moved"] = map[string]any{"id": v.id(moved.id), "username": moved.user, "acct": moved.acct(), "url": w.personURL(&moved)}
	}
	return out
}

func (v *visit) status(p *post) map[string]any {
	w := v.w
	lang := any(p.lang)
	if v.l.Lang != "" {
		lang = v.l.Lang
	}
	at := w.personURL(p.by) + "/" + p.first
	out := map[string]any{
		"id": v.id(p.id), "uri": at, "url": at, "account": v.account(p.by), "created_at": stamp(p.created), "edited_at": nil,
		"content": "", "spoiler_text": v.or("", true), "language": v.or(lang, lang == ""), "visibility": "public", "sensitive": v.or(false, true),
		"in_reply_to_id": nil, "in_reply_to_account_id": nil, "reblog": nil, "poll": nil, "card": nil, "media_attachments": v.or([]any{}, true),
		"replies_count": 0, "reblogs_count": 0, "favourites_count": 0,
	}
	if !p.edited.IsZero() {
		out["edited_at"] = stamp(p.edited)
	}
	mentions, tags := []any{}, []any{}
	for _, m := range p.mentions {
		mentions = append(mentions, map[string]any{"id": v.id(m.id), "username": m.user, "acct": m.acct(), "url": w.personURL(m)})
	}
	for _, t := range p.tags {
		tags = append(tags, map[string]any{"name": t, "url": "https://" + w.o.Domain + "/tags/" + t})
	}
	out["mentions"], out["tags"] = v.or(mentions, len(mentions) == 0), v.or(tags, len(tags) == 0)
	if len(p.versions) > 0 {
		out["content"] = p.last().html
	}
	if p.reply != nil {
		out["in_reply_to_id"], out["in_reply_to_account_id"] = v.id(p.reply.id), v.id(p.reply.by.id)
	}
	if p.boost != nil {
		out["reblog"] = v.status(p.boost)
	}
	return out
}
