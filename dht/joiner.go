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

// Times and limits of joining.
const (
	joinTimeout  = 10 * time.Second       // for one attempt with one peer
	joinBackoff  = 500 * time.Millisecond // the first pause while alone; each further one is twice as long
	joinBackoffs = 30 * time.Second       // the longest pause while alone
	joinEnough   = 3                      // peers to join in one round while alone
	joinParallel = 8                      // attempts at once
	joinStagger  = 250 * time.Millisecond // after this time the next peer is tried, even if the last one did not answer
	joinContacts = 4                      // attempts at once with peers that contacted us
	joinPause    = 3 * time.Second        // before one of these peers is tried again
	joinMemory   = 256                    // number of them that are remembered during joinPause
	joinLate     = time.Second            // after the first success, the others have this much time
	healInterval = 4 * time.Second        // mean time between attempts to find vanished members
	healAtOnce   = 2                      // vanished members tried in one attempt
	healZone     = 8                      // one in so many attempts also asks Kademlia and the join addresses
)

// joiner finds ways into the swarm, and back into it.
type joiner struct {
	opts       Options
	log        *slog.Logger
	host       host.Host // as the protocols of the swarm see it
	self       peer.ID
	kad        *kad.IpfsDHT
	guard      *guard.Guard
	handshaker *handshake.Host // the same as host, in a private swarm; else nil
	zones      *zone.Zones
	dir        *directory
	life       *life.Life
	found      chan peer.AddrInfo // peers that mDNS found
	aside      chan struct{}      // capacity joinContacts; one entry per join that joinAside has in progress

	// Both run and joinAside join peers, so the fields below need a lock.
	mu       sync.Mutex
	recently map[peer.ID]time.Time // when each peer contacted us, see joinAside
}

// finder passes on the peers that mDNS finds.
type finder struct{ found chan<- peer.AddrInfo }

// HandlePeerFound implements mdns.Notifee. It does not block.
func (f finder) HandlePeerFound(info peer.AddrInfo) {
	select {
	case f.found <- info:
	default: // mDNS will find it again
	}
}

// run joins the swarm while this peer is alone, and tries vanished members while it is not. It ends
// with ctx.
func (j *joiner) run(ctx context.Context) {
	known := append(j.readBook(), j.knownWays(ctx)...)
	backoff := joinBackoff
	// round counts attempts, because only some of them ask Kademlia, see heal.
	for round := 0; ctx.Err() == nil; round++ {
		wait := healInterval
		switch {
		case len(j.zones.View().Members()) > 1:
			backoff = joinBackoff
			j.heal(ctx, round)
		case j.joinFirst(ctx, known):
			backoff = joinBackoff
			j.kad.RefreshRoutingTable() // nobody needs to read its channel
			continue
		default:
			wait, backoff = backoff, min(2*backoff, joinBackoffs)
		}
		j.pause(ctx, wait/2+rand.N(wait))
	}
}

// pause waits. In the meantime it joins peers that contact us: peers on the local network, and
// peers that know us from before a restart.
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
			// Anybody on the local network can announce any address, so it gets only a few tries.
			j.guard.Vouch([]peer.AddrInfo{info})
			j.joinAside(ctx, info, "found on the local network")
		case p := <-j.zones.Contacts():
			j.joinAside(ctx, peer.AddrInfo{ID: p}, "it spoke to us")
		}
	}
}

// joinAside joins a peer that contacted us, in its own goroutine, so that a slow peer delays
// nothing else. If too many such joins are in progress, it skips this one.
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
	default: // mDNS will find it again, or it will contact us again
		j.life.End()
		j.guard.Count.NoPlace.Add("contact")
	}
}

// turnedUp reports whether p did not contact us within joinPause, and notes that it does now.
func (j *joiner) turnedUp(p peer.ID, now time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for old, at := range j.recently {
		// If the map is full, entries in any order make room. Then a peer may be tried again a
		// little too early.
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

// knownWays returns the peers of Options.Known. They may be tried a few times.
func (j *joiner) knownWays(ctx context.Context) []peer.AddrInfo {
	infos, err := resolveJoin(ctx, j.opts.Known)
	if err != nil {
		j.log.Debug("known ways in", "err", err)
	}
	j.guard.Vouch(infos)
	return infos
}

// joinAddresses returns the peers of Options.Join, and allows the guard to dial them now.
func (j *joiner) joinAddresses(ctx context.Context) ([]peer.AddrInfo, error) {
	infos, err := resolveJoin(ctx, j.opts.Join)
	if j.guard.Connections() {
		infos = resolveNames(ctx, infos)
		j.guard.Trust(infos)
	}
	return infos, err
}

// joinFirst is for a peer that is alone. It tries the join addresses in random order, then the
// peers of earlier, also in random order. It reports whether this peer got in.
func (j *joiner) joinFirst(ctx context.Context, known []peer.AddrInfo) bool {
	infos, err := j.joinAddresses(ctx)
	if err != nil {
		j.log.Warn("join", "err", err)
	}
	// The order is random, so that not all peers that start ask the same one.
	rand.Shuffle(len(infos), func(i, j int) { infos[i], infos[j] = infos[j], infos[i] })
	tail := append(append([]peer.AddrInfo{}, known...), j.vanished()...)
	rand.Shuffle(len(tail), func(i, j int) { tail[i], tail[j] = tail[j], tail[i] })
	tried := map[peer.ID]bool{j.self: true}
	// Each peer is tried once, at its first place in the list. This peer itself is not tried.
	infos = slices.DeleteFunc(append(infos, tail...), func(info peer.AddrInfo) bool {
		again := tried[info.ID]
		tried[info.ID] = true
		return again
	})
	return j.joinSome(ctx, infos, joinEnough, "to join") > 0 && len(j.zones.View().Members()) > 1
}

// joinSome tries peers until enough of them have let this one in, and returns how many did. It
// starts the next attempt after joinStagger, without an answer to the last one. Some of the peers
// known from earlier are dead. A peer that does not answer takes up to joinTimeout.
func (j *joiner) joinSome(ctx context.Context, infos []peer.AddrInfo, enough int, why string) (joined int) {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan bool, len(infos))
	next := time.NewTimer(0)
	defer next.Stop()
	// late is nil, and never fires, until the first success.
	var late <-chan time.Time
	for underWay := 0; len(infos) > 0 || underWay > 0; {
		start := next.C
		// A nil channel never fires: no further attempt starts now.
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
			// An attempt has ended, so the next one starts at once.
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

// Join implements zone.Joiner. It logs why it failed.
func (j *joiner) Join(ctx context.Context, info peer.AddrInfo, why string) bool {
	err := j.join(ctx, info)
	// A refusal is for the user, who may have a wrong invite. Other failures are normal and only
	// for debugging.
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

// join connects to one peer and exchanges the membership with it. If the peer is in another zone,
// it exchanges it with a member of this peer's zone.
func (j *joiner) join(ctx context.Context, info peer.AddrInfo) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	s, ok := j.host.Network().(*swarm.Swarm)
	if ok && j.guard.Known(info.ID, append(j.host.Peerstore().Addrs(info.ID), info.Addrs...)) {
		s.Backoff().Clear(info.ID) // the peer may be back at an address that failed a second ago
	}
	if err := j.host.Connect(ctx, info); err != nil {
		return err
	}
	if j.handshaker != nil { // memberlist would hide the reason of a refusal
		if err := j.handshaker.Enter(ctx, info.ID); err != nil {
			return err
		}
	}
	// In a swarm of several zones, info may be in another zone than this peer.
	at, err := j.zones.WayIn(ctx, info.ID)
	if err != nil {
		return err
	}
	_, err = j.zones.Join(ctx, at)
	return err
}

// vanished returns the members that did not say goodbye, with their last addresses.
func (j *joiner) vanished() []peer.AddrInfo {
	var out []peer.AddrInfo
	for _, g := range j.zones.Gone() {
		if info, ok := member.AddrInfo(g.Member); ok && !g.Left {
			out = append(out, info)
		}
	}
	return out
}

// heal tries a few peers that should be members and are not. memberlist alone never contacts a
// member again that it has forgotten as dead. Without heal, the halves of a network cut would stay
// apart. So would peers that restarted together.
func (j *joiner) heal(ctx context.Context, round int) {
	missing := j.vanished()
	view := j.zones.View()
	// Kademlia finds members that this peer never saw, for example after a long cut.
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

// strangers returns peers that are not in view and did not leave: the join addresses,
// Options.Known, and the peers that Kademlia knows in this peer's zone.
func (j *joiner) strangers(ctx context.Context, view partition.View) []peer.AddrInfo {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	all, err := j.joinAddresses(ctx)
	if err != nil {
		j.log.Debug("join addresses", "err", err)
	}
	all = append(all, j.knownWays(ctx)...)
	if key, err := j.dir.zoneKey(j.zones.Zone()); err != nil {
		j.log.Debug("zone key", "err", err)
	} else {
		// Every member is a provider of the key of its zone.
		for info := range j.kad.FindProvidersAsync(ctx, key, maxZone) {
			all = append(all, info)
		}
	}
	var out []peer.AddrInfo
	gone := j.zones.Gone()
	for _, info := range all {
		_, live := view.Find(info.ID.String())
		if g := gone[info.ID.String()]; !live && !g.Left && info.ID != j.self {
			// join dials addresses of the host's peerstore, too.
			j.host.Peerstore().AddAddrs(info.ID, info.Addrs, peerstore.TempAddrTTL)
			out = append(out, info)
		}
	}
	return out
}
