package mastodon

import (
	"context"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
)

// TestSnac reads a real snac 2.75 with test data: five people with five posts each. The four others
// follow ana, bruno and carla. Each person has one token. ECHO_SNAC is the server's address.
// ECHO_SNAC_TOKENS is a file of "name token password" lines. .ci/snac.sh creates all this. The
// behaviour of the server is also in crawltest/mastodontest.Lies, and tested there without it.
func TestSnac(t *testing.T) {
	base, file := os.Getenv("ECHO_SNAC"), os.Getenv("ECHO_SNAC_TOKENS")
	if base == "" || file == "" {
		t.Skip("no ECHO_SNAC and ECHO_SNAC_TOKENS: a real server is not asked")
	}
	lines, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	token := ""
	for l := range strings.SplitSeq(string(lines), "\n") {
		if f := strings.Fields(l); len(f) == 3 && f[0] == "ana" {
			token = f[1]
		}
	}
	cred, err := service.NewCredential("ana", token)
	if err != nil {
		t.Fatal(err)
	}
	f, err := fetch.New(fetch.Options{AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	ctx, calls := context.Background(), 0
	o := Options{Base: base, Credential: cred}
	o.Do = func(ctx context.Context, call service.Call) (*fetch.Response, error) {
		calls++
		return service.Through(f, nil)(ctx, call)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Probe(ctx, "bruno")
	t.Logf("%s", s.Encode())
	if err != nil || s.Software != "snac" || s.Lists != service.NotTheirs || s.Timeline.Max == service.Obeyed ||
		s.Batch != service.Ignored || s.Search != service.Open || s.Posts < 25 {
		t.Errorf("probe: %+v %v", s, err)
	}
	o.Domain = s.Domain
	if c, err = New(o); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ana", "bruno", "carla", "dinis", "eva"} {
		who, err := c.Lookup(ctx, name)
		if err != nil || !who.Local || who.Acct != name+"@"+s.Domain || who.Name != name+" Teste" ||
			len(who.Fields) != 1 || who.Fields[0].Name != "Localização" {
			t.Errorf("%+v %v", who, err)
			continue
		}
		for _, side := range [...]service.Side{service.Followers, service.Following} {
			e, err := c.Edges(who, side, s.Lists, service.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			page, err := e.Next(ctx)
			l := e.Listing()
			if t.Logf("%s of %s: %d of %d claimed, %q %v", side, name, len(page), l.Claimed, l.Why, err); l.Complete &&
				l.Claimed != 0 {
				t.Errorf("%s of %s is believed: %+v", side, name, l)
			}
		}
		m, total := service.Mark{}, 0
		for poll := range 2 { // the second reading finds nothing new
			tl, err := c.Timeline(PostsOf(who.ID), m, Reading{Paging: s.Timeline})
			if err != nil {
				t.Fatal(err)
			}
			var langs []string
			for !tl.Done() {
				b, err := tl.Next(ctx)
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range b.Posts {
					if langs = append(langs, p.Lang); p.Author.Acct != who.Acct ||
						!strings.Contains(p.Text, "o autocarro para o Porto está atrasado. #portugal") &&
							!strings.HasPrefix(p.Text, "sonda") {
						t.Errorf("post %+v", p)
					}
				}
				total += len(b.Posts)
			}
			m = tl.Mark()
			t.Logf("posts of %s, poll %d: %d in all, languages %v, %+v", name, poll, total, slices.Compact(langs),
				tl.Listing())
		}
		if total < 5 {
			t.Errorf("%d posts of %s", total, name)
		}
	}
	posts := 0
	tl, err := c.Timeline(Tagged("portugal", false), service.Mark{}, Reading{})
	if err != nil {
		t.Fatal(err)
	}
	for !tl.Done() {
		b, err := tl.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		posts += len(b.Posts)
	}
	if t.Logf("tag: %d posts, %+v; %d calls in all", posts, tl.Listing(), calls); posts < 25 {
		t.Errorf("%d posts of the tag", posts)
	}
}
