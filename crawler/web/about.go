package web

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/echo-node/echo-node/partition"
)

// What a page says of itself: its description, author and canonical address, in
// meta elements, OpenGraph, links, and JSON-LD (https://schema.org).
const (
	maxDescription = 1 << 10   // bytes
	maxAuthor      = 200       // bytes
	maxAuthors     = 5         // names
	maxData        = 256 << 10 // bytes of one script of JSON-LD
	maxDataNodes   = 200       // objects looked at, of all scripts of a page
	maxDataDepth   = 4         // objects in each other that are about the page
)

// about collects it. Of each text the best source counts, of two equals the first.
type about struct {
	description, author candidate
	headline            string
	nodes               int
}

// candidate is a text and how good its source is, 0 none.
type candidate struct {
	text string
	rank int
}

func (c *candidate) offer(text string, rank int) {
	if rank > c.rank && strings.TrimSpace(text) != "" {
		*c = candidate{text, rank}
	}
}

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
		if !strings.Contains(content, "://") { // a name, not a profile
			a.author.offer(content, 1)
		}
	}
}

func (a *about) texts() (description, author string) {
	d, w := prose{max: maxDescription}, prose{max: maxAuthor}
	d.add(strings.ToValidUTF8(a.description.text, "\uFFFD"))
	w.add(strings.ToValidUTF8(a.author.text, "\uFFFD"))
	return d.text(), w.text()
}

// link takes up a link element.
func (r *reader) link(at *attributes) {
	words := strings.Fields(strings.ToLower(at[atRel]))
	if r.canon == "" && slices.Contains(words, "canonical") && len(at[atHref]) <= maxRef {
		r.canon = strings.TrimSpace(at[atHref])
	}
	if followedLink(at[atRel]) && r.ref(at[atHref], at[atRel]) && slices.Contains(words, "alternate") {
		r.refs[len(r.refs)-1].lang = hreflang(at[atHreflang])
	}
}

// canonical is the Key that href means on the page at addr with that base
// element, "" when it is none or the page itself.
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

// canonicalHeader is the reference of the canonical link among Link headers
// (RFC 8288), "" when there is none.
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

// isCanonical says whether the parameters of a Link header have rel=canonical.
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

// linkedData reads a script of JSON-LD. What does not parse says nothing; what is too
// long, too deep or too much is not read.
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

// depthOf is how many objects and lists are in each other in a text of JSON.
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

// node reads the objects of v that are about the page: itself, those of a list
// or of @graph, and the main entity.
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

// work reads the object of something written; of a site or an organisation the
// description is not the page's.
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

// textIn is a text or a number as text, or the name of an object, or that of
// the first of a list; else "".
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

// names are the names of one author or of a list.
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
