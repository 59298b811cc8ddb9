package hostile

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/echo-node/echo-node/dht/wire"
)

// Kind is one kind of request: the name of a field of the body of wire.Request.
type Kind = protoreflect.Name

// Kinds lists every kind of request of the protocol, from its descriptor. So a kind that is
// added later is in every test of this package.
func Kinds() []Kind { return bodies((&wire.Request{}).ProtoReflect().Descriptor()) }

// Answers lists every kind of response in the same way.
func Answers() []Kind { return bodies((&wire.Response{}).ProtoReflect().Descriptor()) }

func bodies(d protoreflect.MessageDescriptor) []Kind {
	fields := d.Oneofs().ByName("body").Fields()
	out := make([]Kind, fields.Len())
	for i := range out {
		out[i] = fields.Get(i).Name()
	}
	return out
}

// KindOf returns the kind of a request, or "" for one without a body.
func KindOf(req *wire.Request) Kind {
	m := req.ProtoReflect()
	if f := m.WhichOneof(m.Descriptor().Oneofs().ByName("body")); f != nil {
		return f.Name()
	}
	return ""
}

// Role says what a sender is for the peer that receives its request, with respect to one
// slice.
type Role uint8

// The roles, from the least trusted to the most trusted.
const (
	Stranger  Role = iota // no member
	Member                // a member that keeps nothing
	Elsewhere             // keeps other slices
	Former                // kept the slice until a later ReplicaSet
	Replica               // keeps the slice and does not own it
	Owner                 // owns the slice
)

// AllRoles lists all roles.
func AllRoles() []Role { return []Role{Stranger, Member, Elsewhere, Former, Replica, Owner} }

func (s Role) String() string {
	names := []string{"stranger", "member", "replica of another slice", "former replica", "replica", "owner"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("standing %d", s)
}

// Form is the way in which a message is bad, or WellFormed.
type Form uint8

// The forms.
const (
	WellFormed Form = iota
	Forged
	Replayed
	Huge
	Slow
	Truncated
	OutOfOrder
)

// Forms lists them all.
func Forms() []Form { return []Form{WellFormed, Forged, Replayed, Huge, Slow, Truncated, OutOfOrder} }

func (f Form) String() string {
	names := []string{"well formed", "forged", "replayed", "huge", "slow", "truncated", "out of order"}
	if int(f) < len(names) {
		return names[f]
	}
	return fmt.Sprintf("form %d", f)
}

// Scope is how much of a peer's disk a message may change at most.
type Scope uint8

// The scopes.
const (
	Nothing  Scope = iota
	Links          // new Keys appear, as links do; nothing that existed is lost
	OneSlice       // rows and the ReplicaSets of the slices that the sender keeps
)

func (s Scope) String() string {
	return []string{"nothing", "new links", "slices that the sender keeps"}[s]
}

// Rule says what one kind of request may do, depending on its sender.
type Rule struct {
	// Answered is the least trusted role that gets an answer rather than a refusal. For some
	// kinds that holds only for the sender's slices.
	Answered Role
	// Changes is what a sender with at least the role From may change on disk.
	Changes Scope
	From    Role
}

// RuleOf is the table of rules that the tests check for every peer. It returns false for a kind
// without a rule, which must be refused.
func RuleOf(kind Kind) (Rule, bool) {
	switch kind {
	case "who_owns":
		return Rule{Answered: Stranger}, true
	case "query", "copies", "show", "status", "records", "turns":
		return Rule{Answered: Member}, true
	case "forward":
		return Rule{Answered: Member, Changes: Links, From: Member}, true
	// Only the founder may, unless the charter says otherwise. No sender here is the founder.
	case "overrule":
		return Rule{Answered: Member}, true
	case "lease", "configs", "ballots":
		return Rule{Answered: Member, Changes: OneSlice, From: Replica}, true
	case "ship":
		return Rule{Answered: Member, Changes: OneSlice, From: Owner}, true
	case "compare":
		return Rule{Answered: Member}, true
	case "unite":
		return Rule{Answered: Member, Changes: OneSlice, From: Replica}, true
	}
	return Rule{}, false
}

// May returns the most that a message of that kind may change when a sender in that role sends
// it.
func (r Rule) May(s Role) Scope {
	if s < r.From {
		return Nothing
	}
	return r.Changes
}
