package nodetest

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestDisk checks that a crash leaves what was synced of a log, and the given part of the rest,
// whether the log was closed or not.
func TestDisk(t *testing.T) {
	for _, closed := range []bool{false, true} {
		for percent, want := range map[int]string{0: "onetwo", 100: "onetwothree"} {
			d := newDisk(vfs.NewCrashableMem())
			f, err := d.Create("1.log", "")
			if err != nil {
				t.Fatal(err)
			}
			write := func(s string) {
				if _, err := f.Write([]byte(s)); err != nil {
					t.Fatal(err)
				}
			}
			write("one")
			root, err := d.OpenDir("/")
			if err != nil || root.Sync() != nil || f.Sync() != nil {
				t.Fatal(err)
			}
			write("two")
			if err := f.SyncData(); err != nil {
				t.Fatal(err)
			}
			write("three")
			if closed {
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
			}
			left, err := d.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(1, 1))})
			if err != nil {
				t.Fatal(err)
			}
			g, err := left.Open("1.log")
			if err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 100)
			n, _ := g.Read(got)
			if s := strings.TrimRight(string(got[:n]), "\x00"); s != want {
				t.Errorf("closed %t, %d %% of what was not synced: %q, want %q", closed, percent, s, want)
			}
		}
	}
}
