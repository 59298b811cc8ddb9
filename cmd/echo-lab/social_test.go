package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

func TestSocial(t *testing.T) {
	var out bytes.Buffer
	args := []string{"social", "--accounts", "500", "--times", "0.5", "--peers", "0", "--json"}
	// 500 are few: a row of two accounts may fail
	if code := run(t.Context(), args, &out, io.Discard); code != exitDone && code != exitIncomplete {
		t.Fatalf("exit %d", code)
	}
	type side struct {
		Calls    float64
		Coverage float64 `json:"coverage_posts"`
		Limit    *float64
		Over     *int    `json:"over_limit_calls"`
		Used     float64 `json:"allowance_used"`
		Classes  []struct {
			Gap      string `json:"gap_up_to"`
			Coverage *float64
			Mean     *float64
		}
	}
	var got struct {
		Accounts int
		Budget   float64 `json:"budget_calls"`
		side
		Baseline side
		Budgets  []side
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, s := range append(got.Budgets, got.side, got.Baseline) {
		if s.Calls == 0 || s.Coverage <= 0 || s.Limit == nil || s.Coverage > *s.Limit || s.Over == nil ||
			s.Used < 0.9 || len(s.Classes) != 10 || s.Classes[0].Gap != "1h" || s.Classes[9].Mean == nil {
			t.Errorf("%+v", s)
		}
	}
	if got.Accounts != 500 || got.Budget <= 0 || len(got.Budgets) != 1 {
		t.Errorf("%+v", got)
	}
}

func TestSocialTableAndUsage(t *testing.T) {
	var out bytes.Buffer
	run(t.Context(), []string{"social", "--accounts", "500", "--times", "1", "--peers", "0"}, &out, io.Discard)
	for _, want := range []string{"gap up to", "six-classes", "default", "limit"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	for _, bad := range []string{"--accounts=10", "--times=0", "--peers=-1", "--aim=3"} {
		if code := run(t.Context(), []string{"social", bad}, io.Discard, io.Discard); code != exitUsage {
			t.Errorf("%s: exit %d", bad, code)
		}
	}
}
