package diag

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

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
