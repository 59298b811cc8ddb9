package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// echoNode returns the path of echo-node as users run it, for tests of whole processes:
// $ECHO_NODE, or built here, once. It has no race detector: several peers with it on two cores
// are so slow that leases expire and timeouts occur. The test would then test the machine. The
// tests of package node run the same peers in one process with the detector.
func echoNode(t *testing.T) string {
	t.Helper()
	path, err := builtProgram()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var builtDir string // removed at the end

var builtProgram = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("ECHO_NODE"); path != "" {
		return filepath.Abs(path)
	}
	dir, err := os.MkdirTemp("", "echo-node-test-")
	if err != nil {
		return "", err
	}
	builtDir = dir
	path := filepath.Join(dir, "echo-node")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// tests removes after a run what it built. It also keeps peers from writing into the user's own
// directories.
type tests struct{ *testing.M }

func (m tests) Run() int {
	dir, err := os.MkdirTemp("", "echo-node-user-")
	if err == nil {
		err = errors.Join(os.Setenv("XDG_RUNTIME_DIR", dir), os.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache")))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	defer func() {
		if builtDir != "" {
			os.RemoveAll(builtDir)
		}
	}()
	return m.M.Run()
}
