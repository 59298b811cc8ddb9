package storytest

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"time"
)

// Headers is how limits are told.
type Headers int

// The forms of limit headers: X-RateLimit-* with a time in ISO 8601 (Mastodon),
// the same with epoch seconds, RateLimit-* with epoch seconds (AT Protocol's PDS), RateLimit-* with seconds from now
// (the IETF's draft), its one-line form, and none.
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

// None, as Mastodon; seconds; a date.
const (
	NoAfter After = iota
	AfterSeconds
	AfterDate
)

// Limit is one bucket: at most Max requests in a window.
type Limit struct {
	Name    string
	Max     int
	Window  time.Duration
	Paging  bool   // counts requests with max_id, min_id, since_id or page only
	Auth    bool   // counts those with a token, for each token; else those without, for each address (IPv6: its /64)
	All     bool   // counts all, for each address
	Class   string // counts requests of that class only; "" = of any
	Rolling bool   // a window begins with a request; default: windows are aligned to the clock
}

// Visitor is who makes a request, and what for.
type Visitor struct {
	From   netip.Addr
	Token  string // "" = none
	Paging bool
	Class  string
}

// Meter counts the requests of every visitor.
type Meter struct {
	limits  []Limit
	says    Headers
	after   After
	buckets map[string]*bucket
}

// NewMeter is a Meter that tells of its limits in those forms.
func NewMeter(limits []Limit, says Headers, after After) (*Meter, error) {
	var faults []error
	for _, l := range limits {
		if l.Max <= 0 || l.Window <= 0 {
			faults = append(faults, fmt.Errorf("storytest: limit %q: %d in %v", l.Name, l.Max, l.Window))
		}
	}
	return &Meter{limits, says, after, map[string]*bucket{}}, errors.Join(faults...)
}

// bucket is one Limit for one key.
type bucket struct {
	begins time.Time
	used   int
}

// Allow counts a request in every bucket that it belongs to, and says what the
// closest of them has left. What is refused is counted as well, as Mastodon does. It is not safe for concurrent use.
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
