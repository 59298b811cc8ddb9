package budget

import "time"

// Constants of the estimate. Times are in nanoseconds.
const (
	maxSkew = int64(24 * time.Hour) // a Date header further off is ignored
	// after so many contradictions the server's clock no longer aligns windows
	maxJumps = 3
	drift    = 5000                          // two clocks drift apart by one second in 5,000
	grain    = int64(500 * time.Millisecond) // half the precision of a Date header, which has whole seconds
)

// clock is what is known about a server's clock: its time minus ours is between lo and hi, in
// nanoseconds.
type clock struct {
	lo, hi int64
	at     int64 // time of the last Date header, 0 = never
	jumps  uint8
}

func newClock(skew time.Duration) clock { return clock{lo: -int64(skew), hi: int64(skew)} }

// trusted reports whether windows may be aligned by the server's clock.
func (c *clock) trusted() bool { return c.jumps < maxJumps }

// heard uses the Date header of a response that arrived at now to a call sent at sent. Date is cut
// to the second, and some servers cache it for a while. heard reports whether Date contradicts what
// was known.
func (c *clock) heard(sent, now, date int64) (jumped bool) {
	lo, hi := date-grain-now, date+3*grain-sent
	if hi < -maxSkew || lo > maxSkew || lo > hi {
		return false
	}
	first := c.at == 0
	wide := max(0, now-c.at) / drift
	if !first {
		lo, hi = max(lo, c.lo-wide), min(hi, c.hi+wide)
	}
	c.at = now
	if lo > hi {
		c.lo, c.hi = date-grain-now, date+3*grain-sent
		c.jumps = min(c.jumps+1, maxJumps)
		return true
	}
	c.lo, c.hi = lo, hi
	return false
}

// shift adjusts the offset after our clock was moved by d.
func (c *clock) shift(d int64) { c.lo, c.hi, c.at = c.lo-d, c.hi-d, max(0, c.at+d) }

// sane reports whether the offset is within two days.
func (c *clock) sane() bool { return c.lo >= -2*maxSkew && c.hi <= 2*maxSkew }
