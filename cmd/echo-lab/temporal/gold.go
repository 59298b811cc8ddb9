package temporal

import (
	_ "embed" // the phrases
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/focus/period"
)

// The phrases: what the gold ones mean was written down by hand, the others are not about time.
var (
	//go:embed gold.tsv
	goldText string
	//go:embed negatives.txt
	negativeText string
)

// goldDay is the day of writing of the phrases, a Monday.
var goldDay = time.Date(2013, 1, 21, 15, 0, 0, 0, time.UTC)

// Tagger is how well period.Tag reads the phrases.
type Tagger struct {
	Phrases    int `json:"phrases"`
	Right      int `json:"right"`
	Recognised int `json:"recognised"` // expressions found in the phrases
	Resolved   int `json:"resolved"`   // of those, brought to days or to a value
	Lines      int `json:"lines"`      // that are not about time
	False      int `json:"false"`      // of those, lines with an expression

	Wrong  []string `json:"wrong,omitempty"`  // phrases read otherwise than written down
	Alarms []string `json:"alarms,omitempty"` // what was found in the lines of False
}

// ResolvedShare is the share of the recognised expressions that were resolved.
func (t *Tagger) ResolvedShare() float64 { return float64(t.Resolved) / float64(max(t.Recognised, 1)) }

// lines are the lines of a text that are neither empty nor a comment.
func lines(text string) []string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" && line[0] != '#' {
			out = append(out, line)
		}
	}
	return out
}

// Judge has the tagger read all phrases.
func Judge() Tagger {
	var t Tagger
	for _, line := range lines(goldText) {
		t.read(line)
	}
	for _, line := range lines(negativeText) {
		t.Lines++
		if found := period.Tag(line, goldDay); len(found) > 0 {
			t.False++
			t.Alarms = append(t.Alarms, fmt.Sprintf("%q: %q is %s", line, found[0].Text, found[0].Value))
		}
	}
	return t
}

// read compares one gold phrase: phrase TAB meaning, and where it is not the whole phrase TAB #N text,
// the Nth expression and how it stands there.
func (t *Tagger) read(line string) {
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
	t.Phrases++
	found := period.Tag(phrase, goldDay)
	for i := range found {
		t.Recognised++
		if resolved(&found[i]) {
			t.Resolved++
		}
	}
	if len(found) != which+1 {
		t.Wrong = append(t.Wrong, fmt.Sprintf("%q: %d expressions, want %d: %+v", phrase, len(found), which+1, found))
		return
	}
	e := found[which]
	got := e.Value
	if strings.Contains(want, "..") {
		got = e.Start + ".." + e.End
	}
	if got != want || e.Text != text {
		t.Wrong = append(t.Wrong, fmt.Sprintf("%q: %q is %s (%s), want %q %s", phrase, e.Text, got, e.Value, text,
			want))
		return
	}
	t.Right++
}

// resolved says whether an expression was brought to days, or to a value: a duration, a
// frequency and a time of day have one.
func resolved(e *period.Expression) bool {
	switch e.Form {
	case period.FormDuration, period.FormFrequency, period.FormTime:
		return true
	}
	return e.Dated
}
