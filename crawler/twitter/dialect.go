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

// Limits of what is learned from refusals.
const (
	maxTries   = 12             // requests of one question
	dialectFor = 24 * time.Hour // what an endpoint refused is asked for again after that
	maxNames   = 64             // words of a refusal that are looked at
)

// Dialect is what the API's endpoints were found to take: which spelling, and which fields not. An endpoint that
// refuses a request because of a parameter is asked once more without that; what it refused is not asked for again for
// a day. The zero value knows nothing. It holds at most one entry for each endpoint of this package, and in that at
// most the fields that are asked for. Safe for concurrent use; to be shared by the Clients of one API.
type Dialect struct {
	mu   sync.Mutex
	word Spelling // that an endpoint took which had refused the other; "" = none did
	by   map[string]*endpoint
}

// endpoint is what one endpoint was found to take.
type endpoint struct {
	word  Spelling
	since time.Time         // when it refused something first
	tried map[Spelling]bool // spellings besides word that it was asked in
	lacks map[Spelling]bool // it has no parameter of that spelling
	less  map[string]bool   // values of parameters ("user.fields withheld"), or whole ones, that are not asked for
	// refusals that named nothing: 1 = the other spelling is tried, 2 = that was refused as well
	doubts int
}

func other(w Spelling) Spelling {
	if w == Tweet {
		return PostS
	}
	return Tweet
}

// wanted is all that is asked for, by parameter: of users, or of posts.
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

// needed says what is asked for whatever the API says: without it nobody knows whose a post is, or that it is for
// followers only.
func needed(param, value string) bool {
	return value == "id" || value == "author_id" || value == "protected" || value == "" && param != "media.fields"
}

// of is the endpoint's entry. The caller has the lock.
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

// ask is what an endpoint is asked for, and in which spelling.
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

// took notes that an endpoint answered in that spelling.
func (d *Dialect) took(at string, w Spelling) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.by[at]; e != nil && e.word == w && len(e.tried) > 0 {
		d.word = w
	}
}

// refused learns from what a refusal names, of a request in that spelling for fields, with the parameters q beside
// them. It says whether the question is worth another request.
func (d *Dialect) refused(at string, w Spelling, fields map[string][]string, q url.Values, names []string,
	now time.Time) (again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.by[at]
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return echoed(q, n) })
	if e == nil || slices.ContainsFunc(names, q.Has) {
		return false // it is about what was asked, and not how
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
		default: // something of it, and nobody knows what: the least is asked for
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

// echoed says that a name stands in what was asked for: a server may say that again, and whoever wrote a query chose
// it.
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

// doubt is for a refusal that names nothing: the other spelling is tried, once.
func (e *endpoint) doubt(w Spelling, now time.Time) (again bool) {
	switch {
	case e.word != w: // another request has learned more meanwhile
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

// named are the parameters, and the values of parameters, of what was asked for that a refusal names: a parameter is
// refused itself where none of its values is. Where no parameter is named, a value is only what no prose has in it.
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

// namesIn are the names of parameters and values in the text of a refusal: what stands in quotes or brackets, or has a
// dot or an underscore in it. What is listed as good is left out.
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

// blamed are the names in an answer that refuses a request because of its parameters.
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
