package temporal

import "testing"

// Every phrase is read with the meaning written down, and a larger share of the recognised
// expressions is resolved than in the paper.
func TestTheTaggerReadsTheGoldPhrases(t *testing.T) {
	got := Judge()
	t.Logf("%d of %d phrases right; %d of %d recognised resolved", got.Right, got.Phrases, got.Resolved, got.Recognised)
	for _, wrong := range got.Wrong {
		t.Error(wrong)
	}
	if got.Phrases < 300 || got.Right != got.Phrases {
		t.Errorf("%d of %d phrases", got.Right, got.Phrases)
	}
	if got.ResolvedShare() < 0.962 {
		t.Errorf("%d of %d resolved", got.Resolved, got.Recognised)
	}
	t.Logf("%d of %d lines have a false expression: %q", got.False, got.Lines, got.Alarms)
	if got.Lines < 100 || float64(got.False) > 0.05*float64(got.Lines) {
		t.Errorf("%d of %d lines have a false expression", got.False, got.Lines)
	}
}
