package quota

import (
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/echo-node/echo-node/dht/wire"
)

// Limits limit what one other peer may request from this one. A zero field takes the default.
// They bound the cost of a hostile peer. An honest peer of this program stays far below them.
type Limits struct {
	Links Rate // forwarded links; default 20,000 a second, burst 200,000
	Bytes Rate // size of requests; default 32 MiB a second, burst 256 MiB
	// requests by price: a look-up costs 1; a request for host leases costs 1, plus 1 for each 100
	// leases; a query or a request for copies costs 4; a page of rows or records costs 8. Default
	// 400 a second, burst 4000
	Requests Rate
	Priority Rate // requests for leases and agreement on replicas; default 200 a second, burst 2000

	// Grace is how many requests may still arrive after the peer was told to wait, because they
	// were under way. Default 32.
	Grace int
	// A request beyond the Grace is a strike. One strike a second is forgiven. Above SlowAfter
	// (default 64) the peer gets an eighth of its credit until no strike is left. Above CutAfter
	// (default 256) it gets nothing for CutFor (default a minute). A malformed request counts as 8
	// strikes.
	SlowAfter, CutAfter int
	CutFor              time.Duration
	// MaxPeers is the most peers with a credit of their own. The rest share one credit. Default
	// 4096.
	MaxPeers int
}

// Rate is a token bucket: PerSecond refills it, and Burst is its size.
type Rate struct{ PerSecond, Burst float64 }

// withDefaults returns l with its defaults. A Burst is at least one second of its rate.
func (l Limits) withDefaults() Limits {
	rate := func(r *Rate, perSecond, burst float64) {
		if r.PerSecond == 0 {
			*r = Rate{perSecond, burst}
		}
		r.Burst = max(r.Burst, r.PerSecond)
	}
	rate(&l.Links, 20_000, 200_000)
	rate(&l.Bytes, 32<<20, 256<<20)
	rate(&l.Requests, 400, 4000)
	rate(&l.Priority, 200, 2000)
	count := func(n *int, to int) {
		if *n == 0 {
			*n = to
		}
	}
	count(&l.Grace, 32)
	count(&l.SlowAfter, 64)
	count(&l.CutAfter, 256)
	count(&l.MaxPeers, 4096)
	if l.CutFor == 0 {
		l.CutFor = time.Minute
	}
	return l
}

const (
	slowedShare  = 8           // a slowed peer gets 1/slowedShare
	faultStrikes = 8           // strikes of a malformed request
	maxPause     = time.Minute // the longest pause that another peer may ask for
)

// price is the cost of one request.
type price struct {
	priority               bool
	links, bytes, requests float64
}

// priceOf returns the price of a request, from the kind of its body and its size.
func priceOf(req *wire.Request) price {
	p := price{priority: Priority(req), bytes: float64(proto.Size(req)), requests: 1}
	switch b := req.Body.(type) {
	case *wire.Request_Forward:
		p.links = float64(len(b.Forward.GetLinks()))
	case *wire.Request_Turns:
		p.requests += float64(len(b.Turns.GetAsks())) / 100
	case *wire.Request_Query, *wire.Request_Copies:
		p.requests = 4
	case *wire.Request_Compare, *wire.Request_Unite, *wire.Request_Records:
		p.requests = 8
	}
	return p
}

// Priority reports whether a request is about leases or agreement on replicas. Such a request never
// waits behind others.
func Priority(req *wire.Request) bool {
	m := req.ProtoReflect()
	body := m.WhichOneof(m.Descriptor().Oneofs().ByName("body"))
	if body == nil {
		return false
	}
	switch body.Name() {
	case protoreflect.Name("lease"), protoreflect.Name("ballots"), protoreflect.Name("configs"):
		return true
	}
	return false
}

// ruling is the decision about a request.
type ruling struct {
	ok     bool
	wait   time.Duration // if not ok: retry after this
	reason string        // if not ok: links, bytes, requests, urgent, waiting, slowed or cut
	news   string        // what to log about the peer, if anything
}

// credits decides about the requests of other peers. It is pure: time is an argument. It is not
// safe for concurrent use; see Gate.
type credits struct {
	limits Limits
	peers  map[string]*account
	others account // shared by the peers beyond MaxPeers
}

// account is the credit of one peer.
type account struct {
	links, bytes, requests, priority bucket

	until   time.Time // the peer was told to wait until then
	grace   int       // requests left that are not counted as strikes
	strikes float64
	seen    time.Time
	slowed  bool
	cut     time.Time // cut off until then
	why     string    // what it ran out of last
}

// bucket is the state of a token bucket; see Rate.
type bucket struct {
	left   float64
	at     time.Time
	filled bool // false: full, never used
}

// take takes n tokens and returns 0, or returns how long to wait for them. A request for more than
// the burst waits for a full bucket and leaves it in debt.
func (b *bucket) take(n float64, r Rate, now time.Time) time.Duration {
	if !b.filled {
		b.left, b.at, b.filled = r.Burst, now, true
	}
	if d := now.Sub(b.at); d > 0 {
		b.left, b.at = min(r.Burst, b.left+d.Seconds()*r.PerSecond), now
	}
	if missing := min(n, r.Burst) - b.left; missing > 0 {
		return max(time.Millisecond, time.Duration(math.Ceil(missing/r.PerSecond*1000))*time.Millisecond)
	}
	b.left -= n
	return 0
}

func newCredits(l Limits) *credits {
	return &credits{limits: l.withDefaults(), peers: map[string]*account{}}
}

// account returns the account of peer. A new account may replace an idle one.
func (c *credits) account(peer string, now time.Time) *account {
	if a := c.peers[peer]; a != nil {
		return a
	}
	if len(c.peers) >= c.limits.MaxPeers {
		for id, a := range c.peers {
			if now.Sub(a.seen) > 10*time.Minute && now.After(a.cut) && a.strikes == 0 {
				delete(c.peers, id)
			}
		}
	}
	if len(c.peers) >= c.limits.MaxPeers {
		return &c.others
	}
	a := &account{}
	c.peers[peer] = a
	return a
}

// forgive reduces the strikes with time and ends what has expired.
func (a *account) forgive(now time.Time) {
	if a.seen.IsZero() {
		a.seen = now
	}
	if d := now.Sub(a.seen); d > 0 {
		a.strikes, a.seen = max(0, a.strikes-d.Seconds()), now
	}
	if a.strikes == 0 {
		a.slowed = false
	}
}

// strike counts n strikes against a. news is "" or says that the peer is now slowed or cut off.
func (c *credits) strike(a *account, n float64, now time.Time) (news string) {
	a.strikes = min(a.strikes+n, 2*float64(c.limits.CutAfter))
	switch {
	case a.strikes > float64(c.limits.CutAfter):
		a.cut, a.strikes, a.slowed = now.Add(c.limits.CutFor), float64(c.limits.SlowAfter), true
		return "cut off"
	case a.strikes > float64(c.limits.SlowAfter) && !a.slowed:
		a.slowed = true
		return "slowed"
	}
	return ""
}

// judge decides about one request.
func (c *credits) judge(peer string, p price, now time.Time) ruling {
	a := c.account(peer, now)
	a.forgive(now)
	if p.priority { // an owner that is cut off for its bulk keeps its leases
		if wait := a.priority.take(1, c.limits.Priority, now); wait > 0 {
			return ruling{wait: wait, reason: "urgent", news: c.strike(a, 1, now)}
		}
		return ruling{ok: true}
	}
	if wait := a.cut.Sub(now); wait > 0 {
		return ruling{wait: wait, reason: "cut"}
	}
	if wait := a.until.Sub(now); wait > 0 {
		if a.grace > 0 {
			a.grace--
			return ruling{wait: wait, reason: "waiting"}
		}
		news := c.strike(a, 1, now)
		if cut := a.cut.Sub(now); cut > 0 {
			wait = cut
		}
		return ruling{wait: wait, reason: "waiting", news: news}
	}
	share := 1.0
	if a.slowed {
		share = slowedShare
	}
	for _, one := range []struct {
		b    *bucket
		n    float64
		r    Rate
		name string
	}{{&a.links, p.links, c.limits.Links, "links"}, {&a.bytes, p.bytes, c.limits.Bytes, "bytes"},
		{&a.requests, p.requests, c.limits.Requests, "requests"}} {
		r := Rate{one.r.PerSecond / share, one.r.Burst / share}
		if wait := one.b.take(one.n, r, now); wait > 0 {
			wait = min(wait, maxPause)
			a.until, a.grace, a.why = now.Add(wait), c.limits.Grace, one.name
			if a.slowed {
				return ruling{wait: wait, reason: "slowed"}
			}
			return ruling{wait: wait, reason: one.name}
		}
	}
	return ruling{ok: true}
}

// fault counts a malformed request.
func (c *credits) fault(peer string, now time.Time) (news string) {
	a := c.account(peer, now)
	a.forgive(now)
	a.why = "malformed requests"
	return c.strike(a, faultStrikes, now)
}

// refuse counts a request that its sender may not make (rules.go).
func (c *credits) refuse(peer string, now time.Time) (news string) {
	a := c.account(peer, now)
	a.forgive(now)
	a.why = "requests that it may not make"
	return c.strike(a, 1, now)
}

// state describes how peer is limited now, or returns "" if it is not.
func (c *credits) state(peer string, now time.Time) string {
	a := c.peers[peer]
	if a == nil {
		return ""
	}
	a.forgive(now)
	switch {
	case now.Before(a.cut):
		return fmt.Sprintf("cut off for %s: %s", a.cut.Sub(now).Round(time.Second), a.why)
	case a.slowed:
		return "slowed: " + a.why
	case now.Before(a.until):
		return "told to wait: " + a.why
	}
	return ""
}
