package web

import (
	"strings"

	"github.com/echo-node/echo-node/partition"
)

// withoutSession returns k without session identifiers. These are the parameters that known session
// software puts into a query or a path. The crawler sends no cookies, so such a site writes a new
// identifier into all links of each response. That makes its pages endless. The result depends on k
// alone. ok reports whether k had an identifier.
func withoutSession(k partition.Key) (clean partition.Key, ok bool) {
	url := k.URL()
	if !mayHaveSession(url) {
		return k, false
	}
	rest, query, hasQuery := strings.Cut(url, "?")
	scheme, rest, _ := strings.Cut(rest, "://")
	host, path, _ := strings.Cut(rest, "/")
	segments := strings.Split(path, "/")
	kept := segments[:0]
	for _, s := range segments {
		if cookieless(s) {
			ok = true
			continue
		}
		if name, params, has := strings.Cut(s, ";"); has {
			if short := unsessioned(params, ";"); short != params {
				ok = true
				if s = name; short != "" {
					s += ";" + short
				}
			}
		}
		kept = append(kept, s)
	}
	if short := unsessioned(query, "&"); hasQuery && short != query {
		ok, query = true, short
	}
	if !ok {
		return k, false
	}
	url = scheme + "://" + host + "/" + strings.Join(kept, "/")
	if query != "" {
		url += "?" + query
	}
	clean, err := partition.ParseKey(url)
	if err != nil {
		return k, false
	}
	return clean, true
}

// mayHaveSession is a cheap check that is false for most addresses.
func mayHaveSession(url string) bool {
	return strings.ContainsAny(url, "?;") || strings.Contains(url, "/(")
}

// cookieless reports whether a path segment is an ASP.NET session: (S(24 characters)), with other
// such groups before or after it.
func cookieless(segment string) bool {
	if len(segment) < 10 || segment[0] != '(' || segment[len(segment)-1] != ')' {
		return false
	}
	for _, sort := range [...]string{"S(", "A(", "F("} {
		if strings.HasPrefix(segment[1:], sort) || strings.Contains(segment, ")"+sort) {
			return true
		}
	}
	return false
}

// unsessioned returns list without its session parameters. The other parameters stay as they are.
func unsessioned(list, sep string) string {
	var out strings.Builder
	found, first := false, true
	for pair := range strings.SplitSeq(list, sep) {
		name, value, _ := strings.Cut(pair, "=")
		if sessionParam(strings.ToLower(name), value) {
			found = true
			continue
		}
		if !first {
			out.WriteString(sep) //nolint:errcheck // never fails
		}
		out.WriteString(pair) //nolint:errcheck // never fails
		first = false
	}
	if !found {
		return list
	}
	return out.String()
}

// sessionParam reports whether a parameter with this name, in lower case, holds a session
// identifier. Some names have other meanings too. They count only if the value looks random
// (drawn).
func sessionParam(name, value string) bool {
	switch name {
	case "phpsessid", "jsessionid", "cfid", "cftoken", "jsessionidsso", "oscsid", "zenid", "xtcsid", "bvsessionid",
		"wosid", "sessionid", "session_id", "session-id", "phpsession":
		return value != ""
	case "sid", "s", "session", "sess", "sessid", "sess_id", "ses", "ssid", "csid", "sessionkey", "auth_sess":
		return drawn(value)
	}
	return strings.HasPrefix(name, "aspsessionid") && value != ""
}

// drawn reports whether value looks random: at least 16 characters, letters and digits, with at
// least 2 of each.
func drawn(value string) bool {
	letters, digits := 0, 0
	for _, r := range value {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
			letters++
		case r != '-' && r != '_' && r != ',':
			return false
		}
	}
	return len(value) >= 16 && letters >= 2 && digits >= 2
}
