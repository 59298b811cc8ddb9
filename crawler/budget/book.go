package budget

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Options are the options of New. The zero value is the default.
type Options struct {
	// Flight is the longest time that a request can take. It must be longer than the client's
	// timeout. A call that is not settled by then counts as made. Default 2 min, at most MaxFlight.
	Flight time.Duration
	// Skew is the assumed error of a server's clock until its first Date header. It stays in use if
	// the server sends no Date. Default 30 s, at most 5 min.
	Skew time.Duration
	// Limits overrides limits of the table, by bucket name. Examples are the money for one day, or
	// a server with its own settings. 0 forbids all use. nil overrides nothing.
	Limits map[string]int64
	// Spread makes calls at even gaps instead of as soon as there is room. The number of calls is
	// the same, the server sees no bursts, and a call that arrives later waits less.
	Spread bool
}

// MaxFlight is the longest Options.Flight.
const MaxFlight = 10 * time.Minute

// Validate returns one error that joins every fault.
func (o *Options) Validate() error {
	var faults []error
	if o.Flight < 0 || o.Flight > MaxFlight {
		faults = append(faults, fmt.Errorf("flight %s, at most %s", o.Flight, MaxFlight))
	}
	if o.Skew < 0 || o.Skew > 5*time.Minute {
		faults = append(faults, fmt.Errorf("skew %s, at most 5m0s", o.Skew))
	}
	for name, l := range o.Limits {
		if l < 0 || l > MaxLimit {
			faults = append(faults, fmt.Errorf("limit %d of %q", l, clip(name)))
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("budget: options: %w", errors.Join(faults...))
	}
	return nil
}

// Errors that callers branch on. Methods return them wrapped.
var (
	ErrClass      = errors.New("no such class")      // the table of the credential does not have it
	ErrCredential = errors.New("no such credential") // no credential of that name, or none at all
	ErrTicket     = errors.New("no such ticket, or settled before")
	ErrSnapshot   = errors.New("not a snapshot") // bytes that Restore or ParseTicket cannot accept
)

// WaitError is the error of Reserve if no call may be made now.
type WaitError struct{ Wait }

// Error returns the time of the next call and the reason for the wait.
func (e *WaitError) Error() string {
	if e.At.IsZero() {
		return fmt.Sprintf("budget: %s: never: %s", e.Bucket, e.Reason)
	}
	return fmt.Sprintf("budget: %s: not before %s: %s", e.Bucket, e.At.UTC().Format(time.RFC3339), e.Reason)
}

// Wait describes when a call may be made.
type Wait struct {
	At         time.Time // zero = not until the operator changes a limit
	Credential string    // the credential that can make the call first
	Bucket     string    // the bucket with the longest wait, "" if the call may be made now
	Reason     string    // in words
	Answer     bool      // a call is in flight, and its response may end the wait long before At
}

// Ask is the most that a call may return. The zero value is for classes without items.
type Ask struct {
	Items int64 // items in the response: page size, or number of ids
	Paid  int64 // how many of them are already paid for today (see Paid) and are not charged again
	// Only is the name of the credential that the call must use, "" = any. It is not part of an
	// intent.
	Only string
}

// Answer is the result of a call, as the caller saw it.
type Answer struct {
	NotSent bool        // no connection was made and nothing was sent; the other fields are ignored
	Status  int         // 0 = sent, but no response: everything that was reserved counts as used
	Header  http.Header // of the response
	// Refused says that the server refused because of a limit and the status alone does not show
	// it. An example is a 403 of an overloaded search. 429 and 420 always count as refused.
	Refused     bool
	Items, Paid int64 // in the response
}

func (a *Answer) refused() bool { return a.Refused || a.Status == 429 || a.Status == 420 }

// Ticket is one reserved call. It is a value: keep it until Settle.
type Ticket struct {
	ID         uint64 // grows, also across restarts
	Credential string
	Class      string
	At         time.Time
	Ask        Ask
}

// AddressOf is the name under which Snapshot and Restore keep the buckets of the peer's own IP
// address.
const AddressOf = "@address"

// ledger holds the buckets of one credential, or of the address.
type ledger struct {
	name    string
	table   *Table
	buckets []*bucket
	holds   []hold
	heard   bool   // at least one response arrived
	flying  []call // reserved, not settled, in order
	last    uint64 // the highest ticket
	refused int64  // refused responses, ever
	calls   int64  // settled calls, ever
}

// call is a ticket in flight.
type call struct {
	id    uint64
	class string
	sent  int64
}

// hold is a wait for one class, or for all classes if class is "".
type hold struct {
	class  string
	until  int64
	fails  int64 // refusals in a row
	reason string
}

// Book holds the rate budgets of one site. It is not safe for concurrent use: the loop that works
// on the site owns it. The time of a method is proportional to the number of credentials and of the
// buckets of the class. Each sliding bucket adds at most about 1,000 steps.
type Book struct {
	site    string
	o       Options
	now     int64
	clock   clock
	serial  uint64
	address *ledger
	creds   []*ledger
	avoid   map[string]int64 // not chosen until this time, while another credential is available
}

// Avoid makes Reserve and Next choose other credentials until the given time, if there are others.
// The zero time ends this. It is not part of a snapshot. Avoid reports whether there is a
// credential that is not avoided.
func (b *Book) Avoid(credential string, until time.Time) (others bool) {
	if b.avoid == nil {
		b.avoid = map[string]int64{}
	}
	if delete(b.avoid, credential); !until.IsZero() && b.ledger(credential) != nil {
		b.avoid[credential] = until.UnixNano()
	}
	return b.others()
}

// others reports whether there is a credential that is not avoided.
func (b *Book) others() bool {
	return slices.ContainsFunc(b.creds, func(l *ledger) bool { return b.avoid[l.name] <= b.now })
}

// New returns a Book without credentials.
func New(site string, o Options) (*Book, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Flight == 0 {
		o.Flight = 2 * time.Minute
	}
	if o.Skew == 0 {
		o.Skew = 30 * time.Second
	}
	return &Book{site: site, o: o, clock: newClock(o.Skew), address: &ledger{name: AddressOf}}, nil
}

// Add adds a credential. The name is not secret; "" means requests without a credential. t is the
// table of limits of the service. Add replaces a credential of the same name.
func (b *Book) Add(credential string, t Table, now time.Time) error {
	if err := t.Validate(); err != nil {
		return err
	}
	if credential != "" && !goodName(credential) {
		return fmt.Errorf("budget: credential %q: a name has letters, digits and -./_: only, at most %d",
			clip(credential), maxName)
	}
	if len(b.creds) >= MaxCredentials || len(b.address.buckets)+len(t.Buckets) > maxEntries {
		return fmt.Errorf("budget: %d credentials and %d shared buckets at %s, at most %d (MaxCredentials) and %d",
			len(b.creds), len(b.address.buckets), b.site, MaxCredentials, maxEntries)
	}
	b.tick(now)
	b.creds = slices.DeleteFunc(b.creds, func(l *ledger) bool { return l.name == credential })
	l := &ledger{name: credential, table: &t}
	for i := range t.Buckets {
		to := l
		if t.Buckets[i].Shared {
			to = b.address
		}
		if to.find(t.Buckets[i].Name) == nil {
			to.buckets = append(to.buckets, b.bucket(t.Buckets[i]))
		}
	}
	b.creds = append(b.creds, l)
	return nil
}

// bucket returns a new, empty bucket of the Book, with its limit from Options.Limits if that names
// it.
func (b *Book) bucket(s Spec) *bucket {
	k := &bucket{spec: s, limit: s.Limit, by: ByTable}
	if l, ok := b.o.Limits[s.Name]; ok {
		k.limit, k.by = l, BySetting
		if l > 0 {
			s.Limit, k.spec.Limit = l, l
		}
	}
	if s.Kind == Adaptive {
		k.pace = newPace(s)
	}
	return k
}

// find returns the bucket of that name, nil if there is none.
func (l *ledger) find(name string) *bucket {
	for _, k := range l.buckets {
		if k.spec.Name == name {
			return k
		}
	}
	return nil
}

// tick moves the Book to now.
func (b *Book) tick(now time.Time) {
	n := now.UnixNano()
	switch {
	case n >= b.now:
		b.now = n
	// our clock was set back; callers may be out of order by up to 5 s
	case b.now-n > int64(5*time.Second):
		d := n - b.now
		b.now = n
		b.shift(d)
	}
	for _, l := range b.ledgers() {
		for _, k := range l.buckets {
			k.forget(b.now, int64(b.o.Flight), &b.clock)
		}
		l.flying = slices.DeleteFunc(l.flying, func(c call) bool { return c.sent+int64(b.o.Flight) <= b.now })
		l.holds = slices.DeleteFunc(l.holds, func(h hold) bool { return h.until+int64(time.Hour) <= b.now })
	}
}

// ledgers returns the address first, then all credentials.
func (b *Book) ledgers() []*ledger { return append([]*ledger{b.address}, b.creds...) }

// shift moves all times by d after our clock was set back.
func (b *Book) shift(d int64) {
	b.clock.shift(d)
	lost := !b.clock.sane()
	if lost { // our own clock was wrong by days
		b.clock = newClock(b.o.Skew)
	}
	for _, l := range b.ledgers() {
		for _, k := range l.buckets {
			if k.shift(d); lost {
				k.jump(b.now, &b.clock)
			}
		}
		for i := range l.holds {
			l.holds[i].until += d
		}
		for i := range l.flying {
			l.flying[i].sent += d
		}
	}
}

// need is one bucket of a call and the amount that the call uses there.
type need struct {
	in *bucket
	of *ledger
	n  int64
}

// needs returns the buckets of a class for a credential, including learned ones.
func (b *Book) needs(l *ledger, class string, ask Ask) ([]need, error) {
	c := l.table.class(class)
	if c == nil {
		return nil, fmt.Errorf("budget: %w: %q at %s", ErrClass, clip(class), l.table.Service)
	}
	var all []need
	for _, of := range []*ledger{l, b.address} {
		for _, k := range of.buckets {
			if k.class == class || k.class == "" && slices.Contains(c.Buckets, k.spec.Name) {
				all = append(all, need{k, of, c.amount(k.spec.unit(), ask)})
			}
		}
	}
	return all, nil
}

// amount returns what a call uses of a bucket that counts in u.
func (c *Class) amount(u Unit, a Ask) int64 {
	items := min(max(a.Items, 0), MaxOpen)
	charged := items - min(max(a.Paid, 0), items)
	switch u {
	case Items:
		return charged
	case Micro:
		return c.Price.Call + charged*c.Price.Item
	}
	return 1
}

// choice is what one credential can do.
type choice struct {
	l     *ledger
	needs []need
	wait  Wait
	at    int64
	worth float64 // calls per nanosecond that would be lost soonest if unused
}

// Next returns when a call of class may be made, which credential can make it first, and which
// bucket delays it. It returns an error if the class is unknown or there is no credential.
func (b *Book) Next(now time.Time, class string, ask Ask) (Wait, error) {
	c, err := b.choose(now, class, ask)
	return c.wait, err
}

// Reserve reserves a call now, in every bucket of its class. Among the credentials that may call
// now it chooses the one whose unused allowance lapses soonest. If no call may be made now, the
// error is a *WaitError. The caller must make the intent durable before it sends the request (see
// the package comment), and must settle every ticket.
func (b *Book) Reserve(now time.Time, class string, ask Ask) (Ticket, error) {
	c, err := b.choose(now, class, ask)
	if err != nil {
		return Ticket{}, err
	}
	if c.at > b.now {
		return Ticket{}, &WaitError{c.wait}
	}
	b.serial = max(b.serial+1, uint64(max(b.now, 0)))
	t := Ticket{ID: b.serial, Credential: c.l.name, Class: class, At: time.Unix(0, b.now).UTC(), Ask: ask}
	for _, n := range c.needs {
		n.in.take(t.ID, n.n, b.now, &b.clock)
	}
	for _, l := range []*ledger{c.l, b.address} {
		l.last, l.flying = t.ID, append(l.flying, call{t.ID, class, b.now})
	}
	return t, nil
}

// choose returns the credential with the shortest wait, and of equal ones the one of most worth.
func (b *Book) choose(now time.Time, class string, ask Ask) (best choice, err error) {
	b.tick(now)
	if len(b.creds) == 0 {
		return best, fmt.Errorf("budget: %w: none at %s", ErrCredential, b.site)
	}
	others := b.others()
	for _, l := range b.creds {
		if ask.Only != "" && l.name != ask.Only || ask.Only == "" && others && b.avoid[l.name] > b.now {
			continue
		}
		c := choice{l: l}
		if c.needs, err = b.needs(l, class, ask); err != nil {
			return choice{}, err
		}
		b.weigh(&c, class)
		if best.l == nil || c.at < best.at || c.at == best.at && c.worth > best.worth {
			best = c
		}
	}
	if best.l == nil {
		return best, fmt.Errorf("budget: %w: %q at %s", ErrCredential, clip(ask.Only), b.site)
	}
	return best, nil
}

// weigh computes the longest wait of a credential, and its worth from the bucket with the fewest
// calls left.
func (b *Book) weigh(c *choice, class string) {
	c.at = b.now
	c.wait = Wait{Credential: c.l.name}
	later := func(at int64, bucket, reason string, answer bool) {
		if at > c.at {
			c.at, c.wait.Bucket, c.wait.Reason, c.wait.Answer = at, bucket, reason, answer
		}
	}
	for _, of := range []*ledger{c.l, b.address} {
		for _, h := range of.holds {
			if h.class == "" || h.class == class {
				later(h.until, "hold", h.reason, false)
			}
		}
	}
	for _, of := range []*ledger{c.l, b.address} {
		switch n := len(of.flying); {
		case n > 0 && !of.heard:
			by := of.flying[0].sent + int64(b.o.Flight)
			later(by, "first answer", "the first call to this server is still under way", true)
		case n >= MaxOpen:
			later(of.flying[0].sent+int64(b.o.Flight), "MaxOpen", "too many calls on their way", true)
		}
	}
	least := int64(-1)
	for _, n := range c.needs {
		if n.n > n.in.limit && n.in.spec.Kind != Reported && n.n > 0 {
			c.at, c.wait.Bucket, c.wait.Answer = far, n.in.spec.Name, false
			c.wait.Reason = fmt.Sprintf("asks for %d of %d %s", n.n, n.in.limit, n.in.spec.unit())
			return
		}
		at := n.in.when(n.n, b.now, &b.clock)
		why, answer := string(n.in.spec.Kind), at == far
		if answer {
			at, why = b.answerBy(n.in), "waits for an answer"
		}
		if b.o.Spread {
			later(n.in.paced(b.now, &b.clock), n.in.spec.Name, "spread over the window", false)
		}
		later(at, n.in.spec.Name, why, answer)
		if free := n.in.free(b.now, &b.clock); n.in.spec.unit() == Calls && (least < 0 || free < least) {
			least, c.worth = free, float64(free)/max(1, float64(n.in.lapses(b.now, &b.clock)))
		}
	}
	c.wait.At = time.Unix(0, c.at).UTC()
}

// answerBy returns the time by which the oldest open call of k is settled or counts as made.
func (b *Book) answerBy(k *bucket) int64 {
	if len(k.opens) == 0 {
		return b.now + int64(b.o.Flight)
	}
	return max(b.now+1, k.opens[0].sent+int64(b.o.Flight))
}

// lapses returns the time until unused allowance is lost.
func (b *bucket) lapses(now int64, c *clock) int64 {
	switch b.spec.Kind {
	case Aligned:
		return b.start(b.index(now+c.hi)+1) - c.hi - now
	case Tokens:
		return max(0, b.tat-now)
	case Reported:
		return max(0, b.reported.lo-now)
	}
	return b.window()
}
