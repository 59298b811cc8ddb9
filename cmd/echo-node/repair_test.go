package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// largestTable returns the largest file with rows in a data directory whose peer does not run.
func largestTable(t *testing.T, data string) string {
	t.Helper()
	// so that the content of its log gets into a table
	s, err := db.Open(filepath.Join(data, "store"), store.Options{})
	if err == nil {
		err = s.Close()
	}
	tables, err2 := filepath.Glob(filepath.Join(data, "store", "pebble", "*.sst"))
	if err := errors.Join(err, err2); err != nil || len(tables) == 0 {
		t.Fatalf("tables %v: %v", tables, err)
	}
	var name string
	var size int64
	for _, f := range tables {
		if info, err := os.Stat(f); err == nil && info.Size() > size {
			name, size = f, info.Size()
		}
	}
	return name
}

func flipByte(t *testing.T, name string, fraction float64) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[int(float64(len(b))*fraction)] ^= 4
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A peer that is alone and has a damaged table prints a line about it and exits with 1, at each
// start. After repair has saved what can be read, the peer runs again.
func TestRepairAlone(t *testing.T) {
	world := crawltest.NewWorld(crawltest.Options{Seed: 5, Sites: 12, Pages: 12, Words: 200})
	if err := world.Start(); err != nil {
		t.Fatal(err)
	}
	defer world.Close()
	dir := t.TempDir()
	data := filepath.Join(dir, "a")
	args := []string{"run", "--data", data, "--api", "", "--listen", "/ip4/127.0.0.1/udp/0/quic-v1", "--allow-net",
		"127.77.0.0/16", "--delay", "20ms"}
	seeds := []string{"--until-idle", "1s"}
	for _, s := range world.Seeds() {
		seeds = append(seeds, "--seed", s)
	}
	if code, said := runOnce(t, append(args, seeds...)...); code != 0 {
		t.Fatalf("exit %d: %s", code, said)
	}
	table := largestTable(t, data)
	flipByte(t, table, 0.6)
	name := filepath.Base(table)
	code, said := runOnce(t, append(args, "--scrub", "1ms")...)
	wantFailure(t, code, said, 1, name, "is damaged", "echo-node repair")
	code, said = runOnce(t, args...)
	wantFailure(t, code, lastLines(said), 1, name, "is damaged", "no other peer keeps", "echo-node repair",
		"nothing was changed")
	if n := len(lines(lastLines(said))); n > 5 {
		t.Errorf("%d lines", n)
	}
	code, said = runOnce(t, "repair", "--data", data)
	wantFailure(t, code, said, 3, name, "lost:", "records are here")
	t.Log(said)
	if aside, err := filepath.Glob(filepath.Join(data, "store", "aside", "*")); err != nil || len(aside) != 1 {
		t.Errorf("put aside: %v %v", aside, err)
	}
	code, said = runOnce(t, "repair", "--data", data)
	wantFailure(t, code, said, 0, "every table is whole")
	code, said = runOnce(t, append(args, seeds...)...) // what was lost is new again
	wantFailure(t, code, said, 0)
	if d := world.Compare(world.Expected(world.Seeds())); len(d.Missing)+len(d.Extra) > 0 {
		t.Errorf("missing %d, extra %d", len(d.Missing), len(d.Extra))
	}
	if strings.Contains(said, "goroutine ") {
		t.Error(said)
	}
}
