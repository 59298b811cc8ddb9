package mastodontest

import (
	"html"
	"strings"
)

func escape(s string) string { return html.EscapeString(s) }

// html returns a version of p in the HTML form of Mastodon.
func (w *World) html(p *post, version int) string {
	page := []string{escape(p.Versions[version].Said)}
	if version > 0 { // an edit contains the whole text
		return "<p>" + page[0] + "</p>"
	}
	for _, m := range p.Mentions {
		page = append(page, `<span class="h-card" translate="no"><a href="`+w.personURL(m)+
			`" class="u-url mention">@<span>`+m.User+`</span></a></span>`)
	}
	for _, t := range p.Tags {
		page = append(page, `<a href="https://`+w.o.Domain+`/tags/`+t+`" class="mention hashtag" rel="tag">#<span>`+
			t+`</span></a>`)
	}
	for _, l := range p.Links {
		page = append(page, `<a href="`+escape(l)+`" rel="nofollow noopener" translate="no"><span class="invisible">https://</span><span class="ellipsis">`+escape(strings.TrimPrefix(l, "https://"))+`</span></a>`)
	}
	return "<p>" + strings.Join(page, " ") + "</p>"
}

// note returns the bio of p as HTML.
func note(p *person) string {
	if p.Bio == "" {
		return ""
	}
	return "<p>" + escape(p.Bio) + "</p>"
}

func (w *World) personURL(p *person) string {
	host := p.Host
	if host == "" {
		host = w.o.Domain
	}
	return "https://" + host + "/@" + p.User
}
