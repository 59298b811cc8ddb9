package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/diskuse"
)

// The gauge counts the files of a directory and of all directories below it. Several links count
// once.
func TestDiskInUse(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"store/pebble/a", "index/b", "trash/c"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, 100_000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	one, err := diskuse.Allocated(dir)
	if err != nil || one < 300_000 || one > 400_000 {
		t.Errorf("three files of 100,000 bytes take %d: %v", one, err)
	}
	if err := os.Link(filepath.Join(dir, "index/b"), filepath.Join(dir, "trash/b")); err != nil {
		t.Skipf("SKIPPED: no links here: %v", err)
	}
	if two, err := diskuse.Allocated(dir); err != nil || two != one {
		t.Errorf("with a link to one of them %d, before %d: %v", two, one, err)
	}
}

// No fetch starts when there is no room to rewrite everything and to take what other peers send.
// Then requests of other peers are put off. Well below the limit all of this ends.
func TestDiskCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		used := int64(0)
		g := &diskGauge{most: 300, other: func() int64 { return used }}
		n := &Node{disk: g}
		link, empty := &wire.Request{Body: &wire.Request_Forward{Forward: &wire.Forward{}}},
			&wire.Request{Body: &wire.Request_Ship{Ship: &wire.Ship{Pieces: []*wire.Piece{{}}}}}
		chunk := &wire.Piece{Rows: []*wire.Row{{Key: []byte("k")}}}
		rows := &wire.Request{Body: &wire.Request_Ship{Ship: &wire.Ship{Pieces: []*wire.Piece{chunk}}}}
		for _, c := range []struct {
			used      int64
			full, off bool
			why       string
		}{
			{0, false, false, "it is empty"},
			{119, false, false, "there is room to write it anew, and a fifth"},
			{120, true, false, "twice that and a fifth are the cap"},
			{106, true, false, "it is not far below"},
			{149, true, false, "there is room to write it anew"},
			{150, true, true, "twice that is the cap"},
			{300, true, true, "the cap is reached"},
			{104, false, false, "there is room again"},
		} {
			used = c.used
			time.Sleep(2 * diskEvery)
			if words := g.full(); (words != "") != c.full || c.full && !strings.HasPrefix(words, "disk ") {
				t.Errorf("%d of 300: %q, although %s", c.used, words, c.why)
			}
			if no := n.putsOff(rows); (no != nil) != c.off || (n.putsOff(link) != nil) != c.off {
				t.Errorf("%d of 300: put off: %v, although %s", c.used, no, c.why)
			}
			if n.putsOff(empty) != nil ||
				n.putsOff(&wire.Request{Body: &wire.Request_Lease{Lease: &wire.Lease{}}}) != nil {
				t.Errorf("%d of 300: what brings no rows is put off", c.used)
			}
		}
		if (&diskGauge{}).full() != "" || (&diskGauge{}).crowded() {
			t.Error("without a cap")
		}
	})
}
