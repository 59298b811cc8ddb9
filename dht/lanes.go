package dht

import (
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/echo-node/echo-node/dht/guard"
)

// A call goes through one of three lanes, and no lane can fill another:
//
//	outside   who is no Member: a place from before the first byte until the end
//	inside    Members: a place to be read, then one to be served, see places
//	urgent    members, what they agree on (leases, ballots): the same, its own
//
// A caller that is slow or deaf holds places of its own share only.
type lanes struct {
	outside, inside, priority lane
	serving                   *guard.Pool // of the urgent lane, once a request is read
}

// lane is how requests are read.
type lane struct {
	reading *guard.Pool
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
func (c *calls) openLanes() {
	o := c.opts
	n := o.MaxOutsiders
	newLane := func(name string, within time.Duration, l guard.Limits) lane {
		return lane{reading: c.guard.NewPool(name, l), within: within}
	}
	brief := min(o.ReadTimeout, briefRead)
	c.lanes.outside = newLane("rpc", brief, guard.Limits{All: n, Net: max(1, n*3/4), Addr: max(1, n/2),
		Peer:    min(outsiderCalls, max(1, n/4)),
		Members: n, Member: outsiderCalls}) // who becomes a member meanwhile
	c.lanes.inside = newLane("rpc-members", o.ReadTimeout, guard.Limits{Members: readingInside, Member: readingMember})
	c.lanes.priority = newLane("urgent", brief, guard.Limits{Members: priorityAll, Member: priorityMember})
	c.lanes.serving = c.guard.NewPool("urgent-serving", guard.Limits{Members: priorityAll, Member: priorityMember})
}

// laneOf is the lane of one call.
func (c *calls) laneOf(s network.Stream) *lane {
	switch {
	case !c.guard.IsMember(s.Conn().RemotePeer()):
		return &c.lanes.outside
	case s.Protocol() == c.prefix+prioritySuffix:
		return &c.lanes.priority
	}
	return &c.lanes.inside
}
