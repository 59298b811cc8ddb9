package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// On SIGQUIT a peer writes all stacks to its data directory and to stderr, and continues.
func TestQuitDumpsAndGoesOn(t *testing.T) {
	dir := t.TempDir()
	p := startProcess(t, dir, "a")
	p.wait(1)
	dumps := func() []string {
		all, err := filepath.Glob(filepath.Join(dir, "a", "stacks-*.txt"))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	for i := 1; i <= 2; i++ {
		if err := p.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(20 * time.Second); len(dumps()) < i; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) || p.ended() {
				t.Fatalf("dump %d: %v", i, dumps())
			}
		}
	}
	b, err := os.ReadFile(dumps()[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"goroutine ", "crawler.(*Crawler).dispatch", "node.(*Node).runLeases"} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("the dump has no %q", want)
		}
	}
	if st, err := os.Stat(dumps()[0]); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode: %v %v", st.Mode(), err)
	}
	p.wait(1) // it responds
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-p.done; err != nil {
		t.Errorf("it ended with %v", err)
	}
	if !strings.Contains(p.log.String(), "crawler.(*Crawler).dispatch") {
		t.Error("nothing on stderr")
	}
}

// A dump is limited and says so, only the newest few are kept, and if the directory accepts no
// file, stderr still gets the stacks.
func TestDumps(t *testing.T) {
	all := stacks(512)
	if len(all) < 512 || len(all) > 700 || !bytes.Contains(all, []byte("cut after 512 bytes")) {
		t.Errorf("%d bytes: %q", len(all), all[max(0, len(all)-100):])
	}
	dir := t.TempDir()
	var last string
	for i := range maxStackFiles + 3 {
		name, err := writeStacks(dir, time.Date(2026, 1, 2, 3, 4, i, 0, time.UTC), []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		last = name
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != maxStackFiles || left[len(left)-1].Name() != filepath.Base(last) {
		t.Errorf("%v %v, last %s", left, err, last)
	}
	var out, said bytes.Buffer
	dumpStacks(&out, filepath.Join(dir, "none"), time.Now(), slog.New(slog.NewTextHandler(&said, nil)))
	if !strings.Contains(out.String(), "TestDumps") || !strings.Contains(said.String(), "no such file") {
		t.Errorf("without a directory: %.200s\n%s", out.String(), said.String())
	}
}
