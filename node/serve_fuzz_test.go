package node

import (
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/nodetest/hostile"
	"github.com/echo-node/echo-node/partition"
)

// FuzzRequest makes one running node serve requests from a stranger and from a member that keeps
// nothing. The requests are the fuzzer's bytes, a valid message mixed with them, and random
// messages. The node must not panic, its agreement must not change, and a stranger must not change
// a row.
func FuzzRequest(f *testing.F) {
	sc := &hostile.Scene{Me: "member", Target: "you", Peers: []string{"you", "owner"},
		Keys: []partition.Key{"web:http://127.99.0.1/"}}
	kinds := hostile.Kinds()
	for i, kind := range kinds {
		b, err := proto.Marshal(sc.RightMessage(kind))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, uint64(i), byte(i))
	}
	n := openNode(f, Options{}) // one node for all inputs
	enter(n, "member")
	sc.Charter, sc.All, sc.Slice, sc.Target = n.charter, n.slices, n.slices[0], n.id
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64, form byte) {
		r := rand.New(rand.NewPCG(seed, 1))
		kind := kinds[seed%uint64(len(kinds))]
		var req *wire.Request
		switch as := hostile.Forgeries(kind); form % 4 {
		case 0:
			req = new(wire.Request)
		case 1:
			req = sc.RightMessage(kind)
		case 2:
			req = as[r.IntN(len(as))].Make(sc, r)
		default:
			req = sc.Random(r, kind)
		}
		if m := new(wire.Request); form%4 < 2 && proto.Unmarshal(raw, m) == nil {
			proto.Merge(req, m)
		}
		req.Version = partition.WireVersion
		if req.Validate() != nil {
			return // wire reads no such message: see FuzzMessages
		}
		agreed, before := n.quorum.Digest(), n.store.Stats()
		for _, from := range []string{"stranger", "member"} {
			if resp := n.serve(t.Context(), from, req); resp == nil {
				t.Fatalf("no answer to %v", req)
			}
			if n.quorum.Digest() != agreed {
				t.Fatalf("a %s changes what was agreed: %v", from, req)
			}
			if after := n.store.Stats(); from == "stranger" &&
				(after.Keys != before.Keys || after.Records != before.Records || after.Outbox != before.Outbox) {
				t.Fatalf("a stranger changes the store from %+v to %+v: %v", before, after, req)
			}
		}
	})
}
