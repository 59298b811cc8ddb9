package fetch

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/echo-node/echo-node/store"
)

// Retry defines what failures mean for the frontier. The zero value is the default.
type Retry struct {
	// Attempts is the number of failed tries of a Key after which it is refused. It is also the
	// number of failures in a row after which a site counts as down. Default 5.
	Attempts int
	// Base is the wait after the first failure. Each further failure makes the wait three times as
	// long. Default 5 s.
	Base time.Duration
	Max  time.Duration // the longest wait that this peer chooses itself; default 1 h
}

// maxRetryAfter is the longest wait that a site can demand.
const maxRetryAfter = 24 * time.Hour

func (r Retry) withDefaults() Retry {
	if r.Attempts <= 0 {
		r.Attempts = 5
	}
	if r.Base <= 0 {
		r.Base = 5 * time.Second
	}
	if r.Max <= 0 {
		r.Max = time.Hour
	}
	return r
}

// wait returns the wait after n failures; n is at least 1.
func (r Retry) wait(n int) time.Duration {
	d := r.Base
	for ; n > 1 && d < r.Max; n-- {
		d *= 3
	}
	return min(d, r.Max)
}

// Again returns the Next of a Key whose fetch failed because of reason. It is pending with a
// growing wait, or refused after the last attempt.
func (r Retry) Again(due store.Due, now time.Time, reason string) store.Next {
	r = r.withDefaults()
	n := due.Attempts + 1
	if n >= r.Attempts {
		return store.Next{State: store.StateRefused, Attempts: n, Reason: "unreachable: " + reason}
	}
	return store.Next{State: store.StatePending, At: now.Add(r.wait(n)), Attempts: n, Reason: reason}
}

// Beyond returns how often due was tried since Again first refused it. It is 0 before that.
func (r Retry) Beyond(due store.Due) int { return max(0, due.Attempts+1-r.withDefaults().Attempts) }

// Failed records in s that the site did not respond, or responded with a 5xx status.
func (r Retry) Failed(s *store.Site, now time.Time) {
	r = r.withDefaults()
	s.Failures++
	s.NextAllowed = later(s.NextAllowed, now.Add(r.wait(min(s.Failures, r.Attempts))))
}

// Down reports whether the site failed so often in a row that its Keys are refused without a
// request.
func (r Retry) Down(s store.Site) bool { return s.Failures >= r.withDefaults().Attempts }

// Slowed records in s that the site demanded fewer requests (429 or 503). The wait is the one in
// Retry-After, or twice the last back-off if that is longer.
func (r Retry) Slowed(s *store.Site, now time.Time, header string) {
	r = r.withDefaults()
	s.BackOff = min(max(2*s.BackOff, r.Base), r.Max)
	wait := s.BackOff
	if asked, ok := RetryAfter(header, now); ok {
		wait = max(wait, asked)
	}
	s.NextAllowed = later(s.NextAllowed, now.Add(wait))
}

// Answered records in s that the site responded normally.
func (r Retry) Answered(s *store.Site) {
	s.Failures = 0
	if s.BackOff /= 2; s.BackOff < r.withDefaults().Base {
		s.BackOff = 0
	}
}

// RetryAfter parses a Retry-After header in both forms of RFC 9110 section 10.2.3: seconds, or a
// date in any of the three formats. A date in the past means no wait. The longest wait is a day.
func RetryAfter(header string, now time.Time) (time.Duration, bool) {
	header = strings.TrimSpace(header)
	if header == "" {
		return 0, false
	}
	if strings.Trim(header, "0123456789") == "" {
		n, err := strconv.ParseInt(header, 10, 64)
		if err != nil || n > int64(maxRetryAfter/time.Second) {
			return maxRetryAfter, true // err: the number does not fit, so the wait is very long
		}
		return time.Duration(n) * time.Second, true
	}
	t, err := http.ParseTime(header)
	if err != nil {
		return 0, false
	}
	return min(max(t.Sub(now), 0), maxRetryAfter), true
}
