package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/node/datadir"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
	"github.com/echo-node/echo-node/store/trash"
)

// A running peer makes its first backup when it starts. restore makes a data directory with
// another identity from it, on which a peer can run.
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
	asked := filepath.Join(dir, "asked")
	code, said := runOnce(t, "backup", asked, "--data", data)
	if code != 0 || strings.TrimSpace(said) != asked {
		t.Fatalf("backup of a running peer: exit %d: %s", code, said)
	}
	code, said = runOnce(t, "backup", asked, "--data", data)
	wantFailure(t, code, said, 1, "file already exists")
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
	for _, b := range []string{from, asked, stopped} {
		if err := os.RemoveAll(restored); err != nil {
			t.Fatal(err)
		}
		if code, said = runOnce(t, "restore", b, "--data", restored, "--alone"); code != 0 ||
			!strings.Contains(said, "0 records of the swarm echo") {
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

// An invalid request gets an error as response, and the next request still works. A socket that
// a killed process left does not matter.
func TestControl(t *testing.T) {
	dir, err := os.MkdirTemp("", "control") // t.TempDir may be longer than a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	at := filepath.Join(dir, controlName)
	if err := askBackup(t.Context(), dir, "x"); !errors.Is(err, errNoControl) {
		t.Fatalf("nobody is there: %v", err)
	}
	if left, err := net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"}); err != nil {
		t.Fatal(err)
	} else {
		left.SetUnlinkOnClose(false)
		_ = left.Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended, dirs := make(chan error, 1), make(chan string, 1)
	go func() {
		ended <- serveControl(ctx, dir, func(d string) error {
			if d == "/full" {
				return errors.New("disk full")
			}
			dirs <- d
			return nil
		}, slog.New(slog.DiscardHandler))
	}()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if f, err := os.Stat(at); err == nil && f.Mode().Perm() == 0o600 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no socket of its owner alone")
		}
	}
	for _, tt := range []struct{ said, want string }{
		{"\n", "unexpected end"}, {"{}\n", "version 0"}, {`{"v":1,"backup":"here"}` + "\n", "no absolute path"},
		{`{"v":1,"backup":"/full"}` + "\n", "disk full"},
		{strings.Repeat("a", maxControl), "at most"},
	} {
		conn, err := net.Dial("unix", at)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(tt.said)); err != nil {
			t.Fatal(err)
		}
		var a controlAnswer
		if err := readControl(conn, &a); err != nil || !strings.Contains(a.Error, tt.want) {
			t.Errorf("%.40q: %+v %v", tt.said, a, err)
		}
		_ = conn.Close()
	}
	if err := askBackup(t.Context(), dir, "rel"); err != nil {
		t.Fatal(err)
	}
	if got := <-dirs; !filepath.IsAbs(got) || filepath.Base(got) != "rel" {
		t.Errorf("a backup in %q", got)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(at); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket stays: %v", err)
	}
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

// Dropped slices are requested by slice or all at once, and nothing else of the directory
// changes.
func TestRestoreTrash(t *testing.T) {
	data := t.TempDir()
	code, said := runOnce(t, "restore", "--trash", "--data", data)
	wantFailure(t, code, said, 1, "nothing that was asked for is in the trash")
	s, err := db.Create(filepath.Join(data, "store"),
		store.Options{Charter: partition.DefaultCharter("echo", "12D3KooWfounder")})
	if err != nil {
		t.Fatal(err)
	}
	k, err := partition.ParseKey("https://a.example/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Queue.Admit([]store.Admission{{Key: k}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	sl := s.SliceOf(k)
	trash, err := trash.Open(vfs.Default, datadir.Trash(data),
		trash.Options{Keep: time.Hour, MaxBytes: 1 << 20})
	if err == nil {
		err = trash.Put(s.Log, sl, "surplus", time.Now())
	}
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	other := partition.DefaultCharter("echo", "12D3KooWfounder").Slices()[0]
	code, said = runOnce(t, "restore", "--trash", other.String(), "--data", data)
	wantFailure(t, code, said, 1, "nothing that was asked for is in the trash")
	code, said = runOnce(t, "restore", "--trash", "--alone", "--data", data)
	wantFailure(t, code, said, 2, "--alone")
	for range 2 {
		if code, said = runOnce(t, "restore", "--trash", sl.String(), "--data", data); code != 0 ||
			!strings.Contains(said, sl.String()) {
			t.Fatalf("exit %d: %s", code, said)
		}
	}
	if err := trash.Reread(); err != nil {
		t.Fatal(err)
	}
	if all := trash.List(); len(all) != 1 || !all[0].Wanted {
		t.Errorf("%+v", all)
	}
}
