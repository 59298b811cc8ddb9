package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/node/api"
)

// runOnce runs echo-node to its end and returns its exit code and its output.
func runOnce(t *testing.T, args ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, echoNode(t), args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("%v does not end:\n%s", args, out.String())
	}
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

func wantFailure(t *testing.T, code int, said string, wantCode int, words ...string) {
	t.Helper()
	if code != wantCode {
		t.Errorf("exit %d, want %d", code, wantCode)
	}
	for _, w := range words {
		if !strings.Contains(said, w) {
			t.Errorf("%q is not said", w)
		}
	}
	if strings.Contains(said, "goroutine ") {
		t.Error("it panics")
	}
	if t.Failed() {
		t.Logf("it said:\n%s", said)
	}
}

func TestUsedPorts(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	used := ln.Addr().String()
	dir := filepath.Join(t.TempDir(), "d")
	code, said := runOnce(t, "run", "--data", dir, "--api", used)
	wantFailure(t, code, said, 1, used, "address already in use", "give another --api")
	if _, err := os.Stat(dir); err == nil {
		t.Error("a data directory was made")
	}
	_, port, _ := net.SplitHostPort(used)
	code, said = runOnce(t, "run", "--data", dir, "--api", "", "--listen", "/ip4/127.0.0.1/tcp/"+port)
	wantFailure(t, code, said, 1, "/ip4/127.0.0.1/tcp/"+port)
}

// A running peer's directory is refused, and a damaged one gives an error that names the
// problem. Neither is changed.
func TestDataDirectories(t *testing.T) {
	dir := t.TempDir()
	p := startProcess(t, dir, "a")
	p.wait(1)
	data := filepath.Join(dir, "a")
	code, said := runOnce(t, "run", "--data", data, "--api", "")
	wantFailure(t, code, said, 1, "in use by another process", data)

	var id map[string]string
	out, err := exec.Command(echoNode(t), "id", "--data", data, "--json").Output()
	if err != nil || !strings.Contains(string(out), `"id"`) {
		t.Errorf("id of a directory in use: %s %v %v", out, id, err)
	}
	code, said = runOnce(t, "run", "--data", filepath.Join(dir, "b"), "--api", "", "--join",
		filepath.Join(data, "addrs"), "--swarm", "other")
	wantFailure(t, code, said, 1, "the swarm echo")

	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-p.done; err != nil {
		t.Errorf("SIGTERM: %v", err)
	}
	code, said = runOnce(t, "run", "--data", data, "--api", "", "--swarm", "other")
	wantFailure(t, code, said, 1, "belongs to the swarm echo")

	key := filepath.Join(data, "identity.key")
	good, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(key); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("identity: %v, %v", st.Mode(), err)
	}
	if err := os.WriteFile(key, good[:10], 0o600); err != nil {
		t.Fatal(err)
	}
	code, said = runOnce(t, "run", "--data", data, "--api", "")
	wantFailure(t, code, said, 1, "identity.key")
	if err := os.WriteFile(key, good, 0o600); err != nil {
		t.Fatal(err)
	}
	damageStore(t, filepath.Join(data, "store"))
	code, said = runOnce(t, "run", "--data", data, "--api", "")
	wantFailure(t, code, said, 1, filepath.Join(data, "store"))
}

// damageStore overwrites the manifests of a Pebble directory.
func damageStore(t *testing.T, dir string) {
	t.Helper()
	damaged := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasPrefix(d.Name(), "MANIFEST-") {
			return err
		}
		damaged++
		return os.WriteFile(path, []byte("this is no manifest"), 0o600)
	})
	if err != nil || damaged == 0 {
		t.Fatalf("%d manifests in %s: %v", damaged, dir, err)
	}
}

// On a full disk a peer reports that and stops. What it acknowledged is there when it starts
// again with free space.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	mount := t.TempDir()
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=48m"); err != nil {
		t.Skipf("SKIPPED: no tmpfs can be mounted here (needs root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(mount, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	world := crawltest.NewWorld(crawltest.Options{Seed: 3, Sites: 40, Pages: 12, Words: 600})
	if err := world.Start(); err != nil {
		t.Fatal(err)
	}
	defer world.Close()
	common := []string{"--allow-net", "127.77.0.0/16", "--delay", "20ms"}
	p := startProcess(t, mount, "a", common...)
	p.wait(1)
	ballast := filepath.Join(mount, "ballast")
	fill(t, ballast)
	var answers []api.SeedAnswer
	seeded := p.echo(&answers, append([]string{"seed"}, world.Seeds()...)...) == nil
	select {
	case err := <-p.done:
		if p.cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(90 * time.Second):
		t.Fatal("it goes on with a full disk")
	}
	wantFailure(t, 1, lastLines(p.log.String()), 1, "disk full", "free space")

	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", mount, "tmpfs", syscall.MS_REMOUNT, "size=400m"); err != nil {
		t.Fatal(err)
	}
	p.args = append(p.args, "--until-idle", "2s")
	p.start()
	p.wait(1)
	if !seeded {
		if err := p.echo(&answers, append([]string{"seed"}, world.Seeds()...)...); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-p.done; err != nil {
		t.Fatalf("with room again: %v", err)
	}
	if d := world.Compare(world.Expected(world.Seeds())); len(d.Missing)+len(d.Extra) > 0 {
		t.Errorf("missing %d, extra %d", len(d.Missing), len(d.Extra))
	}
}

// fill leaves a few hundred kilobytes free.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 64<<10)
	for {
		if _, err := f.Write(block); err != nil {
			break // full
		}
	}
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(max(0, st.Size()-(300<<10))); err != nil {
		t.Fatal(err)
	}
}

func lastLines(s string) string {
	all := lines(s)
	return fmt.Sprint(strings.Join(all[max(0, len(all)-5):], "\n"))
}
