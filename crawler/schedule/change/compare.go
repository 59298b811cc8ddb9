package change

import (
	"net/http"
	"strings"
)

// Seen is what one visit brought, as far as change detection needs it.
type Seen struct {
	Status int    // HTTP status; 0 = no answer
	ETag   string // as sent, or ""
	Digest string // of the text, or "" if no body was read
	Moved  bool   // a permanent redirect led to another Key
}

// Verdict is what two visits say.
type Verdict uint8

// The verdicts, in the order of schedule.Outcome.
const (
	Same Verdict = iota
	Different
	Unknown // an error: neither a change nor none
	Gone
	Moved
)

// Compare says what the visit now found against the last good one. A 304 is the
// server's word that nothing changed. An equal strong entity tag proves the same
// bytes; a different one proves nothing (many servers make one up per answer), so
// the text decides. An error is never a change.
func Compare(last, now Seen) Verdict {
	switch {
	case now.Moved || now.Status == http.StatusMovedPermanently || now.Status == http.StatusPermanentRedirect:
		return Moved
	case now.Status == http.StatusNotFound || now.Status == http.StatusGone:
		return Gone
	case now.Status == http.StatusNotModified:
		return Same
	case now.Status < 200 || now.Status > 299:
		return Unknown
	case last.ETag != "" && last.ETag == now.ETag && !strings.HasPrefix(now.ETag, "W/"):
		return Same
	case now.Digest == "":
		return Unknown
	case now.Digest == last.Digest:
		return Same
	}
	return Different
}

// Trust is how a source of hints (a site's sitemap, a feed, Last-Modified)
// proved itself. Each visit after a hint teaches it. The zero value knows
// nothing. Counts are halved when one reaches trustMemory, so trust follows a site
// that mends its ways, or falls into bad ones. It is four bytes, stored as they are.
type Trust struct {
	NewRight, NewWrong uint8 // hint said "changed": it had, it had not
	OldRight, OldWrong uint8 // hint said "as before": it was, it was not
}

// trustMemory is how many cases of a kind are remembered at most.
const trustMemory = 64

// Learn records what a visit found when the hint had said new (changed).
func (t *Trust) Learn(hintNew, changed bool) {
	cell := &t.OldRight
	switch {
	case hintNew && changed:
		cell = &t.NewRight
	case hintNew:
		cell = &t.NewWrong
	case changed:
		cell = &t.OldWrong
	}
	if *cell >= trustMemory {
		t.NewRight, t.NewWrong, t.OldRight, t.OldWrong = t.NewRight/2, t.NewWrong/2, t.OldRight/2, t.OldWrong/2
	}
	*cell++
}

// Told is the share of an item's changes that hints tell of and are right about, 0
// for one who knows nothing: what is missed counts, and what is said of everything
// says nothing.
func (t Trust) Told() float64 {
	return float64(t.NewRight) / (float64(t.NewRight) + float64(t.OldWrong) + 2) * max(0, 1-1/t.Ratio(true))
}

// Ratio is how much likelier the item is to have changed, as odds, now that the
// hint says new, or not. With few cases it is near 1; it is kept within 1/50 and 50.
func (t Trust) Ratio(hintNew bool) float64 {
	changed := float64(t.NewRight) + float64(t.OldWrong)
	same := float64(t.NewWrong) + float64(t.OldRight)
	// Chance of the hint given each truth, with one case of each kind assumed.
	givenChanged := (float64(t.NewRight) + 1) / (changed + 2)
	givenSame := (float64(t.NewWrong) + 1) / (same + 2)
	if !hintNew {
		givenChanged, givenSame = 1-givenChanged, 1-givenSame
	}
	return min(50, max(1.0/50, givenChanged/givenSame))
}
