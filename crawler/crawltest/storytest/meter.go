package storytest

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"time"
)

// Headers is the form of the limit headers.
type Headers int

// The forms of limit headers. ISO is X-RateLimit-* with a time in ISO 8601 (Mastodon), and Epoch
// the same with epoch seconds. Draft is RateLimit-* with epoch seconds (AT Protocol's PDS).
// DraftSeconds is RateLimit-* with seconds from now (the IETF's draft), and DraftLine its one-line
// form. NoHeaders is none.
const (
	ISO Headers = iota
	Epoch
	Draft
	DraftSeconds
	DraftLine
	NoHeaders
	EpochX // X-Rate-Limit-* with epoch seconds (X)
)

// After is the form of Retry-After in a 429.
type After int

// The forms of After: none, as in Mastodon; seconds; a date.
const (
	NoAfter After = iota
	AfterSeconds
	AfterDate
)

// Limit is one limit: at most Max requests in a window.
type Limit struct {
	Name   string
	Max    int
	Window time.Duration
	// Paging counts only requests for a page: with max_id, min_id, since_id or page, or with a
	// cursor.
	Paging bool
	// Auth counts only requests with a token, per token. Without Auth only requests without a token
	// count, per address (IPv6: per /64).
	Auth    bool
	All     bool   // counts all requests, per address
	Class   string // counts only requests of that class; "" = any class
	Rolling bool   // a window begins with a request; default: aligned to the clock
}

// Visitor describes a request to a Meter.
type Visitor struct {
	From   netip.Addr
	Token  string // "" = none
	Paging bool
	Class  string
}

// Meter counts the requests of all visitors.
type Meter struct {
	limits  []Limit
	says    Headers
	after   After
	buckets map[string]*bucket
}

// NewMeter returns a Meter that reports its limits in the given forms.
func NewMeter(limits []Limit, says Headers, after After) (*Meter, error) {
	var faults []error
	for _, l := range limits {
		if l.Max <= 0 || l.Window <= 0 {
			faults = append(faults, fmt.Errorf("storytest: limit %q: %d in %v", l.Name, l.Max, l.Window))
		}
	}
	return &Meter{limits, says, after, map[string]*bucket{}}, errors.Join(faults...)
}

// bucket is the count of one Limit for one address or token.
type bucket struct {
	begins time.Time
	used   int
}

// Allow counts a request in every bucket to which it belongs, and reports whether all limits allow
// it. It writes the headers of the limit with the fewest requests left. A refused request counts
// too, as in Mastodon. Allow is not safe for concurrent use.
func (w *Meter) Allow(h http.Header, v Visitor, now time.Time) bool {
	var closest *Limit
	left, ends, ok := 0, time.Time{}, true
	for i := range w.limits {
		l := &w.limits[i]
		if l.Paging && !v.Paging || l.Class != "" && l.Class != v.Class || !l.All && l.Auth != (v.Token != "") {
			continue
		}
		who := v.From.String()
		if v.From.Is6() {
			who = netip.PrefixFrom(v.From, 64).Masked().String()
		}
		if l.Auth && !l.All {
			who = v.Token
		}
		key := l.Name + " " + who
		b := w.buckets[key]
		begins := now.Truncate(l.Window)
		if l.Rolling {
			begins = now
		}
		if b == nil || !now.Before(b.begins.Add(l.Window)) {
			b = &bucket{begins: begins}
			w.buckets[key] = b
		}
		b.used++
		ok = ok && b.used <= l.Max
		if rest := max(l.Max-b.used, 0); closest == nil || rest < left {
			closest, left, ends = l, rest, b.begins.Add(l.Window)
		}
	}
	if closest != nil {
		w.tell(h, closest.Max, left, ends, now)
	}
	if !ok {
		switch w.after {
		case AfterSeconds:
			h.Set("Retry-After", strconv.Itoa(int(ends.Sub(now).Seconds())+1))
		case AfterDate:
			h.Set("Retry-After", ends.UTC().Add(time.Second).Format(http.TimeFormat))
		}
	}
	return ok
}

// tell writes the headers of a limit.
func (w *Meter) tell(h http.Header, limit, left int, ends, now time.Time) {
	prefix, reset := "X-RateLimit-", ends.UTC().Format("2006-01-02T15:04:05.000000Z")
	switch w.says {
	case NoHeaders:
		return
	case DraftLine:
		h.Set("RateLimit", fmt.Sprintf(`"default";r=%d;t=%d`, left, int(ends.Sub(now).Seconds())))
		h.Set("RateLimit-Policy", fmt.Sprintf(`"default";q=%d`, limit))
		return
	case EpochX:
		prefix, reset = "X-Rate-Limit-", strconv.FormatInt(ends.Unix(), 10)
	case Epoch:
		reset = strconv.FormatInt(ends.Unix(), 10)
	case Draft:
		prefix, reset = "RateLimit-", strconv.FormatInt(ends.Unix(), 10)
	case DraftSeconds:
		prefix, reset = "RateLimit-", strconv.Itoa(int(ends.Sub(now).Seconds()))
	}
	h.Set(prefix+"Limit", strconv.Itoa(limit))
	h.Set(prefix+"Remaining", strconv.Itoa(left))
	h.Set(prefix+"Reset", reset)
}
