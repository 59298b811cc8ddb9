package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"
)

// A replay over real HTTP, much too fast for a judgement, runs to its end.
func TestReplayJSON(t *testing.T) {
	var out bytes.Buffer
	c := replayCmd{History: "synthetic:b", Budget: 8, Items: 40, Days: 10, Speed: 400_000, Warm: 0.2, Seed: 1, Plays: 2,
		Within: 100, Dir: t.TempDir(), JSON: true}
	if err := c.Run(t.Context(), output{&out, io.Discard}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Items              int
		Points             *float64
		Crawler, Simulator struct{ Freshness, Visits float64 }
		Revisits           map[string]int
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Items != 40 || got.Points == nil || got.Crawler.Visits == 0 || got.Simulator.Visits == 0 ||
		!(got.Crawler.Freshness > 0 && got.Crawler.Freshness <= 1) || got.Revisits["unchanged"] == 0 {
		t.Errorf("%s", out.Bytes())
	}
	c.Speed = 0
	if err := c.Run(t.Context(), output{io.Discard, io.Discard}); !errors.Is(err, errUsage) {
		t.Errorf("speed 0: %v", err)
	}
}
