package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestScheduleJSONAndFiles(t *testing.T) {
	dir := t.TempDir()
	history := filepath.Join(dir, "h.tsv")
	var b strings.Builder
	for _, line := range []string{"daily", "weekly", "once"} {
		step := map[string]int{"daily": 86400, "weekly": 7 * 86400, "once": 300 * 86400}[line]
		b.WriteString(line)
		for at := 1_600_000_000; at < 1_600_000_000+400*86400; at += step {
			b.WriteString("\t")
			b.WriteString(itoa(at))
		}
		b.WriteString("\n")
	}
	if err := os.WriteFile(history, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c := scheduleCmd{History: history, Policy: "default,uniform,oracle-changes", Budget: []float64{2, 8}, Seeds: 3,
		Items: 10, Days: 200, JSON: true, Out: filepath.Join(dir, "out")}
	if err := c.Run(t.Context(), output{&out, io.Discard}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Runs []struct {
			Policy    string
			Freshness float64
			Age       *float64 `json:"age_days"`
			Rate      *float64 `json:"change_rate"`
			Per       *float64 `json:"visits_per_change"`
			Missed    *float64
			Visits    float64
		}
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Runs) != 6 || got.Runs[0].Policy != "default" {
		t.Fatalf("runs %+v", got.Runs)
	}
	for i, r := range got.Runs {
		if r.Freshness <= 0 || r.Freshness > 1 || r.Age == nil || r.Rate == nil || r.Per == nil || r.Missed == nil ||
			r.Visits != got.Runs[i/3*3].Visits {
			t.Errorf("run %+v: out of range, or not the visits of %s", r, got.Runs[0].Policy)
		}
	}
	for _, name := range []string{"results.csv", "days.csv", "days-budget-2.svg", "pareto-budget-8.svg"} {
		text, err := os.ReadFile(filepath.Join(dir, "out", name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "svg") {
			if err := xml.Unmarshal(text, new(struct{ XMLName xml.Name })); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func itoa(n int) string {
	b, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestScheduleRefuses(t *testing.T) {
	for name, c := range map[string]scheduleCmd{
		"policy":     {Policy: "best", Budget: []float64{1}, Seeds: 1, Items: 1, Days: 9},
		"budget":     {Policy: "all", Budget: []float64{0}, Seeds: 1, Items: 1, Days: 9},
		"population": {History: "synthetic:z", Policy: "all", Budget: []float64{1}, Seeds: 1, Items: 1, Days: 9},
	} {
		if err := c.Run(t.Context(), output{io.Discard, io.Discard}); !errors.Is(err, errUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := scheduleCmd{History: filepath.Join(t.TempDir(), "none"), Policy: "all", Budget: []float64{1}, Seeds: 1,
		Items: 1, Days: 9}
	if err := c.Run(t.Context(), output{io.Discard, io.Discard}); err == nil || errors.Is(err, errUsage) {
		t.Errorf("no file: %v", err)
	}
}
