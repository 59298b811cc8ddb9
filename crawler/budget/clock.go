package budget

import "time"

const (
	maxSkew  = int64(24 * time.Hour) // a Date header further off is not believed
	maxJumps = 3                     // contradictions, after which a server's clock aligns nothing
	drift    = 5000                  // two clocks part by a second in that many
	grain    = int64(500 * time.Millisecond)
)

// clock is what is known of a server's clock: it shows ours plus something from
// lo to hi, nanoseconds.
type clock struct {
	lo, hi int64
	at     int64 // when it was last heard, 0 = never
	jumps  uint8
}

func newClock(skew time.Duration) clock { return clock{lo: -int64(skew), hi: int64(skew)} }

// trusted says whether windows may be aligned by it.
func (c *clock) trusted() bool { return c.jumps < maxJumps }

// heard takes a Date header from an answer to a call sent at sent, that came at
// now. Date is cut to the second, and some servers keep it for a while. It says
// whether this contradicts what was known.
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

// shift follows a clock of ours that was moved by d.
func (c *clock) shift(d int64) { c.lo, c.hi, c.at = c.lo-d, c.hi-d, max(0, c.at+d) }

func (c *clock) sane() bool { return c.lo >= -2*maxSkew && c.hi <= 2*maxSkew }
