package node

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/replica/message"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
)

// speakers has one peer of each kind around a node. slice is the slice that requests name: owner
// owns it, and this peer keeps a copy. By the newest ReplicaSet here, former does not keep it any
// more.
type speakers struct {
	n     *Node
	slice partition.Slice
}

func acquaint(t *testing.T, o Options) speakers {
	t.Helper()
	n := openNode(t, o)
	enter(n, plainMember, fellow, former, owner)
	all := n.charter.Slices()
	agree := func(s partition.Slice, owner string, replicas ...string) {
		t.Helper()
		c := n.quorum.ReplicaSet(s).Next(owner, replicas, n.store.Log.LogHead(s))
		err := n.agreement.Decide(func() { n.quorum.Learn(quorum.SliceReplicas{Slice: s, ReplicaSet: c}) })
		if err != nil {
			t.Fatal(err)
		}
	}
	agree(all[0], owner, owner, former, n.id)
	agree(all[0], owner, owner, n.id)
	agree(all[1], fellow, fellow, n.id)
	agree(all[2], n.id, n.id, absent)
	return speakers{n, all[0]}
}

// request returns a request of that kind about the slice, with the fields that a rule reads.
func (s speakers) request(t *testing.T, field protoreflect.FieldDescriptor) *wire.Request {
	t.Helper()
	switch field.Name() {
	case "compare":
		return &wire.Request{Body: &wire.Request_Compare{Compare: &wire.Compare{Slice: uint64(s.slice)}}}
	}
	req := &wire.Request{}
	m := req.ProtoReflect()
	m.Set(field, m.NewField(field))
	return req
}

// TestRulesOfRequests walks all kinds of requests. Each must have a rule that allows only the right
// peers. A new kind of request fails here until it has a rule.
func TestRulesOfRequests(t *testing.T) {
	s := acquaint(t, Options{})
	everybody := []string{stranger, plainMember, fellow, former, owner, absent}
	members := []string{plainMember, fellow, former, owner}
	partners := append([]string{absent}, members...)
	want := map[protoreflect.Name][]string{
		"who_owns": everybody,
		"forward":  members, "query": members, "show": members, "status": members, "records": members, "turns": members,
		"copies": members,
		"lease":  partners, "ballots": partners, "configs": partners,
		"ship": members, "unite": members, // the handler judges them row by row
		"compare":  {owner},
		"overrule": nil, // in an open swarm only the founder may, which is this peer
	}
	fields := (&wire.Request{}).ProtoReflect().Descriptor().Oneofs().ByName("body").Fields()
	if fields.Len() != len(want) {
		t.Errorf("%d kinds of request, %d with an expectation", fields.Len(), len(want))
	}
	for i := range fields.Len() {
		f := fields.Get(i)
		may, ok := want[f.Name()]
		if !ok {
			t.Errorf("%s: no expectation", f.Name())
			continue
		}
		for _, from := range everybody {
			no := s.n.gate.Allows(t.Context(), from, s.request(t, f))
			if allowed := contains(may, from); (no == nil) != allowed {
				t.Errorf("%s by %s: allowed %v, want %v (%v)", f.Name(), from, no == nil, allowed, no)
			}
			if no != nil && no.Code == wire.Refusal_CODE_UNSUPPORTED {
				t.Errorf("%s has no rule", f.Name())
			}
			if no != nil && from != owner && f.Name() != "overrule" && no.Code != wire.Refusal_CODE_BUSY {
				t.Errorf("%s by %s: %v: it may be a newcomer, or this peer may have missed something", f.Name(), from,
					no)
			}
		}
		if no := s.n.gate.Allows(t.Context(), s.n.id, s.request(t, f)); no != nil {
			t.Errorf("%s by this peer itself: %v", f.Name(), no)
		}
	}
	if no := s.n.gate.Allows(t.Context(), plainMember, &wire.Request{}); no == nil ||
		no.Code != wire.Refusal_CODE_UNSUPPORTED {
		t.Errorf("a request that no rule knows: %v", no)
	}
	drop := &wire.Request{Body: &wire.Request_Compare{Compare: &wire.Compare{Slice: uint64(s.slice),
		Drop: message.Set(s.slice, s.n.quorum.ReplicaSet(s.slice))}}}
	if no := s.n.gate.Allows(t.Context(), plainMember, drop); no != nil {
		t.Errorf("a member asks whether it may drop a copy: %v", no)
	}
	if no := s.n.gate.Allows(t.Context(), stranger, drop); no == nil {
		t.Error("a stranger asks whether it may drop a copy")
	}
}

func contains(all []string, x string) bool {
	for _, y := range all {
		if x == y {
			return true
		}
	}
	return false
}

// Requests refused by their rule are counted by kind and reason. A sender that goes on is slowed
// and cut off, except for its leases and ballots.
func TestRefusalsByRuleAreCounted(t *testing.T) {
	n := openNode(t, Options{})
	status := &wire.Request{Body: &wire.Request_Status{Status: &wire.Status{}}}
	for range 2560 {
		if r := n.serve(t.Context(), stranger,
			proto.Clone(status).(*wire.Request)); r.GetRefusal().GetCode() != wire.Refusal_CODE_BUSY {
			t.Fatalf("%v", r)
		}
	}
	if got := n.gate.State(stranger); got == "" {
		t.Error("nothing is held against it")
	}
	seen := map[string]float64{}
	for _, m := range n.board.Metrics() {
		if m.Name == "echo_rule_refused_total" {
			seen[m.Labels["kind"]+" "+m.Labels["reason"]] = m.Value
		}
	}
	if seen["status stranger"] == 0 || len(seen) != 1 {
		t.Errorf("counted: %v", seen)
	}
	enter(n, stranger)
	lease := &wire.Request{Body: &wire.Request_Lease{Lease: &wire.Lease{}}}
	if r := n.serve(t.Context(), stranger, lease); r.GetLease() == nil {
		t.Errorf("its leases are slowed, too: %v", r)
	}
}

// Where members may overrule, a stranger may not, and a member may not in another's name.
func TestMembersOverrule(t *testing.T) {
	overrule(t, Options{Overrides: partition.OverridesMembers}, []overriding{
		{"a stranger", stranger, stranger, false},
		{"a member, in the name of the founder", plainMember, "", false},
		{"a member", plainMember, plainMember, true},
	})
}
