package partition

import (
	"errors"
	"testing"
)

// No text and no link with the port of another service becomes a Key. Keys of older versions
// stay readable.
func TestBadPorts(t *testing.T) {
	base, err := NewBase("https://h/dir/")
	if err != nil {
		t.Fatal(err)
	}
	for ref, ok := range map[string]bool{"http://a:25/": false, "//a:6667/x": false, "http://a:025/": false,
		"http://[::1]:22/": false, "http://a:6000": false,
		"http://a:10080/é": false, "http://a:80/": true, "http://a:443/": true, "http://a:81/": true,
		"http://[::25]/": true, "/x:25/": true, "http://a:8080/": true} {
		k, err := base.Resolve(ref)
		if (err == nil) != ok || err != nil && !errors.Is(err, ErrKey) {
			t.Errorf("%q: %q, %v", ref, k, err)
		}
	}
	for text, port := range map[string]uint16{"web:http://a:25/": 25, "mastodon:a@h:22": 22, "mastodon:h:25/public": 25,
		"mastodon:a@h:25/followers": 25,
		"bluesky:did:web:h%3A25":    25, "twitter:1/media/http://h:25/": 25,
		"mastodon:a@h:25/media/https://x:8080/": 8080} {
		k, err := KeyFromWire(text)
		if err != nil {
			t.Errorf("%q of an older version: %v", text, err)
			continue
		}
		if got, ok := k.Port(); !ok || got != port {
			t.Errorf("%q: port %d", text, got)
		}
		if k, err := ParseKey(text); err == nil {
			t.Errorf("%q is a Key", k)
		}
	}
	for _, text := range []string{"web:http://a/", "web:http://[2001:db8::25]/", "ip:::25", "mastodon:a@h",
		"bluesky:did:plc:ewvi7nxzyoun6zhxrhs64oiz", "bluesky:a.example", "twitter:25", "mastodon:search/a:25"} {
		k, err := ParseKey(text)
		if err != nil {
			t.Error(err)
		}
		if port, ok := k.Port(); ok {
			t.Errorf("%q: port %d", k, port)
		}
	}
	if k, err := Key("mastodon:a@h").File("https://h:25/x.png"); err == nil {
		t.Errorf("%q is a Key", k)
	}
	bad := 0
	for p := range 1 << 16 {
		if BadPort(uint16(p)) {
			bad++
		}
	}
	if bad != 83 || BadPort(80) || BadPort(443) || BadPort(8080) {
		t.Errorf("%d ports", bad)
	}
}
