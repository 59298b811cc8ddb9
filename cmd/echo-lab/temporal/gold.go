package temporal

import (
	_ "embed" // the phrases
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/judge/period"
)

// The phrases. The meaning of the gold ones was written down by hand; the others are not about
// time.
var (
	//go:embed gold.tsv
	goldText string
	//go:embed negatives.txt
	negativeText string
)

// goldDay is the day on which the phrases count as written, a Monday.
var goldDay = time.Date(2013, 1, 21, 15, 0, 0, 0, time.UTC)

// Tagger says how well period.Tag reads the phrases.
type Tagger struct {
	Phrases    int `json:"phrases"`
	Right      int `json:"right"`
	Recognised int `json:"recognised"` // expressions found in the phrases
	Resolved   int `json:"resolved"`   // of those, expressions resolved to days or to a value
	Lines      int `json:"lines"`      // lines that are not about time
	False      int `json:"false"`      // of those, lines with an expression

	// phrases read with another meaning than the one written down
	Wrong  []string `json:"wrong,omitempty"`
	Alarms []string `json:"alarms,omitempty"` // what was found in the lines of False
}

// ResolvedShare returns the share of the recognised expressions that were resolved.
func (t *Tagger) ResolvedShare() float64 { return float64(t.Resolved) / float64(max(t.Recognised, 1)) }

// lines returns the lines of a text that are neither empty nor a comment.
func lines(text string) []string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" && line[0] != '#' {
			out = append(out, line)
		}
	}
	return out
}

// Judge lets the tagger read all phrases.
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

// read compares one gold phrase: phrase TAB meaning. If the meaning is not of the whole phrase,
// TAB #N text follows: the Nth expression and its text.
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

// resolved reports whether an expression was resolved to days or to a value. A duration, a
// frequency and a time of day have a value.
func resolved(e *period.Expression) bool {
	switch e.Form {
	case period.FormDuration, period.FormFrequency, period.FormTime:
		return true
	}
	return e.Dated
}
