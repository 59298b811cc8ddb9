package web

import (
	"strings"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// maxLinkBytes is the limit for the links of one page in bytes, with their anchors. With it a
// record of links and text stays under store.MaxRecordBytes. If escaping makes the record longer,
// the store cuts it (store.Record.Cut).
const maxLinkBytes = 3 << 19

// followedLink reports whether a link element with this rel leads to a page.
func followedLink(rel string) (follow bool) {
	for word := range strings.FieldsSeq(strings.ToLower(rel)) {
		switch word {
		case "stylesheet", "icon", "preload": // also "alternate stylesheet"
			return false
		case "canonical", "alternate", "next", "prev", "previous", "first", "last", "start", "up", "top", "home",
			"contents", "toc", "index",
			"chapter", "section", "subsection", "appendix", "glossary", "help", "copyright", "author", "license",
			"bookmark":
			follow = true
		}
	}
	return follow
}

// nofollow reports whether rel says that the site does not vouch for the link.
func nofollow(rel string) bool {
	for word := range strings.FieldsSeq(rel) {
		switch word {
		case "nofollow", "ugc", "sponsored":
			return true
		}
	}
	return false
}

// baseOf returns the base for relative references on the page at addr, whose base element has the
// href base.
func baseOf(addr, base string) (partition.Base, error) {
	b, err := partition.NewBase(addr)
	if err != nil || base == "" {
		return b, err
	}
	k, err := b.Resolve(base)
	if err != nil {
		return b, nil // a broken base element counts as none
	}
	if other, err := partition.NewBase(k.URL()); err == nil {
		b = other
	}
	return b, nil
}

// links returns the Keys that refs point to on the page at addr, each once, in the order of the
// page. over reports that there were more than limit links or more than so many bytes of them.
func links(addr, base string, refs []ref, limit, bytes int) (out []store.Link, over bool) {
	b, err := baseOf(addr, base)
	if err != nil {
		return nil, false
	}
	at := make(map[partition.Key]int, min(len(refs), limit))
	size := 0
	for _, r := range refs {
		k, err := b.Resolve(r.href)
		if err != nil { // mailto:, javascript:, broken
			continue
		}
		if k, _ = withoutSession(k); k.URL() == addr { // the page itself
			continue
		}
		rel := strings.ToLower(strings.Join(strings.Fields(r.rel), " "))
		l := store.Link{Key: k, Anchor: r.anchor, Rel: cutRel(rel), NoFollow: nofollow(rel), Lang: r.lang,
			Modified: r.modified}
		if i, ok := at[k]; ok {
			unite(&out[i], l)
			continue
		}
		if size += len(k) + len(l.Anchor) + len(l.Rel); len(out) >= limit || size > bytes {
			return out, true
		}
		at[k] = len(out)
		out = append(out, l)
	}
	return out, false
}

// cutRel shortens a rel to at most 100 bytes, after a whole word.
func cutRel(rel string) string {
	if len(rel) <= 100 {
		return rel
	}
	return rel[:max(strings.LastIndexByte(rel[:100], ' '), 0)]
}

// unite merges m, a second link to the same Key, into l. The link may be followed if one of the two
// may be followed. The first anchor that is not empty is kept.
func unite(l *store.Link, m store.Link) {
	if l.Anchor == "" {
		l.Anchor = m.Anchor
	}
	if l.Lang == "" {
		l.Lang = m.Lang
	}
	if l.Modified == nil || m.Modified != nil && m.Modified.After(*l.Modified) {
		l.Modified = m.Modified
	}
	if l.NoFollow && !m.NoFollow {
		l.NoFollow, l.Rel = false, m.Rel
	}
}
