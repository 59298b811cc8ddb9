package partition

import (
	"fmt"
	"net/netip"
	"strings"
	"unicode/utf8"

	"github.com/nlnwa/whatwg-url/url"
	"golang.org/x/text/unicode/norm"
)

// The canonicalisation profile, version 1 (KeyProfile). It is frozen: a peer that differs in
// one byte would put a Key into another slice. A change of any rule is a new profile, and a new
// profile is a new swarm.
//
//	 1. The text must be valid UTF-8 of at most MaxInputBytes.
//	 2. It is parsed by the WHATWG URL Standard (https://url.spec.whatwg.org)
//	    with UTF-8 as the encoding. White space at the ends, tabs and newlines are
//	    removed, \ becomes /, dot segments (also as %2e) are removed, the host goes
//	    through IDNA (UTS 46, non-transitional), and 0x7f.1 becomes 127.0.0.1.
//	 3. The scheme is http or https. Anything else is refused.
//	 4. User names and passwords are refused, not dropped: what they protect is
//	    not public.
//	 5. One dot at the end of the host is removed. A host is then an IPv4 address,
//	    an IPv6 address in brackets, or at most 253 bytes of labels of 1 to 63 of
//	    [a-z0-9_-]. Anything else is refused, and so is a host whose last label
//	    begins with a digit or a hyphen while any label begins with - or 0x-.
//	 6. The default port is removed; port 0 is refused.
//	 7. In path and query, an escape %XX of an unreserved byte (letters, digits,
//	    - . _ ~) is decoded, every other escape gets upper case digits, a % that
//	    begins no escape becomes %25, and a byte outside the set below becomes an
//	    escape. The set is: unreserved bytes and ! $ & ( ) * + , ; = : @ / [ ] and,
//	    in a path, ' and, in a query, ?. Because of rule 2, decoding makes no dot
//	    segment. Because of %25, it makes no new escape.
//	 8. An empty path becomes /. Empty segments stay: a//b is not a/b.
//	 9. An empty query is dropped with its ?. The order of parameters, repeated
//	    parameters and empty ones stay as they are.
//	10. The fragment is removed.
//	11. The Key, with its prefix, is at most MaxKeyBytes long.
//
// So a Key is printable ASCII without spaces, and the profile leaves a canonical text
// unchanged.

// MaxKeyBytes is the length of the longest Key, including its prefix.
const MaxKeyBytes = 2048

// MaxInputBytes is the length of the longest text that the parsers read. They refuse a longer
// one unread, so that a page cannot cause much work with one huge attribute.
const MaxInputBytes = 4 * MaxKeyBytes

// Byte classes.
const (
	classPath       = 1 << iota // needs no escape in a path
	classQuery                  // needs no escape in a query
	classUnreserved             // RFC 3986 section 2.3
	classHost                   // may be in a label, or is the dot
)

// classes is the class set of every byte. It is computed from constants and never changes.
var classes = makeClasses()

// makeClasses computes classes.
func makeClasses() (t [256]uint8) {
	set := func(bytes string, class uint8) {
		for i := range len(bytes) {
			t[bytes[i]] |= class
		}
	}
	const lower, digits = "abcdefghijklmnopqrstuvwxyz", "0123456789"
	set(lower+digits+"ABCDEFGHIJKLMNOPQRSTUVWXYZ-._~", classPath|classQuery|classUnreserved)
	set("!$&()*+,;=:@/[]", classPath|classQuery)
	set("'", classPath)
	set("?", classQuery)
	set(lower+digits+"-_.", classHost)
	return t
}

// whatwg is the parser of rule 2. It has no state of its own.
var whatwg = url.NewParser(url.WithPreParseHostFunc(refuseSigned))

// refuseSigned makes the parser fail for hosts that it would treat as IPv4 addresses, because
// it reads -1 and +1 as numbers. The standard treats some of them as names and some as
// failures. This profile treats all of them as failures.
func refuseSigned(_ *url.Url, host string) string {
	text := strings.ToLower(norm.NFKC.String(decode(host)))
	labels := strings.Split(strings.TrimRight(strings.ReplaceAll(text, "\u3002", "."), "."), ".")
	if last := labels[len(labels)-1]; last == "" || !strings.Contains("+-0123456789", last[:1]) {
		return host
	}
	for _, label := range labels {
		label = strings.TrimPrefix(label, "0x")
		if strings.HasPrefix(label, "-") || strings.HasPrefix(label, "+") {
			return "<" // no host has this character
		}
	}
	return host
}

// canonicalURL applies the profile to text, resolved against base unless base is nil. It is the
// slow path: it applies the whole standard.
func canonicalURL(text string, base *url.Url) (string, error) {
	if i := strings.IndexByte(text, '#'); i >= 0 {
		text = text[:i+1] // rule 10; the # stays, so that a space before it is not at the end
	}
	if len(text) > MaxInputBytes {
		return "", fmt.Errorf("%w: longer than %d bytes", ErrKey, MaxInputBytes)
	}
	if !utf8.ValidString(text) {
		return "", fmt.Errorf("%w: not UTF-8", ErrKey)
	}
	if manyAts(text) {
		return "", fmt.Errorf("%w: URL with credentials", ErrKey)
	}
	out, err := applyProfile(text, base)
	if err != nil {
		return "", err
	}
	if fast, ok := fastAbsolute(out); ok && fast == out {
		return out, nil
	}
	// The invariant of Key needs the result to be a fixed point. The parser is not always one
	// (a host that IDNA maps twice). Then there is no Key.
	again, err := applyProfile(out, nil)
	if err != nil {
		return "", err
	}
	if again != out {
		return "", fmt.Errorf("%w: %s has no stable form", ErrKey, quote(text))
	}
	return out, nil
}

// manyAts reports whether text has several @ in the place of credentials. Rule 4 would refuse
// it anyway, but the parser needs time quadratic in their number to find that out.
func manyAts(text string) bool {
	const few = 8
	if strings.Count(text, "@") <= few {
		return false
	}
	text = strings.NewReplacer("\t", "", "\n", "", "\r", "", "\\", "/").Replace(text)
	text = strings.TrimLeftFunc(text, func(r rune) bool { return r <= ' ' })
	if i := strings.IndexAny(text, ":/?@"); i >= 0 && text[i] == ':' {
		text = text[i+1:] // a scheme; without slashes the authority may follow too
	} else if !strings.HasPrefix(text, "//") {
		return false // a path
	}
	text = strings.TrimLeft(text, "/")
	if i := strings.IndexAny(text, "/?"); i >= 0 {
		text = text[:i]
	}
	return strings.Count(text, "@") > few
}

// applyProfile applies all rules once, without the check that the result is stable.
func applyProfile(text string, base *url.Url) (string, error) {
	u, err := whatwg.BasicParser(text, base, nil, url.NoState)
	if err != nil {
		return "", fmt.Errorf("%w: %s: %v", ErrKey, quote(text), err)
	}
	if s := u.Scheme(); s != "http" && s != "https" {
		return "", fmt.Errorf("%w: scheme %s is neither http nor https", ErrKey, quote(s))
	}
	if u.Username() != "" || u.Password() != "" {
		return "", fmt.Errorf("%w: URL with credentials", ErrKey)
	}
	host, err := canonicalHost(u.Hostname())
	if err != nil {
		return "", err
	}
	port := u.Port()
	if port == "0" {
		return "", fmt.Errorf("%w: port 0", ErrKey)
	}
	path, query := u.Pathname(), u.Query()
	out := make([]byte, 0, len(text)+len(host)+16)
	out = append(out, u.Scheme()...)
	out = append(out, "://"...)
	out = append(out, host...)
	if port != "" {
		out = append(append(out, ':'), port...)
	}
	if path == "" {
		path = "/"
	}
	out = appendEscaped(out, path, classPath)
	if query != "" {
		out = appendEscaped(append(out, '?'), query, classQuery)
	}
	if len(out)+len("web:") > MaxKeyBytes {
		return "", fmt.Errorf("%w: longer than %d bytes", ErrKey, MaxKeyBytes)
	}
	return string(out), nil
}

// canonicalHost applies rule 5 to a host after rule 2.
func canonicalHost(host string) (string, error) {
	if strings.HasPrefix(host, "[") {
		if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err != nil {
			return "", fmt.Errorf("%w: host %s", ErrKey, quote(host))
		}
		return host, nil
	}
	host = strings.TrimSuffix(host, ".")
	if !validHost(host) {
		return "", fmt.Errorf("%w: host %s", ErrKey, quote(host))
	}
	return host, nil
}

// validHost reports whether host consists of labels as in rule 5. An IPv4 address does.
func validHost(host string) bool {
	if host == "" || len(host) > 253 {
		return false
	}
	label := 0
	for i := range len(host) {
		switch c := host[i]; {
		case c == '.':
			if label == 0 {
				return false
			}
			label = 0
		case classes[c]&classHost == 0 || label == 63:
			return false
		default:
			label++
		}
	}
	return label > 0
}

// appendEscaped applies rule 7.
func appendEscaped(dst []byte, s string, class uint8) []byte {
	const hex = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '%':
			v, ok := escape(s, i)
			if !ok {
				dst = append(dst, "%25"...)
				continue
			}
			i += 2
			if classes[v]&classUnreserved != 0 {
				dst = append(dst, v)
				continue
			}
			dst = append(dst, '%', hex[v>>4], hex[v&15])
		case classes[c]&class == 0:
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// escape returns the byte that the escape at s[i] encodes.
func escape(s string, i int) (byte, bool) {
	if i+2 >= len(s) {
		return 0, false
	}
	hi, ok1 := unhex(s[i+1])
	lo, ok2 := unhex(s[i+2])
	return hi<<4 | lo, ok1 && ok2
}

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	// unhex returns the value of a hex digit, in either case.
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// quote returns at most the beginning of a text from outside, in printable form.
func quote(s string) string {
	const most = 80
	if len(s) > most {
		return fmt.Sprintf("%+q...", s[:most])
	}
	return fmt.Sprintf("%+q", s)
}
