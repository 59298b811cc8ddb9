package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// output runs a command that must succeed.
func output(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(echoNode(t), args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v: %s", args, err, errs.String())
	}
	return string(out)
}

// A private swarm as three people use it. One founds it and invites, one joins by the code and
// also invites, and one joins by the key. A stranger is told the reason for the refusal. An
// open swarm needs no invite.
func TestPrivateSwarmOfProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	a := startProcess(t, dir, "a", "--private", "--swarm-key", key)
	a.wait(1)
	code := filepath.Join(dir, "code")
	if err := os.WriteFile(code, []byte(output(t, "invite", "--data", filepath.Join(dir, "a"), "--expires", "1h")),
		0o600); err != nil {
		t.Fatal(err)
	}
	b := startProcess(t, dir, "b", "--invite", code) // the code contains the address
	a.wait(2)
	b.wait(2)
	var st struct {
		Membership string `json:"membership"`
	}
	if err := waits("b has a lasting pass", func() error {
		err := b.echo(&st, "status")
		if err == nil && !strings.Contains(st.Membership, "let in by") {
			err = os.ErrNotExist
		}
		return err
	}); err != nil {
		t.Fatal(err, st)
	}
	if err := waits("b keeps the charter",
		func() error { _, err := os.Stat(filepath.Join(dir, "b", "charter.sealed")); return err }); err != nil {
		t.Fatal(err)
	}
	second := strings.TrimSpace(output(t, "invite", "--data", filepath.Join(dir, "b")))
	startProcess(t, dir, "c", "--invite", second)
	a.wait(3)
	startProcess(t, dir, "d", "--swarm-key", key, "--join", filepath.Join(dir, "a", "addrs"))
	a.wait(4)

	stranger := startProcess(t, dir, "e", "--join", filepath.Join(dir, "a", "addrs"))
	if err := <-stranger.done; err == nil || !strings.Contains(stranger.log.String(), "invite") {
		t.Errorf("a stranger: %v: %s", err, stranger.log.String())
	}
	a.wait(4)
}
