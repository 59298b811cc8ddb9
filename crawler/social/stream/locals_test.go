package stream

import (
	"strconv"
	"testing"
)

// A credential goes to no other domain than its own. An instance cannot make peers connect
// elsewhere.
func TestWhereAStreamIs(t *testing.T) {
	for _, c := range [...][3]string{
		{"m.example", "wss://m.example", "https://m.example"},
		{"m.example", "wss://streaming.m.example/", "https://streaming.m.example"},
		{"www.m.example", "WSS://Streaming.M.example", "https://streaming.m.example"},
		{"m.example", "", "https://m.example"},
		{"m.example", "wss://other.example", "https://m.example"},
		{"m.example", "wss://127.0.0.1", "https://m.example"},
		{"m.example", "wss://m.example:8080", "https://m.example"},
		{"m.example", "wss://m.example@other.example", "https://m.example"},
		{"a.github.io", "wss://b.github.io", "https://a.github.io"},
		{"m.example", "wss://%zz", "https://m.example"},
		{"127.0.0.1:7000", "wss://127.0.0.1:7001", "http://127.0.0.1:7000"},
	} {
		if got := streamBase(c[0], c[1]); got != c[2] {
			t.Errorf("%s, which names %q: %s, want %s", c[0], c[1], got, c[2])
		}
	}
	p := Posted{most: 100}
	for i := range 1000 {
		p.put(postID{"mastodon:m.test", strconv.Itoa(i)}, postOf{})
	}
	_, last := p.find(postID{"mastodon:m.test", "999"})
	if n := len(p.now) + len(p.old); n > 100 || n < 50 || !last {
		t.Errorf("%d posts known by id, the last %t", n, last)
	}
}
