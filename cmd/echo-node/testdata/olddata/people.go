// Command people serves a simulated Mastodon server, a simulated Bluesky, and the files that
// posts of the first name. It was built of the commit that made olddata.tar.zst: see README.md.
package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/blueskytest"
	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
)

const (
	cdn   = "127.76.255.4:42185"
	token = "a-token-of-a-world"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	start := time.Now().Add(-10 * 24 * time.Hour)
	m, _, err := mastodontest.Serve("127.76.255.1:42182", mastodontest.Options{Seed: 1, People: 6, Remote: -1, Start: start, Clock: time.Now, Rate: 0.3,
		Limits: mastodontest.MastodonLimits(), Tokens: map[string]string{token: ""}, Lies: mastodontest.Lies{ClosedAPI: true}})
	if err != nil {
		return err
	}
	b, _, _, err := blueskytest.Serve("127.76.255.2:42183", "127.76.255.3:42184", blueskytest.Options{Seed: 1, People: 4, Start: start, Clock: time.Now,
		Rate: 0.3, Limits: blueskytest.PDSLimits()})
	if err != nil {
		return err
	}
	var seeds []string
	for i, acct := range m.Users() {
		seeds = append(seeds, "mastodon:"+acct)
		id, err := m.Post(acct, "olha que bonito")
		if err == nil {
			err = errors.Join(m.Describe(acct, "nasci em Viseu"), m.Attach(id, fmt.Sprintf("http://%s/%d.png", cdn, i)))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, acct, err)
		}
	}
	for _, did := range b.IDs() {
		seeds = append(seeds, "bluesky:"+b.Handle(did))
	}
	err = errors.Join(os.WriteFile("tokens.yaml", fmt.Appendf(nil, "mastodon:\n  - server: %s\n    name: ana\n    token: %s\n", m.Domain(), token), 0o600),
		os.WriteFile("people", []byte(strings.Join(seeds, "\n")+"\n"), 0o644))
	if err != nil {
		return err
	}
	return http.ListenAndServe(cdn, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, ".png") {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "image/png")
		fmt.Fprintf(w, "\x89PNG\r\n\x1a\n%s", r.URL.Path)
	}))
}
