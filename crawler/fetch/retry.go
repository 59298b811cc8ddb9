package fetch

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/echo-node/echo-node/store"
)

// Retry is what failures mean for the frontier. The zero value is the default.
type Retry struct {
	Attempts int           // failed tries of a Key, or failures in a row of a site, before it is given up; default 5
	Base     time.Duration // wait after the first failure, three times as long after each further one; default 5 s
	Max      time.Duration // the longest wait of our own; default 1 h
}

// maxRetryAfter is the longest wait that a site may ask for.
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

// wait is the wait after n failures, n at least 1.
func (r Retry) wait(n int) time.Duration {
	d := r.Base
	for ; n > 1 && d < r.Max; n-- {
		d *= 3
	}
	return min(d, r.Max)
}

// Again is the Next of a Key whose fetch failed for reason: pending with a
// growing wait, or refused after the last attempt.
func (r Retry) Again(due store.Due, now time.Time, reason string) store.Next {
	r = r.withDefaults()
	n := due.Attempts + 1
	if n >= r.Attempts {
		return store.Next{State: store.StateRefused, Attempts: n, Reason: "unreachable: " + reason}
	}
	return store.Next{State: store.StatePending, At: now.Add(r.wait(n)), Attempts: n, Reason: reason}
}

// Beyond is how many times due was tried since Again first refused it, 0 before.
func (r Retry) Beyond(due store.Due) int { return max(0, due.Attempts+1-r.withDefaults().Attempts) }

// Failed notes in s that the site did not answer, or answered 5xx.
func (r Retry) Failed(s *store.Site, now time.Time) {
	r = r.withDefaults()
	s.Failures++
	s.NextAllowed = later(s.NextAllowed, now.Add(r.wait(min(s.Failures, r.Attempts))))
}

// Down says whether the site has failed so often in a row that its Keys are
// given up without asking.
func (r Retry) Down(s store.Site) bool { return s.Failures >= r.withDefaults().Attempts }

// Slowed notes in s that the site asked for less (429 or 503): the wait it named
// in Retry-After, or twice the last back-off, whichever is longer.
func (r Retry) Slowed(s *store.Site, now time.Time, header string) {
	r = r.withDefaults()
	s.BackOff = min(max(2*s.BackOff, r.Base), r.Max)
	wait := s.BackOff
	if asked, ok := RetryAfter(header, now); ok {
		wait = max(wait, asked)
	}
	s.NextAllowed = later(s.NextAllowed, now.Add(wait))
}

// Answered notes in s that the site answered as it should.
func (r Retry) Answered(s *store.Site) {
	s.Failures = 0
	if s.BackOff /= 2; s.BackOff < r.withDefaults().Base {
		s.BackOff = 0
	}
}

// RetryAfter reads a Retry-After header in both forms of RFC 9110 section
// 10.2.3: seconds, or a date in any of the three formats. A date that has
// passed is no wait; no wait is longer than a day.
func RetryAfter(header string, now time.Time) (time.Duration, bool) {
	header = strings.TrimSpace(header)
	if header == "" {
		return 0, false
	}
	if strings.Trim(header, "0123456789") == "" {
		n, err := strconv.ParseInt(header, 10, 64)
		if err != nil || n > int64(maxRetryAfter/time.Second) {
			return maxRetryAfter, true // err: more digits than fit, so very long
		}
		return time.Duration(n) * time.Second, true
	}
	t, err := http.ParseTime(header)
	if err != nil {
		return 0, false
	}
	return min(max(t.Sub(now), 0), maxRetryAfter), true
}
