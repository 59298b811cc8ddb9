package web

import (
	"testing"

	"github.com/echo-node/echo-node/partition"
)

func TestWithoutSession(t *testing.T) {
	cases := map[string]string{
		"https://example.org/a?PHPSESSID=0a1b2c3d":                           "https://example.org/a",
		"https://example.org/a?x=1&phpsessid=0a1b&y=2":                       "https://example.org/a?x=1&y=2",
		"https://example.org/a;jsessionid=0A1B2C.node1":                      "https://example.org/a",
		"https://example.org/a;jsessionid=0A1B/b;v=1?x=;":                    "https://example.org/a/b;v=1?x=;",
		"https://example.org/a;v=1;jsessionid=0A1B;w=2":                      "https://example.org/a;v=1;w=2",
		"https://example.org/(S(lit3py55t21z5v55vlm25s55))/orders.aspx":      "https://example.org/orders.aspx",
		"https://example.org/(X(1)S(lit3py55t21z5v55vlm25s55))/":             "https://example.org/",
		"https://example.org/f.php?sid=a3f5c2d1e0b94f7788aa0011bbccddee&t=5": "https://example.org/f.php?t=5",
		"https://example.org/?ASPSESSIONIDQQBARDTC=KOBEEFNDLJ&a":             "https://example.org/?a",
		"https://example.org/?PHPSESSID=1":                                   "https://example.org/",
		"https://example.org/page?CFID=12&CFTOKEN=34&id=7":                   "https://example.org/page?id=7",
		"https://example.org/a?%73id=a3f5c2d1e0b94f7788aa0011bbccddee":       "https://example.org/a",
	}
	for _, same := range []string{"f.php?sid=12&s=search", "?s=internationalisation-of-things",
		"wiki/Mercury_(planet)/(S)", "a?session_id=", "a?q=a3f5c2d1e0b94f7788aa0011bbccddee&session=open-2024"} {
		cases["https://example.org/"+same] = "https://example.org/" + same
	}
	for in, want := range cases {
		k, err := partition.ParseKey(in)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := withoutSession(k)
		if got.URL() != want || ok != (got != k) {
			t.Errorf("%s: %s, %t", in, got.URL(), ok)
		}
	}
}

func FuzzWithoutSession(f *testing.F) {
	f.Add("https://example.org/a;jsessionid=0A1B/(S(lit3py55t21z5v55vlm25s55))/?x&PHPSESSID=1&y")
	f.Fuzz(func(t *testing.T, url string) {
		k, err := partition.ParseKey(url)
		if err != nil {
			return
		}
		clean, ok := withoutSession(k)
		if again, twice := withoutSession(clean); ok && (twice || again != clean) || clean.Host() != k.Host() ||
			clean.Kind() != k.Kind() {
			t.Errorf("%s: %s, then %s", k, clean, again)
		}
	})
}
