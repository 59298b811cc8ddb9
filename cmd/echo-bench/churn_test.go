package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/echo-node/echo-node/cmd/echo-bench/churn"
)

// The processes of a measurement are echo-bench as users run it: $ECHO_BENCH, or built here.
// With the race detector, a swarm on two cores would measure the detector. The tests of package
// node run the same peers in one process with the detector.
func TestMain(m *testing.M) { os.Exit(mainWith(m)) }

func mainWith(m *testing.M) int {
	dir, err := os.MkdirTemp("", "echo-bench-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	executable = sync.OnceValues(func() (string, error) {
		if path := os.Getenv("ECHO_BENCH"); path != "" {
			return filepath.Abs(path)
		}
		path := filepath.Join(dir, "echo-bench")
		cmd := exec.Command("go", "build", "-buildvcs=false", "-o", path, ".")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go build: %w\n%s", err, out)
		}
		return path, nil
	})
	return m.Run()
}

// Three processes of each kind under two kills, a cut and a join. The swarm loses nothing, and
// the baseline shows that the measurement can detect losses.
func TestChurnOfProcesses(t *testing.T) {
	var out, talk bytes.Buffer
	code := run(t.Context(), strings.Fields("churn --peers 3 --duration 12s --kill-every 5s --restart-after 2s --cut 4s --delay 200ms --sites 12 --json"), &out, &talk)
	var r churn.Result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("exit %d, %q: %v\n%s", code, out.String(), err, talk.String())
	}
	t.Logf("%s\n%s", talk.String(), out.String())
	if r.LinksLost+r.RecordsLost+r.RecordsTwice != 0 || r.Coverage != 1 || !r.Idle {
		t.Errorf("links lost %d, records lost %d, twice %d, coverage %g, idle %v: %v", r.LinksLost, r.RecordsLost,
			r.RecordsTwice, r.Coverage, r.Idle, r.First)
	}
	if r.Violations != 0 || code != exitDone {
		t.Errorf("violations %d, smallest gap %g ms, exit %d", r.Violations, r.MinGapMS, code)
	}
	if r.Kills != 2 || r.Cuts != 1 || r.Joins != 1 || r.Takeover == nil || r.URLs == 0 || r.Bytes == 0 {
		t.Errorf("%+v", r)
	}
	if b := r.Baseline; b == nil || b.Overlap <= r.Overlap || b.Pages == 0 {
		t.Errorf("baseline %+v", b)
	}
}

func TestChurnRefusesWrongUsage(t *testing.T) {
	var out, talk bytes.Buffer
	if code := run(t.Context(), strings.Fields("churn --peers 999 --delay 1us"), &out, &talk); code != exitUsage ||
		!strings.Contains(talk.String(), "peers 999") {
		t.Errorf("exit %d: %s", code, talk.String())
	}
}
