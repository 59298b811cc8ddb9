package dht

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/p2p/discovery/mdns"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/echo-node/echo-node/partition"
)

// Timing of joining.
const (
	joinTimeout  = 10 * time.Second // of one attempt with one peer
	joinBackoff  = 500 * time.Millisecond
	joinBackoffs = 30 * time.Second       // the longest pause while alone
	joinEnough   = 3                      // peers joined in one round while alone
	joinParallel = 8                      // attempts under way at once
	joinStagger  = 250 * time.Millisecond // then the next is tried, too
	joinContacts = 4                      // of peers that spoke to us, at once
	joinPause    = 3 * time.Second        // before one of them is tried again
	joinMemory   = 256                    // of them, remembered for so long
	joinLate     = time.Second            // those not in so long after the first are given up
	healInterval = 4 * time.Second        // between attempts to find vanished members
	healAtOnce   = 2
	healZone     = 8 // every so many heals ask Kademlia, too
)

// Run joins the swarm, keeps trying while alone, looks for members that
// vanished, and publishes this peer in Kademlia. It blocks until ctx ends or
// Close is called, and then returns nil.
func (d *DHT) Run(ctx context.Context) error {
	if !d.begin() {
		return nil
	}
	defer d.running.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)()
	changes, err := d.host.EventBus().Subscribe(new(event.EvtLocalAddressesUpdated))
	if err != nil {
		return fmt.Errorf("run dht: %w", err)
	}
	if err := d.kad.Bootstrap(ctx); err != nil {
		return fmt.Errorf("run dht: %w", errors.Join(err, changes.Close()))
	}
	if d.opts.MDNS {
		service := mdns.NewMdnsService(d.host, "_echo-"+strings.TrimPrefix(string(d.prefix), "/echo/")+"._udp",
			finder{d})
		if err := service.Start(); err != nil {
			d.log.Warn("no discovery on the local network", "err", err)
		} else {
			defer func() { _ = service.Close() }()
		}
	}
	var wg sync.WaitGroup
	for _, loop := range []func(context.Context){d.joinLoop, d.publishLoop, d.keepCharter, d.bookLoop, d.zoneLoop,
		d.meetLoop,
		func(ctx context.Context) { d.addressLoop(ctx, changes.Out()) }} {
		wg.Go(func() { loop(ctx) })
	}
	wg.Wait()
	if err := changes.Close(); err != nil {
		return fmt.Errorf("run dht: %w", err)
	}
	return nil
}

// finder is told by mDNS of peers nearby.
type finder struct{ d *DHT }

// HandlePeerFound is mdns.Notifee's.
func (f finder) HandlePeerFound(info peer.AddrInfo) {
	select {
	case f.d.found <- info:
	default: // it will be found again
	}
}

// addressLoop gossips new addresses, as when the volunteer changes networks.
func (d *DHT) addressLoop(ctx context.Context, changes <-chan any) {
	if err := d.announce(); err != nil { // those of a host that listened late
		d.log.Warn("announce addresses", "err", err)
	}
	for {
		select {
		case <-changes:
			if err := d.announce(); err != nil {
				d.log.Warn("announce addresses", "err", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// joinLoop is the way in, and the way back in.
func (d *DHT) joinLoop(ctx context.Context) {
	known := append(d.readBook(), d.knownWays(ctx)...)
	backoff := joinBackoff
	for round := 0; ctx.Err() == nil; round++ {
		wait := healInterval
		switch {
		case len(d.View().Members()) > 1:
			backoff = joinBackoff
			d.heal(ctx, round)
		case d.joinFirst(ctx, known):
			backoff = joinBackoff
			d.kad.RefreshRoutingTable() // its channel need not be read
			continue
		default:
			wait, backoff = backoff, min(2*backoff, joinBackoffs)
		}
		d.pause(ctx, wait/2+rand.N(wait))
	}
}

// pause waits, and joins who turns up meanwhile: peers on the local network,
// and peers that know us from before a restart.
func (d *DHT) pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case info := <-d.found:
			// Whoever is near can say so of any address: a few tries.
			d.gate.each([]peer.AddrInfo{info}, vouched)
			d.joinAside(ctx, info, "found on the local network")
		case p := <-d.list.Contacts():
			d.joinAside(ctx, peer.AddrInfo{ID: p}, "it spoke to us")
		}
	}
}

// joinAside joins one who turned up, unless many do: whoever is slow to let this
// peer in delays nothing else.
func (d *DHT) joinAside(ctx context.Context, info peer.AddrInfo, why string) {
	if d.isMember(info.ID) || info.ID == d.self || !d.turnedUp(info.ID, time.Now()) || !d.begin() {
		return
	}
	select {
	case d.aside <- struct{}{}:
		go func() {
			defer d.running.Done()
			d.joinLogged(ctx, info, why)
			<-d.aside
		}()
	default: // it will be found again, or speak again
		d.running.Done()
		d.counters.noPlace.add("contact")
	}
}

// turnedUp says whether p did not turn up a moment ago already.
func (d *DHT) turnedUp(p peer.ID, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for old, at := range d.recently {
		if now.Sub(at) >= joinPause || len(d.recently) >= joinMemory {
			delete(d.recently, old)
		}
	}
	if _, again := d.recently[p]; again {
		return false
	}
	d.recently[p] = now
	return true
}

// knownWays are Options.Known.
func (d *DHT) knownWays(ctx context.Context) []peer.AddrInfo {
	infos, err := resolveJoin(ctx, d.opts.Known)
	if err != nil {
		d.log.Debug("known ways in", "err", err)
	}
	d.gate.each(infos, vouched)
	return infos
}

// joinAddresses are Options.Join, with addresses that may be dialled now.
func (d *DHT) joinAddresses(ctx context.Context) ([]peer.AddrInfo, error) {
	infos, err := resolveJoin(ctx, d.opts.Join)
	if d.gate != nil {
		infos = resolveNames(ctx, infos)
		d.gate.each(infos, trusted)
	}
	return infos, err
}

// joinFirst tries, while alone, the join addresses and the peers known from
// earlier, in random order, and says whether it got in.
func (d *DHT) joinFirst(ctx context.Context, known []peer.AddrInfo) bool {
	infos, err := d.joinAddresses(ctx)
	if err != nil {
		d.log.Warn("join", "err", err)
	}
	rand.Shuffle(len(infos), func(i, j int) { infos[i], infos[j] = infos[j], infos[i] })
	tail := append(append([]peer.AddrInfo{}, known...), d.vanished()...)
	rand.Shuffle(len(tail), func(i, j int) { tail[i], tail[j] = tail[j], tail[i] })
	tried := map[peer.ID]bool{d.self: true}
	infos = slices.DeleteFunc(append(infos, tail...), func(info peer.AddrInfo) bool {
		again := tried[info.ID]
		tried[info.ID] = true
		return again
	})
	return d.joinSome(ctx, infos, joinEnough, "to join") > 0 && len(d.View().Members()) > 1
}

// joinSome tries peers until so many have let this one in, and says how many
// did. It waits for none for long before it tries the next as well: of the peers
// known from earlier some are dead, and one that does not answer holds an
// attempt up to joinTimeout.
func (d *DHT) joinSome(ctx context.Context, infos []peer.AddrInfo, enough int, why string) (joined int) {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan bool, len(infos))
	next := time.NewTimer(0)
	defer next.Stop()
	var late <-chan time.Time
	for underWay := 0; len(infos) > 0 || underWay > 0; {
		start := next.C
		if len(infos) == 0 || underWay == joinParallel {
			start = nil
		}
		select {
		case <-ctx.Done():
			return joined
		case <-late:
			return joined
		case <-start:
			info := infos[0]
			infos = infos[1:]
			underWay++
			wg.Go(func() { results <- d.joinLogged(ctx, info, why) })
			next.Reset(joinStagger)
		case ok := <-results:
			underWay--
			next.Reset(0)
			if !ok {
				continue
			}
			if joined++; joined == enough {
				return joined
			}
			if late == nil {
				late = time.After(joinLate)
			}
		}
	}
	return joined
}

func (d *DHT) joinLogged(ctx context.Context, info peer.AddrInfo, why string) bool {
	err := d.join(ctx, info)
	if errors.Is(err, ErrHandshake) {
		d.log.Warn("not joined", "peer", info.ID.String(), "err", err)
		return false
	}
	if err != nil {
		d.log.Debug("not joined", "peer", info.ID.String(), "why", why, "err", err)
		return false
	}
	d.log.Debug("joined", "peer", info.ID.String(), "why", why)
	return true
}

// join connects to one peer and exchanges the membership with it.
func (d *DHT) join(ctx context.Context, info peer.AddrInfo) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	s, ok := d.host.Network().(*swarm.Swarm)
	if ok && d.gate.known(info.ID, append(d.host.Peerstore().Addrs(info.ID), info.Addrs...)) {
		s.Backoff().Clear(info.ID) // it may be back where it was not a second ago
	}
	if err := d.host.Connect(ctx, info); err != nil {
		return err
	}
	if d.handshaker != nil { // memberlist would hide why
		if err := d.handshaker.enter(ctx, info.ID); err != nil {
			return err
		}
	}
	at, err := d.wayIn(ctx, info.ID)
	if err != nil {
		return err
	}
	_, err = d.list.Join(ctx, at)
	return err
}

// vanished are members that did not say good-bye, with their last addresses.
func (d *DHT) vanished() []peer.AddrInfo {
	var out []peer.AddrInfo
	for _, g := range d.Gone() {
		if info, ok := infoOf(g.Member); ok && !g.Left {
			out = append(out, info)
		}
	}
	return out
}

func infoOf(m partition.Member) (peer.AddrInfo, bool) {
	p, err := peer.Decode(m.ID)
	if err != nil {
		return peer.AddrInfo{}, false
	}
	info := peer.AddrInfo{ID: p}
	for _, text := range m.Addrs {
		if a, err := ma.NewMultiaddr(text); err == nil {
			info.Addrs = append(info.Addrs, a)
		}
	}
	return info, true
}

// heal tries a few peers that should be members and are not: memberlist alone
// never again contacts one that it has forgotten as dead, so that the halves of
// a cut, or peers that restarted together, would stay apart.
func (d *DHT) heal(ctx context.Context, round int) {
	missing := d.vanished()
	view := d.View()
	if round%healZone == 1 {
		missing = append(missing, d.strangers(ctx, view)...)
	}
	missing = slices.DeleteFunc(missing, func(info peer.AddrInfo) bool {
		_, ok := view.Find(info.ID.String())
		return ok
	})
	rand.Shuffle(len(missing), func(i, j int) { missing[i], missing[j] = missing[j], missing[i] })
	d.joinSome(ctx, missing[:min(len(missing), healAtOnce)], healAtOnce, "it had vanished")
}

// strangers are the join addresses, and the peers Kademlia knows in the zone,
// that are not in view.
func (d *DHT) strangers(ctx context.Context, view partition.View) []peer.AddrInfo {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	all, err := d.joinAddresses(ctx)
	if err != nil {
		d.log.Debug("join addresses", "err", err)
	}
	all = append(all, d.knownWays(ctx)...)
	key, err := d.zoneKey(d.Zone())
	if err != nil {
		d.log.Debug("zone key", "err", err)
		return nil
	}
	for info := range d.kad.FindProvidersAsync(ctx, key, maxZone) {
		all = append(all, info)
	}
	var out []peer.AddrInfo
	gone := d.Gone()
	for _, info := range all {
		_, live := view.Find(info.ID.String())
		if g := gone[info.ID.String()]; !live && !g.Left && info.ID != d.self {
			d.host.Peerstore().AddAddrs(info.ID, info.Addrs, peerstore.TempAddrTTL)
			out = append(out, info)
		}
	}
	return out
}
