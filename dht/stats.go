package dht

import (
	"github.com/echo-node/echo-node/dht/member"
	"github.com/echo-node/echo-node/dht/zone"
)

// Stats are counters since New, and a few present sizes.
type Stats struct {
	CallsOut    uint64 // calls made
	CallsFailed uint64 // of them, without an answer
	CallsIn     uint64 // calls received
	Busy        uint64 // of them, refused for want of room
	Malformed   uint64 // of them, refused as malformed or unknown
	Replayed    uint64 // answers that were to another call, as of a peer that sends old ones again
	Cut         uint64 // of them, ended before the request was there, as by slowness
	BytesIn     uint64 // of calls and answers, as on the wire
	BytesOut    uint64
	StaleConns  uint64 // connections closed because they did not answer a ping
	Published   uint64 // times the own descriptor was stored in Kademlia

	// HandshakeFailed counts what a private swarm refused, by reason: stranger (no
	// pass), expired, forged, other-peer, no-member, other-swarm, wrong-key,
	// oversize, version, malformed, cut, and late (a connection on which nothing
	// was shown in time).
	HandshakeFailed map[string]uint64

	// NoPlace counts streams and connections that found no place, by the pool and
	// the limit that was reached, as in rpc-addr or urgent-member. See guard.Pool.
	NoPlace map[string]uint64

	// NotDialled counts addresses that were not dialled, by reason: see package guard.
	// met-other-identity counts dials that met somebody else than was said.
	NotDialled map[string]uint64

	// RejectedDescriptors of Kademlia by reason: forged, expired, malformed,
	// oversize, old (a higher sequence was there).
	RejectedDescriptors map[string]uint64

	Peers        int // connected
	RoutingTable int // peers in Kademlia's table
	Member       member.Stats
	Zone         zone.Stats
}

// Stats are the counters so far.
func (d *DHT) Stats() Stats {
	c, v, g := &d.calls.count, d.dir.check, &d.guard.Count
	return Stats{CallsOut: c.callsOut.Load(), CallsFailed: c.callsFailed.Load(), CallsIn: c.callsIn.Load(),
		Busy: c.busy.Load(), Malformed: c.malformed.Load(), Replayed: c.replayed.Load(), Cut: c.cut.Load(),
		BytesIn: c.bytesIn.Load(), BytesOut: c.bytesOut.Load(), StaleConns: g.StaleConns.Load(),
		Published:       d.dir.published.Load(),
		HandshakeFailed: d.handshakeFailed.All(), NoPlace: g.NoPlace.All(), NotDialled: g.NotDialled.All(),
		RejectedDescriptors: map[string]uint64{"forged": v.forged.Load(), "expired": v.expired.Load(),
			"malformed": v.malformed.Load(), "oversize": v.oversize.Load(), "old": v.old.Load()},
		Peers: len(d.host.Network().Peers()), RoutingTable: d.kad.RoutingTable().Size(),
		Member: d.zones.MemberStats(), Zone: d.zones.Stats()}
}
