package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTemporal(t *testing.T) {
	var out, table bytes.Buffer
	dir := t.TempDir()
	args := []string{"temporal", "--scope", "1939..1945", "--pages", "4000", "--budget", "300", "--out", dir}
	if code := run(t.Context(), append(args, "--json"), &out, io.Discard); code != exitDone {
		t.Fatalf("exit %d", code)
	}
	var got struct {
		Scopes []struct {
			Relevant int
			Paper    struct{ Points []struct{ Temporal string } }
			Crawls   []struct {
				Order  string
				Lift   float64
				Points []struct{ Precision, Recall float64 }
				Pooled float64 `json:"pooled_recall"`
			}
		}
		Tagger struct{ Phrases, Right int }
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got.Scopes) != 1 {
		t.Fatalf("%v: %s", err, &out)
	}
	s := got.Scopes[0]
	if s.Relevant == 0 || len(s.Crawls) != 7 || s.Paper.Points[0].Temporal != "80" ||
		got.Tagger.Right != got.Tagger.Phrases {
		t.Errorf("%+v", got)
	}
	for _, c := range s.Crawls {
		if len(c.Points) != 2 || c.Points[1].Precision <= 0 || c.Pooled <= 0 || c.Pooled > 1 ||
			c.Order == "oracle" && c.Lift < 1 {
			t.Errorf("%+v", c)
		}
	}
	if files, err := filepath.Glob(filepath.Join(dir, "temporal-1939..1945.*")); err != nil || len(files) != 2 {
		t.Errorf("files %v %v", files, err)
	}
	run(t.Context(), args, &table, io.Discard)
	for _, want := range []string{"breadth-first", "echo-node", "Second World War", "pooled recall", "the tagger: "} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, &table)
		}
	}
	for _, bad := range []string{"--scope=", "--scope=soon", "--pages=10", "--budget=1", "--starts=0", "--mark=xml"} {
		if code := run(t.Context(), []string{"temporal", bad}, io.Discard, io.Discard); code != exitUsage {
			t.Errorf("%s: exit %d", bad, code)
		}
	}
}

func TestTemporalMarks(t *testing.T) {
	texts := filepath.Join(t.TempDir(), "texts")
	if err := os.WriteFile(texts, []byte("Ontem choveu.\nEm 1905 & depois\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for form, want := range map[string]string{
		"timex3": `<TIMEX3 tid="t1" type="DATE" value="2010-05-02">Ontem</TIMEX3> choveu.` + "\n" +
			`Em <TIMEX3 tid="t1" type="DATE" value="1905">1905</TIMEX3> &amp; depois` + "\n",
		"harem": `<EM ID="1" CATEG="TIME" TYPE="CALENDAR_REF" SUBTYPE="DATE" VAL_NORM="2010-05-02">Ontem</EM>` +
			" choveu.\n" +
			`Em <EM ID="1" CATEG="TIME" TYPE="CALENDAR_REF" SUBTYPE="DATE" VAL_NORM="1905-XX-XX">1905</EM>` +
			" &amp; depois\n",
	} {
		var out bytes.Buffer
		args := []string{"temporal", "--mark", form, "--texts", texts, "--written", "Publicado a 3 de maio de 2010"}
		if code := run(t.Context(), args, &out, io.Discard); code != exitDone || out.String() != want {
			t.Errorf("%s: exit %d\n%s\nwant\n%s", form, code, &out, want)
		}
	}
	for _, bad := range [][]string{{"--written", "soon"}, {"--texts", texts + "?"}} {
		args := append([]string{"temporal", "--mark", "harem", "--texts", texts}, bad...)
		if code := run(t.Context(), args, io.Discard, io.Discard); code == exitDone {
			t.Errorf("%v: exit %d", bad, code)
		}
	}
}
