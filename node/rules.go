package node

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
)

// These are the rules for requests of other peers. Every kind of request has a rule in the table of
// ruleOf. obeys applies the rule before anything is done. A request without a rule is refused. The
// operator's actions are not in the table: no request of the HTTP API can be made over the swarm's
// protocols.
//
// This peer judges another peer only by its own knowledge: its View of the live members, and the
// ReplicaSets that it has agreed to or learned.

// speaker is the kind of peer that may send a request. This peer alone decides the kind.
type speaker uint8

const (
	// byAnybody: speaks the swarm's protocol. In a private swarm it was admitted.
	byAnybody speaker = iota + 1
	// byNeighbour: is a member, or has a signed descriptor as a member of another zone.
	byNeighbour
	// byMember: is alive in this peer's View.
	byMember
	// byPartner: is a member, or a replica or owner of some slice. Leases and ballots go on while
	// the membership doubts a peer. The handler judges each slice of the message.
	byPartner
)

// rule says which peers may send a kind of request.
type rule struct {
	who speaker
	// also is a further check, nil = none. why is the reason that the metric shows.
	also func(n *Node, from string, req *wire.Request) (no *call.Refusal, why string)
}

// ruleOf is the table: it has a rule for each field of the body of a Request.
func ruleOf(kind protoreflect.Name) (rule, bool) {
	switch kind {
	case "who_owns": // asked on the way through Kademlia, before the peers know each other
		return rule{who: byAnybody}, true
	case "forward", "show", "turns": // the slice's owner may be in another zone than the sender
		return rule{who: byNeighbour}, true
	case "query", "copies":
		return rule{who: byNeighbour, also: wholeZone}, true
	case "status", "records":
		return rule{who: byMember}, true
	case "overrule":
		return rule{who: byNeighbour, also: mayOverrule}, true
	case "lease", "ballots", "configs": // the handler judges each slice
		return rule{who: byPartner}, true
	case "ship": // the handler takes rows only from the slice's owner (Machine.Follows)
		return rule{who: byMember}, true
	case "compare":
		return rule{who: byMember, also: ownersDigest}, true
	case "unite": // the handler takes only what a peer may bring: see replica.Receiver
		return rule{who: byMember}, true
	}
	return rule{}, false
}

// kindOf returns the name of the field in the request's body, or "" for a request without one.
func kindOf(req *wire.Request) protoreflect.Name {
	m := req.ProtoReflect()
	if f := m.WhichOneof(m.Descriptor().Oneofs().ByName("body")); f != nil {
		return f.Name()
	}
	return ""
}

// strangerRetry is when a stranger may try again. A new member is in every member's View after
// about this time.
const strangerRetry = 300 * time.Millisecond

// Why a request was refused by its rule, as the metric shows it.
const (
	refusedNoRule    = "no-rule"
	refusedStranger  = "stranger"
	refusedNotOwner  = "not-owner"
	refusedZone      = "not-a-zone"
	refusedOverrides = "overrides"
)

// obeys applies the rule of req. It returns nil if from may send req.
func (n *Node) obeys(ctx context.Context, from string, req *wire.Request) *call.Refusal {
	if from == n.id {
		return nil
	}
	kind := kindOf(req)
	r, ok := ruleOf(kind)
	if !ok {
		no := &call.Refusal{Code: wire.Refusal_CODE_UNSUPPORTED, Reason: "this peer does not know that message"}
		return n.ruledOut(from, kind, refusedNoRule, no)
	}
	if !n.isA(ctx, r.who, from) {
		no := call.Busy("not a member in this peer's view yet", strangerRetry)
		return n.ruledOut(from, kind, refusedStranger, no)
	}
	if r.also != nil {
		if no, why := r.also(n, from, req); no != nil {
			return n.ruledOut(from, kind, why, no)
		}
	}
	return nil
}

// isA reports whether from is of the kind who, as far as this peer knows.
func (n *Node) isA(ctx context.Context, who speaker, from string) bool {
	switch who {
	case byAnybody:
		return true
	case byNeighbour:
		return n.placement.Alive(from) || n.neighbours.has(ctx, from)
	case byMember:
		return n.placement.Alive(from)
	case byPartner:
		return n.placement.Alive(from) || slices.Contains(n.quorum.Replicas(), from)
	}
	return false
}

// ruledOut counts a refusal and one strike against the sender. A sender that goes on is slowed,
// then cut off (credits.strike). Leases and ballots are never slowed.
func (n *Node) ruledOut(from string, kind protoreflect.Name, reason string, no *call.Refusal) *call.Refusal {
	g := n.credit
	g.mu.Lock()
	if g.ruled == nil {
		g.ruled = map[ruledKind]int64{}
	}
	g.ruled[ruledKind{string(kind), reason}]++
	news := g.note("", g.credits.refuse(from, time.Now()))
	g.mu.Unlock()
	n.warn(from, news)
	return no
}

// ruledKind is the key of the counts of refusals by rule.
type ruledKind struct{ kind, reason string }

// ruleMetrics returns the counts of requests that the table refused.
func (n *Node) ruleMetrics() []api.Metric {
	g := n.credit
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []api.Metric
	for k, v := range g.ruled {
		out = append(out, api.Metric{Name: "echo_rule_refused_total", Kind: "counter",
			Help:  "Requests of other peers that their sender may not make, by kind of request and reason.",
			Value: float64(v), Labels: map[string]string{"kind": k.kind, "reason": k.reason}})
	}
	return out
}

// wholeZone allows a peer of another zone to ask only for a whole zone. Single slices are assigned
// among peers that see the same members.
func wholeZone(n *Node, from string, req *wire.Request) (*call.Refusal, string) {
	if n.placement.Alive(from) || req.GetQuery().GetZone() != 0 || req.GetCopies().GetZone() != 0 {
		return nil, ""
	}
	return call.Busy("only members ask for single slices", strangerRetry), refusedZone
}

// ownersDigest allows only the slice's owner to ask for digests and rows. Any member may ask
// whether it may drop a copy, because the answer is yes or no. A replica that sends this request to
// the owner reports that its own copy is not whole (Repairs.Lacking), and gets only a refusal.
func ownersDigest(n *Node, from string, req *wire.Request) (*call.Refusal, string) {
	c := req.GetCompare()
	s := partition.Slice(c.GetSlice())
	if c.GetDrop() != nil || n.quorum.Owner(s) == from || n.repairs.Lacking(s, from) {
		return nil, ""
	}
	why := fmt.Sprintf("%s is not yours by what this peer knows", s)
	return call.Busy(why, time.Second), refusedNotOwner
}
