package main

import (
	"bytes"
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
	for _, want := range []string{"goroutine ", "crawler.(*Crawler).dispatch", "replica.(*Elections).RunLeases"} {
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
