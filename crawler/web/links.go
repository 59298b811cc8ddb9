package web

import (
	"strings"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// maxLinkBytes bounds the links of one page, anchors included, so that a record
// of them stays well under store.MaxRecordBytes even when all of it is escaped.
const maxLinkBytes = 3 << 19

// followedLink says whether a link element with that rel leads to a page.
func followedLink(rel string) (follow bool) {
	for word := range strings.FieldsSeq(strings.ToLower(rel)) {
		switch word {
		case "stylesheet", "icon", "preload": // also "alternate stylesheet"
			return false
		case "canonical", "alternate", "next", "prev", "previous", "first", "last", "start", "up", "top", "home", "contents", "toc", "index",
			"chapter", "section", "subsection", "appendix", "glossary", "help", "copyright", "author", "license", "bookmark":
			follow = true
		}
	}
	return follow
}

// nofollow says whether the site does not vouch for a link with that rel.
func nofollow(rel string) bool {
	for word := range strings.FieldsSeq(rel) {
		switch word {
		case "nofollow", "ugc", "sponsored":
			return true
		}
	}
	return false
}

// links are the Keys that refs mean on the page at addr, each once, in the
// order of the page; over says that there were more than limit.
func links(addr, base string, refs []ref, limit int) (out []store.Link, over bool) {
	b, err := partition.NewBase(addr)
	if err != nil {
		return nil, false
	}
	if base != "" {
		if k, err := b.Resolve(base); err == nil {
			if nb, err := partition.NewBase(k.URL()); err == nil {
				b = nb
			}
		}
	}
	at := make(map[partition.Key]int, min(len(refs), limit))
	size := 0
	for _, r := range refs {
		k, err := b.Resolve(r.href)
		if err != nil || k.URL() == addr { // mailto:, javascript:, broken; or the page itself
			continue
		}
		rel := strings.ToLower(strings.Join(strings.Fields(r.rel), " "))
		l := store.Link{Key: k, Anchor: r.anchor, Rel: cutRel(rel), NoFollow: nofollow(rel)}
		if i, ok := at[k]; ok {
			unite(&out[i], l)
			continue
		}
		if size += len(k) + len(l.Anchor) + len(l.Rel); len(out) >= limit || size > maxLinkBytes {
			return out, true
		}
		at[k] = len(out)
		out = append(out, l)
	}
	return out, false
}

// cutRel keeps whole words of a rel, at most 100 bytes of them.
func cutRel(rel string) string {
	if len(rel) <= 100 {
		return rel
	}
	return rel[:max(strings.LastIndexByte(rel[:100], ' '), 0)]
}

// unite adds a second mention of the same Key: one that may be followed is
// enough, and the first anchor with words is kept.
func unite(l *store.Link, m store.Link) {
	if l.Anchor == "" {
		l.Anchor = m.Anchor
	}
	if l.NoFollow && !m.NoFollow {
		l.NoFollow, l.Rel = false, m.Rel
	}
}
