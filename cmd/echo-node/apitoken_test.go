package main

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
)

func TestTheOperatorsTokenIsFound(t *testing.T) {
	runtime, cache, data := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	t.Setenv("XDG_CACHE_HOME", cache)
	log := slog.New(slog.DiscardHandler)
	one, found, err := publishToken(data, "127.0.0.1:7702")
	if err != nil || !found || len(one.text) < 32 {
		t.Fatal(one, found, err)
	}
	for _, addr := range []string{"127.0.0.1:7702", "localhost:7702", "http://127.0.0.1:7702",
		"http://localhost:7702/"} {
		if got := findToken(addr); got != one.text {
			t.Errorf("%s: %q", addr, got)
		}
	}
	for _, addr := range []string{"127.0.0.1:7703", "127.0.0.2:7702", "192.0.2.1:7702", "evil.example:7702",
		"[::1]:7702", "7702", "../../x:7702", ""} {
		if got := findToken(addr); got != "" {
			t.Errorf("%s: %q", addr, got)
		}
	}
	for _, name := range one.files {
		info, err := os.Stat(name)
		dir, derr := os.Stat(filepath.Dir(name))
		if err != nil || derr != nil || info.Mode().Perm() != 0o600 || filepath.Dir(name) != data &&
			dir.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(data, tokenName)); err != nil || strings.TrimSpace(string(b)) != one.text ||
		len(one.files) != 3 {
		t.Errorf("%q %v, files %q", b, err, one.files)
	}
	// Without the session's directory, the other one is used.
	t.Setenv("XDG_RUNTIME_DIR", "")
	if got := findToken("127.0.0.1:7702"); got != one.text {
		t.Errorf("of another session: %q", got)
	}
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	// A file that other users may have written, or a link, is not accepted.
	name := filepath.Join(runtime, tokenDir, "127.0.0.1-7702.token")
	other := filepath.Join(cache, tokenDir, "127.0.0.1-7702.token")
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o620); err != nil {
		t.Fatal(err)
	}
	if got := findToken("127.0.0.1:7702"); got != "" {
		t.Error("a file that others can write was believed")
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(data, tokenName), name); err != nil {
		t.Fatal(err)
	}
	if got := findToken("127.0.0.1:7702"); got != "" {
		t.Error("a link was followed")
	}
	// A later peer's token stays when the earlier one is removed.
	two, _, err := publishToken(t.TempDir(), "127.0.0.1:7702")
	if err != nil || two.text == one.text {
		t.Fatal(two, err)
	}
	one.remove(log)
	if got := findToken("127.0.0.1:7702"); got != two.text {
		t.Errorf("after the first peer ended: %q", got)
	}
	two.remove(log)
	if got := findToken("127.0.0.1:7702"); got != "" {
		t.Errorf("after both: %q", got)
	}
	if _, err := os.Stat(filepath.Join(data, tokenName)); err == nil {
		t.Error("the token of a peer that has ended is there")
	}
	// Other users may have had access to the directory.
	if err := os.Chmod(filepath.Join(runtime, tokenDir), 0o777); err != nil {
		t.Fatal(err)
	}
	three, _, err := publishToken(t.TempDir(), "[::1]:7702")
	if err != nil || findToken("localhost:7702") != three.text || findToken("[::1]:7702") != three.text {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(runtime, tokenDir)); err != nil || info.Mode() != fs.ModeDir|0o700 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// `seed --api ADDRESS` still works without a flag for the user whose peer it is, and for no
// other user.
func TestSeedFindsTheToken(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	operator, _, err := publishToken(t.TempDir(), ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := api.New(api.Options{Addr: ln.Addr().String(), Operator: operator.text,
		Peer: api.Peer{Seed: func(_ context.Context, keys []partition.Key) ([]api.SeedAnswer, error) {
			return []api.SeedAnswer{{Key: string(keys[0]), Answer: "admitted"}}, nil
		}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, ln) }()
	defer func() { cancel(); <-served }()
	seed := func() (int, string) {
		var out bytes.Buffer
		return (&program{stdout: &out, stderr: &out}).run(t.Context(),
			[]string{"seed", "https://example.org/", "--api", ln.Addr().String()}), out.String()
	}
	if code, said := seed(); code != exitDone || !strings.Contains(said, "admitted") {
		t.Errorf("exit %d: %s", code, said)
	}
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if code, said := seed(); code != exitFailed || !strings.Contains(said, "--api-token-file") ||
		!strings.Contains(said, tokenName) {
		t.Errorf("another user: exit %d: %s", code, said)
	}
}
