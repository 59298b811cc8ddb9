package partition

import "testing"

func TestParseKeySmoke(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"HTTP://User.Example:80/a/../b?#x", "web:http://user.example/b"},
		{"https://example.com", "web:https://example.com/"},
		{"feed:https://Example.com/%7euser/%3f?a=%c3%a9%", "feed:https://example.com/~user/%3F?a=%C3%A9%25"},
		{"http://0x7f.1/", "web:http://127.0.0.1/"},
		{"mastodon:@Alice@localhost:42280", "mastodon:alice@localhost:42280"},
		{"mastodon:localhost:42280/tag/#Política", "mastodon:localhost:42280/tag/pol%C3%ADtica"},
		{"bluesky:did:web:localhost%3a80/followers", "bluesky:did:web:localhost%3A80/followers"},
		{"twitter:search/a  b", "twitter:search/a%20b"},
	} {
		got, err := ParseKey(c.in)
		if err != nil || string(got) != c.want {
			t.Errorf("ParseKey(%q) = %q, %v, want %q", c.in, got, err, c.want)
		}
		t.Log(got, got.Kind(), got.Site(), DefaultCharter("x", "y").Slice(got))
	}
}
