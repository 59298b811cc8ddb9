package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/echo-node/echo-node/cmd/echo-bench/rivals"
)

// Every mode runs for a second: the figures must be present and echo-node must be polite.
func TestCrawlMeasures(t *testing.T) {
	var out, talk bytes.Buffer
	profiles := filepath.Join(t.TempDir(), "profiles")
	code := run(t.Context(), append(strings.Fields("crawl --rivals colly --sites 30 --pages 4000 --words 20 --for 1s --warm 500ms --json --profiles"), profiles, "--dir", t.TempDir()), &out, &talk)
	var rs []rivals.Result
	if err := json.Unmarshal(out.Bytes(), &rs); err != nil || code != exitDone || len(rs) != 5 {
		t.Fatalf("exit %d, %q: %v\n%s", code, out.String(), err, talk.String())
	}
	for _, r := range rs {
		if r.Skipped != "" || r.PagesPerS <= 0 || r.PeakMiB <= 0 || r.CPU <= 0 || r.Ratio <= 0 {
			t.Errorf("%+v", r)
		}
		if r.Crawler != "echo-node" {
			continue
		}
		if r.Duplicates != 0 || r.Mode == rivals.Polite && (r.Hurried != 0 || r.Sites != 30) {
			t.Errorf("%+v", r)
		}
		for _, name := range []string{"cpu.pprof", "heap.pprof"} {
			if found, err := filepath.Glob(filepath.Join(profiles, string(r.Mode), name)); err != nil ||
				len(found) != 1 {
				t.Errorf("%s: no %s: %v", r.Mode, name, err)
			}
		}
	}
}

func TestCrawlRefusesWrongUsage(t *testing.T) {
	var out, talk bytes.Buffer
	if code := run(t.Context(), strings.Fields("crawl --mode fast --rivals curl"), &out, &talk); code != exitUsage ||
		!strings.Contains(talk.String(), `mode "fast"`) || !strings.Contains(talk.String(), `rival "curl"`) {
		t.Errorf("exit %d: %s", code, talk.String())
	}
}
