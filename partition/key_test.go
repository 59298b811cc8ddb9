package partition

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const plc = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"

// Every form of the grammar, as typed and as canonical, with the results of the methods.
func TestGrammar(t *testing.T) {
	for _, c := range []struct {
		in, key string
		kind    Kind
		site    Site
		host    string
		account Key
	}{
		{"HTTP://User.Example:80/a/../b?#x", "web:http://user.example/b", KindPage, "web:user.example", "user.example",
			""},
		{" https://example.com\n", "web:https://example.com/", KindPage, "web:example.com", "example.com", ""},
		{"web:https://h:8443/", "web:https://h:8443/", KindPage, "web:h:8443", "h", ""},
		{"web:http://h:443/", "web:http://h:443/", KindPage, "web:h:443", "h", ""},
		{"https://[2001:DB8::1]:8080/x", "web:https://[2001:db8::1]:8080/x", KindPage, "web:[2001:db8::1]:8080",
			"2001:db8::1", ""},
		{"feed:https://Example.com/%7euser/%3f?a=%c3%a9%", "feed:https://example.com/~user/%3F?a=%C3%A9%25", KindFeed,
			"web:example.com", "example.com", ""},
		{"media:http://0x7f.1/a.jpg", "media:http://127.0.0.1/a.jpg", KindMedia, "web:127.0.0.1", "127.0.0.1", ""},
		{"ip:192.0.2.1", "ip:192.0.2.1", KindAddress, "ip:192.0.2.1", "192.0.2.1", ""},
		{"ip:2001:DB8:0::1", "ip:2001:db8::1", KindAddress, "ip:2001:db8::1", "2001:db8::1", ""},
		{"ip:::ffff:192.0.2.1", "ip:192.0.2.1", KindAddress, "ip:192.0.2.1", "192.0.2.1", ""},
		{"mastodon:@Alice@Localhost:42280", "mastodon:alice@localhost:42280", KindAccount, "mastodon:localhost:42280",
			"localhost", "mastodon:alice@localhost:42280"},
		{"mastodon:a.b-c_1@bücher.example:443", "mastodon:a.b-c_1@xn--bcher-kva.example", KindAccount,
			"mastodon:xn--bcher-kva.example", "xn--bcher-kva.example", "mastodon:a.b-c_1@xn--bcher-kva.example"},
		{"mastodon:a@h/followers", "mastodon:a@h/followers", KindFollowers, "mastodon:h", "h", "mastodon:a@h"},
		{"mastodon:a@h/following", "mastodon:a@h/following", KindFollowing, "mastodon:h", "h", "mastodon:a@h"},
		{"mastodon:A@h/media/HTTPS://Files.Example:443/%7Ea/../b.png?x#y",
			"mastodon:a@h/media/https://files.example/b.png?x", KindFile, "web:files.example", "files.example",
			"mastodon:a@h"},
		{"bluesky:" + plc + "/media/http://h:8080/a/media/b", "bluesky:" + plc + "/media/http://h:8080/a/media/b",
			KindFile, "web:h:8080", "h", "bluesky:" + plc},
		{"twitter:12345/media/https://[::1]/x", "twitter:12345/media/https://[::1]/x", KindFile, "web:[::1]", "::1",
			"twitter:12345"},
		{"mastodon:h/tag/media", "mastodon:h/tag/media", KindTag, "mastodon:h", "h", ""},
		{"web:https://h/media/http://x/", "web:https://h/media/http://x/", KindPage, "web:h", "h", ""},
		{"mastodon:search@search/followers", "", 0, "", "", ""},
		{"mastodon:localhost:42280/tag/#Política", "mastodon:localhost:42280/tag/pol%C3%ADtica", KindTag,
			"mastodon:localhost:42280", "localhost", ""},
		{"mastodon:h/tag/public", "mastodon:h/tag/public", KindTag, "mastodon:h", "h", ""},
		{"mastodon:[::1]:3000/public", "mastodon:[::1]:3000/public", KindTimeline, "mastodon:[::1]:3000", "::1", ""},
		{"mastodon:search/ benfica  OR\tporto ", "mastodon:search/benfica%20OR%20porto", KindSearch, "mastodon:", "",
			""},
		{"mastodon:search/public", "mastodon:search/public", KindSearch, "mastodon:", "", ""},
		{"bluesky:" + plc, "bluesky:" + plc, KindAccount, "bluesky:", "", "bluesky:" + plc},
		{"bluesky:" + plc + "/followers", "bluesky:" + plc + "/followers", KindFollowers, "bluesky:", "",
			"bluesky:" + plc},
		{"bluesky:did:web:Localhost%3a80", "bluesky:did:web:localhost%3A80", KindAccount, "bluesky:", "",
			"bluesky:did:web:localhost%3A80"},
		{"bluesky:search/a/b?c#d", "bluesky:search/a%2Fb%3Fc%23d", KindSearch, "bluesky:", "", ""},
		{"bluesky:@Alice.Example", "bluesky:alice.example", KindName, "bluesky:", "", ""},
		{"bluesky:search.example", "bluesky:search.example", KindName, "bluesky:", "", ""},
		{"twitter:Jack_1", "twitter:@jack_1", KindName, "twitter:", "", ""},
		{"twitter:@12345", "twitter:@12345", KindName, "twitter:", "", ""},
		{"twitter:12345", "twitter:12345", KindAccount, "twitter:", "", "twitter:12345"},
		{"twitter:12345/following", "twitter:12345/following", KindFollowing, "twitter:", "", "twitter:12345"},
		{"twitter:search/#pt from:x 100%", "twitter:search/%23pt%20from%3Ax%20100%25", KindSearch, "twitter:", "", ""},
	} {
		got, err := ParseKey(c.in)
		if string(got) != c.key || (err == nil) != (c.key != "") {
			t.Errorf("ParseKey(%q) = %q, %v, want %q", c.in, got, err, c.key)
			continue
		}
		if err != nil {
			continue
		}
		checkKey(t, got)
		if got.Kind() != c.kind || got.Site() != c.site || got.Host() != c.host || got.Account() != c.account {
			t.Errorf("%q: %v, %q, %q, %q, want %v, %q, %q, %q", got, got.Kind(), got.Site(), got.Host(), got.Account(),
				c.kind, c.site, c.host, c.account)
		}
		if service, _, _ := strings.Cut(c.key, ":"); got.Service() != service {
			t.Errorf("%q: service %q", got, got.Service())
		}
	}
}

// Texts that are no Key give ErrKey, and a short error even for a long text.
func TestNotKeys(t *testing.T) {
	for _, in := range []string{
		"", " ", ":", "web:", "web", "example.com", "example.com:80/x", "ftp://h/", "web:/x", "web:web:http://h/",
		"WEB:http://h/",
		"feed:mailto:x", "ip:", "ip:300.1.1.1", "ip:fe80::1%eth0", "ip:127.0.0.1:80", "ip:0x7f.1",
		"mastodon:", "mastodon:a", "mastodon:a@", "mastodon:@a", "mastodon:a@b@c", "mastodon:a@h/posts",
		"mastodon:a@h/media", "mastodon:a@h/media/", "mastodon:a@h/media/x.png", "mastodon:a@h/media/ftp://h/x",
		"mastodon:h/media/https://h/x", "twitter:@a/media/https://h/x", "mastodon:a@h/followers/x",
		"mastodon:h/tag/", "mastodon:h/tag/a b", "mastodon:h/tag/a/b", "mastodon:h/tag/%ff", "mastodon:h/",
		"mastodon:h/public/x",
		"mastodon:é@h", "mastodon:a@u:p@h", "mastodon:a@h?x", "mastodon:a@h#x", "mastodon:search/",
		"mastodon:search/%20", "mastodon:search/%00",
		"mastodon:" + strings.Repeat("a", 65) + "@h", "bluesky:", "bluesky:alice",
		"bluesky:alice.bsky.social/followers", "bluesky:a..b", "bluesky:-a.b", "bluesky:a.1", "bluesky:10.0.0.1",
		"bluesky:a_b.c", "bluesky:" + strings.Repeat("a.", 130) + "b", "bluesky:did:plc:short", "bluesky:" + plc +
			"/posts",
		"bluesky:did:web:", "bluesky:did:web:h:path", "bluesky:did:web:h%2Fx", "bluesky:did:web:[::1]",
		"bluesky:did:key:z6Mk", "bluesky:search/%ff",
		"twitter:", "twitter:0", "twitter:-1", "twitter:+1", "twitter:01", "twitter:@", "twitter:@@a",
		"twitter:jack/followers", "twitter:a-b", "twitter:" + strings.Repeat("a", 51),
		"twitter:9223372036854775808", "twitter:1/likes",
		"twitter:search/" + strings.Repeat("é", MaxKeyBytes/6), strings.Repeat("x", 10*MaxInputBytes), "facebook:x",
	} {
		k, err := ParseKey(in)
		if err == nil || !errors.Is(err, ErrKey) || k != "" {
			t.Errorf("ParseKey(%.100q) = %q, %v, want ErrKey", in, k, err)
		} else if len(err.Error()) > 400 {
			t.Errorf("ParseKey(%.100q): an error of %d bytes", in, len(err.Error()))
		}
	}
}

// KeyFromWire refuses every text that is not canonical.
func TestKeyFromWire(t *testing.T) {
	for _, in := range []string{"http://h/", " web:http://h/", "web:http://h", "web:http://H/", "web:http://h/#",
		"web:http://h:80/",
		"mastodon:@a@h", "mastodon:a@H", "bluesky:Alice.example", "bluesky:@alice.example", "twitter:jack",
		"ip:::ffff:1.2.3.4", "twitter:search/a b", "", strings.Repeat("x", MaxKeyBytes+1)} {
		if k, err := KeyFromWire(in); err == nil || !errors.Is(err, ErrKey) {
			t.Errorf("KeyFromWire(%.100q) = %q, %v, want ErrKey", in, k, err)
		}
	}
}

// The methods of an invalid Key do not panic, and return nothing.
func TestInvalidKey(t *testing.T) {
	for _, k := range []Key{"", "x", "x:y", "web"} {
		if k != "web" && (k.Kind() != KindInvalid || k.Site() != "") || k.Host() != "" || k.URL() != "" ||
			k.Account() != "" {
			t.Errorf("%q: %v, %q, %q, %q, %q", k, k.Kind(), k.Site(), k.Host(), k.URL(), k.Account())
		}
	}
	if Kind(99).String() != "invalid" || KindFollowing.String() != "following" {
		t.Error("names of kinds")
	}
}

func TestHash128(t *testing.T) {
	got := Key("web:https://example.com/").Hash128()
	// from sha256sum
	if want := "0b4658ec78bb02162586f5ddae678097"; hex.EncodeToString(got[:]) != want {
		t.Errorf("Hash128 = %x, want %s", got, want)
	}
}

// keyGenerator draws texts near the grammar of social Keys.
func keyGenerator() *rapid.Generator[string] {
	pieces := []string{"mastodon:", "bluesky:", "twitter:", "ip:", "web:", "feed:", "media:", "http://", "search/",
		"search", "/tag/", "/public",
		"/followers", "/following", "/media/", "did:plc:", "did:web:", plc, "@", "a", "Bob", "h", "host.example",
		"localhost:42280", ":443", "%3A", "%3a", "12345", "0",
		"é", "É", "e\u0301", "İ", "ß", "#", "%", "%25", "%41", " ", "\t", "\u00a0", "\u2003", "/", "ﬁ", "::1",
		"127.0.0.1", "[::1]", "\x00", "\xff", "%ff", "%00", "·", "ς"}
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 8).Draw(t, "pieces"), "")
	})
}

// checkParse checks ParseKey with any text: a Key, or ErrKey. An account's Keys are in one slice.
func checkParse(t interface{ Fatalf(string, ...any) }, text string) {
	k, err := ParseKey(text)
	if err != nil {
		if !errors.Is(err, ErrKey) || k != "" {
			t.Fatalf("ParseKey(%q) = %q, %v", text, k, err)
		}
		return
	}
	checkKey(t, k)
	if a := k.Account(); a != "" {
		checkKey(t, a)
		for _, c := range []Charter{DefaultCharter("x", "y"),
			{SliceBits: 20, Fanout: map[string]int{"mastodon": 7, "bluesky": 7, "twitter": 7}}} {
			if c.Slice(k) != c.Slice(a) {
				t.Fatalf("%q is not in its account's slice", k)
			}
		}
	}
}

func TestParseKeyProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkParse(t, keyGenerator().Draw(t, "text")) })
}

func FuzzParseKey(f *testing.F) {
	for _, s := range []string{"mastodon:@A@h:1/followers", "mastodon:h/tag/é", "bluesky:" + plc,
		"twitter:search/a b%20", "ip:::1", "feed:http://h/x?"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) { checkParse(t, text) })
}
