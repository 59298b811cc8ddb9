package service

import (
	"slices"
	"strings"
	"testing"
)

// A post that a reading did not find keeps its place among the found ones.
func TestRenewed(t *testing.T) {
	for _, c := range []struct{ posts, had, want string }{
		{"", "", ""},
		{"", "b a", "b a"},
		{"b a", "", "b a"},
		{"c b a", "b a", "c b a"},
		// deleted between the newest and the oldest: keeps its place
		{"d a", "c b a", "d c b a"},
		{"e c a", "d c b a", "e d c b a"}, // the previous newest post, too
		{"c b", "b a", "c b a"},           // below the page
		{"d c", "b a", "d c b a"},         // none of the previous posts was found
		{"c b2 a", "c b a", "c b2 b a"},
	} {
		if got := ids(Renewed(seen(c.posts), seen(c.had))); got != c.want {
			t.Errorf("%q after %q: %q, want %q", c.posts, c.had, got, c.want)
		}
	}
	var many []Seen
	for i := range MaxRecent + 20 {
		many = append(many, Seen{ID: string(rune('A' + i))})
	}
	if got := Renewed(many[:MaxRecent], many[MaxRecent:]); !slices.Equal(got, many[:MaxRecent]) {
		t.Errorf("%d posts", len(got))
	}
}

func seen(text string) (out []Seen) {
	for _, id := range strings.Fields(text) {
		out = append(out, Seen{ID: id})
	}
	return out
}

func ids(list []Seen) string {
	var out []string
	for _, s := range list {
		out = append(out, s.ID)
	}
	return strings.Join(out, " ")
}
