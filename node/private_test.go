package node

import (
	"bytes"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/echo-node/echo-node/node/datadir"
)

// openToAll makes all files of a directory open to all users, like an older version or a person.
func openToAll(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() == filepath.Base(datadir.Identity(dir)) {
			return err
		}
		mode := fs.FileMode(0o644)
		if d.IsDir() {
			mode = 0o755
		}
		n++
		return os.Chmod(name, mode)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// openFiles returns the files of a directory on which other users have permissions.
func openFiles(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && d.Type() != fs.ModeSymlink && info.Mode().Perm()&0o077 != 0 {
			all = append(all, name+" "+info.Mode().String())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestOldDirectoryIsClosed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes")
	}
	dir, elsewhere := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "elsewhere")
	var said bytes.Buffer
	o := Options{Dir: dir, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Logger: slog.New(slog.NewTextHandler(&said, nil))}
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(elsewhere, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "addrs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{filepath.Join(dir, "link"), filepath.Join(dir, "store", "link")} {
		if err := os.Symlink(elsewhere, link); err != nil {
			t.Fatal(err)
		}
	}
	if openToAll(t, dir) < 5 {
		t.Fatal("nothing is there")
	}
	if err := os.Chmod(elsewhere, 0o644); err != nil {
		t.Fatal(err)
	}
	before := openFiles(t, dir)
	said.Reset()
	if err := datadir.Close(dir, o.Logger); err != nil {
		t.Fatal(err)
	}
	if open := openFiles(t, dir); len(open) > 0 || len(before) < 5 {
		t.Errorf("open before: %d; still: %q", len(before), open)
	}
	if n := strings.Count(said.String(), "closed to them now"); n != 1 {
		t.Errorf("it is said %d times: %s", n, &said)
	}
	if info, err := os.Stat(elsewhere); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("a link was followed: %v %v", info.Mode(), err)
	}
	said.Reset()
	openToAll(t, dir)
	n, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory of a peer: %v %v", info.Mode(), err)
	}
	for _, name := range before {
		name, _, _ = strings.Cut(name, " ")
		if info, err := os.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink == 0 && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s of a peer: %v", name, info.Mode())
		}
	}
	if n := strings.Count(said.String(), "closed to them now"); n != 1 {
		t.Errorf("opening says it %d times", n)
	}
	backup := t.TempDir()
	openToAll(t, backup)
	if err := datadir.CloseBackup(backup, o.Logger); err != nil || len(openFiles(t, backup)) > 0 {
		t.Errorf("a backup: %v", err)
	}
}
