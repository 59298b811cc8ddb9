package account

import (
	"time"
)

// Round is the progress of a round: the crawler looks at all kept posts of a Key again, in the
// order of their URIs.
type Round struct {
	// start of the round; a time in the future means that no round is running
	Began  time.Time `json:"began,omitzero"`
	From   string    `json:"from,omitempty"` // the posts up to this URI are done
	Passed int       `json:"passed,omitempty"`
	Alive  int       `json:"alive,omitempty"` // posts passed that are not tombstones
	// posts passed that were not found, at a server whose API does not say why
	Unfound int           `json:"unfound,omitempty"`
	Size    int           `json:"size,omitempty"` // number of posts when the round began
	Took    time.Duration `json:"took,omitempty"` // duration of the last complete round
	Had     int           `json:"had,omitempty"`  // number of posts of the last complete round
	// time of a visit for the round alone; zero = the round runs with ordinary visits
	Next time.Time `json:"next,omitzero"`
	Late time.Time `json:"late,omitzero"` // when the last gap for this late round was written

	Counted bool `json:"counted,omitempty"` // Missed is known
	// posts that the profile claimed in excess of the kept ones
	Missed int64 `json:"missed,omitempty"`
}

// Target returns how many posts should be done by now, if a round takes every.
func (r *Round) Target(now time.Time, every time.Duration) int {
	return int(float64(r.Size) * min(float64(now.Sub(r.Began))/float64(every), 1))
}

// Due reports whether a batch of that size is due now.
func (r *Round) Due(now time.Time, every time.Duration, batch int) bool {
	if r.Began.After(now) {
		return false
	}
	return r.Size > 0 && (now.Sub(r.Began) >= every || r.Passed+batch <= r.Target(now, every))
}

// NextAt returns when the next batch is due.
func (r *Round) NextAt(every time.Duration, batch int) time.Time {
	if r.Size == 0 || r.Began.IsZero() {
		return r.Began // the next visit counts the posts
	}
	part := min(float64(r.Passed+batch)/float64(r.Size), 1)
	return r.Began.Add(time.Duration(part * float64(every)))
}

// Period returns how long a round takes, as far as is known; 0 if there was none.
func (r *Round) Period(now time.Time) time.Duration {
	return max(r.Took, now.Sub(r.Began))
}
