package period

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// written is the day of writing of the gold phrases, a Monday.
var written = time.Date(2013, 1, 21, 15, 0, 0, 0, time.UTC)

func readLines(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, line := range strings.Split(string(data), "\n") {
		if line != "" && line[0] != '#' {
			out = append(out, line)
		}
	}
	return out
}

// TestGold goes through phrases whose meaning was written down by hand.
func TestGold(t *testing.T) {
	lines := readLines(t, "testdata/gold.tsv")
	right, recognised, resolved := 0, 0, 0
	for _, line := range lines {
		fields := strings.Split(line, "\t")
		phrase, want, text := fields[0], fields[1], fields[0]
		which := 0
		if len(fields) > 2 {
			text = fields[2]
			if n, rest, ok := strings.Cut(text, " "); ok && strings.HasPrefix(n, "#") {
				which, _ = strconv.Atoi(n[1:])
				which--
				text = rest
			}
		}
		found := Tag(phrase, written)
		for i := range found {
			recognised++
			if found[i].Resolved() {
				resolved++
			}
		}
		if len(found) != which+1 {
			t.Errorf("%q: %d expressions, want %d: %+v", phrase, len(found), which+1, found)
			continue
		}
		e := found[which]
		got := e.Value
		if strings.Contains(want, "..") {
			got = e.Start + ".." + e.End
		}
		if got != want || e.Text != text {
			t.Errorf("%q: %q is %s (%s), want %q %s", phrase, e.Text, got, e.Value, text, want)
			continue
		}
		right++
	}
	t.Logf("%d of %d phrases right; %d of %d recognised resolved", right, len(lines), resolved, recognised)
	if len(lines) < 300 {
		t.Errorf("only %d phrases", len(lines))
	}
	if float64(resolved) < 0.962*float64(recognised) {
		t.Errorf("%d of %d resolved", resolved, recognised)
	}
}

// TestNegatives goes through lines that are not about time.
func TestNegatives(t *testing.T) {
	lines := readLines(t, "testdata/negatives.txt")
	wrong := 0
	for _, line := range lines {
		if found := Tag(line, written); len(found) > 0 {
			wrong++
			t.Logf("%q: %q is %s", line, found[0].Text, found[0].Value)
		}
	}
	t.Logf("%d of %d lines have a false expression", wrong, len(lines))
	if len(lines) < 100 || float64(wrong) > 0.05*float64(len(lines)) {
		t.Errorf("%d of %d lines have a false expression", wrong, len(lines))
	}
}
