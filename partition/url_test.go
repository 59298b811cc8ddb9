package partition

import (
	"encoding/json"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// whatwgTestdata opens a file of test vectors from the module of the WHATWG parser (from
// web-platform-tests), or skips the test.
func whatwgTestdata(t *testing.T, name string) []byte {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/nlnwa/whatwg-url").Output()
	if err != nil {
		t.Skipf("SKIPPED: module directory of whatwg-url not found: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "testdata", name))
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	return text
}

var (
	escapeExpr = regexp.MustCompile(`%[0-9A-Fa-f]{2}|%|.`)
	hostExpr   = regexp.MustCompile(`^(\[[0-9a-f:]+\]|[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*)(:[0-9]+)?$`)
	pathKeep   = regexp.MustCompile(`^[A-Za-z0-9._~!$&'()*+,;=:@/\[\]-]$`)
	queryKeep  = regexp.MustCompile(`^[A-Za-z0-9._~!$&()*+,;=:@/\[\]?-]$`)
	unreserved = regexp.MustCompile(`^[A-Za-z0-9._~-]$`)
)

// profileOf applies what our profile adds to the standard to the standard's href. It is written
// independently of the code under test, with regular expressions. It returns false where the
// profile refuses.
func profileOf(href string) (string, bool) {
	href, _, _ = strings.Cut(href, "#")
	scheme, rest, ok := strings.Cut(href, "://")
	if !ok || (scheme != "http" && scheme != "https") {
		return "", false
	}
	i := strings.IndexAny(rest, "/?")
	authority, tail := rest[:i], rest[i:]
	host, port, _ := strings.Cut(authority, ":")
	if !strings.HasPrefix(authority, "[") {
		host = strings.TrimSuffix(host, ".")
		authority = host
		if port != "" {
			authority += ":" + port
		}
	}
	if strings.Contains(rest[:i], "@") || !hostExpr.MatchString(authority) || port == "0" || len(host) > 253 {
		return "", false
	}
	path, query, _ := strings.Cut(tail, "?")
	norm := func(s string, keep *regexp.Regexp) string {
		return escapeExpr.ReplaceAllStringFunc(s, func(m string) string {
			switch {
			case m == "%":
				return "%25"
			case m[0] == '%':
				if b, _ := neturl.PathUnescape(m); unreserved.MatchString(b) {
					return b
				}
				return strings.ToUpper(m)
			case !keep.MatchString(m):
				return strings.ReplaceAll(neturl.QueryEscape(m), "+", "%20")
			}
			return m
		})
	}
	out := scheme + "://" + authority + norm(path, pathKeep)
	if query != "" {
		out += "?" + norm(query, queryKeep)
	}
	return out, true
}

// The vectors of the WHATWG standard give what profileOf says of them.
func TestWHATWG(t *testing.T) {
	var cases []json.RawMessage
	if err := json.Unmarshal(whatwgTestdata(t, "urltestdata.json"), &cases); err != nil {
		t.Fatal(err)
	}
	var same, refused, failures, other, wrong int
	for _, raw := range cases {
		var c struct {
			Input, Href string
			Base        *string
			Failure     bool
		}
		if json.Unmarshal(raw, &c) != nil {
			continue // a comment
		}
		var base Base
		if c.Base != nil && strings.HasPrefix(*c.Base, "http") {
			b, err := NewBase(*c.Base)
			if err != nil {
				// A base that we refuse (credentials): absolute inputs still count.
				t.Logf("base %q: %v", *c.Base, err)
			}
			base = b
		}
		got, err := base.Resolve(c.Input)
		want, ok := profileOf(c.Href)
		switch {
		case err != nil && c.Failure:
			failures++
		case err != nil && !ok && !strings.HasPrefix(c.Href, "http"):
			other++
		case err != nil && (!ok || strings.Contains(err.Error(), "port 21")):
			refused++
		case err == nil && ok && got.URL() == want:
			same++
		default:
			wrong++
			t.Errorf("%q on %v: got %q, %v, want %q (href %q)", c.Input, base.URL(), got, err, want, c.Href)
		}
	}
	t.Logf("same %d, failures that fail %d, of other schemes and refused %d, refused by the profile %d, wrong %d", same,
		failures, other, refused, wrong)
	if same < 180 || failures < 200 {
		t.Errorf("only %d and %d cases were compared", same, failures)
	}
}

// Each rule of the profile, by its number.
func TestProfileRules(t *testing.T) {
	long := strings.Repeat("a", MaxKeyBytes)
	for _, c := range []struct{ rule, in, want string }{
		{"1", "http://a/\xff", ""},
		{"1", "http://a/" + strings.Repeat("x", MaxInputBytes), ""},
		{"2", "  http:\\\\Ex\tample.com\\a\\.\\b\\%2E%2e\\c\n", "http://example.com/a/c"},
		{"2", "http://bücher.example/", "http://xn--bcher-kva.example/"},
		{"2", "http://faß.de/", "http://xn--fa-hia.de/"},
		{"2", "http://0x7f.1/", "http://127.0.0.1/"},
		{"2", "http://2130706433/", "http://127.0.0.1/"},
		{"2", "http://[0:0::0:1]/", "http://[::1]/"},
		{"3", "ftp://a/", ""},
		{"3", "file:///etc/passwd", ""},
		{"3", "javascript:alert(1)", ""},
		{"4", "http://user@a/", ""},
		{"4", "http://:secret@a/", ""},
		{"4", "http://@a/", "http://a/"},
		{"4", "\x01 ht\ntp:" + strings.Repeat("@", 100), ""},
		{"4", "http://a/@" + strings.Repeat("@", 100), "http://a/@" + strings.Repeat("@", 100)},
		{"4", "http://a?é" + strings.Repeat("@", 100), "http://a/?%C3%A9" + strings.Repeat("@", 100)},
		{"5", "http://a./", "http://a/"},
		{"5", "http://a../", ""},
		{"5", "http://a..b/", ""},
		{"5", "http://a_b.c/", "http://a_b.c/"},
		{"5", "http://a!b/", ""},
		{"5", "http://" + strings.Repeat("a", 64) + "/", ""},
		{"5", "http://" + strings.Repeat("a.", 127) + "b/", ""},
		{"5", "http://-5/", ""},
		{"5", "http://-5.1/", ""},
		{"5", "http://%2D5.0x1/", ""},
		{"5", "http://0x-5。/", ""},
		{"5", "http://+5/", ""},
		{"5", "http://-a.example/", "http://-a.example/"},
		{"5", "http://a.-b/", ""},
		{"6", "http://a:080/", "http://a/"},
		{"6", "https://a:80/", "https://a:80/"},
		{"6", "http://a:0/", ""},
		{"6", "http://a:65536/", ""},
		{"7", "http://a/%41%2d%7E%2f%3a?%41%2F%26", "http://a/A-~%2F%3A?A%2F%26"},
		{"7", "http://a/%%341?%", "http://a/%2541?%25"},
		{"7", "http://a/%2541", "http://a/%2541"},
		{"7", "http://a/'\"^|`{}?'\"^|`{}\\", "http://a/'%22%5E%7C%60%7B%7D?%27%22%5E%7C%60%7B%7D%5C"},
		{"7", "http://a/[x];v=1?a[]=1&b=c?d", "http://a/[x];v=1?a[]=1&b=c?d"},
		{"7", "http://a/é ?é +", "http://a/%C3%A9%20?%C3%A9%20+"},
		{"8", "http://a", "http://a/"},
		{"8", "http://a?q", "http://a/?q"},
		{"8", "http://a//b/./c//", "http://a//b/c//"},
		{"9", "http://a/?", "http://a/"},
		{"9", "http://a/?b=2&a=1&a=&&c", "http://a/?b=2&a=1&a=&&c"},
		{"10", "http://a/#x?y", "http://a/"},
		{"10", "http://a#\xff", "http://a/"},
		{"11", "http://a/" + long, ""},
		{"11", "http://a/" + long[:MaxKeyBytes-len("web:http://a/")],
			"http://a/" + long[:MaxKeyBytes-len("web:http://a/")]},
		{"11", "http://a/" + long[:MaxKeyBytes-len("web:http://a/")] + "a", ""},
	} {
		got, err := ParseKey(c.in)
		if (err == nil) != (c.want != "") || got.URL() != c.want {
			t.Errorf("rule %s: ParseKey(%q) = %q, %v, want %q", c.rule, c.in, got, err, c.want)
		}
	}
}

// References of a page give the expected URLs.
func TestResolve(t *testing.T) {
	base, err := NewBase("https://Example.com/a/b/c.html?q=1#f")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ ref, want string }{
		{"", "https://example.com/a/b/c.html?q=1"},
		{"#top", "https://example.com/a/b/c.html?q=1"},
		{"?x", "https://example.com/a/b/c.html?x"},
		{"?", "https://example.com/a/b/c.html"},
		{"d.html", "https://example.com/a/b/d.html"},
		{"./d/../e/", "https://example.com/a/b/e/"},
		{"..", "https://example.com/a/"},
		{"../../../../x", "https://example.com/x"},
		{"/", "https://example.com/"},
		{"//other.example/x", "https://other.example/x"},
		{"http://third.example", "http://third.example/"},
		{"https:d.html", "https://example.com/a/b/d.html"},
		{"mailto:a@b.c", ""},
		{"tel:+351", ""},
		{"data:text/html,x", ""},
		{"ação.html", "https://example.com/a/b/a%C3%A7%C3%A3o.html"},
	} {
		got, err := base.Resolve(c.ref)
		if (err == nil) != (c.want != "") || got.URL() != c.want {
			t.Errorf("Resolve(%q) = %q, %v, want %q", c.ref, got, err, c.want)
		}
	}
	for _, bad := range []string{"", "mailto:x", "/relative", "http://u:p@h/"} {
		if _, err := NewBase(bad); err == nil {
			t.Errorf("NewBase(%q) succeeds", bad)
		}
	}
	if _, err := (Base{}).Resolve("x"); err == nil {
		t.Error("the zero Base resolves a relative reference")
	}
}

// checkKey checks what holds for every Key, from any of the functions that make Keys.
func checkKey(t interface{ Fatalf(string, ...any) }, k Key) {
	again, err := ParseKey(string(k))
	if err != nil || again != k {
		t.Fatalf("ParseKey(%q) = %q, %v: no fixed point", k, again, err)
	}
	if wire, err := KeyFromWire(string(k)); err != nil || wire != k {
		t.Fatalf("KeyFromWire(%q) = %q, %v", k, wire, err)
	}
	if len(k) > MaxKeyBytes || strings.ContainsFunc(string(k), func(r rune) bool { return r <= ' ' || r > '~' }) {
		t.Fatalf("%q is too long or not printable ASCII", k)
	}
	if k.Kind() == KindInvalid || k.Site() == "" {
		t.Fatalf("%q: kind %v, site %q", k, k.Kind(), k.Site())
	}
	if u := k.URL(); u != "" {
		// What net/http will parse when it fetches.
		parsed, err := neturl.Parse(u)
		if err != nil {
			t.Fatalf("net/url does not parse %q: %v", u, err)
		}
		if parsed.Host == "" || parsed.User != nil || "web:"+parsed.Host != string(k.Site()) ||
			parsed.Hostname() != k.Host() {
			t.Fatalf("net/url sees host %q in %q, Site is %q, Host %q", parsed.Host, u, k.Site(), k.Host())
		}
		if got := parsed.String(); got != u {
			t.Fatalf("net/url writes %q as %q", u, got)
		}
	}
	if s := DefaultCharter("test", "founder").Slice(k); !s.IsHash() {
		t.Fatalf("%q: slice %v", k, s)
	}
}

// refGenerator draws references from pieces that matter to URL parsers.
func refGenerator() *rapid.Generator[string] {
	pieces := []string{"http:", "https:", "HTTP:", "ftp:", "//", "/", "\\", ".", "..", "%2e", "%2E", "%", "%4", "%41",
		"%7e", "%2f", "%C3%A9", "é", "a", "B", "xn--", "xn--bcher-kva", "host", "example.com", "0x7f", "127.0.0.1", "1",
		"[::1]", "[", "]", ":", ":80", ":443", ":8080", "@", "?", "#", "&", "=", "+", " ", "\t", "\n", "'", "\"", "{",
		"|",
		"^", "`", "~", "_", "-", "\x00", "\x7f", "\u00ad", "\u3002", "\uff0e", "-5", "0x", "+", "İ", "ß", "\xff", ";",
		"web:", "feed:"}
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "pieces"), "")
	})
}

func TestResolveProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkResolve(t, refGenerator().Draw(t, "base"), refGenerator().Draw(t, "ref"))
	})
}

// checkResolve resolves ref against the base and compares the fast path with the slow one.
func checkResolve(t interface{ Fatalf(string, ...any) }, baseText, ref string) {
	base, err := NewBase(baseText)
	if err != nil {
		base, err = NewBase("https://example.com/dir/sub/page.html?x=y")
	}
	if err != nil {
		t.Fatalf("base: %v", err)
	}
	k, err := base.Resolve(ref)
	if err == nil {
		checkKey(t, k)
		if again, err := base.Resolve(k.URL()); err != nil || again != k {
			t.Fatalf("Resolve(%q) = %q, %v: no fixed point", k.URL(), again, err)
		}
	}
	if fast, ok := base.fastResolve(ref); ok {
		slow, err := applyProfile(ref, base.parsed)
		if err != nil || slow != fast {
			t.Fatalf("Resolve(%q) on %q: fast %q, slow %q, %v", ref, base.URL(), fast, slow, err)
		}
	}
	if foreign(ref) {
		if slow, err := applyProfile(ref, base.parsed); err == nil {
			t.Fatalf("Resolve(%q) on %q: refused, but slow %q", ref, base.URL(), slow)
		}
	}
	if fast, ok := fastAbsolute(ref); ok {
		slow, err := applyProfile(ref, nil)
		if err != nil || slow != fast {
			t.Fatalf("absolute %q: fast %q, slow %q, %v", ref, fast, slow, err)
		}
	}
}

// An IPv4 address in its canonical form takes the fast path; no other form does.
func TestPlainAddresses(t *testing.T) {
	for host, plain := range map[string]bool{"127.0.0.1": true, "127.0.0.1:8080": true, "255.255.255.255": true,
		"1.2.3": false, "1.2.3.04": false,
		"0x7f.1": false, "256.1.1.1": false, "1.2.3.4.": false, "a.1.2.3.4": false, "1.2.3.4:80": false,
		"example.3": false} {
		checkResolve(t, "http://example.com/", "http://"+host+"/x?y")
		if _, ok := fastAbsolute("http://" + host + "/x"); ok != plain {
			t.Errorf("%s: plain %v, want %v", host, ok, plain)
		}
	}
}

func FuzzResolve(f *testing.F) {
	f.Add("https://example.com/a/b?c", "../d/./e%2fé?x#y")
	f.Add("http://h:8080", "//other/..")
	f.Add("http://[::1]/", "?%41")
	for _, host := range []string{"127.0.0.1:8080", "1.2.3", "1.2.3.04", "0x7f.1", "256.1.1.1", "1.2.3.4.", "a.1.2.3.4",
		"0.0.0.0", "1.2.3.4a"} {
		f.Add("http://"+host, "http://"+host+"/x")
	}
	for _, ref := range []string{"mailto:a@b.c", "javascript:void(0)", "tel:+351", "HTTP:x", "https:x", "ht.tp://a/",
		"a:", ":a", "file:///etc", "1a:b", "about:blank#http://a/"} {
		f.Add("http://h/a/b", ref)
	}
	f.Fuzz(func(t *testing.T, base, ref string) { checkResolve(t, base, ref) })
}

func BenchmarkResolve(b *testing.B) {
	base, err := NewBase("https://docs.example.org/pt/guide/index.html")
	if err != nil {
		b.Fatal(err)
	}
	run := func(name string, refs ...string) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				if _, err := base.Resolve(refs[i%len(refs)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("plain", "chapter-2.html", "/pt/about", "../img/x.png?v=3", "https://other.example.com/a/b", "#top", "?page=2")
	run("slow", "capítulo-2.html", "//cdn.example.com/x", "a b.html", "https://Example.com/")
}

// The work that a page can cause in a parser is limited: the worst known inputs.
func TestResolveWorst(t *testing.T) {
	base, err := NewBase("http://example.com/a/b")
	if err != nil {
		t.Fatal(err)
	}
	for _, piece := range []string{"@", "%", "/../", "\\", ":", "é", "[", "a@", "//", "?", ".", "xn--", "-.", "\t",
		"\u0301"} {
		for _, prefix := range []string{"", "http://", "http:", "//", "http://a/"} {
			text := prefix + strings.Repeat(piece, (MaxInputBytes-len(prefix))/len(piece))
			start := time.Now()
			if k, err := base.Resolve(text); err == nil {
				checkKey(t, k)
			}
			if d := time.Since(start); d > time.Second {
				t.Errorf("%q and many %q take %v", prefix, piece, d)
			} else if d > 20*time.Millisecond {
				t.Logf("%q and many %q take %v", prefix, piece, d)
			}
		}
	}
}

// Many goroutines use one Base; the race detector checks this.
func TestResolveConcurrent(t *testing.T) {
	base, err := NewBase("http://example.com/a/b?x=1")
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for _, ref := range []string{"é", "?é", "", "c", "//Other.example/é", "../ x"} {
				if _, err := base.Resolve(ref); err != nil {
					t.Errorf("%q: %v", ref, err)
				}
			}
		})
	}
	group.Wait()
}
