package guard

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/echo-node/echo-node/partition"
)

// model is a swarm of peers that want to dial. Its time is a field.
type model struct {
	t     *testing.T
	now   time.Time
	peers []*dials
}

func newModel(t *testing.T, n int) *model {
	m := &model{t: t, now: time.Unix(1_800_000_000, 0)}
	var members []partition.Member
	for i := range n {
		members = append(members, partition.Member{ID: fmt.Sprint("peer", i)})
	}
	for i := range n {
		m.peers = append(m.peers, newDials(true, false, func(peer.ID) bool { return true },
			func(at netip.Prefix, now time.Time) bool {
				return drawnOf("model", members, at, now) == members[i].ID
			}))
	}
	return m
}

// want lets every peer ask to dial every address for every id. It returns the packets sent: one for
// TCP, and ten for QUIC to a host that does not answer.
func (m *model) want(ids []peer.ID, addrs []ma.Multiaddr) (packets int) {
	for _, d := range m.peers {
		for _, id := range ids {
			for _, a := range addrs {
				if d.may(id, a, m.now) != "" {
					continue
				}
				if _, err := a.ValueForProtocol(ma.P_UDP); err == nil {
					packets += 10
				} else {
					packets++
				}
			}
		}
	}
	return packets
}

// victimAddrs returns four addresses at one IP address: two of TCP and two of QUIC.
func victimAddrs(t *testing.T) (addrs []ma.Multiaddr) {
	t.Helper()
	for i := range 2 {
		addrs = append(addrs, parseAddr(t, fmt.Sprintf("/ip4/198.51.100.7/tcp/%d", 6000+i)),
			parseAddr(t, fmt.Sprintf("/ip4/198.51.100.7/udp/%d/quic-v1", 6000+i)))
	}
	return addrs
}

// run lets every peer ask every 20 seconds during long. It returns the packets in all, in the first
// hour, and in the worst minute.
func (m *model) run(long time.Duration, ids []peer.ID, addrs []ma.Multiaddr) (total, hour, worst int) {
	for began := m.now; m.now.Sub(began) < long; {
		minute := 0
		for range 3 {
			minute += m.want(ids, addrs)
			m.now = m.now.Add(20 * time.Second)
		}
		total, worst = total+minute, max(worst, minute)
		if m.now.Sub(began) <= time.Hour {
			hour += minute
		}
	}
	return total, hour, worst
}

// A victim that is no peer gets at most one packet a minute from a swarm of five, and at most three
// a day. Twenty identities that announce it cause no more than one does.
func TestVictimInAMinuteAHourADay(t *testing.T) {
	for _, liars := range []int{1, 20} {
		m := newModel(t, 5)
		var ids []peer.ID
		for i := range liars {
			ids = append(ids, peer.ID(fmt.Sprint("liar", i)))
		}
		total, hour, worst := m.run(24*time.Hour, ids, victimAddrs(t))
		t.Logf("%d liars: %d packets in the worst minute, %d in the first hour, %d in a day", liars, worst, hour, total)
		if worst > 1 || total > 3 || total == 0 {
			t.Errorf("%d liars: %d packets in a minute, %d in a day", liars, worst, total)
		}
	}
}

// Some members see liars that others do not see. Two honest members still never try one address
// less than a minute apart.
func TestDrawnByDifferentViews(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	drawn := 0
	for world := range 2000 {
		honest := make([]partition.Member, 1+rng.IntN(6))
		for i := range honest {
			honest[i].ID = fmt.Sprint("honest", world, i)
		}
		at := netip.MustParsePrefix(fmt.Sprintf("198.51.%d.%d/32", rng.IntN(256), rng.IntN(256)))
		var last time.Time
		var who string
		for now, second := time.Unix(1_800_000_000, 0), 0; second < 900; second += 10 {
			for _, self := range honest {
				view := slices.Clone(honest)
				for i := range rng.IntN(4) {
					view = append(view, partition.Member{ID: fmt.Sprint("liar", i, rng.IntN(9))})
				}
				if drawnOf("model", view, at, now) != self.ID {
					continue
				}
				if drawn++; who != self.ID && !last.IsZero() && now.Sub(last) < time.Minute {
					t.Fatalf("world %d: %s and %s within %s", world, who, self.ID, now.Sub(last))
				}
				last, who = now, self.ID
			}
			now = now.Add(10 * time.Second)
		}
	}
	if drawn == 0 {
		t.Error("nobody was drawn")
	}
}

// Most of the members that are asked lie too. Then each peer that believes them tries the victim's
// IP address at most three times a day, with pauses.
func TestVictimOfLyingWitnesses(t *testing.T) {
	m := newModel(t, 5)
	id, addrs := peer.ID("liar"), victimAddrs(t)
	tries := 0
	for range 24 * 60 {
		for _, d := range m.peers {
			for _, a := range addrs {
				d.vouch(id, a, m.now)
				if d.may(id, a, m.now) == "" {
					tries++
				}
			}
		}
		m.now = m.now.Add(time.Minute)
	}
	t.Logf("%d tries in a day of five peers", tries)
	if tries > 5*vouchedTries || tries == 0 {
		t.Errorf("%d tries", tries)
	}
}

// A member that is gone is tried with growing pauses, and no more after a day.
func TestDialsOfWhoIsGoneEnd(t *testing.T) {
	m := newModel(t, 1)
	d, id, a := m.peers[0], peer.ID("gone"), parseAddr(t, "/ip4/198.51.100.7/tcp/4001")
	d.reached(id, a, m.now)
	m.now = m.now.Add(dialWindow)
	count := func(long time.Duration) (n int) {
		var last time.Time
		for range long / time.Second {
			// libp2p's own pause prevents the other dials
			if d.may(id, a, m.now) == "" && !recent(last, dialWindow, m.now) {
				n++
				last = m.now
			}
			m.now = m.now.Add(time.Second)
		}
		return n
	}
	minute, rest, after := count(time.Minute), count(24*time.Hour), count(48*time.Hour)
	t.Logf("dials of a peer that is gone: %d in a minute, %d in the day, %d in the two days after", minute, rest, after)
	if minute < 3 || minute > 15 || rest > 170 || after > drawnMembers {
		t.Errorf("%d, %d, %d dials", minute, rest, after)
	}
	d.came(id, parseAddr(t, "/ip4/198.51.100.7/tcp/50000"), m.now)
	if reason := d.may(id, a, m.now); reason != "" {
		t.Errorf("who came back is not dialled: %s", reason)
	}
}

// Each reason why an address is dialled or not.
func TestDialReasons(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	id, other := peer.ID("a"), peer.ID("b")
	public, home := parseAddr(t, "/ip4/198.51.100.7/tcp/4001"), parseAddr(t, "/ip4/192.168.1.5/tcp/4001")
	quic := parseAddr(t, "/ip4/198.51.100.7/udp/4001/quic-v1")
	for name, one := range map[string]struct {
		lan    bool
		before func(d *dials)
		addr   ma.Multiaddr
		want   string
	}{
		"nobody vouches": {false, func(*dials) {}, public, dialUnproven},
		"vouched for":    {false, func(d *dials) { d.vouch(id, public, now) }, public, ""},
		"another is vouched for": {false, func(d *dials) { d.vouch(other, public, now) }, public,
			dialUnproven},
		"it came from there": {false,
			func(d *dials) { d.came(id, parseAddr(t, "/ip4/198.51.100.7/tcp/9"), now) }, quic, ""},
		"another came from there": {false,
			func(d *dials) { d.came(other, parseAddr(t, "/ip4/198.51.100.7/tcp/9"), now) }, quic, dialUnproven},
		"reached by the other transport": {false, func(d *dials) { d.reached(id, public, now) }, quic, ""},
		"reached two days ago": {false, func(d *dials) { d.reached(id, public, now.Add(-48*time.Hour)) },
			public, dialUnproven},
		"the user named it": {false, func(d *dials) { d.trust(id, home, now) }, home, ""},
		"the user named it an hour ago": {false, func(d *dials) { d.trust(id, public, now.Add(-time.Hour)) }, public,
			dialUnproven},
		"a private address":              {false, func(d *dials) { d.vouch(id, home, now) }, home, dialPrivate},
		"a private address it came from": {false, func(d *dials) { d.came(id, home, now) }, home, ""},
		"a private address in a lan":     {true, func(d *dials) { d.vouch(id, home, now) }, home, ""},
		"loopback": {false, func(d *dials) { d.vouch(id, parseAddr(t, "/ip6/::1/tcp/1"), now) },
			parseAddr(t, "/ip6/::1/tcp/1"), dialPrivate},
		"link-local": {false, func(d *dials) {}, parseAddr(t, "/ip4/169.254.169.254/tcp/80"),
			dialPrivate},
		"private in disguise": {false, func(d *dials) {}, parseAddr(t, "/ip6/::ffff:10.0.0.1/tcp/80"),
			dialPrivate},
		"a name": {true, func(*dials) {}, parseAddr(t, "/dns4/example.org/tcp/80"), dialNoIP},
		"somebody else was there": {false, func(d *dials) { d.vouch(id, public, now); d.ban(public, now) },
			public, dialBanned},
		"somebody else, but it came": {false, func(d *dials) { d.ban(public, now); d.came(id, public, now) },
			public, ""},
		"somebody else, two days ago": {false,
			func(d *dials) { d.vouch(id, public, now); d.ban(public, now.Add(-48*time.Hour)) }, public, ""},
		"vouched for, tried a moment ago": {false,
			func(d *dials) { d.vouch(id, public, now); d.may(id, public, now.Add(-10*time.Second)) }, public,
			dialPause},
	} {
		d := newDials(one.lan, false, func(peer.ID) bool { return true }, nil)
		one.before(d)
		if name == "the user named it" || d.would(id, one.addr, now) == (one.want == "") {
			if got := d.may(id, one.addr, now); got != one.want {
				t.Errorf("%s: %q, not %q", name, got, one.want)
			}
			continue
		}
		t.Errorf("%s: would says otherwise than may", name)
	}
}

// Outsiders cannot make a peer remember more than the limits. They cannot make it forget the proven
// addresses of members.
func TestDialMemoryIsBounded(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	honest := peer.ID("honest")
	d := newDials(false, false, func(p peer.ID) bool { return p == honest }, nil)
	good := parseAddr(t, "/ip4/203.0.113.5/tcp/4001")
	d.reached(honest, good, now)
	for i := range MaxClaims + MaxClaims/2 {
		a := parseAddr(t, fmt.Sprintf("/ip6/2001:db8:%x:%x::1/tcp/4001", i>>12, i&0xfff))
		id := peer.ID(fmt.Sprint(i))
		d.came(id, a, now)
		d.vouch(id, a, now)
		d.may(id, a, now)
		d.ban(a, now)
	}
	if len(d.trials) > MaxClaims || len(d.places) > MaxPlaces || len(d.banned) > MaxBanned || d.metHere > MaxSeen ||
		len(d.seen) > MaxSeen {
		t.Errorf("%d claims, %d places, %d bans, %d seen", len(d.trials), len(d.places), len(d.banned), d.metHere)
	}
	if !d.holds(honest, good, now) {
		t.Error("where the member is was forgotten")
	}
	d.forget(now.Add(2 * dialMemory))
	if len(d.trials)+len(d.places)+len(d.banned)+len(d.seen)+d.metHere != 0 {
		t.Errorf("after two days %d claims, %d places, %d bans, %d seen", len(d.trials), len(d.places), len(d.banned),
			d.metHere)
	}
}
