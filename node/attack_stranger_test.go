package node

import (
	"testing"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

const (
	stranger    = "stranger"
	plainMember = "member"
	fellow      = "replica-of-another-slice"
	former      = "former-replica"
	owner       = "owner"
	absent      = "replica-that-the-View-lacks"
)

// TestAttackStrangerReads: a peer that is no member can read nothing from the store.
func TestAttackStrangerReads(t *testing.T) {
	n := openNode(t, Options{})
	k := mustKey(t, "http://a.example/")
	now := time.Now()
	if _, err := n.store.Queue.Admit([]store.Admission{{Key: k}}, now); err != nil {
		t.Fatal(err)
	}
	rec := &store.Record{V: store.RecordVersion, Key: k, Kind: "page", URL: k.URL(), FetchedAt: now, Source: "web",
		Peer: n.id, Status: 200, Text: "text"}
	done := store.Commit{Key: k, Now: now, Record: rec, Next: store.Next{State: store.StateDone}}
	if err := n.store.Commit(done); err != nil {
		t.Fatal(err)
	}
	s := uint64(n.store.SliceOf(k))
	reads := []*wire.Request{
		{Body: &wire.Request_Records{Records: &wire.Records{Captures: true}}},
		{Body: &wire.Request_Records{Records: &wire.Records{Leaves: true}}},
		{Body: &wire.Request_Show{Show: &wire.Show{Key: string(k)}}},
		{Body: &wire.Request_Status{Status: &wire.Status{}}},
		{Body: &wire.Request_Query{Query: &wire.Query{Q: "text", Slices: []uint64{s}, Limit: 1}}},
		{Body: &wire.Request_Copies{Copies: &wire.Copies{Key: string(k), Slices: []uint64{s}}}},
		{Body: &wire.Request_Configs{Configs: &wire.Configs{Want: true}}},
		{Body: &wire.Request_Compare{Compare: &wire.Compare{Slice: s, Rows: true}}},
	}
	for _, req := range reads {
		r := n.serve(t.Context(), stranger, req)
		if r.GetRefusal().GetCode() != wire.Refusal_CODE_BUSY || r.GetBody() != nil {
			t.Errorf("%T: %v", req.Body, r)
		}
	}
	enter(n, plainMember)
	if r := n.serve(t.Context(), plainMember, reads[0]); len(r.GetRecords().GetRecords()) != 1 {
		t.Errorf("a member reads %v", r)
	}
}

// overriding is one attempt to override a verdict.
type overriding struct {
	name, from string
	names      string // the peer that the override names, "" = the founder
	taken      bool
}

// TestAttackStrangerOverrules: an override counts only if the charter allows it to the sender, and
// if it names the sender.
func TestAttackStrangerOverrules(t *testing.T) {
	overrule(t, Options{}, []overriding{
		{"a stranger, in the name of the victim", stranger, "", false},
		{"a member, where the founder may", plainMember, plainMember, false},
	})
}

func overrule(t *testing.T, o Options, all []overriding) {
	t.Helper()
	k, err := partition.ParseKey("mastodon:victim@m.example")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range all {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := openNode(t, o)
			enter(n, plainMember)
			if _, err := n.store.Queue.Admit([]store.Admission{{Key: k}}, time.Now()); err != nil {
				t.Fatal(err)
			}
			said := store.Override{V: store.OverrideVersion, Key: k, Verdict: "out", By: "the operator", Why: "x",
				Peer: tt.names, At: time.Now()}
			if tt.names == "" {
				said.Peer = n.id
			}
			b, err := call.Plain(said)
			if err != nil {
				t.Fatal(err)
			}
			req := &wire.Request{Body: &wire.Request_Overrule{Overrule: &wire.Overrule{Override: b}}}
			r := n.serve(t.Context(), tt.from, req)
			kept, err := n.store.Accounts.Overrides(0, k)
			if err != nil || (len(kept) == 1) != tt.taken || r.GetOverrule().GetKnown() != tt.taken {
				t.Fatalf("%v: %+v %v", r, kept, err)
			}
			if tt.taken && kept[0].Peer != plainMember {
				t.Errorf("it names %q", kept[0].Peer)
			}
		})
	}
}
