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

// Who may ask what of this peer. Every kind of request has a rule in the table of
// ruleOf; obeys applies it before anything is done. A request without a rule is
// refused. What an operator may do is not in it: no request of the HTTP API can be
// made over the swarm's protocols.
//
// What a peer is, this peer judges by its own knowledge alone: its View of the live
// members, and the ReplicaSets that it has agreed to or learned.

// speaker says what a peer must be. Each is told from the others by this peer alone.
type speaker uint8

const (
	// byAnybody: speaks the swarm's protocol. In a private swarm it was let in.
	byAnybody speaker = iota + 1
	// byNeighbour: is a member; or a member of another zone, by its signed descriptor.
	byNeighbour
	// byMember: is alive in this peer's View.
	byMember
	// byPartner: is a member, or keeps or owns some slice: leases and ballots go on while
	// the membership doubts a peer. The handler judges each slice of the message.
	byPartner
)

// rule is who may make a kind of request.
type rule struct {
	who speaker
	// also is what is asked beyond who, nil = nothing: why is what the metric says.
	also func(n *Node, from string, req *wire.Request) (no *call.Refusal, why string)
}

// ruleOf is the table: a rule for each field of the body of a Request.
func ruleOf(kind protoreflect.Name) (rule, bool) {
	switch kind {
	case "who_owns": // asked on the way through Kademlia, before anybody knows anybody
		return rule{who: byAnybody}, true
	case "forward", "show", "turns": // of slices whose owner may be in another zone than the sender
		return rule{who: byNeighbour}, true
	case "query", "copies":
		return rule{who: byNeighbour, also: wholeZone}, true
	case "status", "records":
		return rule{who: byMember}, true
	case "overrule":
		return rule{who: byNeighbour, also: mayOverrule}, true
	case "lease", "ballots", "configs": // the handler judges each slice
		return rule{who: byPartner}, true
	case "ship": // the handler takes rows of the slice's owner alone (Machine.Follows)
		return rule{who: byMember}, true
	case "compare":
		return rule{who: byMember, also: ownersDigest}, true
	case "unite": // the handler takes what a peer may bring: see replica.Receiver
		return rule{who: byMember}, true
	}
	return rule{}, false
}

// kindOf names the field of the request's body; "" of a request without one.
func kindOf(req *wire.Request) protoreflect.Name {
	m := req.ProtoReflect()
	if f := m.WhichOneof(m.Descriptor().Oneofs().ByName("body")); f != nil {
		return f.Name()
	}
	return ""
}

// strangerRetry is when a stranger may ask again: a newcomer is in every member's
// View within about that time.
const strangerRetry = 300 * time.Millisecond

// Why a request was refused by its rule, as the metric has it.
const (
	refusedNoRule    = "no-rule"
	refusedStranger  = "stranger"
	refusedNotOwner  = "not-owner"
	refusedZone      = "not-a-zone"
	refusedOverrides = "overrides"
)

// obeys applies the rule of req; nil when from may ask it.
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

// isA says whether from is one by what this peer knows.
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

// ruledOut counts a refusal and holds it against the sender a little: who goes on is
// slowed, then cut off (credits.strike). Leases and ballots are never slowed.
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

// ruledKind is what is counted of refusals by rule.
type ruledKind struct{ kind, reason string }

// ruleMetrics counts requests that the table refused.
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

// wholeZone has a peer of another zone ask for a whole zone: slices are assigned by
// who sees the same members.
func wholeZone(n *Node, from string, req *wire.Request) (*call.Refusal, string) {
	if n.placement.Alive(from) || req.GetQuery().GetZone() != 0 || req.GetCopies().GetZone() != 0 {
		return nil, ""
	}
	return call.Busy("only members ask for single slices", strangerRetry), refusedZone
}

// ownersDigest: digests and rows are for the slice's owner. Whether a copy may be
// dropped any member may ask: the answer is yes or no. A replica that asks the owner says so that
// its copy is not whole (lacking), and gets nothing but that.
func ownersDigest(n *Node, from string, req *wire.Request) (*call.Refusal, string) {
	c := req.GetCompare()
	s := partition.Slice(c.GetSlice())
	if c.GetDrop() != nil || n.quorum.Owner(s) == from || n.repairs.Lacking(s, from) {
		return nil, ""
	}
	why := fmt.Sprintf("%s is not yours by what this peer knows", s)
	return call.Busy(why, time.Second), refusedNotOwner
}
