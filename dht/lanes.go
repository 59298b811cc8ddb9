package dht

import (
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// A call goes through one of three lanes, and no lane can fill another:
//
//	outside   who is no member: a place from before the first byte until the end
//	inside    members: a place to be read, then one to be served, see places
//	urgent    members, what they agree on (leases, ballots): the same, its own
//
// A caller that is slow or deaf holds places of its own share only.
type lanes struct {
	outside, inside, priority lane
	serving                   *pool // of the urgent lane, once a request is read
}

// lane is how requests are read.
type lane struct {
	reading *pool
	within  time.Duration // a request is read so long at most
}

const (
	briefRead      = 10 * time.Second // the longest within of outsiders and of what is urgent
	readingInside  = 512              // requests of members being read at once
	readingMember  = 32               // of them, of one
	priorityAll    = 512              // urgent requests being read, and as many served
	priorityMember = 16               // of them, of one member
	outsiderCalls  = 12               // requests of one outsider; a peer sends 8 at once
)

// openLanes makes the lanes; o is filled.
func (d *DHT) openLanes() {
	o := d.opts
	n := o.MaxOutsiders
	newLane := func(name string, within time.Duration, l poolLimits) lane {
		return lane{reading: d.newPool(name, l), within: within}
	}
	brief := min(o.ReadTimeout, briefRead)
	d.lanes.outside = newLane("rpc", brief, poolLimits{all: n, net: max(1, n*3/4), addr: max(1, n/2),
		peer:    min(outsiderCalls, max(1, n/4)),
		members: n, member: outsiderCalls}) // who becomes a member meanwhile
	d.lanes.inside = newLane("rpc-members", o.ReadTimeout, poolLimits{members: readingInside, member: readingMember})
	d.lanes.priority = newLane("urgent", brief, poolLimits{members: priorityAll, member: priorityMember})
	d.lanes.serving = d.newPool("urgent-serving", poolLimits{members: priorityAll, member: priorityMember})
}

// laneOf is the lane of one call.
func (d *DHT) laneOf(s network.Stream) *lane {
	switch {
	case !d.isMember(s.Conn().RemotePeer()):
		return &d.lanes.outside
	case s.Protocol() == d.prefix+prioritySuffix:
		return &d.lanes.priority
	}
	return &d.lanes.inside
}

// isMember says whether p is a live member by this peer's own View.
func (d *DHT) isMember(p peer.ID) bool {
	if !d.ready.Load() { // the host listens before there is a View
		return false
	}
	_, ok := d.View().Find(p.String())
	return ok
}

// called says whether id is of calls, which have lanes.
func (d *DHT) called(id protocol.ID) bool {
	return id == d.prefix+rpcSuffix || id == d.prefix+prioritySuffix
}
