package partition

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/nlnwa/whatwg-url/url"
)

// Base resolves the links of one page. It is immutable and safe for concurrent use. The zero
// Base resolves only absolute references.
type Base struct {
	href   string   // canonical
	origin string   // prefix of href: "https://host:port"
	dir    string   // prefix of href: up to and including the last / of the path
	page   string   // prefix of href: without the query
	parsed *url.Url // href, for the slow path
}

// NewBase prepares the base URL of a page: its final URL, or its <base href>. It makes the URL
// canonical first, so a link's Key does not depend on the spelling of the page's own URL.
func NewBase(text string) (Base, error) {
	href, err := canonicalAbsolute(text)
	if err != nil {
		return Base{}, fmt.Errorf("base URL: %w", err)
	}
	parsed, err := whatwg.Parse(href)
	if err != nil {
		return Base{}, fmt.Errorf("base URL: %w: %v", ErrKey, err)
	}
	// The library sets this field on first use, and sets it when it clones a base. Setting it
	// here means that Resolve only reads.
	parsed.SearchParams()
	b := Base{href: href, page: href, parsed: parsed}
	if i := strings.IndexByte(href, '?'); i >= 0 {
		b.page = href[:i]
	}
	start := strings.Index(href, "://") + len("://")
	b.origin = href[:start+strings.IndexByte(href[start:], '/')]
	b.dir = b.page[:strings.LastIndexByte(b.page, '/')+1]
	return b, nil
}

// URL returns the canonical base URL, or "" for the zero Base.
func (b Base) URL() string { return b.href }

// Resolve turns the reference ref, as found in a page, into a web Key. A reference that is no
// http or https URL gives an error that wraps ErrKey. Pages have many such references (mailto:,
// javascript:).
func (b Base) Resolve(ref string) (Key, error) {
	href, ok := b.fastResolve(ref)
	if !ok {
		if foreign(ref) {
			return "", fmt.Errorf("resolve: %w: neither http nor https", ErrKey)
		}
		var err error
		if href, err = canonicalURL(ref, b.parsed); err != nil {
			return "", fmt.Errorf("resolve: %w", err)
		}
	}
	if err := refusePort(portIn(authority(href))); err != nil {
		return "", fmt.Errorf("resolve: %w", err)
	}
	return Key("web:" + href), nil
}

// foreign reports whether ref clearly has another scheme than http and https, such as mailto:
// or javascript:. Otherwise canonicalURL would read all of ref before it refuses it.
func foreign(ref string) bool {
	for i := range len(ref) {
		switch c := ref[i]; {
		case c == ':' && i > 0:
			return !strings.EqualFold(ref[:i], "http") && !strings.EqualFold(ref[:i], "https")
		case c|0x20 >= 'a' && c|0x20 <= 'z':
		case i > 0 && (c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return false
		}
	}
	return false
}

// canonicalAbsolute applies the profile to an absolute URL.
func canonicalAbsolute(text string) (string, error) {
	if href, ok := fastAbsolute(text); ok {
		return href, nil
	}
	return canonicalURL(text, nil)
}

// fastResolve resolves plain references: ASCII, escapes already canonical, and a host (if any)
// that IDNA would not change. It returns the same result as canonicalURL, or false
// (FuzzResolve).
func (b Base) fastResolve(ref string) (string, bool) {
	if i := strings.IndexByte(ref, '#'); i >= 0 {
		ref = ref[:i]
	}
	if strings.HasPrefix(ref, "http") {
		if href, ok := fastAbsolute(ref); ok {
			return href, true
		}
	}
	if b.href == "" || len(ref) > MaxKeyBytes {
		return "", false
	}
	switch {
	case ref == "":
		return b.href, true
	case ref[0] == '?':
		return fastJoin(b.page, "", ref, 0)
	case ref[0] != '/':
		return fastJoin(b.dir, ref, "", len(b.origin)+1)
	case len(ref) > 1 && (ref[1] == '/' || ref[1] == '\\'):
		return "", false // another host
	}
	return fastJoin(b.origin+"/", ref[1:], "", len(b.origin)+1)
}

// fastAbsolute makes a plain absolute URL canonical.
func fastAbsolute(text string) (string, bool) {
	if i := strings.IndexByte(text, '#'); i >= 0 {
		text = text[:i]
	}
	if len(text) > MaxKeyBytes {
		return "", false
	}
	rest, secure := strings.CutPrefix(text, "https://")
	if !secure {
		var plain bool
		if rest, plain = strings.CutPrefix(text, "http://"); !plain {
			return "", false
		}
	}
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		if !plainAuthority(rest, secure) || len("web:")+len(text)+1 > MaxKeyBytes {
			return "", false
		}
		return text + "/", true
	}
	if !plainAuthority(rest[:slash], secure) {
		return "", false
	}
	root := len(text) - len(rest) + slash + 1
	return fastJoin(text[:root], text[root:], "", root)
}

// plainAuthority reports whether a is a host, with or without a port, that the profile leaves
// unchanged.
func plainAuthority(a string, secure bool) bool {
	host, port, has := strings.Cut(a, ":")
	if has && !plainPort(port, secure) {
		return false
	}
	if !validHost(host) || strings.Contains(host, "xn--") {
		return false // punycode must be checked
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	// This is an IPv4 address in some form. Only the canonical form is plain.
	if '0' <= last[0] && last[0] <= '9' {
		a, err := netip.ParseAddr(host)
		return err == nil && a.Is4()
	}
	return last[0] != '-'
}

// plainPort reports whether the profile leaves a port unchanged: no leading zero, at most 65535,
// and not the default of its scheme.
func plainPort(port string, secure bool) bool {
	if port == "" || len(port) > 5 || port[0] == '0' {
		return false
	}
	n := 0
	for i := range len(port) {
		if port[i] < '0' || port[i] > '9' {
			return false
		}
		n = n*10 + int(port[i]-'0')
	}
	return n <= 65535 && !(secure && n == 443) && !(!secure && n == 80)
}

// fastJoin appends the relative path rel, which may end in a query, and the query to prefix,
// which is canonical. Dot segments remove nothing from the first root bytes. fastJoin returns
// false when anything is not plain.
func fastJoin(prefix, rel, query string, root int) (string, bool) {
	if rel != "" {
		if i := strings.IndexByte(rel, '?'); i >= 0 {
			rel, query = rel[:i], rel[i:]
		}
	}
	dots, ok := plainPath(rel)
	if !ok || (query != "" && !plainQuery(query)) {
		return "", false
	}
	if query == "?" {
		query = ""
	}
	if len("web:")+len(prefix)+len(rel)+len(query) > MaxKeyBytes {
		return "", false
	}
	if !dots {
		return prefix + rel + query, true
	}
	out := make([]byte, 0, len(prefix)+len(rel)+len(query))
	out = append(out, prefix...)
	for more := true; more; {
		var segment string
		segment, rel, more = strings.Cut(rel, "/")
		switch segment {
		case ".":
		case "..":
			// out ends in a slash: drop the segment before it.
			if len(out) > root {
				out = out[:len(out)-1]
				for out[len(out)-1] != '/' {
					out = out[:len(out)-1]
				}
			}
		default:
			out = append(out, segment...)
			if more {
				out = append(out, '/')
			}
		}
	}
	return string(append(out, query...)), true
}

// plainPath reports whether the profile leaves every byte of a relative path unchanged, and
// whether the path has dot segments. A colon in the first segment is not plain: it may end a
// scheme.
func plainPath(p string) (dots, ok bool) {
	first := true
	start := true // at the start of a segment
	for i := 0; i < len(p); i++ {
		c := p[i]
		switch {
		case c == '/':
			first, start = false, true
			continue
		case c == '.' && start:
			dots = true // or a name that begins with a dot: the loop handles it
		case c == '%':
			if !plainEscape(p, i) {
				return false, false
			}
			i += 2
		case classes[c]&classPath == 0, c == ':' && first:
			return false, false
		}
		start = false
	}
	return dots, true
}

// plainQuery reports whether the profile leaves every byte of a query, with its ?, unchanged.
func plainQuery(q string) bool {
	for i := 1; i < len(q); i++ {
		if q[i] == '%' {
			if !plainEscape(q, i) {
				return false
			}
			i += 2
		} else if classes[q[i]]&classQuery == 0 {
			return false
		}
	}
	return true
}

// plainEscape reports whether the escape at s[i] is canonical.
func plainEscape(s string, i int) bool {
	v, ok := escape(s, i)
	return ok && classes[v]&classUnreserved == 0 && upperHex(s[i+1]) && upperHex(s[i+2])
}

// upperHex reports whether a hex digit is not in lower case.
func upperHex(c byte) bool { return c < 'a' || c > 'f' }
