package account

import (
	"time"
)

// Round is how far the round of a Key is.
type Round struct {
	Began  time.Time `json:"began,omitzero"` // of the round under way; in the future: none is
	From   string    `json:"from,omitempty"` // posts up to this one are done
	Passed int       `json:"passed,omitempty"`
	Alive  int       `json:"alive,omitempty"` // of these, no tombstones
	// and of these, not found, of a server whose API has no words for it
	Unfound int           `json:"unfound,omitempty"`
	Size    int           `json:"size,omitempty"` // posts when the round began
	Took    time.Duration `json:"took,omitempty"` // by the last whole round
	Had     int           `json:"had,omitempty"`  // posts of that
	// when the Key is visited for the sake of it alone; zero = with its visits
	Next time.Time `json:"next,omitzero"`
	Late time.Time `json:"late,omitzero"` // when the ledger was told last that this round is late

	Counted bool  `json:"counted,omitempty"` // Missed is known
	Missed  int64 `json:"missed,omitempty"`  // posts that the profile claimed more than were kept
}

// Target is where a round of so many posts should be by now.
func (r *Round) Target(now time.Time, every time.Duration) int {
	return int(float64(r.Size) * min(float64(now.Sub(r.Began))/float64(every), 1))
}

// Due says whether a batch of that size is to be looked at now.
func (r *Round) Due(now time.Time, every time.Duration, batch int) bool {
	if r.Began.After(now) {
		return false
	}
	return r.Size > 0 && (now.Sub(r.Began) >= every || r.Passed+batch <= r.Target(now, every))
}

// NextAt is when it is.
func (r *Round) NextAt(every time.Duration, batch int) time.Time {
	if r.Size == 0 || r.Began.IsZero() {
		return r.Began // a visit counts the posts
	}
	part := min(float64(r.Passed+batch)/float64(r.Size), 1)
	return r.Began.Add(time.Duration(part * float64(every)))
}

// Period is how long the round takes, by what is known; 0 = nothing is.
func (r *Round) Period(now time.Time) time.Duration {
	return max(r.Took, now.Sub(r.Began))
}
