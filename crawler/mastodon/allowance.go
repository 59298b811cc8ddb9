package mastodon

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
)

// Class is the kind of endpoint a request is for: limits may differ by it.
type Class string

// The classes.
const (
	ClassInstance  Class = "instance" // what the server says of itself
	ClassAccount   Class = "account"  // profiles, by name or id, one or many
	ClassPosts     Class = "posts"    // posts of an account
	ClassPost      Class = "post"     // posts by id, their history
	ClassFollowers Class = "followers"
	ClassFollowing Class = "following"
	ClassTag       Class = "tag"
	ClassPublic    Class = "public"
	ClassSearch    Class = "search"
)

// Allowance is what one answer said of the limits, as it was said: nothing is
// inferred, and the table of a server's documents is not looked at. A server with several overlapping limits
// tells of the one that is closest (Mastodon's documents: "the headers return the
// one you are closest to exceeding"), which need not be the one that bites: its
// limit on paging is in no header.
type Allowance struct {
	At     time.Time // when the answer came, by this peer's clock
	Date   time.Time // when it was sent, by the server's (header Date); zero = not said
	Class  Class
	Paging bool // the request had a cursor or a page: Mastodon counts those a second time
	Auth   bool // it carried the credential
	Status int
	// Limit and Remaining are requests, -1 = not said.
	Limit, Remaining int64
	Reset            time.Time     // by the server's clock; zero = not said
	RetryAfter       time.Duration // at most a day; -1 = not said
}

// Said says whether the answer spoke of limits at all.
func (a Allowance) Said() bool {
	return a.Limit >= 0 || a.Remaining >= 0 || !a.Reset.IsZero() || a.RetryAfter >= 0
}

// maxReset is how far ahead a reset is believed: no window of a limit is longer than a month.
const maxReset = 31 * 24 * time.Hour

// ReadAllowance reads what h says of limits, which came at now: X-RateLimit-*
// (ISO 8601 at Mastodon and GoToSocial, epoch seconds elsewhere), X-Rate-Limit-*, RateLimit-* (seconds from now in the IETF's
// drafts, epoch seconds at Bluesky), the one-line RateLimit of the later drafts, and
// Retry-After in both forms of RFC 9110 section 10.2.3. Of several that with the least remaining counts.
func ReadAllowance(h http.Header, status int, now time.Time) Allowance {
	a := Allowance{At: now, Status: status, Limit: -1, Remaining: -1, RetryAfter: -1}
	if d, ok := fetch.RetryAfter(h.Get("Retry-After"), now); ok {
		a.RetryAfter = d
	}
	if t, err := http.ParseTime(h.Get("Date")); err == nil {
		a.Date = t.UTC()
	}
	for _, prefix := range [...]string{"X-Ratelimit-", "X-Rate-Limit-", "Ratelimit-"} {
		a.offer(whole(h.Get(prefix+"Limit")), whole(h.Get(prefix+"Remaining")), resetTime(h.Get(prefix+"Reset"), now))
	}
	line := h.Get("Ratelimit")
	if strings.Contains(line, "remaining=") {
		line = strings.ReplaceAll(line, ",", ";")
	}
	for item := range strings.SplitSeq(line, ",") {
		a.offer(structured(item, now))
	}
	return a
}

// offer takes a limit into a, when it is closer than what a has.
func (a *Allowance) offer(limit, remaining int64, reset time.Time) {
	if limit < 0 && remaining < 0 && reset.IsZero() {
		return
	}
	closer := remaining >= 0 && (a.Remaining < 0 || remaining < a.Remaining)
	if closer || a.Limit < 0 && a.Remaining < 0 && a.Reset.IsZero() {
		a.Limit, a.Remaining, a.Reset = limit, remaining, reset
	}
}

// structured reads one item of a RateLimit header: `"default";r=50;t=30`
// (draft-ietf-httpapi-ratelimit-headers-10), or `limit=100; remaining=50; reset=30`,
// which the -07 draft writes with commas.
func structured(item string, now time.Time) (limit, remaining int64, reset time.Time) {
	limit, remaining = -1, -1
	for part := range strings.SplitSeq(item, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch strings.ToLower(name) {
		case "r", "remaining":
			remaining = whole(value)
		case "t", "reset":
			reset = resetTime(value, now)
		case "q", "limit":
			limit = whole(value)
		}
	}
	return limit, remaining, reset
}

// whole is the number that text begins with, -1 when there is none.
func whole(text string) int64 {
	text = strings.TrimSpace(text)
	end := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(text)
	}
	n, err := strconv.ParseInt(text[:end], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// resetTime reads when a limit is lifted: a time in ISO 8601 or of HTTP, seconds
// or milliseconds of the epoch, or seconds from now, told apart by their size.
// What is farther away than maxReset is not believed.
func resetTime(text string, now time.Time) time.Time {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > 64 {
		return time.Time{}
	}
	var t time.Time
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		switch {
		case !(seconds >= 0 && seconds < 1e14): // NaN too
			return time.Time{}
		case seconds >= 1e12:
			t = time.UnixMilli(int64(seconds))
		case seconds >= 1e9:
			t = time.UnixMilli(int64(seconds * 1e3))
		case seconds <= maxReset.Seconds():
			t = now.Add(time.Duration(seconds * float64(time.Second)))
		}
	} else if t, err = time.Parse(time.RFC3339Nano, text); err != nil {
		if t, err = http.ParseTime(text); err != nil {
			return time.Time{}
		}
	}
	if d := t.Sub(now); d > maxReset || d < -maxReset {
		return time.Time{}
	}
	return t.UTC()
}
