package social_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path"
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
	"github.com/echo-node/echo-node/store/db"
)

// TestSnacIsFollowed follows the people of a real snac, seeded as mastodon.TestSnac says. All
// profiles and posts are fetched. Its lists, which differ from what they claim, are in the ledger.
// Then bruno's edits and deletions are fetched. At snac a post that is touched gets another id and
// keeps its URI.
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
	var bruno snacUser
	for l := range strings.SplitSeq(string(lines), "\n") {
		switch f := strings.Fields(l); {
		case len(f) != 3:
		case f[0] == "ana":
			c, err := service.NewCredential(f[0], f[1])
			if err != nil {
				t.Fatal(err)
			}
			tokens = append(tokens, social.Token{Server: server, Credential: c})
		case f[0] == "bruno":
			bruno = snacUser{base, f[0], f[1], f[2]}
		}
	}
	s, err := db.Create("data",
		store.Options{FS: vfs.NewMem(), Charter: partition.DefaultCharter("test", "founder")})
	if err != nil {
		t.Fatal(err)
	}
	client, err := fetch.New(fetch.Options{AddrDelay: -1, AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"),
		netip.MustParsePrefix("::1/128")},
		Hosts: map[string]netip.Addr{"localhost": netip.MustParseAddr("127.0.0.1")}})
	if err != nil {
		t.Fatal(err)
	}
	src, err := social.New(social.Options{Store: s, Client: client, Tokens: tokens, Lists: true, Least: time.Second,
		Most: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	c, err := crawler.New(crawler.Options{Store: s, Sources: []crawler.Source{src}, Peer: "peer",
		Budgeted: social.Budgeted})
	if err != nil {
		t.Fatal(err)
	}
	var keys []partition.Key
	var items []store.Admission
	for _, name := range []string{"ana", "bruno", "carla", "dinis", "eva"} {
		keys = append(keys, accountKey(t, name+"@"+server))
		items = append(items, store.Admission{Key: keys[len(keys)-1], Seed: true})
	}
	if _, err := s.Queue.Admit(items, time.Now()); err != nil {
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
	until := func(what string, had func() bool) {
		for deadline := time.Now().Add(time.Minute); !had() &&
			time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		}
		if !had() {
			posts, gaps := whole()
			t.Errorf("%s: not after a minute; %d posts, %d gaps; %+v", what, posts, gaps, c.Failures())
			for id, r := range p.posts(keys[1]) {
				t.Logf("bruno's %s: %q, deleted %t", id, r.Text, r.Deleted)
			}
		}
	}
	until("all posts and lists", func() bool { posts, gaps := whole(); return posts >= 25 && gaps >= 5 })
	changed, deleted := bruno.post(t, "Nota 4 "), bruno.post(t, "Nota 2 ")
	bruno.ask(t, http.MethodPut, "/api/v1/statuses/"+changed.ID, url.Values{"status": {"Nota 4 de bruno, emendada."}})
	bruno.ask(t, http.MethodPost, "/bruno/admin/action", url.Values{"id": {deleted.URI}, "action": {"Delete"}})
	until("what was changed and deleted", func() bool {
		edited, gone := p.posts(keys[1])[path.Base(changed.URI)], p.posts(keys[1])[path.Base(deleted.URI)]
		return edited.Text == "Nota 4 de bruno, emendada." && !edited.Deleted && gone.Deleted && gone.Text == ""
	})
	for id, r := range p.posts(keys[1]) {
		if r.Deleted != (id == path.Base(deleted.URI)) {
			t.Errorf("post %s: deleted %t", id, r.Deleted)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	posts, gaps := whole()
	if posts != 25 { // with the tombstone
		t.Errorf("%d posts", posts)
	}
	for _, k := range keys {
		r, err := s.Archive.Record(k)
		if err != nil || !strings.HasSuffix(r.Title, " Teste") || len(r.Declared) != 1 {
			t.Errorf("%s: %+v %v", k, r, err)
		}
	}
	t.Logf("%d posts, %d gaps, such as %+v", posts, gaps, p.gaps(keys[0]+"/followers"))
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// snacUser is a user of the server who writes there.
type snacUser struct{ base, name, token, password string }

// snacPost is a post as its author's server returns it.
type snacPost struct{ ID, URI, Content string }

// ask makes a request to the server: with the token through the API, or with the password as a
// browser does.
func (u snacUser) ask(t *testing.T, method, path string, form url.Values) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, u.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if strings.HasPrefix(path, "/api/") {
		req.Header.Set("Authorization", "Bearer "+u.token)
	} else {
		req.SetBasicAuth(u.name, u.password)
	}
	req.Close = true // snac drops connections without notice
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 400 {
		t.Fatalf("%s %s: %s %.200s %v", method, path, resp.Status, body, err)
	}
	return body
}

// post returns u's post whose text begins so.
func (u snacUser) post(t *testing.T, begin string) snacPost {
	t.Helper()
	var who struct{ ID string }
	if err := json.Unmarshal(u.ask(t, http.MethodGet, "/api/v1/accounts/verify_credentials", nil), &who); err != nil {
		t.Fatal(err)
	}
	var posts []snacPost
	if err := json.Unmarshal(u.ask(t, http.MethodGet, "/api/v1/accounts/"+who.ID+"/statuses", nil),
		&posts); err != nil {
		t.Fatal(err)
	}
	for _, p := range posts {
		if strings.HasPrefix(p.Content, begin) {
			return p
		}
	}
	t.Fatalf("no post of %s begins with %q: %+v", u.name, begin, posts)
	return snacPost{}
}
