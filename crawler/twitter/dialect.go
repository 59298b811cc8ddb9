package twitter

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
)

// Limits of learning from refusals.
const (
	maxTries   = 12             // requests of one call of get
	dialectFor = 24 * time.Hour // after this time a refused field is requested again
	maxNames   = 64             // words of a refusal that are used
)

// Dialect is what is known about the API's endpoints: which spelling they accept, and which fields
// they refuse. If an endpoint refuses a request because of a parameter, the request is repeated
// without it. A refused parameter is not requested again for a day. The zero value knows nothing.
//
// A Dialect holds at most one entry for each endpoint of this package, with at most the requested
// fields. It is safe for concurrent use. All Clients of one API share it.
type Dialect struct {
	mu   sync.Mutex
	word Spelling // accepted by an endpoint that had refused the other one; "" = none
	by   map[string]*endpoint
}

// endpoint is what is known about one endpoint.
type endpoint struct {
	word  Spelling
	since time.Time         // time of its first refusal
	tried map[Spelling]bool // earlier spellings of word
	lacks map[Spelling]bool // it has no parameter of that spelling
	// values ("user.fields withheld") or whole parameters that are not requested
	less map[string]bool
	// refusals without a name: 1 = the other spelling is tried, 2 = it was refused too
	doubts int
}

func other(w Spelling) Spelling {
	if w == Tweet {
		return PostS
	}
	return Tweet
}

// wanted returns all requested fields by parameter: of users, or of posts.
func wanted(w Spelling, posts bool) map[string][]string {
	s := string(w)
	out := map[string][]string{"user.fields": {"id", "username", "name", "description", "location", "url",
		"profile_image_url", "created_at", "public_metrics", "protected",
		"verified", "withheld", "entities", "pinned_" + s + "_id", "most_recent_" + s + "_id"}}
	if posts {
		out[s+".fields"] = []string{"id", "text", "author_id", "created_at", "lang", "conversation_id",
			"in_reply_to_user_id", "referenced_" + s + "s", "edit_history_" + s + "_ids",
			"entities", "attachments", "geo", "public_metrics", "possibly_sensitive", "withheld", "note_" + s}
		out["expansions"] = []string{"author_id", "attachments.media_keys", "referenced_" + s + "s.id",
			"referenced_" + s + "s.id.author_id"}
		out["media.fields"] = []string{"media_key", "type", "url", "preview_image_url", "alt_text"}
	}
	return out
}

// needed reports whether a value is requested even if the API refuses it. Without it the author of
// a post is unknown, or whether an account is protected.
func needed(param, value string) bool {
	return value == "id" || value == "author_id" || value == "protected" || value == "" && param != "media.fields"
}

// of returns the endpoint's entry. The caller holds the lock.
func (d *Dialect) of(at string, first Spelling, now time.Time) *endpoint {
	e := d.by[at]
	if e == nil || !e.since.IsZero() && now.Sub(e.since) >= dialectFor {
		word := d.word
		if word == "" {
			word = first
		}
		e = &endpoint{word: word, tried: map[Spelling]bool{}, lacks: map[Spelling]bool{}, less: map[string]bool{}}
		if d.by == nil {
			d.by = map[string]*endpoint{}
		}
		d.by[at] = e
	}
	return e
}

// ask returns the spelling and the fields for the next request to an endpoint.
func (d *Dialect) ask(at string, first Spelling, posts bool, now time.Time) (Spelling, map[string][]string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.of(at, first, now)
	out := wanted(e.word, posts)
	for param, values := range out {
		out[param] = slices.DeleteFunc(values, func(v string) bool { return e.less[param+" "+v] })
		if e.less[param] || len(out[param]) == 0 {
			delete(out, param)
		}
	}
	return e.word, out
}

// took records that an endpoint accepted that spelling.
func (d *Dialect) took(at string, w Spelling) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.by[at]; e != nil && e.word == w && len(e.tried) > 0 {
		d.word = w
	}
}

// refused learns from the names in a refusal. The request had that spelling, fields, and the other
// parameters q. It reports whether another request is useful.
func (d *Dialect) refused(at string, w Spelling, fields map[string][]string, q url.Values, names []string,
	now time.Time) (again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.by[at]
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return echoed(q, n) })
	if e == nil || slices.ContainsFunc(names, q.Has) {
		return false // the refusal is about the query, not about the fields
	}
	params, values := named(fields, names)
	if len(params)+len(values) == 0 {
		return e.doubt(w, now)
	}
	for _, v := range values {
		param, value, _ := strings.Cut(v, " ")
		if needed(param, value) {
			continue
		}
		e.less[v], again = true, true
		if strings.Contains(value, string(w)) && e.word == w && !e.tried[other(w)] && !e.lacks[other(w)] {
			e.turn()
		}
	}
	for _, param := range params {
		switch {
		case param == string(w)+".fields":
			e.lacks[w] = true
			if e.word == w && !e.lacks[other(w)] {
				e.turn()
			}
		case !needed(param, ""):
			e.less[param], again = true, true
		case e.doubt(w, now):
			again = true
		// some value of it is refused, but it is unknown which: request only the needed ones
		default:
			for _, v := range fields[param] {
				if !needed(param, v) {
					e.less[param+" "+v], again = true, true
				}
			}
		}
	}
	if again = again || e.word != w; again && e.since.IsZero() {
		e.since = now
	}
	return again
}

// echoed reports whether a name appears in the values of q. The server may repeat them in its
// message, and any person can choose the text of a query.
func echoed(q url.Values, name string) bool {
	for _, values := range q {
		for _, v := range values {
			if strings.Contains(strings.ToLower(v), strings.ToLower(name)) {
				return true
			}
		}
	}
	return false
}

// turn changes the spelling.
func (e *endpoint) turn() { e.tried[e.word], e.word = true, other(e.word) }

// doubt handles a refusal without a name: it tries the other spelling, once.
func (e *endpoint) doubt(w Spelling, now time.Time) (again bool) {
	switch {
	case e.word != w: // another request has already learned more
		return true
	case e.doubts == 0 && !e.lacks[other(w)]:
		e.turn()
		e.doubts, e.since = 1, now
		return true
	case e.doubts == 1:
		e.doubts = 2
		if !e.lacks[other(w)] {
			e.turn()
		}
	}
	return false
}

// named returns the requested parameters, and the values of parameters, that a refusal names. A
// parameter is refused itself if none of its values is named. If no parameter is named, only values
// with a dot or underscore count, because other words may be prose.
func named(fields map[string][]string, names []string) (params, values []string) {
	is := map[string]bool{}
	open := true // no parameter is named
	for _, n := range names {
		is[n] = true
		open = open && fields[n] == nil
	}
	for param, all := range fields {
		found := false
		for _, v := range all {
			if is[v] && (is[param] || open && strings.ContainsAny(v, "._")) {
				found = true
				values = append(values, param+" "+v)
			}
		}
		if is[param] && !found {
			params = append(params, param)
		}
	}
	return params, values
}

// namesIn returns the names of parameters and values in the text of a refusal: words in quotes or
// brackets, and words with a dot or an underscore. A list of allowed values is left out.
func namesIn(text string) (names []string) {
	text = service.Clip(text, 2<<10)
	for _, end := range [...]string{" is not one of", " must be one of", " allowed values", " valid values",
		" expected one of"} {
		if i := strings.Index(strings.ToLower(text), end); i >= 0 {
			text = text[:i]
		}
	}
	part := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.'
	}
	for i := 0; i < len(text); i++ {
		end := i
		for end < len(text) && part(rune(text[end])) {
			end++
		}
		if end == i {
			continue
		}
		before := strings.TrimSuffix(text[:i], " ")
		quoted := before != "" && strings.IndexByte("[`'\",", before[len(before)-1]) >= 0 && end < len(text) &&
			strings.IndexByte("]`'\",", text[end]) >= 0
		word := strings.Trim(text[i:end], ".")
		if (quoted || strings.ContainsAny(word, "._")) && word != "" && len(names) < maxNames {
			names = append(names, word)
		}
		i = end
	}
	return names
}

// blamed returns the names in a response that refuses a request because of its parameters.
func blamed(resp *fetch.Response, p wireProblem, all list[wireProblem]) (names []string) {
	if resp.Status != http.StatusBadRequest {
		return nil
	}
	for _, w := range append([]wireProblem{p}, all.All[:min(len(all.All), maxNames)]...) {
		for _, text := range [...]text{w.Detail, w.Said} {
			names = append(names, namesIn(string(text))...)
		}
		var params map[string]json.RawMessage
		if json.Unmarshal(w.Parameters, &params) == nil && len(params) <= maxNames {
			names = append(names, slices.Sorted(maps.Keys(params))...)
		}
	}
	names = slices.DeleteFunc(names, func(n string) bool { return len(n) > service.MaxName })
	return names[:min(len(names), maxNames)]
}
