package guard

import (
	"net/netip"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// dials decides which addresses are dialled. Anybody can announce the address of a victim: in a
// descriptor, a Kademlia record, or an identify message. So an announced address is only a claim. A
// claim is dialled only as far as this peer or a witness saw it hold. There are growing pauses
// between dials, and an end:
//
//	trusted   the user of this peer named the address               at any time
//	proven    this peer reached the peer there within a day         until a day after the last time
//	seen      the peer came from that IP address within a day       the same, at most seenTries times
//	vouched   most members that were asked have proven or seen it   vouchedTries times a day
//	else      two members, drawn by the IP address                  once a day each, only by TCP
//
// In a swarm of several zones there are no witnesses for members of other zones. There, each peer
// may try an "else" address once a day, without a draw and by any transport.
//
// At an IP address where no peer of the swarm was met, all claims together have vouchedTries dials
// a day. If a dial met another peer than expected, the address is not dialled for a day, unless the
// expected peer comes from there.
//
// dials is pure: time is an argument. It is not safe for concurrent use. A crash loses it, but the
// book (package dht) keeps the proven addresses.
type dials struct {
	lan     bool                                      // private addresses are dialled too
	zones   bool                                      // the swarm has several zones, see above
	member  func(peer.ID) bool                        // members are remembered longer if there is no room for all
	drawn   func(at netip.Prefix, now time.Time) bool // may this peer now try an address without witnesses? nil = never
	trials  map[claim]*trial
	places  map[netip.Prefix]*landmark
	banned  map[string]time.Time                   // by the bytes of the address: a dial met another peer there
	seen    map[peer.ID]map[netip.Prefix]time.Time // IP addresses from which each peer came, and when
	metHere int                                    // number of entries in seen
	swept   time.Time                              // when old entries were last removed
	minute  int64                                  // the minute, since 1970, of the last draw
	draws   int                                    // draws in that minute
}

// claim says that the peer id can be reached at addr.
type claim struct {
	id   peer.ID
	addr string // bytes of the multiaddr
}

// trial is what is known of one claim.
type trial struct {
	trusted, proven, vouched time.Time // the last time that it was; zero = never
	last                     time.Time // the last dial
	tries                    int       // dials since it was proven, or within a day
}

// landmark is what is known of an IP address.
type landmark struct {
	met   time.Time // when a peer last proved to be there
	tries int       // dials there, as long as no peer was met
	last  time.Time // the last of these dials
	drawn time.Time // when this peer last tried it because of a draw
}

// Limits of dialling.
const (
	MaxClaims  = 1 << 14 // addresses of peers that were tried or proven
	MaxPlaces  = 1 << 13 // IP addresses
	MaxBanned  = 1 << 12 // addresses at which another peer was met
	MaxSeen    = 1 << 13 // IP addresses from which peers came
	maxSeenOne = 4       // of these, of one peer

	dialMemory   = 24 * time.Hour   // how long all of this is remembered
	trustLife    = time.Minute      // the join loop renews it before each dial
	dialWindow   = 3 * time.Second  // within this time, several calls share one dial
	firstPause   = time.Second      // the first pause after a dial of a proven or seen claim
	longestPause = 10 * time.Minute // the longest such pause; each is eight fifths of the one before
	vouchedPause = time.Minute      // the first pause for a vouched claim; each further one is five times as long
	vouchedTries = 3                // dials of a vouched claim in a day
	seenTries    = 24               // dials of a seen claim that is not proven
	drawnMembers = 2                // members that are drawn for an address
	maxDraws     = 6                // addresses without witnesses that this peer tries in a minute
)

// Reasons why an address is not dialled. They are names in Counts.NotDialled.
const (
	dialNoIP     = "no-ip"          // the address has no IP address
	dialPrivate  = "private"        // it is private, and the swarm is not on a local network
	dialBanned   = "other-identity" // another peer was met there
	dialPause    = "pause"          // too early after the last dial
	dialEnded    = "ended"          // no dial is left for today
	dialUnproven = "unproven"       // no member vouches for it, and this peer is not drawn
	dialFull     = "full"           // there is no room to remember the dial
)

// newDials makes a dials that knows nothing. The arguments are those of the fields.
func newDials(lan, zones bool, member func(peer.ID) bool, drawn func(netip.Prefix, time.Time) bool) *dials {
	return &dials{lan: lan, zones: zones, member: member, drawn: drawn, trials: map[claim]*trial{},
		places: map[netip.Prefix]*landmark{},
		banned: map[string]time.Time{}, seen: map[peer.ID]map[netip.Prefix]time.Time{}}
}

// Private reports whether a is an address for local networks only. It returns false if a has no IP
// address.
func Private(a ma.Multiaddr) bool {
	ip, err := manet.ToIP(a)
	if err != nil {
		return false
	}
	return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() ||
		manet.IsPrivateAddr(a) ||
		inPrefix(ip, "100.64.0.0/10") // shared by the customers of one provider (RFC 6598)
}

// inPrefix reports whether ip is in the network prefix, which is CIDR text.
func inPrefix(ip []byte, prefix string) bool {
	a, ok := netip.AddrFromSlice(ip)
	return ok && netip.MustParsePrefix(prefix).Contains(a.Unmap())
}

// may returns "" if id may be dialled at a, and counts the dial. Otherwise it returns the reason
// why not.
func (d *dials) may(id peer.ID, a ma.Multiaddr, now time.Time) (reason string) {
	return d.judge(id, a, now, true)
}

// would reports what may would decide. It does not count a dial.
func (d *dials) would(id peer.ID, a ma.Multiaddr, now time.Time) bool {
	return d.judge(id, a, now, false) == ""
}

// judge decides about one dial. It counts the dial only if dial is set.
func (d *dials) judge(id peer.ID, a ma.Multiaddr, now time.Time, dial bool) string {
	at, _ := whereabouts(a)
	key := claim{id, string(a.Bytes())}
	t := d.trials[key]
	if t == nil {
		t = &trial{}
	}
	if !at.IsValid() {
		return dialNoIP
	}
	// The user's word counts more than bans and pauses. Such a dial is not counted.
	if recent(t.trusted, trustLife, now) {
		return ""
	}
	seen := recent(d.seen[id][at], dialMemory, now)
	// Another call made this dial a moment ago, and both share it.
	if recent(t.last, dialWindow, now) && (seen || recent(latest(t.proven, t.vouched), dialMemory, now)) {
		return ""
	}
	// A private address leads to another computer in each network.
	if !d.lan && Private(a) && !seen {
		return dialPrivate
	}
	// A peer that comes from there proves that the address is no victim's.
	if recent(d.banned[key.addr], dialMemory, now) && !seen {
		return dialBanned
	}
	if t.tries > 0 && !recent(t.last, dialMemory, now) && !recent(t.proven, dialMemory, now) {
		t.tries = 0 // another day
	}
	here := d.places[at]
	if here == nil {
		here = &landmark{}
	}
	reason, draw := d.weigh(t, here, at, a, seen, now)
	if reason != "" || !dial {
		return reason
	}
	// From here on this counts as a dial.
	if !d.remember(key, t, at, here, now) {
		return dialFull
	}
	t.tries++
	t.last = now
	// The IP address may be a victim's, so dials of all identities there count together.
	if !recent(here.met, dialMemory, now) && !seen {
		here.tries++
		here.last = now
	}
	if draw {
		here.drawn = now
		if minute := now.Unix() / 60; minute != d.minute {
			d.minute, d.draws = minute, 0
		}
		d.draws++
	}
	return ""
}

// weigh returns the reason why a claim is not dialled now, or "". draw says that this peer may dial
// without witnesses.
func (d *dials) weigh(t *trial, here *landmark, at netip.Prefix, a ma.Multiaddr, seen bool,
	now time.Time) (reason string, draw bool) {
	met := recent(here.met, dialMemory, now)
	if here.tries > 0 && !recent(here.last, dialMemory, now) {
		here.tries = 0
	}
	switch {
	case recent(t.proven, dialMemory, now), seen:
		// The peer came from this IP address, but perhaps it does not listen on this port.
		if seen && !recent(t.proven, dialMemory, now) && t.tries >= seenTries {
			return dialEnded, false
		}
		return pauseReason(t, grown(firstPause, t.tries, 8, 5, longestPause), now), false
	case recent(t.vouched, dialMemory, now):
		// Witnesses may lie, so there is a limit for each claim, and one for an IP address where no
		// peer was met.
		if t.tries >= vouchedTries || !met && here.tries >= vouchedTries {
			return dialEnded, false
		}
		if !met && here.tries > 0 && now.Sub(here.last) < grown(vouchedPause, here.tries, 5, 1, time.Hour) {
			return dialPause, false
		}
		return pauseReason(t, grown(vouchedPause, t.tries, 5, 1, time.Hour), now), false
	// Without witnesses there is one dial a day.
	case recent(here.drawn, dialMemory, now), t.tries > 0:
		return dialEnded, false
	// Members of other zones have no witnesses here, and nobody draws for the whole swarm.
	case d.zones && (met || here.tries == 0):
		return "", !met
	case met: // another peer is there, which should not be disturbed
		return dialUnproven, false
	case here.tries > 0:
		return dialEnded, false
	case d.minute == now.Unix()/60 && d.draws >= maxDraws:
		return dialPause, false
	}
	if _, err := a.ValueForProtocol(ma.P_TCP); err != nil || d.drawn == nil || !d.drawn(at, now) {
		return dialUnproven, false // one TCP packet shows whether a program listens; QUIC sends a dozen
	}
	return "", true
}

// pauseReason returns dialPause if the last dial of t was within pause.
func pauseReason(t *trial, pause time.Duration, now time.Time) string {
	if t.tries > 0 && now.Sub(t.last) < pause {
		return dialPause
	}
	return ""
}

// grown returns first multiplied by up/down for each try after the first one, but at most longest.
func grown(first time.Duration, tries, up, down int, longest time.Duration) time.Duration {
	for range max(0, tries-1) {
		if first = first * time.Duration(up) / time.Duration(down); first >= longest {
			return longest
		}
	}
	return first
}

// remember keeps the entries of one claim. It returns false if there is no room.
func (d *dials) remember(key claim, t *trial, at netip.Prefix, here *landmark, now time.Time) bool {
	if d.trials[key] == nil && len(d.trials) >= MaxClaims || d.places[at] == nil && len(d.places) >= MaxPlaces {
		d.makeRoom(now)
	}
	if d.trials[key] == nil && len(d.trials) >= MaxClaims || d.places[at] == nil && len(d.places) >= MaxPlaces {
		return false // without an entry, an address would be tried without end
	}
	d.trials[key], d.places[at] = t, here
	return true
}

// makeRoom removes old entries, then entries of outsiders. A place without success stays, because
// it may be a victim's.
func (d *dials) makeRoom(now time.Time) {
	const share = 8 // remove an eighth at once, or each new entry would search through all
	// Searching through everything is slow, so do it at most once a minute.
	if now.Sub(d.swept) >= time.Minute {
		d.swept = now
		d.forget(now)
	}
	for key := range d.trials {
		if len(d.trials) < MaxClaims-MaxClaims/share {
			break
		}
		if !d.member(key.id) {
			delete(d.trials, key)
		}
	}
	for at, here := range d.places {
		if len(d.places) < MaxPlaces-MaxPlaces/share {
			break
		}
		// Without a dial in vain, forgetting the place allows no additional dial of a victim.
		if here.tries == 0 && here.drawn.IsZero() {
			delete(d.places, at)
		}
	}
	for id, from := range d.seen {
		if d.metHere < MaxSeen-MaxSeen/share {
			break
		}
		if !d.member(id) {
			d.metHere -= len(from)
			delete(d.seen, id)
		}
	}
}

// forget removes entries that are too old to count.
func (d *dials) forget(now time.Time) {
	for key, t := range d.trials {
		if !recent(latest(t.trusted, t.proven, t.vouched, t.last), dialMemory, now) {
			delete(d.trials, key)
		}
	}
	for at, here := range d.places {
		if !recent(latest(here.met, here.last, here.drawn), dialMemory, now) {
			delete(d.places, at)
		}
	}
	for addr, since := range d.banned {
		if !recent(since, dialMemory, now) {
			delete(d.banned, addr)
		}
	}
	for id, from := range d.seen {
		for at, when := range from {
			if !recent(when, dialMemory, now) {
				delete(from, at)
				d.metHere--
			}
		}
		if len(from) == 0 {
			delete(d.seen, id)
		}
	}
}

// latest returns the latest of the times.
func latest(first time.Time, rest ...time.Time) time.Time {
	for _, t := range rest {
		if t.After(first) {
			first = t
		}
	}
	return first
}

// recent reports whether since is set, and now is less than long after it.
func recent(since time.Time, long time.Duration, now time.Time) bool {
	return !since.IsZero() && now.Sub(since) < long
}

// note changes what is known of a claim, if there is room.
func (d *dials) note(id peer.ID, a ma.Multiaddr, now time.Time, change func(*trial, *landmark)) {
	at, _ := whereabouts(a)
	if !at.IsValid() {
		return
	}
	key := claim{id, string(a.Bytes())}
	t, here := d.trials[key], d.places[at]
	if t == nil {
		t = &trial{}
	}
	if here == nil {
		here = &landmark{}
	}
	if d.remember(key, t, at, here, now) {
		change(t, here)
	}
}

// trust notes an address that the user named. It is called before each dial of it.
func (d *dials) trust(id peer.ID, a ma.Multiaddr, now time.Time) {
	d.note(id, a, now, func(t *trial, _ *landmark) { t.trusted = now })
}

// reached notes that id was dialled at a and proved its identity.
func (d *dials) reached(id peer.ID, a ma.Multiaddr, now time.Time) {
	d.note(id, a, now, func(t *trial, here *landmark) {
		t.proven, t.tries = now, 0
		here.met, here.tries = now, 0
	})
	delete(d.banned, string(a.Bytes()))
	d.came(id, a, now) // the peer lives there, even if it also listens elsewhere
}

// vouch notes that most members that were asked confirm id at a.
func (d *dials) vouch(id peer.ID, a ma.Multiaddr, now time.Time) {
	d.note(id, a, now, func(t *trial, _ *landmark) { t.vouched = now })
}

// ban notes that another peer than expected is at a.
func (d *dials) ban(a ma.Multiaddr, now time.Time) {
	if len(d.banned) >= MaxBanned {
		d.makeRoom(now)
	}
	if len(d.banned) < MaxBanned { // otherwise the pauses and limits must be enough
		d.banned[string(a.Bytes())] = now
	}
}

// came notes that id connected to this peer from a. a has the IP address of that peer, but not a
// port on which it listens.
func (d *dials) came(id peer.ID, a ma.Multiaddr, now time.Time) {
	at, _ := whereabouts(a)
	if !at.IsValid() {
		return
	}
	// There is a limit for all peers, and one for each peer: then the oldest entry of this peer
	// goes.
	if _, known := d.seen[id][at]; !known && (d.metHere >= MaxSeen || len(d.seen[id]) >= maxSeenOne) {
		if d.metHere >= MaxSeen {
			d.makeRoom(now)
		} else {
			d.forgetOldest(id)
		}
		if d.metHere >= MaxSeen || len(d.seen[id]) >= maxSeenOne {
			return
		}
	}
	if d.seen[id] == nil {
		d.seen[id] = map[netip.Prefix]time.Time{}
	}
	if _, known := d.seen[id][at]; !known {
		d.metHere++
	}
	d.seen[id][at] = now
	if here := d.places[at]; here != nil {
		here.met, here.tries = now, 0
	} else {
		if len(d.places) >= MaxPlaces {
			d.makeRoom(now)
		}
		if len(d.places) < MaxPlaces {
			d.places[at] = &landmark{met: now}
		}
	}
}

// forgetOldest removes the IP address of id that was used least recently.
func (d *dials) forgetOldest(id peer.ID) {
	var oldest netip.Prefix
	for at, when := range d.seen[id] {
		if !oldest.IsValid() || when.Before(d.seen[id][oldest]) {
			oldest = at
		}
	}
	delete(d.seen[id], oldest)
	d.metHere--
}

// holds reports whether this peer can vouch for a: it reached id there, or id came from that IP
// address, within a day.
func (d *dials) holds(id peer.ID, a ma.Multiaddr, now time.Time) bool {
	at, _ := whereabouts(a)
	t := d.trials[claim{id, string(a.Bytes())}]
	return at.IsValid() && (t != nil && recent(t.proven, dialMemory, now) || recent(d.seen[id][at], dialMemory, now))
}

// trusts reports whether the user named a within trustLife.
func (d *dials) trusts(id peer.ID, a ma.Multiaddr, now time.Time) bool {
	t := d.trials[claim{id, string(a.Bytes())}]
	return t != nil && recent(t.trusted, trustLife, now)
}

// careful reports whether a is dialled because of a draw, so that one packet must be enough.
func (d *dials) careful(a ma.Multiaddr, now time.Time) bool {
	at, _ := whereabouts(a)
	here := d.places[at]
	return here != nil && !recent(here.met, dialMemory, now) && recent(here.drawn, dialWindow, now)
}
