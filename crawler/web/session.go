package web

import (
	"strings"

	"github.com/echo-node/echo-node/partition"
)

// withoutSession is k without session identifiers: the parameters that the
// known makers of sessions put into a query or a path. A site without cookies
// from us writes another one into all links of each answer, which makes its
// pages endless. It is a function of k alone. ok says that there was one.
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

// mayHaveSession is false for most addresses, cheaply.
func mayHaveSession(url string) bool {
	return strings.ContainsAny(url, "?;") || strings.Contains(url, "/(")
}

// cookieless says whether a segment of a path is ASP.NET's: (S(24 characters)),
// with others of its kind before or behind.
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

// unsessioned leaves the session parameters out of a list, the rest as it is.
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

// sessionParam says whether a parameter of that name, lower case, holds the
// identifier of a session. Names that mean other things too count with a value
// that can only have been drawn by lot.
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

// drawn says whether value looks drawn by lot: 16 characters or more of letters
// and digits, some of each.
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
