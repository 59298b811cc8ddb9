// Package hostlease decides when an IP address may be asked, if sites of several peers share it. The
// owner of the Key ip:ADDR gives leases of the address (package lease, pure). An Exchange asks the
// owners for the leases that this peer needs, and gives those of the addresses that this peer owns.
package hostlease

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/node/hostlease/lease"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
)

const (
	hostLeaseTimeout = 2 * time.Second       // one request for host leases
	hostLeaseRounds  = 10 * time.Millisecond // least time between rounds: requests share a message
)

// Guard knows which addresses may be asked, and how often. It is the client that fetches.
type Guard interface {
	// Reachable returns why an address may not be asked, or nil.
	Reachable(netip.Addr) error
	// AddrGap returns the least time between two requests to an address.
	AddrGap(netip.Addr) time.Duration
}

// Owners knows which peer owns a slice, or returns "" while it does not.
type Owners interface{ OwnerOf(partition.Slice) string }

// Peers is how the other peers are called.
type Peers interface {
	Call(ctx context.Context, peer string, req *wire.Request) (*wire.Response, error)
	// Foreign reports whether a slice belongs to another zone and this peer does not still own it.
	Foreign(partition.Slice) bool
	// ForgetOwner forgets that peer is the owner of a slice of another zone.
	ForgetOwner(s partition.Slice, peer string)
}

// Options are the options of an Exchange.
type Options struct {
	Self    string    // this peer
	Started time.Time // when this peer started
	SliceOf func(partition.Key) partition.Slice
	Quorum  *quorum.Machine
	Peers   Peers
	Logger  *slog.Logger
}

// Exchange asks for host leases and gives them. It gives the leases of the Keys ip:ADDR that this
// peer owns, and takes those of the addresses that it crawls. fetch calls ask before each request to
// an address that has a pace. Requests to other owners run in the background, one message per owner
// at a time. Its methods are safe for concurrent use.
type Exchange struct {
	o      Options
	guard  Guard
	owners Owners
	joiner bool
	kick   chan struct{}

	mu    sync.Mutex // always locked before giving
	taker *lease.Taker
	busy  map[string]bool // owners with a request under way

	giving sync.Mutex
	giver  *lease.Giver
	since  map[partition.Slice]time.Time // when a slice was gained after this peer started
}

// New returns an Exchange without leases. Nothing else may be called before Connect, but Share and
// Gained.
func New(o Options) *Exchange {
	return &Exchange{o: o, kick: make(chan struct{}, 1), busy: map[string]bool{},
		since: map[partition.Slice]time.Time{},
		taker: lease.NewTaker(lease.TakerOptions{Number: func() uint64 { return max(1, rand.Uint64()) }}),
		giver: lease.NewGiver(lease.GiverOptions{})}
}

// Connect gives the Exchange what is opened after it. joiner reports that this peer joined a swarm,
// whose members may have given leases before it started.
func (k *Exchange) Connect(g Guard, o Owners, joiner bool) {
	k.guard, k.owners, k.joiner = g, o, joiner
}

// Gained records that this peer now owns slices.
func (k *Exchange) Gained(slices []partition.Slice) {
	k.giving.Lock()
	defer k.giving.Unlock()
	now := time.Now()
	for _, s := range slices {
		k.since[s] = now
	}
}

// Share connects the pace of addresses with each client that sends requests to sites.
func (k *Exchange) Share() *fetch.Share { return &fetch.Share{Ask: k.ask, Done: k.done} }

// ask is fetch.Share.Ask.
func (k *Exchange) ask(a netip.Addr, gap time.Duration, now time.Time) fetch.Leave {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.taker.Ask(a, gap, now)
	if k.taker.Pending(a) {
		if owner, _ := k.owner(a); owner == k.o.Self {
			if q := k.taker.DueAt(a, now); q != nil {
				k.ownHostLease(*q)
				if !l.From.IsZero() {
					l = k.taker.Ask(a, gap, time.Now())
				}
			}
		} else if !k.busy[owner] {
			k.wake()
		}
	}
	return l
}

// done is fetch.Share.Done.
func (k *Exchange) done(a netip.Addr, v fetch.Visit, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.taker.Done(a, v, now)
	if k.taker.Pending(a) {
		k.wake()
	}
}

func (k *Exchange) wake() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// owner returns the peer that gives the host leases of a, and the slice of the address's Key. The
// peer is "" while it is not known.
func (k *Exchange) owner(a netip.Addr) (string, partition.Slice) {
	s := k.o.SliceOf(AddressKey(a))
	return k.owners.OwnerOf(s), s
}

// AddressKey returns the canonical Key of any address that fetch has: without zone, and never IPv4
// in IPv6 form.
func AddressKey(a netip.Addr) partition.Key {
	return partition.Key("ip:" + a.Unmap().WithZone("").String())
}

// ownHostLease asks this peer's own giver. k.mu is held.
func (k *Exchange) ownHostLease(q lease.Ask) {
	begun := time.Now()
	ans, refusal := k.give(k.o.Self, q)
	if now := time.Now(); refusal != nil {
		k.taker.Failed(q, k.words(k.o.Self, refusal), ms(refusal.WaitMs), now)
	} else {
		k.taker.Answered(q, ans, begun, now)
	}
}

// Run sends the requests to the owners until ctx ends.
func (k *Exchange) Run(ctx context.Context) error {
	var asking sync.WaitGroup
	defer asking.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		k.mu.Lock()
		again := k.round(ctx, &asking)
		k.mu.Unlock()
		if !call.Sleep(ctx, hostLeaseRounds, nil) {
			return ctx.Err()
		}
		if timer.Stop(); !again.IsZero() {
			timer.Reset(max(0, time.Until(again)))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-k.kick:
		case <-timer.C:
		}
	}
}

// round sends the requests that are due now, and returns when the next ones are due. k.mu is held.
func (k *Exchange) round(ctx context.Context, asking *sync.WaitGroup) time.Time {
	owners := map[netip.Addr]string{}
	due, again := k.taker.Due(time.Now(), func(a netip.Addr) bool {
		owners[a], _ = k.owner(a)
		return !k.busy[owners[a]]
	})
	by := map[string][]lease.Ask{}
	for _, q := range due {
		by[owners[q.Addr]] = append(by[owners[q.Addr]], q)
	}
	for owner, qs := range by {
		switch owner {
		case k.o.Self:
			for _, q := range qs {
				k.ownHostLease(q)
			}
			k.wake()
		case "":
			for _, q := range qs {
				k.taker.Failed(q, "its owner is not known yet", 0, time.Now())
			}
			k.wake()
		default:
			k.busy[owner] = true
			asking.Go(func() {
				for len(qs) > 0 {
					page := qs[:min(len(qs), wire.MaxTurns)]
					k.askOwner(ctx, owner, page)
					qs = qs[len(page):]
				}
				k.mu.Lock()
				delete(k.busy, owner)
				k.mu.Unlock()
				k.wake()
			})
		}
	}
	return again
}

// askOwner sends a request to another peer and gives the result to the taker.
func (k *Exchange) askOwner(ctx context.Context, owner string, qs []lease.Ask) {
	ctx, cancel := context.WithTimeout(ctx, hostLeaseTimeout)
	defer cancel()
	m := &wire.Turns{Asks: make([]*wire.TurnAsk, len(qs))}
	for i, q := range qs {
		m.Asks[i] = wireAsk(q)
	}
	sent := time.Now()
	resp, err := k.o.Peers.Call(ctx, owner, &wire.Request{Body: &wire.Request_Turns{Turns: m}})
	received := time.Now()
	answers := resp.GetTurns().GetAnswers()
	if err == nil && len(answers) != len(qs) {
		err = call.ErrForeign
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, q := range qs {
		if err != nil {
			k.taker.Failed(q, fmt.Sprintf("its owner %s was not reached: %v", owner, err), 0, received)
			continue
		}
		switch a := answers[i]; a.State {
		case wire.TurnAnswer_STATE_NOT_OWNER, wire.TurnAnswer_STATE_REFUSED:
			if _, s := k.owner(q.Addr); a.State == wire.TurnAnswer_STATE_NOT_OWNER && k.o.Peers.Foreign(s) {
				k.o.Peers.ForgetOwner(s, owner)
			}
			k.taker.Failed(q, k.words(owner, a), ms(a.WaitMs), received)
		default:
			k.taker.Answered(q, lease.Answer{Given: a.State == wire.TurnAnswer_STATE_GIVEN, Wait: ms(a.WaitMs),
				Term: ms(a.TermMs), Gap: ms(a.GapMs),
				Shared: a.Shared, Over: a.Reason}, sent, received)
		}
	}
	if err != nil {
		k.o.Logger.Debug("host leases", "peer", owner, "addresses", len(qs), "err", err)
	}
}

// words explains why owner gives no host lease.
func (k *Exchange) words(owner string, a *wire.TurnAnswer) string {
	switch {
	case a.State == wire.TurnAnswer_STATE_REFUSED:
		return fmt.Sprintf("its owner %s refuses: %s", owner, a.Reason)
	case a.Owner == owner:
		return fmt.Sprintf("its owner %s may not act: no majority of the slice's replicas leases it", owner)
	}
	return fmt.Sprintf("%s does not own it any more", owner)
}

// Serve answers another peer's request.
func (k *Exchange) Serve(from string, m *wire.Turns) *wire.TurnsAnswer {
	out := &wire.TurnsAnswer{Answers: make([]*wire.TurnAnswer, len(m.Asks))}
	for i, w := range m.Asks {
		out.Answers[i] = k.answer(from, w)
	}
	return out
}

// answer answers one entry of a request, after it has checked the address that the peer sends.
func (k *Exchange) answer(from string, w *wire.TurnAsk) *wire.TurnAnswer {
	key, err := partition.KeyFromWire("ip:" + w.Address)
	if err != nil {
		return refusedHostLease(err)
	}
	a, err := netip.ParseAddr(key.Host())
	if err != nil {
		return refusedHostLease(err)
	}
	q := lease.Ask{Addr: a, Gap: ms(w.GapMs), Pace: ms(w.PaceMs), Want: w.Want, Turn: w.Turn, Back: w.Back,
		Unused: w.Unused, Quiet: ms(w.QuietMs)}
	ans, refusal := k.give(from, q)
	if refusal != nil {
		return refusal
	}
	out := &wire.TurnAnswer{State: wire.TurnAnswer_STATE_WAIT,
		WaitMs: uint64((ans.Wait + time.Millisecond - 1) / time.Millisecond),
		TermMs: uint64(max(0, ans.Term) / time.Millisecond),
		GapMs:  uint64((ans.Gap + time.Millisecond - 1) / time.Millisecond), Shared: ans.Shared, Reason: ans.Over}
	switch {
	case !q.Want:
		out.State = wire.TurnAnswer_STATE_NOTED
	case ans.Given:
		out.State = wire.TurnAnswer_STATE_GIVEN
	}
	return out
}

// refusedHostLease returns the refusal of a request for which no host lease is possible.
func refusedHostLease(err error) *wire.TurnAnswer {
	return &wire.TurnAnswer{State: wire.TurnAnswer_STATE_REFUSED, Reason: err.Error(), WaitMs: 5000}
}

// give answers a request of this peer or of another one. refusal gives the reason if it does not.
// The guard that keeps the crawler out of private networks also holds for the Keys of addresses.
func (k *Exchange) give(from string, q lease.Ask) (ans lease.Answer, refusal *wire.TurnAnswer) {
	if err := k.guard.Reachable(q.Addr); err != nil {
		return ans, refusedHostLease(err)
	}
	s := k.o.SliceOf(AddressKey(q.Addr))
	k.giving.Lock()
	defer k.giving.Unlock()
	now := time.Now() // lies between request and response: both sides count from it
	if !k.o.Quorum.Acts(s, now) {
		return ans, &wire.TurnAnswer{State: wire.TurnAnswer_STATE_NOT_OWNER, Owner: k.o.Quorum.Owner(s), WaitMs: 500}
	}
	base := max(0, k.guard.AddrGap(q.Addr))
	// Before the floor, a host lease from the previous owner may still be in use, or one that this
	// peer gave before its restart. A peer that knew no other peer was itself the only taker.
	floor, later := k.since[s]
	if !later {
		floor = k.o.Started
	}
	if later || k.joiner {
		floor = floor.Add(lease.Grace(q.Addr, base))
	}
	return k.giver.Ask(from, q, base, floor, now), nil
}

// ms converts milliseconds of a message to a Duration of at most wire.MaxTurnMs.
func ms(n uint64) time.Duration {
	return time.Duration(min(n, wire.MaxTurnMs)) * time.Millisecond
}

// wireAsk converts a request to its form in a message. It rounds delays up and QuietMs down.
func wireAsk(q lease.Ask) *wire.TurnAsk {
	up := func(d time.Duration) uint64 {
		return min(uint64((max(0, d)+time.Millisecond-1)/time.Millisecond), wire.MaxTurnMs)
	}
	return &wire.TurnAsk{Address: AddressKey(q.Addr).Host(), GapMs: up(q.Gap), PaceMs: up(q.Pace), Want: q.Want,
		Turn: q.Turn, Back: q.Back, Unused: q.Unused,
		QuietMs: uint64(max(0, q.Quiet) / time.Millisecond)}
}

// maxBlockedNamed is the number of blocked addresses that a status names.
const maxBlockedNamed = 8

// Status returns the number of addresses that wait, and describes those that get no host lease.
func (k *Exchange) Status(now time.Time) (waiting int, blocked []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	blocked = []string{}
	for _, b := range k.taker.Blocked(maxBlockedNamed, now) {
		blocked = append(blocked, fmt.Sprintf("%s, for %s: %s", b.Addr, now.Sub(b.Since).Round(time.Second), b.Why))
	}
	return k.taker.Stats(now).Waiting, blocked
}

// Metrics returns the samples of the taker and of the giver.
func (k *Exchange) Metrics(now time.Time) []api.Metric {
	k.mu.Lock()
	t := k.taker.Stats(now)
	k.mu.Unlock()
	k.giving.Lock()
	g := k.giver.Stats()
	k.giving.Unlock()
	out := []api.Metric{
		api.Gauge("echo_addresses_held", "IP addresses whose host lease this peer has.", t.Held),
		api.Gauge("echo_addresses_waiting", "IP addresses whose host lease sites wait for here.", t.Waiting),
		api.Gauge("echo_addresses_blocked",
			"IP addresses whose owner gives no host leases to this peer now, or is not reached.", t.Blocked),
		api.Gauge("echo_addresses_given", "IP addresses whose host leases this peer gives.", g.Addrs),
		api.Gauge("echo_addresses_queued", "Peers that wait for host leases of this peer, at each address.", g.Waiting),
		api.Counter("echo_host_leases_given_total", "Host leases of IP addresses given since the start.", g.Given),
		api.Counter("echo_host_leases_asked_total", "Requests for host leases since the start; a message has several.",
			t.Asked),
		api.Counter("echo_host_leases_unanswered_total",
			"Requests for host leases that were not answered, or refused, since the start.", t.Failed),
	}
	const over, help = "echo_host_leases_over_total", "Host leases that a limit held back, by its name."
	out = append(out, api.Counters(over, help, "limit", map[string]int64{"own-addresses": t.Full})...)
	return append(out, api.Counters(over, help, "limit", g.Over)...)
}
