package change

import (
	"net/http"
	"strings"
)

// Seen is the part of a visit's result that change detection needs.
type Seen struct {
	Status int    // HTTP status; 0 = no response
	ETag   string // as sent, or ""
	Digest string // of the text, or "" if no body was read
	Moved  bool   // a permanent redirect led to another key
}

// Verdict is the result of comparing two visits.
type Verdict uint8

// The verdicts, in the order of schedule.Outcome.
const (
	Same Verdict = iota
	Different
	Unknown // an error: neither a change nor an unchanged item
	Gone
	Moved
)

// Compare compares the present visit with the last good one. A 304 is the server's statement that
// nothing changed. An equal strong entity tag proves equal bytes. A different tag proves nothing,
// because many servers make a new one for each response, so the text decides. An error is never a
// change.
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

// Trust is how reliable a source of hints is (a site's sitemap, a feed, Last-Modified). Each visit
// after a hint updates it. The zero value knows nothing. All counts are halved when one reaches
// trustMemory, so Trust follows a site that gets better or worse. It is stored as four bytes.
type Trust struct {
	NewRight, NewWrong uint8 // the hint said "changed": right, wrong
	OldRight, OldWrong uint8 // the hint said "as before": right, wrong
}

// trustMemory is the largest count of a kind.
const trustMemory = 64

// Learn records whether the item had changed at a visit. hintNew says that the hint had said
// "changed".
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

// Reported returns the share of an item's changes that hints report correctly, 0 if nothing is known.
// Missed changes lower it. A source that reports every item as changed also gets a low value.
func (t Trust) Reported() float64 {
	return float64(t.NewRight) / (float64(t.NewRight) + float64(t.OldWrong) + 2) * max(0, 1-1/t.Ratio(true))
}

// Ratio returns the odds ratio of a change, given that the hint says "changed" or not. With few
// cases it is near 1. It is always between 1/50 and 50.
func (t Trust) Ratio(hintNew bool) float64 {
	changed := float64(t.NewRight) + float64(t.OldWrong)
	same := float64(t.NewWrong) + float64(t.OldRight)
	// The probability of the hint if the item changed, and if not. One case of each kind is
	// assumed.
	givenChanged := (float64(t.NewRight) + 1) / (changed + 2)
	givenSame := (float64(t.NewWrong) + 1) / (same + 2)
	if !hintNew {
		givenChanged, givenSame = 1-givenChanged, 1-givenSame
	}
	return min(50, max(1.0/50, givenChanged/givenSame))
}
