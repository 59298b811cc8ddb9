package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/echo-node/echo-node/cmd/echo-bench/scale"
)

// A small run that checks that every figure is present. The command judges the values.
func TestFrontierMeasures(t *testing.T) {
	var out, talk bytes.Buffer
	code := run(t.Context(),
		strings.Fields("frontier --urls 3000 --sites 10,300 --pops 500 --dir "+t.TempDir()+" --json"), &out, &talk)
	var rs []scale.Result
	if err := json.Unmarshal(out.Bytes(), &rs); err != nil || code != exitDone || len(rs) != 2 {
		t.Fatalf("exit %d, %q: %v\n%s", code, out.String(), err, talk.String())
	}
	for _, r := range rs {
		if r.URLs != 3000 || r.FillRate <= 0 || r.FillMiB <= 0 || r.DiskMiB <= 0 || r.Open <= 0 || r.First <= 0 ||
			r.Loaded < r.Open || r.PopRate <= 0 || r.PopCPU <= 0 || r.PopAlone <= 0 || r.CrawlMiB <= 0 {
			t.Errorf("%+v", r)
		}
	}
}

func TestFrontierSaysWhenItIsTooLarge(t *testing.T) {
	var out, talk bytes.Buffer
	if code := run(t.Context(), strings.Fields("frontier --urls 300 --sites 10 --pops 5 --memory 1 --dir "+t.TempDir()),
		&out, &talk); code != exitIncomplete || !strings.Contains(talk.String(), "1 MiB") {
		t.Errorf("exit %d: %s", code, talk.String())
	}
	if code := run(t.Context(), strings.Fields("frontier --urls 5 --sites 10"), &out, &talk); code != exitUsage {
		t.Errorf("exit %d: %s", code, talk.String())
	}
}
