package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/echo-node/echo-node/dht/zonesim"
)

func TestZonesCommand(t *testing.T) {
	var out, talk bytes.Buffer
	args := []string{"zones", "--peers", "600", "--zone-max", "60", "--lookups", "20", "--senders", "1", "--links",
		"200"}
	if code := run(context.Background(), append(args, "--json"), &out, &talk); code != exitDone {
		t.Fatalf("exit %d: %s", code, talk.String())
	}
	var r zonesim.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.Found != 20 || r.Zones < 10 {
		t.Errorf("%s: %v", out.String(), err)
	}
	out.Reset()
	if code := run(context.Background(), args, &out, &talk); code != exitDone ||
		!strings.Contains(out.String(), "hops to another zone") {
		t.Errorf("exit %d: %s", code, out.String())
	}
	if code := run(context.Background(), []string{"zones", "--peers", "1"}, &out, &talk); code != exitUsage {
		t.Errorf("one peer: exit %d", code)
	}
}
