package social_test

import (
	"testing"

	"github.com/echo-node/echo-node/crawler/mastodon"
	"github.com/echo-node/echo-node/crawler/social"
)

// Who answers herself is read from the newest post on: the post that is answered comes later, and its URI is known all
// the same where the server's URIs end in its ids.
func TestParentsAreNamed(t *testing.T) {
	ana := mastodon.Profile{ID: "7", Acct: "ana"}
	for _, c := range []struct {
		name string
		post mastodon.Post
		want string
	}{
		{"her own", mastodon.Post{ID: "12", URI: "https://m.test/users/ana/statuses/12", ReplyTo: "11",
			ReplyToAuthor: "7", Author: ana}, "https://m.test/users/ana/statuses/11"},
		{"somebody else's", mastodon.Post{ID: "12", URI: "https://m.test/users/ana/statuses/12", ReplyTo: "11",
			ReplyToAuthor: "8", Author: ana}, "id:11"},
		{"written at another server", mastodon.Post{ID: "12", URI: "https://far.test/users/ana/statuses/904",
			ReplyTo: "11", ReplyToAuthor: "7", Author: ana}, "id:11"},
		{"an id that only ends alike", mastodon.Post{ID: "12", URI: "https://m.test/objects/a312", ReplyTo: "11",
			ReplyToAuthor: "7", Author: ana}, "id:11"},
		{"nobody's", mastodon.Post{ID: "12", URI: "https://m.test/users/ana/statuses/12", ReplyTo: "11"}, "id:11"},
	} {
		if got := social.ParentOf(c.post); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
