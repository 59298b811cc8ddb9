package quota

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/strictjson"
	"github.com/echo-node/echo-node/store"
)

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
	also func(w Swarm, from string, req *wire.Request) (no *call.Refusal, why string)
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

// Allows applies the rule of req. It returns nil if from may send req. A request without a rule is
// refused.
func (g *Gate) Allows(ctx context.Context, from string, req *wire.Request) *call.Refusal {
	if from == g.o.Self {
		return nil
	}
	kind := kindOf(req)
	r, ok := ruleOf(kind)
	if !ok {
		no := &call.Refusal{Code: wire.Refusal_CODE_UNSUPPORTED, Reason: "this peer does not know that message"}
		return g.ruledOut(from, kind, refusedNoRule, no)
	}
	if !g.isA(ctx, r.who, from) {
		no := call.Busy("not a member in this peer's view yet", strangerRetry)
		return g.ruledOut(from, kind, refusedStranger, no)
	}
	if r.also != nil {
		if no, why := r.also(g.o.Swarm, from, req); no != nil {
			return g.ruledOut(from, kind, why, no)
		}
	}
	return nil
}

// isA reports whether from is of the kind who, as far as this peer knows.
func (g *Gate) isA(ctx context.Context, who speaker, from string) bool {
	switch who {
	case byAnybody:
		return true
	case byNeighbour:
		return g.o.Swarm.Alive(from) || g.neighbours.has(ctx, from)
	case byMember:
		return g.o.Swarm.Alive(from)
	case byPartner:
		return g.o.Swarm.Alive(from) || g.o.Swarm.Partner(from)
	}
	return false
}

// ruledOut counts a refusal and one strike against the sender. A sender that goes on is slowed,
// then cut off (credits.strike). Leases and ballots are never slowed.
func (g *Gate) ruledOut(from string, kind protoreflect.Name, reason string, no *call.Refusal) *call.Refusal {
	g.mu.Lock()
	g.ruled[ruledKind{string(kind), reason}]++
	news := g.note("", g.credits.refuse(from, time.Now()))
	g.mu.Unlock()
	g.warn(from, news)
	return no
}

// ruledKind is the key of the counts of refusals by rule.
type ruledKind struct{ kind, reason string }

// wholeZone allows a peer of another zone to ask only for a whole zone. Single slices are assigned
// among peers that see the same members.
func wholeZone(w Swarm, from string, req *wire.Request) (*call.Refusal, string) {
	if w.Alive(from) || req.GetQuery().GetZone() != 0 || req.GetCopies().GetZone() != 0 {
		return nil, ""
	}
	return call.Busy("only members ask for single slices", strangerRetry), refusedZone
}

// ownersDigest allows only the slice's owner to ask for digests and rows. Any member may ask
// whether it may drop a copy, because the answer is yes or no. A replica that sends this request to
// the owner reports that its own copy is not whole (Repairs.Lacking), and gets only a refusal.
func ownersDigest(w Swarm, from string, req *wire.Request) (*call.Refusal, string) {
	c := req.GetCompare()
	s := partition.Slice(c.GetSlice())
	if c.GetDrop() != nil || w.Owner(s) == from || w.Lacking(s, from) {
		return nil, ""
	}
	why := fmt.Sprintf("%s is not yours by what this peer knows", s)
	return call.Busy(why, time.Second), refusedNotOwner
}

// mayOverrule allows overrides to peers that the charter names. Any member may request that a Key is
// visited again, as any member may seed.
func mayOverrule(w Swarm, from string, r *wire.Request) (*call.Refusal, string) {
	var o store.Override
	if w.Overrules(from) || strictjson.Unmarshal(r.GetOverrule().GetOverride(), &o) == nil &&
		o.Verdict == store.VerdictAgain {
		return nil, ""
	}
	no := &call.Refusal{Code: wire.Refusal_CODE_MALFORMED, Reason: "overrides are the founder's alone in this swarm"}
	return no, refusedOverrides
}
