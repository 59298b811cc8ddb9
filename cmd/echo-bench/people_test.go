package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The files lead to what is served. The Mastodon server responds only with the token. Bluesky
// has an AppView, a directory, and the PDS that the directory names.
func TestPeopleAreServed(t *testing.T) {
	dir, mastodon, bluesky, pds := t.TempDir(), freeAddr(t), freeAddr(t), freeAddr(t)
	tokens, seeds := filepath.Join(dir, "tokens.yaml"), filepath.Join(dir, "people.txt")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		done <- run(ctx, []string{"people", "--people", "12", "--mastodon", mastodon, "--bluesky", bluesky, "--pds",
			pds, "--tokens-out", tokens, "--seeds-out", seeds}, io.Discard, &stderr)
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-done; code != exitDone {
			t.Errorf("people exited %d: %s", code, stderr.String())
		}
	})
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(tokens); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no tokens are written")
		}
	}
	text, err := os.ReadFile(tokens)
	if info, statErr := os.Stat(tokens); err != nil || statErr != nil || info.Mode().Perm() != 0o600 ||
		!strings.Contains(string(text), mastodon) {
		t.Errorf("tokens %q, %v %v", text, err, statErr)
	}
	lines, err := os.ReadFile(seeds)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(string(lines))
	if len(all) != 24 || !strings.HasSuffix(all[0], "@"+mastodon) || !strings.HasPrefix(all[12], "bluesky:") {
		t.Fatalf("seeds %q", all)
	}
	get := func(url, token string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	user := strings.TrimPrefix(all[0], "mastodon:")
	for token, want := range map[string]int{"": http.StatusUnauthorized, peopleToken: http.StatusOK} {
		if status, body := get("http://"+mastodon+"/api/v1/accounts/lookup?acct="+user, token); status != want {
			t.Errorf("with token %q: %d %s", token, status, body)
		}
	}
	for _, seed := range all[12:] {
		status, body := get("http://"+bluesky+"/xrpc/com.atproto.identity.resolveHandle?handle="+strings.TrimPrefix(seed, "bluesky:"), "")
		did := strings.TrimSuffix(strings.TrimPrefix(body, `{"did":"`), `"}`)
		if status != http.StatusOK || !strings.HasPrefix(did, "did:plc:") {
			t.Fatalf("%s is %d %s", seed, status, body)
		}
		if status, body := get("http://"+bluesky+"/"+did, ""); status != http.StatusOK ||
			!strings.Contains(body, "http://"+pds) {
			t.Errorf("%s: %d %s", did, status, body)
		}
		if status, body := get("http://"+pds+"/xrpc/com.atproto.repo.listRecords?collection=app.bsky.feed.post&repo="+did, ""); status != http.StatusOK || !strings.Contains(body, `"records"`) {
			t.Errorf("%s: %d %s", did, status, body)
		}
	}
}
