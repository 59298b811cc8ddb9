package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

func TestCommunityJSON(t *testing.T) {
	var out bytes.Buffer
	args := []string{"community", "--people", "200", "--seeds", "2", "--json"}
	if code := run(t.Context(), args, &out, io.Discard); code != exitDone {
		t.Fatalf("exit %d", code)
	}
	type side struct {
		PrecisionIn  float64 `json:"precision_in"`
		RecallIn     float64 `json:"recall_in"`
		PrecisionOut float64 `json:"precision_out"`
		RecallOut    float64 `json:"recall_out"`
		In, Out      int
		Undecided    *int
		Calls        int
		Wrong        map[string]int
	}
	var got []struct {
		Community       string
		People, Members int
		Seeds           []uint64
		Ours            side    `json:"echo_node"`
		Theirs          side    `json:"twitterecho"`
		ByProfile       float64 `json:"twitterecho_by_profile"`
		Dissertation    *struct {
			In, Out int
			InRight int `json:"in_right"`
		}
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Community != "portugal" || got[1].Community != "brazil" {
		t.Fatalf("%s", &out)
	}
	for _, r := range got {
		if r.People != 400 || r.Members < 100 || len(r.Seeds) != 2 || r.ByProfile <= 0 {
			t.Errorf("%+v", r)
		}
		for _, s := range []side{r.Ours, r.Theirs} {
			for _, rate := range []float64{s.PrecisionIn, s.RecallIn, s.PrecisionOut, s.RecallOut} {
				if rate <= 0 || rate > 1 {
					t.Errorf("%s: %+v", r.Community, s)
				}
			}
			if s.Undecided == nil || s.In+s.Out+*s.Undecided != r.People || s.Calls == 0 || len(s.Wrong) == 0 {
				t.Errorf("%s: %+v", r.Community, s)
			}
		}
	}
	d, none := got[0].Dissertation, got[1].Dissertation
	if d == nil || d.In != 500 || d.InRight != 454 || d.Out != 800 || none != nil {
		t.Errorf("the dissertation: %+v, %+v", d, none)
	}
}

func TestCommunityTableAndUsage(t *testing.T) {
	var out, talk bytes.Buffer
	args := []string{"community", "--community", "portugal", "--people", "200", "--seeds", "1"}
	if code := run(t.Context(), args, &out, &talk); code != exitDone {
		t.Errorf("exit %d, %s", code, &talk)
	}
	for _, want := range []string{"portugal: 200 people", "recall in", "\necho-node ", "\nTwitterEcho ",
		"dissertation        90.8%         -         99.5%", "the dissertation reports 80%",
		"wrong, TwitterEcho: abroad"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	for _, bad := range []string{"--people=9", "--seeds=0", "--community=nowhere", "--seed=-1"} {
		if code := run(t.Context(), []string{"community", bad}, io.Discard, io.Discard); code != exitUsage {
			t.Errorf("%s: exit %d", bad, code)
		}
	}
	out.Reset()
	if code := run(t.Context(), []string{"community", "--help"}, &out, io.Discard); code != exitDone ||
		!strings.Contains(out.String(), "Exit 3 when our judge is behind") {
		t.Errorf("exit %d, %s", code, &out)
	}
}
