package dht

import (
	"github.com/echo-node/echo-node/dht/member"
	"github.com/echo-node/echo-node/dht/zone"
)

// Stats has counters since New, and a few present sizes.
type Stats struct {
	CallsOut    uint64 // calls made
	CallsFailed uint64 // of these, without an answer
	CallsIn     uint64 // calls received
	Busy        uint64 // of these, refused because there was no place
	Malformed   uint64 // of these, refused as malformed or unknown
	Replayed    uint64 // answers to another call; a hostile peer may send old answers again
	Cut         uint64 // calls received whose request did not arrive completely, often because of slowness
	BytesIn     uint64 // bytes of requests and answers, as sent
	BytesOut    uint64 // the same, in the other direction
	StaleConns  uint64 // connections closed because they did not answer a ping
	Published   uint64 // number of times that this peer stored its descriptor in Kademlia

	// HandshakeFailed counts refusals of a private swarm, by reason: stranger (no pass), expired,
	// forged, other-peer, no-member, other-swarm, wrong-key, oversize, version, malformed, cut,
	// late. late is a connection without a handshake in time.
	HandshakeFailed map[string]uint64

	// NoPlace counts streams and connections that found no place, by the pool and the limit that
	// was reached. Examples are rpc-addr and urgent-member. See guard.Pool.
	NoPlace map[string]uint64

	// NotDialled counts addresses that were not dialled, by reason; see package guard.
	// met-other-identity counts dials that reached a peer with another id than expected.
	NotDialled map[string]uint64

	// RejectedDescriptors counts descriptors from Kademlia that were refused, by reason: forged,
	// expired, malformed, oversize, old. old means that there was one with a higher sequence.
	RejectedDescriptors map[string]uint64

	Peers        int // connected peers
	RoutingTable int // peers in Kademlia's routing table
	Member       member.Stats
	Zone         zone.Stats
}

// Stats returns the counters so far.
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
