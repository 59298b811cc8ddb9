package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/echo-node/echo-node/node/api"
)

// Status, as a line and in full, says what is done, the speed, and how long the rest takes. It
// also says what a person can do about stopped Keys.
func TestStatusSaysHowFarItIs(t *testing.T) {
	s := api.Status{Keys: 200, Pending: 50, Stops: map[string]int64{"contact": 3, "body-size": 1},
		Progress: api.Progress{Done: 0.75, Rate: 2.5, Left: 3700}}
	var line, whole bytes.Buffer
	printStatus(&line, s, true)
	printStatus(&whole, s, false)
	for _, out := range []string{line.String(), whole.String()} {
		if !strings.Contains(out, "75.0 % done, 2.5 a second, about 1h1m40s left for what is known") {
			t.Errorf("no progress in %q", out)
		}
	}
	if strings.Count(line.String(), "\n") != 1 {
		t.Errorf("--watch prints %q", line.String())
	}
	for _, want := range []string{"3: contact: run with --contact", "1: body-size\n"} {
		if !strings.Contains(whole.String(), want) {
			t.Errorf("no %q in %s", want, whole.String())
		}
	}
	line.Reset()
	printStatus(&line, api.Status{}, true)
	if out := line.String(); strings.Contains(out, "done") || strings.Contains(out, "left") ||
		strings.HasSuffix(strings.TrimSuffix(out, "\n"), " ") {
		t.Errorf("of a peer that knows nothing: %q", out)
	}
}

// The JSON of a site's state has the same content as the text.
func TestSiteStateAsJSONNamesItsOwner(t *testing.T) {
	var out bytes.Buffer
	p := &program{stdout: &out}
	if err := p.print(&globals{JSON: true},
		siteStatus{"the owner", &api.SiteState{Site: "web:https://a.example", Fetched: 7}}, nil); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Owner, Site string
		Fetched     int64
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.Owner != "the owner" ||
		got.Site != "web:https://a.example" || got.Fetched != 7 {
		t.Errorf("%s: %v", out.String(), err)
	}
}
