package schedule

import (
	"errors"
	"fmt"
	"time"
)

// Outcome is the result of one visit. The numbers are stored; never renumber.
type Outcome uint8

// The outcomes.
const (
	Unchanged Outcome = 0 // the same text, or 304 Not Modified
	Changed   Outcome = 1 // another text; on a timeline, new posts
	Failed    Outcome = 2 // no response, 5xx, 429: no information about the item
	Gone      Outcome = 3 // 404, 410, a deleted account
	Redirect  Outcome = 4 // it moved; the target is another item
)

// String returns the outcome's word in logs and in `status`.
func (o Outcome) String() string {
	switch o {
	case Unchanged:
		return "unchanged"
	case Changed:
		return "changed"
	case Failed:
		return "error"
	case Gone:
		return "gone"
	case Redirect:
		return "redirect"
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// sees reports whether a visit with this outcome shows whether the item changed.
func (o Outcome) sees() bool { return o <= Changed }

// Event is one visit.
type Event struct {
	At      time.Time // stored in seconds
	Outcome Outcome
	Posts   int // with Changed on a timeline: number of new posts; 0 means one
}

// Run is one visit, or several adjacent visits that are folded because the history is long. A
// folded run keeps what estimation needs: the number of visits, their time span, and the number of
// changes.
type Run struct {
	Outcome Outcome       // of all its visits, or Changed if some of them found a change
	Visits  int           // at least 1
	Changes int           // visits that found a change, at most Visits
	Posts   int           // new posts in total, at least Changes
	Span    time.Duration // from the end of the previous run (or the first visit) to its last visit
}

// Limits of a History. They bound the size of a stored history.
const (
	MaxRuns     = 32              // runs kept; older visits are folded into them
	recentRuns  = 8               // the newest runs, which are folded last
	maxCount    = 1 << 30         // visits or posts in one run
	maxSpan     = 200 * 365 * day // longest run
	day         = 24 * time.Hour
	historyTag  = 1 // version of the encoding
	maxUnixTime = 1 << 36
)

// ErrHistory is wrapped by every error of decoding.
var ErrHistory = errors.New("not a history")

// History is the dated outcomes of one item's visits, oldest first. Beyond MaxRuns the oldest runs
// are folded and recent ones stay exact. The zero value is an item without visits. It is not safe
// for concurrent use.
type History struct {
	first int64 // unix seconds of the first visit; 0 = none
	last  int64 // of the last visit
	runs  []Run // the first run's span starts at the first visit
}

// Add appends a visit. A time before the last visit (after a clock was set back) counts as the last
// visit's time, so spans are never negative. The first successful visit is the baseline. It has
// nothing to compare with, so it is stored as Unchanged with span 0, and estimators skip it.
func (h *History) Add(e Event) {
	at := max(e.At.Unix(), 1)
	if h.first == 0 {
		h.first, h.last = at, at
	}
	r := Run{Outcome: e.Outcome, Visits: 1, Span: time.Duration(max(0, at-h.last)) * time.Second}
	switch {
	case e.Outcome != Changed:
	case !h.looked():
		r.Outcome = Unchanged
	default:
		r.Changes, r.Posts = 1, min(max(1, e.Posts), maxCount)
	}
	r.Span = min(r.Span, maxSpan)
	h.last = max(h.last, at)
	if n := len(h.runs); n > 0 && !e.Outcome.sees() && h.runs[n-1].Outcome == e.Outcome {
		h.runs[n-1] = fold(h.runs[n-1], r) // a dead item must not push out what was learned
		return
	}
	h.runs = append(h.runs, r)
	if len(h.runs) > MaxRuns {
		h.shrink()
	}
}

// looked reports whether any visit succeeded.
func (h *History) looked() bool {
	for i := range h.runs {
		if h.runs[i].Outcome.sees() {
			return true
		}
	}
	return false
}

// shrink folds one adjacent pair: the oldest pair with equal outcome and change ratio, else the
// oldest two runs.
func (h *History) shrink() {
	at := 0
	for i := 0; i+1 < len(h.runs)-recentRuns; i++ {
		a, b := h.runs[i], h.runs[i+1]
		if a.Outcome == b.Outcome && a.Changes*b.Visits == b.Changes*a.Visits {
			at = i
			break
		}
	}
	h.runs[at+1] = fold(h.runs[at], h.runs[at+1])
	h.runs = append(h.runs[:at], h.runs[at+1:]...)
}

// fold joins adjacent runs. A failed visit only adds its time to the next successful one, because
// the relevant gap is between successful visits.
func fold(a, b Run) Run {
	span := min(a.Span+b.Span, maxSpan)
	switch {
	case a.Outcome.sees() && !b.Outcome.sees():
		a.Span = span
		return a
	case !a.Outcome.sees() && b.Outcome.sees():
		b.Span = span
		return b
	case !b.Outcome.sees():
		b.Visits = min(a.Visits+b.Visits, maxCount)
		b.Span = span
		return b
	}
	out := Run{
		Outcome: Unchanged,
		Visits:  min(a.Visits+b.Visits, maxCount),
		Changes: min(a.Changes+b.Changes, maxCount),
		Posts:   min(a.Posts+b.Posts, maxCount),
		Span:    span,
	}
	if out.Changes > 0 {
		out.Outcome = Changed
	}
	return out
}

// Runs returns the visits, oldest first. The slice belongs to the History: read only.
func (h *History) Runs() []Run { return h.runs }

// First returns the time of the first visit, zero if none.
func (h *History) First() time.Time { return unix(h.first) }

// Last returns the time of the last visit, zero if none.
func (h *History) Last() time.Time { return unix(h.last) }

// Latest returns the outcome of the last visit; ok is false if there was none.
func (h *History) Latest() (o Outcome, ok bool) {
	if len(h.runs) == 0 {
		return 0, false
	}
	return h.runs[len(h.runs)-1].Outcome, true
}

// Dead reports whether the item was gone at the last visit that did not fail. Later errors give no
// information, so they do not revive it.
func (h *History) Dead() bool {
	for i := len(h.runs) - 1; i >= 0; i-- {
		if o := h.runs[i].Outcome; o != Failed {
			return o == Gone
		}
	}
	return false
}

// Failures returns how many visits in a row, up to the last, had outcome o.
func (h *History) Failures(o Outcome) int {
	if n := len(h.runs); n > 0 && h.runs[n-1].Outcome == o {
		return h.runs[n-1].Visits
	}
	return 0
}

// Totals returns the number of remembered visits that could detect a change, and how many found
// one. The first visit is not included.
func (h *History) Totals() (visits, changes int) {
	for g := range h.Gaps {
		visits += g.Visits
		changes += g.Changes
	}
	return visits, changes
}

// Gaps yields the runs that show changes or none, each with the whole time since the last
// successful visit. It leaves out the baseline.
func (h *History) Gaps(yield func(Run) bool) {
	var carry time.Duration
	seen := false
	for _, r := range h.runs {
		if !r.Outcome.sees() {
			carry += r.Span
			continue
		}
		r.Span += carry
		carry = 0
		if !seen { // the baseline: one visit less in its run
			seen = true
			if r.Visits--; r.Visits == 0 || r.Span == 0 {
				continue
			}
			r.Changes = min(r.Changes, r.Visits)
		}
		if !yield(r) {
			return
		}
	}
}

// unix returns the time of s seconds, the zero time for 0.
func unix(s int64) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(s, 0).UTC()
}

// News returns how many posts, or entries of a list, the remembered visits found, without the first
// one, and in how many days.
func (h *History) News() (posts int, days float64) {
	for g := range h.Gaps {
		posts += g.Posts
		days += g.Span.Hours() / 24
	}
	return posts, days
}
