package partition

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The profile of social Keys, version 1 like that of URLs in profile.go:
//
//   - An instance is host[:port] as in an https URL: rules 2, 5 and 6, without port 443. The
//     host "search" without a port is no instance.
//   - A Mastodon account is user@instance, without one @ before the user. The user is 1 to 64
//     of [a-z0-9_.-] after lower-casing, because on no known server do names differ only by
//     case.
//   - A tag is written without #: NFKC, lower case, letters, marks, numbers, _ and · only.
//   - A Bluesky account is a DID: did:plc: and 24 of [a-z2-7], or did:web: and a host, with %3A
//     and a port if needed. A handle is a Key of its own, a name. Handles change hands, so the
//     crawl follows the DID that a lookup of the handle returns. A handle is lower case and a
//     host name of two labels or more, without one @ before it.
//   - An X account is its number, 1 to 2^63-1, without leading zeros. Screen names change hands
//     too: a name is @ and 1 to 50 of [a-z0-9_] after lower-casing. The @ is optional if the
//     name is not all digits.
//   - A file of an account is the account, /media/ and a URL by the profile of URLs.
//   - A search is its query text: escapes decoded once, NFC, runs of white space as one space,
//     none at the ends; case stays (OR is an operator).
//   - Tags and queries are then escaped: every byte that is not unreserved becomes %XX.
const (
	searchWord   = "search"
	maxUserBytes = 64
	maxNameBytes = 50  // of a name at X
	maxHandle    = 253 // bytes of a handle, as of a host name
)

// canonicalMastodon returns the canonical text behind "mastodon:".
func canonicalMastodon(text string) (string, error) {
	head, tail, slash := strings.Cut(text, "/")
	if head == searchWord && slash {
		return canonicalSearch(tail)
	}
	if user, host, ok := strings.Cut(strings.TrimPrefix(head, "@"), "@"); ok {
		user = strings.ToLower(user)
		if !validUser(user) {
			return "", fmt.Errorf("%w: user name %s", ErrKey, quote(user))
		}
		host, err := canonicalInstance(host)
		if err != nil {
			return "", err
		}
		return withList(user+"@"+host, tail, slash)
	}
	host, err := canonicalInstance(head)
	if err != nil {
		return "", err
	}
	if tail == "public" {
		return host + "/public", nil
	}
	if tag, ok := strings.CutPrefix(tail, "tag/"); ok {
		tag, err := canonicalTag(tag)
		return host + "/tag/" + tag, err
	}
	return "", fmt.Errorf("%w: mastodon:%s is no account (user@host), tag (host/tag/T) or timeline (host/public)",
		ErrKey, printable(text))
}

// withList appends the name of an edge list, or the URL of a file, to an account, if there is
// one.
func withList(account, tail string, slash bool) (string, error) {
	switch {
	case !slash:
		return account, nil
	case tail == "followers" || tail == "following":
		return account + "/" + tail, nil
	case strings.HasPrefix(tail, mediaWord):
		href, err := canonicalAbsolute(tail[len(mediaWord):])
		return account + "/" + mediaWord + href, err
	}
	return "", fmt.Errorf("%w: an account has no %s", ErrKey, quote(tail))
}

// validUser reports whether a user name in lower case may be in a Key.
func validUser(user string) bool {
	if user == "" || len(user) > maxUserBytes {
		return false
	}
	for i := range len(user) {
		if classes[user[i]]&classHost == 0 {
			return false
		}
	}
	return true
}

// canonicalInstance returns the host[:port] of an instance.
func canonicalInstance(text string) (string, error) {
	if strings.ContainsAny(text, "/?#@\\") {
		return "", fmt.Errorf("%w: instance %s", ErrKey, quote(text))
	}
	href, err := canonicalAbsolute("https://" + text + "/")
	if err != nil {
		return "", err
	}
	host := authority(href)
	if href != "https://"+host+"/" || host == searchWord {
		return "", fmt.Errorf("%w: instance %s", ErrKey, quote(text))
	}
	return host, nil
}

// instance returns the host[:port] in the canonical rest of a mastodon Key, and "" for a
// search.
func instance(rest string) string {
	head, _, _ := strings.Cut(rest, "/")
	if _, host, ok := strings.Cut(head, "@"); ok {
		return host
	}
	if head == searchWord {
		return ""
	}
	return head
}

// canonicalBluesky returns the canonical text behind "bluesky:".
func canonicalBluesky(text string) (string, error) {
	head, tail, slash := strings.Cut(text, "/")
	if head == searchWord && slash {
		return canonicalSearch(tail)
	}
	if id, ok := strings.CutPrefix(head, "did:plc:"); ok {
		if !validPLC(id) {
			return "", fmt.Errorf("%w: did:plc: takes 24 of [a-z2-7], not %s", ErrKey, quote(id))
		}
		return withList(head, tail, slash)
	}
	if id, ok := strings.CutPrefix(head, "did:web:"); ok {
		if strings.Contains(id, ":") {
			return "", fmt.Errorf("%w: did:web: takes a host, not %s", ErrKey, quote(id))
		}
		host, err := canonicalInstance(strings.NewReplacer("%3A", ":", "%3a", ":").Replace(id))
		if err != nil {
			return "", err
		}
		if strings.HasPrefix(host, "[") {
			return "", fmt.Errorf("%w: did:web: takes no IPv6 address", ErrKey)
		}
		return withList("did:web:"+strings.Replace(host, ":", "%3A", 1), tail, slash)
	}
	if handle := strings.ToLower(strings.TrimPrefix(text, "@")); validHandle(handle) {
		return handle, nil
	}
	return "", fmt.Errorf("%w: bluesky:%s is no handle (alice.example), no DID (did:plc:…, did:web:host) and no search",
		ErrKey, printable(text))
}

// validHandle reports whether s, in lower case, can be a handle (AT Protocol, handle syntax): a
// host name whose last label begins with a letter.
func validHandle(s string) bool {
	labels := strings.Split(s, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' ||
			strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
	}
	last := labels[len(labels)-1]
	return len(labels) > 1 && len(s) <= maxHandle && last[0] >= 'a'
}

// validPLC reports whether id has 24 of [a-z2-7].
func validPLC(id string) bool {
	for i := range len(id) {
		if c := id[i]; (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return false
		}
	}
	return len(id) == 24
}

// canonicalTwitter returns the canonical text behind "twitter:".
func canonicalTwitter(text string) (string, error) {
	head, tail, slash := strings.Cut(text, "/")
	if head == searchWord && slash {
		return canonicalSearch(tail)
	}
	if name, ok := screenName(text); ok {
		return name, nil
	}
	n, err := strconv.ParseInt(head, 10, 64)
	if err != nil || n <= 0 || strconv.FormatInt(n, 10) != head {
		return "", fmt.Errorf("%w: twitter:%s is no account (name or number) and no search", ErrKey, printable(text))
	}
	return withList(head, tail, slash)
}

// screenName returns text as a screen name with @, and whether it is one.
func screenName(text string) (string, bool) {
	name, at := strings.CutPrefix(strings.ToLower(text), "@")
	if name == "" || len(name) > maxNameBytes || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" ||
		!at && strings.Trim(name, "0123456789") == "" {
		return "", false
	}
	return "@" + name, true
}

// canonicalSearch returns "search/" and the canonical, escaped query.
func canonicalSearch(text string) (string, error) {
	text = norm.NFC.String(decode(text))
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return "", fmt.Errorf("%w: empty search", ErrKey)
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return "", fmt.Errorf("%w: search for %s", ErrKey, quote(text))
	}
	return searchWord + "/" + string(encode(text)), nil
}

// canonicalTag returns a canonical, escaped tag without its #. It refuses a tag whose canonical
// form is not stable.
func canonicalTag(text string) (string, error) {
	fold := func(s string) string { return norm.NFKC.String(strings.ToLower(norm.NFKC.String(s))) }
	tag := fold(strings.TrimPrefix(decode(text), "#"))
	odd := func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.N) && r != '_' && r != '·'
	}
	if tag == "" || !utf8.ValidString(tag) || strings.ContainsFunc(tag, odd) || fold(tag) != tag {
		return "", fmt.Errorf("%w: tag %s", ErrKey, quote(text))
	}
	return string(encode(tag)), nil
}

// decode replaces the escapes in s, once.
func decode(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' {
			if v, ok := escape(s, i); ok {
				out = append(out, v)
				i += 2
				continue
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}

// encode escapes every byte of s that is not unreserved, so that decode returns s.
func encode(s string) []byte {
	const hex = "0123456789ABCDEF"
	out := make([]byte, 0, len(s)+16)
	for i := range len(s) {
		if c := s[i]; classes[c]&classUnreserved != 0 {
			out = append(out, c)
		} else {
			out = append(out, '%', hex[c>>4], hex[c&15])
		}
	}
	return out
}

// printable returns quote without the quotes.
func printable(s string) string { return strings.Trim(quote(s), `"`) }
