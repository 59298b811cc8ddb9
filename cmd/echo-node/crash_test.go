//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// A panic in any goroutine ends the process by a signal, not with the code for wrong usage, and
// prints where it was.
func TestAPanicIsNotWrongUsage(t *testing.T) {
	if os.Getenv("ECHO_TEST_PANIC") != "" {
		abortOnPanic()
		go func() { panic("on purpose") }()
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestAPanicIsNotWrongUsage$")
	cmd.Env = append(os.Environ(), "ECHO_TEST_PANIC=1")
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		t.Fatalf("it ended with %v", err)
	}
	if w, ok := ended.Sys().(syscall.WaitStatus); !ok || !w.Signaled() || w.Signal() != syscall.SIGABRT ||
		w.CoreDump() {
		t.Errorf("it ended with %v, core dump %v; want SIGABRT, none", err, ok && w.CoreDump())
	}
	if !strings.Contains(string(out), "on purpose") || !strings.Contains(string(out), "crash_test.go") {
		t.Errorf("it does not say where: %.500s", out)
	}
	if files, err := os.ReadDir(cmd.Dir); err != nil || len(files) > 0 {
		t.Errorf("it left %v, %v", files, err)
	}
}
