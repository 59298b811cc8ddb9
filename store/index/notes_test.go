package index

import (
	"strings"
	"testing"
)

func TestNotes(t *testing.T) {
	for query, want := range map[string][]string{
		"":              nil,
		"vector -boost": nil,
		`"a phrase" os.getcwd() e-mail l'eau std::vector 10:30 what?`: nil,
		"C++":              {"++ in \"C++\""},
		"#include stdio.h": {"# in"},
		"%":                {`"%" has no letter`, "everything"},
		"-% mar":           {`"%" has no letter`},
		"alloc*":           {"no wildcards"},
		"colo?r":           {"no wildcards"},
		"title:boost":      {"as words"},
		"site:":            {"--site"},
		"site:a.example x": {"--site"},
		"LANG:pt":          {"--lang"},
		"cats OR dogs":     {"no operators"},
		`"cats OR dogs"`:   nil,
		`"C++ code"`:       {"++ in"},
		"100€ 5≤6":         {"€", "≤"},
		"-boost":           nil,
	} {
		got := Notes(query)
		if len(got) != len(want) {
			t.Errorf("%q: %q", query, got)
			continue
		}
		for i := range want {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("%q: %q, want %q in it", query, got[i], want[i])
			}
		}
	}
}

func FuzzNotes(f *testing.F) {
	f.Add("C++ alloc* site:x % \"")
	f.Add("a" + strings.Repeat(">", 900))
	f.Fuzz(func(t *testing.T, query string) {
		for _, s := range Notes(query) {
			if len(s) > 4*maxNoteBytes+300 {
				t.Fatalf("%q: %q", query, s)
			}
		}
		if n := len(Notes(query)); n > maxNotes+1 {
			t.Fatalf("%d notes", n)
		}
	})
}
