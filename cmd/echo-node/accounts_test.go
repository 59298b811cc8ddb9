package main

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/node/api"
)

const secret = "s3cretT0kenOfAna"

// serveAccounts is a simulated server on loopback that answers nobody without the token.
func serveAccounts(t *testing.T) (*mastodontest.World, string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w, err := mastodontest.New(mastodontest.Options{Seed: 6, People: 12, Remote: -1, Quiet: true, Domain: ln.Addr().String(), Limits: mastodontest.MastodonLimits(),
		Tokens: map[string]string{secret: ""}, Lies: mastodontest.Lies{ClosedAPI: true}})
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: w.Handler(), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	t.Cleanup(func() { srv.Close(); <-served })
	return w, ln.Addr().String()
}

func writeTokens(t *testing.T, dir, server string, mode fs.FileMode) string {
	t.Helper()
	file := filepath.Join(dir, "tokens.yaml")
	if err := os.WriteFile(file, []byte("mastodon:\n  - server: "+server+"\n    name: ana\n    token: "+secret+"\n"), mode); err != nil {
		t.Fatal(err)
	}
	return file
}

// What a person does to follow people: a file with a token, run, seed. The token then
// stands nowhere: not in what is logged, answered, exported or kept.
func TestFollowWithAToken(t *testing.T) {
	dir := t.TempDir()
	w, server := serveAccounts(t)
	var who string
	for _, u := range w.Users() {
		if a := w.Truth().Accounts[u]; !strings.Contains(strings.ToLower(a.Bio), "#nobot") {
			who = u
			break
		}
	}
	p := startProcess(t, dir, "a", "--token-file", writeTokens(t, dir, server, 0o600), "--lists", "--allow-net", "127.0.0.0/8")
	until(t, "the account is followed", 60*time.Second, func() bool {
		var seeded any
		if p.echo(&seeded, "seed", "mastodon:"+who) != nil {
			return false
		}
		var shown api.Shown
		return p.echo(&shown, "show", "mastodon:"+who) == nil && shown.Record != nil && shown.Record.Kind == "profile"
	})
	var st api.Status
	if err := p.echo(&st, "status"); err != nil || len(st.Budgets) == 0 {
		t.Errorf("status: %+v %v", st.Budgets, err)
	}
	named := false
	for _, b := range st.Budgets {
		named = named || b.Credential == "ana" && b.Used > 0 && b.Refused == 0
	}
	if !named {
		t.Errorf("the budget of ana is not shown: %+v", st.Budgets)
	}
	var said bytes.Buffer
	for _, path := range []string{"/metrics", "/api/v1/status", "/api/v1/peers", "/api/v1/errors", "/api/v1/export", "/api/v1/records?key=mastodon:" + who} {
		resp, err := http.Get("http://" + p.api + path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(&said, resp.Body); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-p.done
	said.Write(p.log.Bytes())
	status, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	said.Write(status)
	if strings.Contains(said.String(), secret) {
		t.Error("the token is told")
	}
	if !strings.Contains(said.String(), "echo_budget_used") {
		t.Error("no metrics of budgets")
	}
	err = filepath.WalkDir(filepath.Join(dir, "a"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(secret)) {
			t.Errorf("the token is in %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if r := w.Report(); r.Refused != 0 || r.Requests == 0 {
		t.Errorf("%+v", r)
	}
}

// A file of tokens that others can read, or that cannot be read, is refused without a word of
// what is in it.
func TestTokenFiles(t *testing.T) {
	dir := t.TempDir()
	file := writeTokens(t, dir, "m.example", 0o600)
	all, err := readTokens(file)
	if err != nil || len(all) != 1 || all[0].Server != "m.example" || all[0].Credential.Name() != "ana" {
		t.Fatalf("%v %v", all, err)
	}
	both := filepath.Join(dir, "both.yaml")
	if err := os.WriteFile(both, []byte("twitter:\n  - token: "+secret+"\n    usd: 2.5\nmastodon:\n  - server: M.example\n    token: "+secret+"x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err = readTokens(both); err != nil || len(all) != 2 || all[1].Service != "twitter" || all[1].Daily != 2_500_000 || all[1].Credential.Name() != "token-2" {
		t.Fatalf("%v %v", all, err)
	}
	if err := (social.Options{Tokens: all}).Validate(); err != nil {
		t.Error(err)
	}
	all[1].Daily = 0
	if err := (social.Options{Tokens: all}).Validate(); err == nil || !strings.Contains(err.Error(), "how many dollars") || strings.Contains(err.Error(), secret) {
		t.Errorf("a token without money: %v", err)
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := readTokens(file); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file for all: %v", err)
	}
	for _, text := range []string{secret, "mastodon: " + secret, "mastodon:\n  - server: x\n    token: " + secret + " x\n", "mastodon:\n  - " + secret + ": x\n", "mastodon:\n  - server: x\n",
		"twitter:\n  - name: x\n    token: " + secret + "\n    usd: -1\n", "twitter:\n  - name: x\n    token: " + secret + "\n    usd: " + secret + "\n",
		"mastodon:\n  - server: x\n    name: " + secret + "\n    token: " + secret + "\n"} {
		bad := filepath.Join(dir, "bad")
		if err := os.WriteFile(bad, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readTokens(bad); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// until waits for cond, and gives up long after it should have come.
func until(t *testing.T, what string, limit time.Duration, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !cond(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, limit)
		}
	}
}
