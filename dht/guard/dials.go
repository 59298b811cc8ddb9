package guard

import (
	"net/netip"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// dials decides which addresses are dialled. Anyone can announce a victim's
// address: in a descriptor, a Kademlia record, an identify message. So what a
// peer says of itself is a claim, and a claim is dialled only as far as somebody
// has seen it hold, with pauses that grow, and an end:
//
//	trusted   the user of this peer named it                         at any time
//	proven    this peer reached that identity there within a day     until a day after the last time
//	seen      that identity came to us from that IP address          the same, seenTries times at most
//	vouched   most members that were asked have proven or seen it    vouchedTries times a day
//	else      two members drawn by the IP address, in turn           once a day each, by TCP
//
// At an IP address where nobody of the swarm was met, all identities together
// have vouchedTries a day. Where the identity was another than expected, nothing
// is dialled for a day, unless the expected one comes from there.
//
// It is pure: time is an argument. It is not safe for concurrent use. A crash
// loses it; the book keeps what was proven.
type dials struct {
	lan     bool                                      // private addresses are dialled as well
	zones   bool                                      // members of other zones are met with nobody to vouch for them
	member  func(peer.ID) bool                        // of whom more is remembered when there is no room for all
	drawn   func(at netip.Prefix, now time.Time) bool // is it this peer that may try an address now?
	trials  map[claim]*trial
	places  map[netip.Prefix]*landmark
	banned  map[string]time.Time // addresses of somebody else than was said, by their bytes
	seen    map[peer.ID]map[netip.Prefix]time.Time
	metHere int       // entries of seen
	swept   time.Time // old entries were looked for
	minute  int64
	draws   int // in that minute
}

// claim is that id can be reached at addr.
type claim struct {
	id   peer.ID
	addr string // its bytes
}

type trial struct {
	trusted, proven, vouched time.Time // the last time that it was; zero = never
	last                     time.Time // the last try
	tries                    int       // since it was proven
}

// landmark is an IP address.
type landmark struct {
	met   time.Time // a peer proved to be there
	tries int       // where nobody was met
	last  time.Time
	drawn time.Time
}

// Limits of dialling.
const (
	MaxClaims  = 1 << 14 // addresses of peers that were tried or proven
	MaxPlaces  = 1 << 13 // IP addresses
	MaxBanned  = 1 << 12 // addresses that were somebody else's
	MaxSeen    = 1 << 13 // IP addresses from which peers came
	maxSeenOne = 4       // of them, of one peer

	dialMemory   = 24 * time.Hour   // for how long all of this is remembered
	trustLife    = time.Minute      // the join loop says so again before it dials
	dialWindow   = 3 * time.Second  // calls that want the same dial share it
	firstPause   = time.Second      // after a dial of what was proven or seen
	longestPause = 10 * time.Minute // it grows by three fifths each time
	vouchedPause = time.Minute      // the same after what others vouch for, times five each time
	vouchedTries = 3
	seenTries    = 24
	drawnMembers = 2
	maxDraws     = 6 // addresses of whomever that this peer tries in a minute, being drawn
)

// Reasons why an address is not dialled.
const (
	dialNoIP     = "no-ip"
	dialPrivate  = "private"
	dialBanned   = "other-identity"
	dialPause    = "pause"
	dialEnded    = "ended"
	dialUnproven = "unproven"
	dialFull     = "full"
)

func newDials(lan, zones bool, member func(peer.ID) bool, drawn func(netip.Prefix, time.Time) bool) *dials {
	return &dials{lan: lan, zones: zones, member: member, drawn: drawn, trials: map[claim]*trial{},
		places: map[netip.Prefix]*landmark{},
		banned: map[string]time.Time{}, seen: map[peer.ID]map[netip.Prefix]time.Time{}}
}

// Private says whether a is for a local network only.
func Private(a ma.Multiaddr) bool {
	ip, err := manet.ToIP(a)
	if err != nil {
		return false
	}
	return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() ||
		manet.IsPrivateAddr(a) ||
		inPrefix(ip, "100.64.0.0/10") // shared by the customers of one provider
}

func inPrefix(ip []byte, prefix string) bool {
	a, ok := netip.AddrFromSlice(ip)
	return ok && netip.MustParsePrefix(prefix).Contains(a.Unmap())
}

// may says whether id may be dialled at a, and counts the dial; the reason is
// empty if so.
func (d *dials) may(id peer.ID, a ma.Multiaddr, now time.Time) (reason string) {
	return d.judge(id, a, now, true)
}

// would is may without a dial.
func (d *dials) would(id peer.ID, a ma.Multiaddr, now time.Time) bool {
	return d.judge(id, a, now, false) == ""
}

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
	if recent(t.trusted, trustLife, now) {
		return ""
	}
	seen := recent(d.seen[id][at], dialMemory, now)
	if recent(t.last, dialWindow, now) && (seen || recent(latest(t.proven, t.vouched), dialMemory, now)) {
		return ""
	}
	if !d.lan && Private(a) && !seen {
		return dialPrivate
	}
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
	if !d.remember(key, t, at, here, now) {
		return dialFull
	}
	t.tries++
	t.last = now
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

// weigh says why a claim is not dialled now, or that it is by the draw.
func (d *dials) weigh(t *trial, here *landmark, at netip.Prefix, a ma.Multiaddr, seen bool,
	now time.Time) (reason string, draw bool) {
	met := recent(here.met, dialMemory, now)
	if here.tries > 0 && !recent(here.last, dialMemory, now) {
		here.tries = 0
	}
	switch {
	case recent(t.proven, dialMemory, now), seen:
		if seen && !recent(t.proven, dialMemory, now) && t.tries >= seenTries {
			return dialEnded, false
		}
		return pauseReason(t, grown(firstPause, t.tries, 8, 5, longestPause), now), false
	case recent(t.vouched, dialMemory, now):
		if t.tries >= vouchedTries || !met && here.tries >= vouchedTries {
			return dialEnded, false
		}
		if !met && here.tries > 0 && now.Sub(here.last) < grown(vouchedPause, here.tries, 5, 1, time.Hour) {
			return dialPause, false
		}
		return pauseReason(t, grown(vouchedPause, t.tries, 5, 1, time.Hour), now), false
	case recent(here.drawn, dialMemory, now), t.tries > 0:
		return dialEnded, false
	case d.zones && (met || here.tries == 0):
		return "", !met
	case met: // by somebody else, who need not be bothered
		return dialUnproven, false
	case here.tries > 0:
		return dialEnded, false
	case d.minute == now.Unix()/60 && d.draws >= maxDraws:
		return dialPause, false
	}
	if _, err := a.ValueForProtocol(ma.P_TCP); err != nil || d.drawn == nil || !d.drawn(at, now) {
		return dialUnproven, false // one packet of TCP says whether somebody listens; QUIC sends a dozen
	}
	return "", true
}

func pauseReason(t *trial, pause time.Duration, now time.Time) string {
	if t.tries > 0 && now.Sub(t.last) < pause {
		return dialPause
	}
	return ""
}

// grown is first, made longer by up/down for each try after the first.
func grown(first time.Duration, tries, up, down int, longest time.Duration) time.Duration {
	for range max(0, tries-1) {
		if first = first * time.Duration(up) / time.Duration(down); first >= longest {
			return longest
		}
	}
	return first
}

// remember keeps the entries of one claim, if there is room.
func (d *dials) remember(key claim, t *trial, at netip.Prefix, here *landmark, now time.Time) bool {
	if d.trials[key] == nil && len(d.trials) >= MaxClaims || d.places[at] == nil && len(d.places) >= MaxPlaces {
		d.makeRoom(now)
	}
	if d.trials[key] == nil && len(d.trials) >= MaxClaims || d.places[at] == nil && len(d.places) >= MaxPlaces {
		return false // what was tried must be remembered, or it is tried for ever
	}
	d.trials[key], d.places[at] = t, here
	return true
}

// makeRoom forgets what is old, then what outsiders made this peer remember. A
// place that was tried in vain stays: it may be a victim's.
func (d *dials) makeRoom(now time.Time) {
	const share = 8 // an eighth at once, or each new entry would look through all
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

// forget drops what is too old to count.
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

func latest(first time.Time, rest ...time.Time) time.Time {
	for _, t := range rest {
		if t.After(first) {
			first = t
		}
	}
	return first
}

// recent says whether since is set and now is less than so long after it.
func recent(since time.Time, long time.Duration, now time.Time) bool {
	return !since.IsZero() && now.Sub(since) < long
}

// note changes what is known of a claim.
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

// trust is for an address that the user named, before each dial of it.
func (d *dials) trust(id peer.ID, a ma.Multiaddr, now time.Time) {
	d.note(id, a, now, func(t *trial, _ *landmark) { t.trusted = now })
}

// reached says that id was dialled at a and proved to be it.
func (d *dials) reached(id peer.ID, a ma.Multiaddr, now time.Time) {
	d.note(id, a, now, func(t *trial, here *landmark) {
		t.proven, t.tries = now, 0
		here.met, here.tries = now, 0
	})
	delete(d.banned, string(a.Bytes()))
	d.came(id, a, now) // it lives there, whatever else it listens on
}

// vouch says that most members that were asked can reach id at a.
func (d *dials) vouch(id peer.ID, a ma.Multiaddr, now time.Time) {
	d.note(id, a, now, func(t *trial, _ *landmark) { t.vouched = now })
}

// ban says that somebody else than who was expected is at a.
func (d *dials) ban(a ma.Multiaddr, now time.Time) {
	if len(d.banned) >= MaxBanned {
		d.makeRoom(now)
	}
	if len(d.banned) < MaxBanned { // else the pauses and ends must do
		d.banned[string(a.Bytes())] = now
	}
}

// came says that id came to us from a, which has its IP address and no port
// that anybody listens on.
func (d *dials) came(id peer.ID, a ma.Multiaddr, now time.Time) {
	at, _ := whereabouts(a)
	if !at.IsValid() {
		return
	}
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

// forgetOldest drops the IP address from which id did not come for longest.
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

// holds says whether this peer can vouch for a: see came and reached.
func (d *dials) holds(id peer.ID, a ma.Multiaddr, now time.Time) bool {
	at, _ := whereabouts(a)
	t := d.trials[claim{id, string(a.Bytes())}]
	return at.IsValid() && (t != nil && recent(t.proven, dialMemory, now) || recent(d.seen[id][at], dialMemory, now))
}

// trusts says whether the user named a.
func (d *dials) trusts(id peer.ID, a ma.Multiaddr, now time.Time) bool {
	t := d.trials[claim{id, string(a.Bytes())}]
	return t != nil && recent(t.trusted, trustLife, now)
}

// careful says whether a is under trial by the draw, so that one packet has to do.
func (d *dials) careful(a ma.Multiaddr, now time.Time) bool {
	at, _ := whereabouts(a)
	here := d.places[at]
	return here != nil && !recent(here.met, dialMemory, now) && recent(here.drawn, dialWindow, now)
}
