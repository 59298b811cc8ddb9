package crawler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// Limits are the limits that the volunteer sets. While one applies, the peer fetches nothing and
// drops nothing. 0 = no such limit.
type Limits struct {
	MaxRate float64 // requests a second, for all sites together
	// bytes received a second, on average: after a fetch above it, the next fetch waits
	MaxBandwidth int64
	MaxDisk      int64 // bytes of the data directory; the outbox may have a tenth of it
	// DiskFull returns "" while MaxDisk is not reached. Otherwise it returns words that begin with
	// "disk". If it is nil, the disk is full when the store has MaxDisk bytes.
	DiskFull func() string
	Hours    string // local hours of the day in which to fetch: "22-07", "22:30-07:15"; "" = all
	// Zone is the time zone of Hours, default time.Local.
	Zone *time.Location
}

// outboxRow is the assumed size of an outbox row, in bytes.
const outboxRow = 256

// How often the slow limits are checked, and for how long Stats still names a limit after it
// applied.
const (
	recheck = time.Second
	named   = 2 * time.Second
)

// validate returns all faults of l, joined.
func (l Limits) validate() error {
	var errs []error
	if l.MaxRate < 0 || l.MaxBandwidth < 0 || l.MaxDisk < 0 {
		errs = append(errs, fmt.Errorf("crawler: negative limit: MaxRate %g, MaxBandwidth %d, MaxDisk %d", l.MaxRate,
			l.MaxBandwidth, l.MaxDisk))
	}
	if _, err := ParseHours(l.Hours); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// limiter applies Limits. Safe for concurrent use.
type limiter struct {
	l     Limits
	hours Hours
	zone  *time.Location
	rate  *rate.Limiter // nil = none
	stats func() store.Stats

	mu   sync.Mutex
	paid time.Time            // when the received bytes are within MaxBandwidth again
	held map[string]heldUntil // the limits that applied lately, by name
}

// heldUntil is a limit that applied, in words, and until when Stats names it.
type heldUntil struct {
	words string
	until time.Time
}

func newLimiter(l Limits, s *db.Store) *limiter {
	h, _ := ParseHours(l.Hours) //nolint:errcheck // validated
	m := &limiter{l: l, hours: h, zone: l.Zone, stats: s.Stats, held: map[string]heldUntil{}}
	if m.zone == nil {
		m.zone = time.Local
	}
	if l.MaxRate > 0 {
		m.rate = rate.NewLimiter(rate.Limit(l.MaxRate), 1)
	}
	return m
}

// hold returns how long no fetch may be started; 0 = one may start. pending is the number of
// started fetches that have not made their first request.
func (m *limiter) hold(now time.Time, pending int) time.Duration {
	if wait := m.closed(now); wait > 0 {
		return wait
	}
	if m.rate == nil {
		return 0
	}
	if short := float64(pending) + 1 - m.rate.TokensAt(now); short > 1e-6 {
		wait := max(time.Duration(short/m.l.MaxRate*float64(time.Second)), time.Microsecond)
		m.note(now, wait, "rate", fmt.Sprintf("rate %g requests/s", m.l.MaxRate))
		return wait
	}
	return 0
}

// closed returns how long nothing may be received; 0 = something may. It does not check the rate,
// which limits requests.
func (m *limiter) closed(now time.Time) time.Duration {
	if wait, _ := m.shut(now); wait > 0 {
		return wait
	}
	if _, wait := m.full(); wait > 0 {
		return wait
	}
	m.mu.Lock()
	owed := m.paid.Sub(now)
	m.mu.Unlock()
	if m.l.MaxBandwidth > 0 && owed > 0 {
		m.note(now, owed, "bandwidth", fmt.Sprintf("bandwidth %d B/s", m.l.MaxBandwidth))
		return owed
	}
	return 0
}

// shut returns how long to wait for the hours, at most a minute, and the limit in words. The wait
// is 0 within the hours.
func (m *limiter) shut(now time.Time) (time.Duration, string) {
	wait := m.hours.Until(now.In(m.zone))
	return min(wait, time.Minute), "hours " + m.l.Hours // the clock or the zone may change meanwhile
}

// full returns which limit of the disk is reached, in words, and when to check again; "" and 0 if
// none.
func (m *limiter) full() (string, time.Duration) {
	if m.l.MaxDisk == 0 {
		return "", 0
	}
	s := m.stats()
	if m.l.DiskFull != nil {
		if words := m.l.DiskFull(); words != "" {
			return words, recheck
		}
	} else if s.DiskBytes >= m.l.MaxDisk {
		return fmt.Sprintf("disk %d of %d bytes", s.DiskBytes, m.l.MaxDisk), recheck
	}
	if out := s.Outbox * outboxRow; out > m.l.MaxDisk/10 {
		return fmt.Sprintf("outbox about %d bytes, over a tenth of %d", out, m.l.MaxDisk), recheck
	}
	return "", 0
}

// request waits until the rate allows one request. It fails if ctx is done.
func (m *limiter) request(ctx context.Context) error {
	if m.rate == nil {
		return ctx.Err()
	}
	return m.rate.Wait(ctx)
}

// spent counts n bytes that were received.
func (m *limiter) spent(now time.Time, n int64) {
	if m.l.MaxBandwidth == 0 || n <= 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.paid.Before(now) {
		m.paid = now
	}
	// note makes Stats name a limit during its wait, and a little longer.
	m.paid = m.paid.Add(time.Duration(float64(n) / float64(m.l.MaxBandwidth) * float64(time.Second)))
}

func (m *limiter) note(now time.Time, wait time.Duration, limit, words string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held[limit] = heldUntil{words, now.Add(wait + named)}
}

// words returns the limits that apply now, or applied a moment ago.
func (m *limiter) words(now time.Time) []string {
	var out []string
	if wait, words := m.shut(now); wait > 0 {
		out = append(out, words)
	}
	if words, wait := m.full(); wait > 0 {
		out = append(out, words)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range [...]string{"bandwidth", "rate"} {
		if h, ok := m.held[name]; ok && now.Before(h.until) {
			out = append(out, h.words)
		}
	}
	return out
}
