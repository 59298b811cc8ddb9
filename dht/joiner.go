package dht

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	kad "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"

	"github.com/echo-node/echo-node/dht/guard"
	"github.com/echo-node/echo-node/dht/handshake"
	"github.com/echo-node/echo-node/dht/life"
	"github.com/echo-node/echo-node/dht/member"
	"github.com/echo-node/echo-node/dht/zone"
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

// joiner finds ways into the swarm, and back into it.
type joiner struct {
	opts       Options
	log        *slog.Logger
	host       host.Host // as the protocols of the swarm see it
	self       peer.ID
	kad        *kad.IpfsDHT
	guard      *guard.Guard
	handshaker *handshake.Host // host, in a private swarm; else nil
	zones      *zone.Zones
	dir        *directory
	life       *life.Life
	found      chan peer.AddrInfo // by mDNS
	aside      chan struct{}      // cap joinContacts: joins under way with who turned up

	mu       sync.Mutex
	recently map[peer.ID]time.Time // turned up; see joinAside
}

// finder is told by mDNS of peers nearby.
type finder struct{ found chan<- peer.AddrInfo }

// HandlePeerFound is mdns.Notifee's.
func (f finder) HandlePeerFound(info peer.AddrInfo) {
	select {
	case f.found <- info:
	default: // it will be found again
	}
}

// run is the way in, and the way back in.
func (j *joiner) run(ctx context.Context) {
	known := append(j.readBook(), j.knownWays(ctx)...)
	backoff := joinBackoff
	for round := 0; ctx.Err() == nil; round++ {
		wait := healInterval
		switch {
		case len(j.zones.View().Members()) > 1:
			backoff = joinBackoff
			j.heal(ctx, round)
		case j.joinFirst(ctx, known):
			backoff = joinBackoff
			j.kad.RefreshRoutingTable() // its channel need not be read
			continue
		default:
			wait, backoff = backoff, min(2*backoff, joinBackoffs)
		}
		j.pause(ctx, wait/2+rand.N(wait))
	}
}

// pause waits, and joins who turns up meanwhile: peers on the local network,
// and peers that know us from before a restart.
func (j *joiner) pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case info := <-j.found:
			// Whoever is near can say so of any address: a few tries.
			j.guard.Vouch([]peer.AddrInfo{info})
			j.joinAside(ctx, info, "found on the local network")
		case p := <-j.zones.Contacts():
			j.joinAside(ctx, peer.AddrInfo{ID: p}, "it spoke to us")
		}
	}
}

// joinAside joins one who turned up, unless many do: whoever is slow to let this
// peer in delays nothing else.
func (j *joiner) joinAside(ctx context.Context, info peer.AddrInfo, why string) {
	if j.guard.IsMember(info.ID) || info.ID == j.self || !j.turnedUp(info.ID, time.Now()) || !j.life.Begin() {
		return
	}
	select {
	case j.aside <- struct{}{}:
		go func() {
			defer j.life.End()
			j.Join(ctx, info, why)
			<-j.aside
		}()
	default: // it will be found again, or speak again
		j.life.End()
		j.guard.Count.NoPlace.Add("contact")
	}
}

// turnedUp says whether p did not turn up a moment ago already.
func (j *joiner) turnedUp(p peer.ID, now time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for old, at := range j.recently {
		if now.Sub(at) >= joinPause || len(j.recently) >= joinMemory {
			delete(j.recently, old)
		}
	}
	if _, again := j.recently[p]; again {
		return false
	}
	j.recently[p] = now
	return true
}

// knownWays are Options.Known.
func (j *joiner) knownWays(ctx context.Context) []peer.AddrInfo {
	infos, err := resolveJoin(ctx, j.opts.Known)
	if err != nil {
		j.log.Debug("known ways in", "err", err)
	}
	j.guard.Vouch(infos)
	return infos
}

// joinAddresses are Options.Join, with addresses that may be dialled now.
func (j *joiner) joinAddresses(ctx context.Context) ([]peer.AddrInfo, error) {
	infos, err := resolveJoin(ctx, j.opts.Join)
	if j.guard.Connections() {
		infos = resolveNames(ctx, infos)
		j.guard.Trust(infos)
	}
	return infos, err
}

// joinFirst tries, while alone, the join addresses and the peers known from
// earlier, in random order, and says whether it got in.
func (j *joiner) joinFirst(ctx context.Context, known []peer.AddrInfo) bool {
	infos, err := j.joinAddresses(ctx)
	if err != nil {
		j.log.Warn("join", "err", err)
	}
	rand.Shuffle(len(infos), func(i, j int) { infos[i], infos[j] = infos[j], infos[i] })
	tail := append(append([]peer.AddrInfo{}, known...), j.vanished()...)
	rand.Shuffle(len(tail), func(i, j int) { tail[i], tail[j] = tail[j], tail[i] })
	tried := map[peer.ID]bool{j.self: true}
	infos = slices.DeleteFunc(append(infos, tail...), func(info peer.AddrInfo) bool {
		again := tried[info.ID]
		tried[info.ID] = true
		return again
	})
	return j.joinSome(ctx, infos, joinEnough, "to join") > 0 && len(j.zones.View().Members()) > 1
}

// joinSome tries peers until so many have let this one in, and says how many
// did. It waits for none for long before it tries the next as well: of the peers
// known from earlier some are dead, and one that does not answer holds an
// attempt up to joinTimeout.
func (j *joiner) joinSome(ctx context.Context, infos []peer.AddrInfo, enough int, why string) (joined int) {
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
			wg.Go(func() { results <- j.Join(ctx, info, why) })
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

// Join is zone.Joiner's.
func (j *joiner) Join(ctx context.Context, info peer.AddrInfo, why string) bool {
	err := j.join(ctx, info)
	if errors.Is(err, handshake.ErrRefused) {
		j.log.Warn("not joined", "peer", info.ID.String(), "err", err)
		return false
	}
	if err != nil {
		j.log.Debug("not joined", "peer", info.ID.String(), "why", why, "err", err)
		return false
	}
	j.log.Debug("joined", "peer", info.ID.String(), "why", why)
	return true
}

// join connects to one peer and exchanges the membership with it.
func (j *joiner) join(ctx context.Context, info peer.AddrInfo) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	s, ok := j.host.Network().(*swarm.Swarm)
	if ok && j.guard.Known(info.ID, append(j.host.Peerstore().Addrs(info.ID), info.Addrs...)) {
		s.Backoff().Clear(info.ID) // it may be back where it was not a second ago
	}
	if err := j.host.Connect(ctx, info); err != nil {
		return err
	}
	if j.handshaker != nil { // memberlist would hide why
		if err := j.handshaker.Enter(ctx, info.ID); err != nil {
			return err
		}
	}
	at, err := j.zones.WayIn(ctx, info.ID)
	if err != nil {
		return err
	}
	_, err = j.zones.Join(ctx, at)
	return err
}

// vanished are members that did not say good-bye, with their last addresses.
func (j *joiner) vanished() []peer.AddrInfo {
	var out []peer.AddrInfo
	for _, g := range j.zones.Gone() {
		if info, ok := member.AddrInfo(g.Member); ok && !g.Left {
			out = append(out, info)
		}
	}
	return out
}

// heal tries a few peers that should be members and are not: memberlist alone
// never again contacts one that it has forgotten as dead, so that the halves of
// a cut, or peers that restarted together, would stay apart.
func (j *joiner) heal(ctx context.Context, round int) {
	missing := j.vanished()
	view := j.zones.View()
	if round%healZone == 1 {
		missing = append(missing, j.strangers(ctx, view)...)
	}
	missing = slices.DeleteFunc(missing, func(info peer.AddrInfo) bool {
		_, ok := view.Find(info.ID.String())
		return ok
	})
	rand.Shuffle(len(missing), func(i, j int) { missing[i], missing[j] = missing[j], missing[i] })
	j.joinSome(ctx, missing[:min(len(missing), healAtOnce)], healAtOnce, "it had vanished")
}

// strangers are the join addresses, and the peers Kademlia knows in the zone,
// that are not in view.
func (j *joiner) strangers(ctx context.Context, view partition.View) []peer.AddrInfo {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	all, err := j.joinAddresses(ctx)
	if err != nil {
		j.log.Debug("join addresses", "err", err)
	}
	all = append(all, j.knownWays(ctx)...)
	key, err := j.dir.zoneKey(j.zones.Zone())
	if err != nil {
		j.log.Debug("zone key", "err", err)
		return nil
	}
	for info := range j.kad.FindProvidersAsync(ctx, key, maxZone) {
		all = append(all, info)
	}
	var out []peer.AddrInfo
	gone := j.zones.Gone()
	for _, info := range all {
		_, live := view.Find(info.ID.String())
		if g := gone[info.ID.String()]; !live && !g.Left && info.ID != j.self {
			j.host.Peerstore().AddAddrs(info.ID, info.Addrs, peerstore.TempAddrTTL)
			out = append(out, info)
		}
	}
	return out
}
