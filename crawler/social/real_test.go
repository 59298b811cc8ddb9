package social_test

import (
	"context"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/crawler"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// TestSnacIsFollowed follows the people of a real snac, seeded as mastodon.TestSnac says: all
// profiles and posts are had, and its lists, which are not what they claim, are in the ledger.
func TestSnacIsFollowed(t *testing.T) {
	base, file := os.Getenv("ECHO_SNAC"), os.Getenv("ECHO_SNAC_TOKENS")
	if base == "" || file == "" {
		t.Skip("no ECHO_SNAC and ECHO_SNAC_TOKENS: a real server is not asked")
	}
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	server := "localhost:" + u.Port()
	lines, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var tokens []social.Token
	for l := range strings.SplitSeq(string(lines), "\n") {
		if name, token, ok := strings.Cut(l, " "); ok && name == "ana" {
			c, err := service.NewCredential(name, token)
			if err != nil {
				t.Fatal(err)
			}
			tokens = append(tokens, social.Token{Server: server, Credential: c})
		}
	}
	s, err := store.Create("data", store.Options{FS: vfs.NewMem(), Charter: partition.DefaultCharter("test", "founder")})
	if err != nil {
		t.Fatal(err)
	}
	client, err := fetch.New(fetch.Options{AddrDelay: -1, AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		Hosts: map[string]netip.Addr{"localhost": netip.MustParseAddr("127.0.0.1")}})
	if err != nil {
		t.Fatal(err)
	}
	src, err := social.New(social.Options{Store: s, Client: client, Tokens: tokens, Lists: true})
	if err != nil {
		t.Fatal(err)
	}
	c, err := crawler.New(crawler.Options{Store: s, Sources: []crawler.Source{src}, Peer: "peer", Budgeted: social.Budgeted})
	if err != nil {
		t.Fatal(err)
	}
	var keys []partition.Key
	var items []store.Admission
	for _, name := range []string{"ana", "bruno", "carla", "dinis", "eva"} {
		keys = append(keys, accountKey(t, name+"@"+server))
		items = append(items, store.Admission{Key: keys[len(keys)-1], Seed: true})
	}
	if _, err := s.Admit(items, time.Now()); err != nil {
		t.Fatal(err)
	}
	c.SetSlices(s.Charter().Slices())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	p := &peer{t: t, store: s}
	whole := func() (posts, gaps int) {
		for _, k := range keys {
			posts += len(p.posts(k))
			gaps += len(p.gaps(k+"/followers")) + len(p.gaps(k+"/following"))
		}
		return posts, gaps
	}
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if posts, gaps := whole(); posts >= 25 && gaps >= 5 {
			break
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	posts, gaps := whole()
	if posts < 25 || gaps < 5 {
		t.Errorf("%d posts, %d gaps; %+v", posts, gaps, c.Failures())
	}
	for _, k := range keys {
		r, err := s.Record(k)
		if err != nil || !strings.HasSuffix(r.Title, " Teste") || len(r.Declared) != 1 {
			t.Errorf("%s: %+v %v", k, r, err)
		}
	}
	t.Logf("%d posts, %d gaps, such as %+v", posts, gaps, p.gaps(keys[0]+"/followers"))
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
