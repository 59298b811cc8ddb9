package budget

import "time"

// Origin is the source of a limit.
type Origin string

// The origins.
const (
	ByTable   Origin = "table"
	BySetting Origin = "setting"
	ByHeaders Origin = "headers"
)

// Status is a view of a Book.
type Status struct {
	Site    string         `json:"site"`
	Ahead   time.Duration  `json:"clock_ahead"`       // middle of the server's clock offset
	Unsure  time.Duration  `json:"clock_uncertainty"` // ± of Ahead
	Buckets []BucketStatus `json:"buckets"`
	Counts  []Count        `json:"counts"` // of each credential
	Holds   []HoldStatus   `json:"holds,omitempty"`
}

// Count is the total use of a credential.
type Count struct {
	Credential string `json:"credential"`
	Calls      int64  `json:"calls"`
	Refused    int64  `json:"refused"` // responses that said that a limit was exceeded
}

// BucketStatus is a view of one bucket.
type BucketStatus struct {
	Credential string `json:"credential"` // AddressOf = of the address
	Name       string `json:"name"`
	Kind       Kind   `json:"kind"`
	Unit       Unit   `json:"unit"`
	// Adaptive: calls per window at the present pace
	Limit  int64         `json:"limit"`
	Found  int64         `json:"found,omitempty"` // the limit found by refusals, if lower
	By     Origin        `json:"limit_by"`
	Window time.Duration `json:"window"`
	Free   int64         `json:"free"`
	Open   int64         `json:"open"` // in flight, counted as used
	// when it has room again or more than now; zero = it is unused
	Full   time.Time `json:"resets_at"`
	Source string    `json:"source,omitempty"`
}

// HoldStatus is a wait that a server requested.
type HoldStatus struct {
	Credential string    `json:"credential"`
	Class      string    `json:"class"` // "" = all
	Until      time.Time `json:"until"`
	Reason     string    `json:"reason"`
}

// Status returns the state of all buckets at now.
func (b *Book) Status(now time.Time) Status {
	b.tick(now)
	c := &b.clock
	s := Status{Site: b.site, Ahead: time.Duration((c.lo + c.hi) / 2), Unsure: time.Duration((c.hi - c.lo) / 2)}
	for _, l := range b.ledgers() {
		for _, k := range l.buckets {
			s.Buckets = append(s.Buckets, k.status(l.name, b.now, c))
		}
		if l != b.address {
			s.Counts = append(s.Counts, Count{l.name, l.calls, l.refused})
		}
		for _, h := range l.holds {
			if h.until > b.now {
				s.Holds = append(s.Holds, HoldStatus{l.name, h.class, time.Unix(0, h.until).UTC(), h.reason})
			}
		}
	}
	return s
}

// status returns the view of one bucket. Its Free is never negative.
func (b *bucket) status(credential string, now int64, c *clock) BucketStatus {
	s := BucketStatus{Credential: credential, Name: b.spec.Name, Kind: b.spec.Kind, Unit: b.spec.unit(), Limit: b.limit,
		By:    b.by,
		Found: b.cut.limit, Window: time.Duration(b.window()), Free: max(0, b.free(now, c)), Open: b.out(),
		Source: b.spec.Source}
	full := int64(0)
	switch b.spec.Kind {
	case Aligned:
		full = b.start(b.index(now+c.hi)+1) - c.lo
	case Sliding:
		if len(b.log) > 0 {
			full = b.log[0].at + b.window() + b.slack()
		}
	case Tokens:
		full = b.tat
	case Reported:
		full, s.Window = b.reported.hi, 0
	case Adaptive:
		s.Limit = int64(b.pace.rate * b.pace.window)
		full = b.last + b.pace.gap()
	}
	if full > now {
		s.Full = time.Unix(0, full).UTC()
	}
	return s
}
