package dht

import (
	"sync/atomic"

	"github.com/echo-node/echo-node/dht/member"
)

// Stats are counters since New, and a few present sizes.
type Stats struct {
	CallsOut    uint64 // calls made
	CallsFailed uint64 // of them, without an answer
	CallsIn     uint64 // calls received
	Busy        uint64 // of them, refused for want of room
	Malformed   uint64 // of them, refused as malformed or unknown
	Cut         uint64 // of them, ended before the request was there, as by slowness
	BytesIn     uint64 // of calls and answers, as on the wire
	BytesOut    uint64
	StaleConns  uint64 // connections closed because they did not answer a ping
	Published   uint64 // times the own descriptor was stored in Kademlia

	// RejectedDescriptors of Kademlia by reason: forged, expired, malformed,
	// oversize, old (a higher sequence was there).
	RejectedDescriptors map[string]uint64

	Peers        int // connected
	RoutingTable int // peers in Kademlia's table
	Member       member.Stats
}

type counters struct {
	callsOut, callsFailed, callsIn, busy, malformed, cut atomic.Uint64
	bytesIn, bytesOut, staleConns, published             atomic.Uint64
}

// Stats are the counters so far.
func (d *DHT) Stats() Stats {
	c, v := &d.counters, d.check
	return Stats{CallsOut: c.callsOut.Load(), CallsFailed: c.callsFailed.Load(), CallsIn: c.callsIn.Load(),
		Busy: c.busy.Load(), Malformed: c.malformed.Load(), Cut: c.cut.Load(),
		BytesIn: c.bytesIn.Load(), BytesOut: c.bytesOut.Load(), StaleConns: c.staleConns.Load(), Published: c.published.Load(),
		RejectedDescriptors: map[string]uint64{"forged": v.forged.Load(), "expired": v.expired.Load(),
			"malformed": v.malformed.Load(), "oversize": v.oversize.Load(), "old": v.old.Load()},
		Peers: len(d.host.Network().Peers()), RoutingTable: d.kad.RoutingTable().Size(), Member: d.list.Stats()}
}
