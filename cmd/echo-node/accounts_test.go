package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
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

// serveAccounts runs a simulated server on loopback that refuses every request without the
// token. who is an account there that may be followed.
func serveAccounts(t *testing.T) (w *mastodontest.World, who string) {
	t.Helper()
	w, stop, err := mastodontest.Serve("127.0.0.1:0", mastodontest.Options{Seed: 6, People: 12, Remote: -1, Quiet: true,
		Limits: mastodontest.MastodonLimits(),
		Tokens: map[string]string{secret: ""}, Lies: mastodontest.Lies{ClosedAPI: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	for _, u := range w.Users() {
		if a := w.Truth().Accounts[u]; !strings.Contains(strings.ToLower(a.Bio), "#nobot") {
			return w, "mastodon:" + u
		}
	}
	t.Fatal("nobody may be followed")
	return nil, ""
}

func writeTokens(t *testing.T, dir, server string, mode fs.FileMode) string {
	t.Helper()
	file := filepath.Join(dir, "tokens.yaml")
	if err := os.WriteFile(file, []byte("mastodon:\n  - server: "+server+"\n    name: ana\n    token: "+secret+"\n"),
		mode); err != nil {
		t.Fatal(err)
	}
	return file
}

// What a person does to follow people: a file with a token, run, seed. The token then appears
// nowhere: not in logs, responses, exports or stores, of this peer or of another peer.
func TestFollowWithAToken(t *testing.T) {
	dir, begun := t.TempDir(), time.Now()
	w, who := serveAccounts(t)
	p := startProcess(t, dir, "a", "--token-file", writeTokens(t, dir, w.Domain(), 0o600), "--lists", "--allow-net",
		"127.0.0.0/8", "--leave", "1s")
	until(t, "the account is followed", 60*time.Second, func() bool {
		var seeded any
		if p.echo(&seeded, "seed", who) != nil {
			return false
		}
		var shown api.Shown
		return p.echo(&shown, "show", who) == nil && shown.Record != nil && shown.Record.Kind == "profile"
	})
	t.Logf("followed after %s", time.Since(begun))
	b := startProcess(t, dir, "b", "--join", filepath.Join(dir, "a", "addrs"), "--leave", "1s")
	until(t, "the other peer tells of this one, and has what it found", 60*time.Second, func() bool {
		var peers []api.PeerInfo
		var shown api.Shown
		return b.echo(&peers, "peers") == nil && len(peers) == 2 && peers[0].Status != nil && peers[1].Status != nil &&
			b.echo(&shown, "show", who) == nil && shown.Record != nil
	})
	t.Logf("known to two after %s", time.Since(begun))
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
	for _, at := range []string{p.api, b.api} {
		for _, path := range []string{"/metrics", "/api/v1/status", "/api/v1/peers", "/api/v1/errors", "/api/v1/gaps",
			"/api/v1/export", "/api/v1/export?captures=true", "/api/v1/records?key=" + who} {
			resp, err := http.Get("http://" + at + path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(&said, resp.Body); err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
	}
	for _, x := range []*process{p, b} {
		if err := x.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []*process{p, b} {
		<-x.done
		said.Write(x.log.Bytes())
	}
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
	tokens := filepath.Join(dir, "tokens.yaml")
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == tokens {
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

// If the server reports a limit, the text shows how much of it is used. Otherwise it shows the
// pace that the peer found out.
func TestBudgetText(t *testing.T) {
	b := api.Budget{Site: "mastodon:m.example", Credential: "ana", Bucket: "user/5m", Limit: 300, Used: 7, Window: 300,
		Refused: 1}
	if got := budgetText(b); got != "mastodon:m.example ana, user/5m: 7 of 300 used, 1 refused" {
		t.Error(got)
	}
	b.Paced, b.Credential, b.Held = true, "", "all calls until later: 503"
	if got := budgetText(b); got != "mastodon:m.example no credential, user/5m: says no limit; at even gaps, 300 in 5m0s at most, 1 refused; held: all calls until later: 503" {
		t.Error(got)
	}
}

// A file of tokens that other users can read, or that cannot be read, is refused. The error
// contains nothing of its content.
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
	if all, err = readTokens(both); err != nil || len(all) != 2 || all[1].Service != "twitter" ||
		all[1].Daily != 2_500_000 || all[1].Credential.Name() != "token-2" {
		t.Fatalf("%v %v", all, err)
	}
	if err := (social.Options{Tokens: all}).Validate(); err != nil {
		t.Error(err)
	}
	all[1].Daily = 0
	if err := (social.Options{Tokens: all}).Validate(); err == nil ||
		!strings.Contains(err.Error(), "how many dollars") || strings.Contains(err.Error(), secret) {
		t.Errorf("a token without money: %v", err)
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := readTokens(file); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file for all: %v", err)
	}
	for _, text := range []string{secret, "mastodon: " + secret, "mastodon:\n  - server: x\n    token: " + secret +
		" x\n", "mastodon:\n  - " + secret + ": x\n", "mastodon:\n  - server: x\n",
		"twitter:\n  - name: x\n    token: " + secret + "\n    usd: -1\n",
		"twitter:\n  - name: x\n    token: " + secret + "\n    usd: " + secret + "\n",
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

// until waits for cond, and fails long after it should have become true.
func until(t *testing.T, what string, limit time.Duration, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !cond(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, limit)
		}
	}
}

// What a person does to follow a community: run with an embedded one, see which accounts belong
// and why, overrule a verdict, and see where the judge was wrong.
func TestFollowACommunity(t *testing.T) {
	dir := t.TempDir()
	w, who := serveAccounts(t)
	at, err := freeAddr()
	if err != nil {
		t.Fatal(err)
	}
	run := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan int, 1)
		var log bytes.Buffer
		go func() {
			ended <- (&program{stdout: &log, stderr: &log}).run(ctx, []string{"run", "--data", filepath.Join(dir, "a"),
				"--api", at, "--listen", "/ip4/127.0.0.1/tcp/0", "--leave", "0s",
				"--token-file", writeTokens(t, dir, w.Domain(), 0o600), "--lists", "--community", "pt", "--allow-net",
				"127.0.0.0/8"})
		}()
		return func() {
			cancel()
			if code := <-ended; code != exitDone {
				t.Errorf("exit %d: %s", code, log.String())
			}
		}
	}
	echo := func(v any, args ...string) error {
		var out, errs bytes.Buffer
		if code := (&program{stdout: &out, stderr: &errs}).run(t.Context(),
			append(args, "--api", at, "--json")); code != exitDone {
			return fmt.Errorf("%v: exit %d: %s", args, code, errs.String())
		}
		return json.Unmarshal(out.Bytes(), v)
	}
	stop := run()
	until(t, "the seed is followed", 2*time.Minute, func() bool {
		var seeded any
		var shown api.Shown
		return echo(&seeded, "seed", who) == nil && echo(&shown, "show", who) == nil && shown.Record != nil &&
			shown.Record.VerdictWord() == "in" && strings.HasPrefix(shown.Record.Verdict.By, "portugal@")
	})
	var said api.Overruling
	if err := echo(&said, "override", who, "out", "--by", "rui", "--why", "a machine"); err != nil ||
		said.Verdict != "out" {
		t.Fatalf("%+v, %v", said, err)
	}
	overruled := func() bool {
		var shown api.Shown
		return echo(&shown, "show", who) == nil && shown.Record.VerdictWord() == "out" &&
			shown.Record.Verdict.Override.By == "rui" && len(shown.Overrides) == 1
	}
	if !overruled() {
		t.Error("the word is not shown")
	}
	until(t, "it is found and counted", time.Minute, func() bool {
		var a api.Answer
		var st api.Status
		return echo(&a, "query", "--verdict", "out", "") == nil && len(a.Hits) > 0 && echo(&st, "status") == nil &&
			st.Verdicts["out"] > 0
	})
	var m api.Mistakes
	if err := echo(&m, "mistakes"); err != nil || m.Overrides != 1 || len(m.Mistakes) != 1 ||
		m.Mistakes[0].Judged.Verdict != "in" {
		t.Errorf("%+v, %v", m, err)
	}
	var text bytes.Buffer
	for _, args := range [][]string{{"export", "--verdict", "out"}, {"show", who}, {"status"}, {"mistakes"}} {
		text.Reset()
		if code := (&program{stdout: &text, stderr: &text}).run(t.Context(),
			append(args, "--api", at)); code != exitDone || !strings.Contains(text.String(), "a machine") &&
			args[0] != "status" || args[0] == "status" && !strings.Contains(text.String(), "verdicts") {
			t.Errorf("%v: exit %d: %s", args, code, text.String())
		}
	}
	stop()
	stop = run()
	until(t, "the word is there after a restart", 2*time.Minute, overruled)
	until(t, "it is taken back", time.Minute,
		func() bool { return echo(&said, "override", who, "judge", "--by", "rui") == nil })
	var shown api.Shown
	if err := echo(&shown, "show", who); err != nil || shown.Record.VerdictWord() != "in" || len(shown.Overrides) != 2 {
		t.Errorf("%+v, %v", shown, err)
	}
	stop()
}
