package dht

import (
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/echo-node/echo-node/dht/guard"
)

// Each call uses one of three lanes. A full lane takes no place from another:
//
//	outside    outsiders: one place from before the first byte until the end
//	inside     members: one place while the request is read, then one while it is served (see places)
//	priority   members, for requests that Options.Priority selects (leases, ballots): the same, with places of its own
//
// So a caller that sends slowly or does not read takes only places of its own share.
type lanes struct {
	outside, inside, priority lane
	serving                   *guard.Pool // places of the priority lane, for requests that are read
}

// lane says how requests are read.
type lane struct {
	reading *guard.Pool
	within  time.Duration // longest time to read one request
}

const (
	briefRead      = 10 * time.Second // upper limit of within for the lanes outside and priority
	readingInside  = 512              // requests of members that are read at once
	readingMember  = 32               // of these, from one member
	priorityAll    = 512              // priority requests that are read at once; as many are served at once
	priorityMember = 16               // of these, from one member
	outsiderCalls  = 12               // requests of one outsider at once; an honest peer sends 8 at once
)

// openLanes makes the lanes. The defaults of the options must be set.
func (c *calls) openLanes() {
	o := c.opts
	n := o.MaxOutsiders
	newLane := func(name string, within time.Duration, l guard.Limits) lane {
		return lane{reading: c.guard.NewPool(name, l), within: within}
	}
	brief := min(o.ReadTimeout, briefRead)
	c.lanes.outside = newLane("rpc", brief, guard.Limits{All: n, Net: max(1, n*3/4), Addr: max(1, n/2),
		Peer:    min(outsiderCalls, max(1, n/4)),
		Members: n, Member: outsiderCalls}) // for callers that became members in the meantime
	c.lanes.inside = newLane("rpc-members", o.ReadTimeout, guard.Limits{Members: readingInside, Member: readingMember})
	c.lanes.priority = newLane("urgent", brief, guard.Limits{Members: priorityAll, Member: priorityMember})
	c.lanes.serving = c.guard.NewPool("urgent-serving", guard.Limits{Members: priorityAll, Member: priorityMember})
}

// laneOf returns the lane for one call.
func (c *calls) laneOf(s network.Stream) *lane {
	switch {
	case !c.guard.IsMember(s.Conn().RemotePeer()):
		return &c.lanes.outside
	case s.Protocol() == c.prefix+prioritySuffix:
		return &c.lanes.priority
	}
	return &c.lanes.inside
}
