package mastodon

import (
	"testing"

	client "github.com/echo-node/echo-node/crawler/mastodon"
)

// Posts are read from the newest on, so a reply to oneself comes before its parent. The parent's
// URI is known all the same if the server's URIs end in ids.
func TestParentsAreNamed(t *testing.T) {
	ana := client.Profile{ID: "7", Acct: "ana"}
	for _, c := range []struct {
		name string
		post client.Post
		want string
	}{
		{"her own", client.Post{ID: "12", URI: "https://m.test/users/ana/statuses/12", ReplyTo: "11",
			ReplyToAuthor: "7", Author: ana}, "https://m.test/users/ana/statuses/11"},
		{"somebody else's", client.Post{ID: "12", URI: "https://m.test/users/ana/statuses/12", ReplyTo: "11",
			ReplyToAuthor: "8", Author: ana}, "id:11"},
		{"written at another server", client.Post{ID: "12", URI: "https://far.test/users/ana/statuses/904",
			ReplyTo: "11", ReplyToAuthor: "7", Author: ana}, "id:11"},
		{"an id that only ends alike", client.Post{ID: "12", URI: "https://m.test/objects/a312", ReplyTo: "11",
			ReplyToAuthor: "7", Author: ana}, "id:11"},
		{"nobody's", client.Post{ID: "12", URI: "https://m.test/users/ana/statuses/12", ReplyTo: "11"}, "id:11"},
	} {
		if got := parentOf(c.post); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
