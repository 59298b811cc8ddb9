package geo

import (
	"os"
	"strings"
	"testing"
)

func open(t testing.TB) *Gazetteer {
	t.Helper()
	g, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The list of testdata: at least 95 % in the right first division, at most 2 %
// in a wrong one.
func TestLocations(t *testing.T) {
	g := open(t)
	text, err := os.ReadFile("testdata/locations.txt")
	if err != nil {
		t.Fatal(err)
	}
	var right, wrong, unknown, named, rightNone, none int
	admin := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "" || line[0] == ';':
			continue
		case line[0] == '[':
			admin = strings.Trim(line, "[]")
			continue
		}
		r := g.Resolve(line, Hints{})
		got := "-"
		if r.Place != nil && r.Place.Admin1 != "" {
			got = r.Place.Admin1
		}
		if admin == "-" {
			none++
			if got == "-" {
				rightNone++
			} else {
				wrong++
				t.Logf("WRONG %q: got %s (%s, %.2f), want nothing", line, got, r.Place.Name, r.Confidence)
			}
			continue
		}
		named++
		switch got {
		case admin:
			right++
		case "-":
			unknown++
			t.Logf("unknown %q: want %s, candidates %+v", line, admin, r.Candidates)
		default:
			wrong++
			t.Logf("WRONG %q: got %s (%s, %.2f), want %s", line, got, r.Place.Name, r.Confidence, admin)
		}
	}
	t.Logf("%d of %d in the right division (%.1f %%), %d unknown; %d of %d without one left unknown; %d wrong (%.1f %%)",
		right, named, 100*float64(right)/float64(named), unknown, rightNone, none, wrong, 100*float64(wrong)/float64(named+none))
	if float64(right) < 0.95*float64(named) || float64(wrong) > 0.02*float64(named+none) {
		t.Error("below the bar")
	}
}
