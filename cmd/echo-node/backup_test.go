package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A running peer makes its first backup when it starts, of which restore makes a data
// directory with another identity, whose peer runs.
func TestBackupCommands(t *testing.T) {
	dir := t.TempDir()
	backups, data, restored := filepath.Join(dir, "backups"), filepath.Join(dir, "a"), filepath.Join(dir, "b")
	p := startProcess(t, dir, "a", "--backup-dir", backups, "--backup-every", "1h")
	p.wait(1)
	var made []string
	for deadline := time.Now().Add(20 * time.Second); len(made) == 0; time.Sleep(50 * time.Millisecond) {
		made, _ = filepath.Glob(filepath.Join(backups, "echo-*Z", "backup.json"))
		if time.Now().After(deadline) {
			t.Fatal("no backup")
		}
	}
	from := filepath.Dir(made[0])
	code, said := runOnce(t, "backup", filepath.Join(dir, "other"), "--data", data)
	wantFailure(t, code, said, 1, "in use by another process", "--backup-dir")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-p.done; err != nil {
		t.Fatal(err)
	}
	stopped := filepath.Join(dir, "stopped")
	if code, said = runOnce(t, "backup", stopped, "--data", data); code != 0 {
		t.Fatalf("backup of a stopped peer: exit %d: %s", code, said)
	}
	code, said = runOnce(t, "restore", data, "--data", restored)
	wantFailure(t, code, said, 1, "is no backup")
	code, said = runOnce(t, "restore", from, "--data", data)
	wantFailure(t, code, said, 1, "is not empty")
	for _, b := range []string{from, stopped} {
		if err := os.RemoveAll(restored); err != nil {
			t.Fatal(err)
		}
		if code, said = runOnce(t, "restore", b, "--data", restored, "--alone"); code != 0 || !strings.Contains(said, "0 records of the swarm echo") {
			t.Fatalf("restore: exit %d: %s", code, said)
		}
	}
	if id(t, data) == id(t, restored) {
		t.Error("the restored peer has the old identity")
	}
	for _, secret := range []string{"identity.key", "admission.pass"} {
		if _, err := os.Stat(filepath.Join(from, secret)); err == nil {
			t.Errorf("the backup has %s", secret)
		}
	}
	startProcess(t, dir, "b", "--orphan-after", "2s").wait(1)
}

func id(t *testing.T, data string) string {
	t.Helper()
	out, err := exec.Command(echoNode(t), "id", "--data", data, "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var v struct{ ID string }
	if err := json.Unmarshal(out, &v); err != nil {
		t.Fatal(err)
	}
	return v.ID
}
