package web

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/echo-node/echo-node/partition"
)

// These are limits for what a page says about itself: description, author and canonical address, in
// meta elements, OpenGraph, links and JSON-LD (https://schema.org).
const (
	maxDescription = 1 << 10   // bytes
	maxAuthor      = 200       // bytes
	maxAuthors     = 5         // names
	maxData        = 256 << 10 // bytes of one JSON-LD script
	maxDataNodes   = 200       // objects visited, in all scripts of a page
	maxDataDepth   = 4         // depth of nested objects that describe the page
)

// about collects what a page says about itself. For each text the best source wins; of two equal
// sources, the first.
type about struct {
	description, author candidate
	headline            string
	nodes               int
}

// candidate is a text and the rank of its source; a higher rank is better, 0 means no text.
type candidate struct {
	text string
	rank int
}

// offer replaces c if text is not empty and rank is higher.
func (c *candidate) offer(text string, rank int) {
	if rank > c.rank && strings.TrimSpace(text) != "" {
		*c = candidate{text, rank}
	}
}

// meta takes the description or the author from a meta element.
func (a *about) meta(name, content string) {
	switch name {
	case "description":
		a.description.offer(content, 4)
	case "og:description":
		a.description.offer(content, 3)
	case "dc.description", "dcterms.description", "twitter:description":
		a.description.offer(content, 1)
	case "author":
		a.author.offer(content, 4)
	case "dc.creator", "dcterms.creator", "citation_author", "parsely-author":
		a.author.offer(content, 2)
	case "article:author":
		if !strings.Contains(content, "://") { // a name, not the address of a profile
			a.author.offer(content, 1)
		}
	}
}

// texts returns both texts as valid UTF-8, cut to their limits.
func (a *about) texts() (description, author string) {
	d, w := prose{max: maxDescription}, prose{max: maxAuthor}
	d.add(strings.ToValidUTF8(a.description.text, "\uFFFD"))
	w.add(strings.ToValidUTF8(a.author.text, "\uFFFD"))
	return d.text(), w.text()
}

// link handles a link element.
func (r *reader) link(at *attributes) {
	words := strings.Fields(strings.ToLower(at[atRel]))
	if r.canon == "" && slices.Contains(words, "canonical") && len(at[atHref]) <= maxRef {
		r.canon = strings.TrimSpace(at[atHref])
	}
	if followedLink(at[atRel]) && r.ref(at[atHref], at[atRel]) && slices.Contains(words, "alternate") {
		r.refs[len(r.refs)-1].lang = hreflang(at[atHreflang])
	}
}

// canonical returns the Key of href on the page at addr, whose base element has the href base. It
// returns "" when href is no Key or is the page itself.
func canonical(addr, base, href string) partition.Key {
	if href == "" {
		return ""
	}
	b, err := baseOf(addr, base)
	if err != nil {
		return ""
	}
	k, err := b.Resolve(href)
	if err != nil {
		return ""
	}
	if k, _ = withoutSession(k); k.URL() == addr {
		return ""
	}
	return k
}

// canonicalHeader returns the reference of the canonical link in Link headers (RFC 8288), or "".
func canonicalHeader(values []string) string {
	for _, v := range values {
		for v = v[:min(len(v), maxRef)]; ; {
			_, rest, _ := strings.Cut(v, "<")
			href, rest, ok := strings.Cut(rest, ">")
			if !ok {
				break
			}
			params, _, _ := strings.Cut(rest, "<")
			if isCanonical(params) {
				return href
			}
			v = rest
		}
	}
	return ""
}

// isCanonical reports whether the parameters of a Link header contain rel=canonical.
func isCanonical(params string) bool {
	for p := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(p, "=")
		value = strings.ToLower(strings.Trim(value, "\", \t"))
		if strings.EqualFold(strings.TrimSpace(name), "rel") && slices.Contains(strings.Fields(value), "canonical") {
			return true
		}
	}
	return false
}

// linkedData parses a JSON-LD script. A script that does not parse is ignored. One that is too long
// or too deep, or comes after maxDataBytes, is not parsed; then stop is set.
func (r *reader) linkedData(raw []byte, whole bool) {
	r.data += len(raw)
	switch {
	case r.about.nodes > maxDataNodes:
		return
	case !whole || len(raw) > maxData || r.data > maxDataBytes || depthOf(raw) > maxJSONDepth:
		r.stopped(stopData)
		return
	}
	var v any
	if json.Unmarshal(raw, &v) == nil {
		r.node(v, 0)
	}
}

// depthOf returns the depth of nested objects and lists in a JSON text.
func depthOf(raw []byte) (most int) {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			most = max(most, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return most
}

// node visits the objects of v that describe the page: v itself, the elements of a list or of
// @graph, and the main entity.
func (r *reader) node(v any, depth int) {
	if r.about.nodes++; depth > maxDataDepth || r.about.nodes > maxDataNodes {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			r.node(e, depth+1)
		}
	case map[string]any:
		for _, name := range [...]string{"@graph", "mainEntity", "mainEntityOfPage"} {
			if in, ok := v[name]; ok {
				r.node(in, depth+1)
			}
		}
		r.located(v)
		r.work(v)
	}
}

// work takes the data of an object that describes a written work. The description of a site or an
// organisation is not the page's, so such objects are skipped.
func (r *reader) work(v map[string]any) {
	_, dated := v["datePublished"]
	_, written := v["author"]
	headline := textIn(v["headline"])
	if !dated && !written && headline == "" {
		return
	}
	if rank := dateRank("datepublished"); rank < r.dateRank {
		if at, ok := parseDate(textIn(v["datePublished"])); ok {
			r.date, r.dateRank = at, rank
		}
	}
	if r.about.headline == "" {
		r.about.headline = headline
	}
	r.about.description.offer(textIn(v["description"]), 2)
	r.about.author.offer(strings.Join(names(v["author"]), ", "), 3)
}

// located declares the place of an object.
func (r *reader) located(v map[string]any) {
	if geo, ok := v["geo"].(map[string]any); ok {
		if lat, lon := textIn(geo["latitude"]), textIn(geo["longitude"]); lat != "" && lon != "" {
			r.declare(lat + "," + lon)
		}
	}
	for _, name := range [...]string{"address", "location", "contentLocation", "locationCreated"} {
		in, ok := v[name].(map[string]any)
		if !ok {
			r.declare(textIn(v[name]))
			continue
		}
		if at, ok := in["address"].(map[string]any); ok {
			in = at
		}
		var parts []string
		for _, field := range [...]string{"addressLocality", "addressRegion", "addressCountry"} {
			if text := textIn(in[field]); text != "" {
				parts = append(parts, text)
			}
		}
		r.declare(strings.Join(parts, ", "))
	}
}

// textIn returns a string, or a number as text, or the name of an object. Of a list it takes the
// first element. For all else it returns "".
func textIn(v any) string {
	if list, ok := v.([]any); ok && len(list) > 0 {
		v = list[0]
	}
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return fmt.Sprint(v)
	case map[string]any:
		for _, name := range [...]string{"name", "@value"} {
			if text, ok := v[name].(string); ok {
				return text
			}
		}
	}
	return ""
}

// names returns the names of one author or of a list of authors, at most maxAuthors.
func names(v any) (out []string) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, e := range list {
		if name := textIn(e); name != "" && !strings.Contains(name, "://") && len(out) < maxAuthors {
			out = append(out, name)
		}
	}
	return out
}
