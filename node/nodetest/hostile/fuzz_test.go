package hostile_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/nodetest"
	"github.com/echo-node/echo-node/node/nodetest/hostile"
	"github.com/echo-node/echo-node/partition"
)

// FuzzServe sends messages to a peer of a swarm in fake time, from a sender in each role. It
// sends the fuzzer's bytes unchanged, as the body of a frame, and as choices among messages
// that are almost right. After each message the invariants of TestTable must hold.
//
// One swarm serves all messages of one input, because making a swarm is expensive.
func FuzzServe(f *testing.F) {
	var plan []byte // A swarm is expensive: a seed has a message of every kind.
	for i := range hostile.Kinds() {
		plan = append(plan, steps(byte(i), byte(i%4), uint64(i))...)
	}
	for role := range hostile.AllRoles() {
		f.Add(byte(role), plan, bytes.Repeat(steps(8, 1, 3), 5), []byte{0xff})
	}
	f.Fuzz(func(t *testing.T, role byte, plan, more, raw []byte) {
		who := hostile.AllRoles()[int(role)%len(hostile.AllRoles())]
		o := nodetest.SimOptions{World: world(), SliceBits: 4, Node: node.Options{Credit: patient()}}
		nodetest.RunSim(t, o, func(s *nodetest.Sim) {
			g := newStage(t, s, who)
			was := rowsOf(t, g.target)
			may := hostile.Nothing
			for _, b := range [][]byte{plan, more} {
				for ; len(b) >= stepLen && !t.Failed(); b = b[stepLen:] {
					may = max(may, g.step(who, b[:stepLen], raw))
				}
			}
			g.bytes(raw)
			g.watch("fuzz", 6*time.Second)
			g.judge("fuzz, "+who.String(), may, was.Changes(rowsOf(t, g.target)))
		})
	})
}

const stepLen = 10

// steps encodes one step of a plan: a kind, a form of it, and its random seed.
func steps(kind, form byte, seed uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{kind, form}, seed)
}

// step sends one message and returns what it may change.
func (g *stage) step(who hostile.Role, b, raw []byte) hostile.Scope {
	kinds := hostile.Kinds()
	kind := kinds[int(b[0])%len(kinds)]
	r := rand.New(rand.NewPCG(binary.BigEndian.Uint64(b[2:]), 1))
	var req *wire.Request
	switch as := hostile.Forgeries(kind); b[1] % 4 {
	case 0:
		req = g.sc.RightMessage(kind)
	case 1:
		req = as[r.IntN(len(as))].Make(g.sc, r)
	case 2:
		req = g.sc.Random(r, kind)
	default: // a right message with some of the fuzzer's bytes in it
		req = g.sc.RightMessage(kind)
		if m := new(wire.Request); proto.Unmarshal(raw, m) == nil {
			proto.Merge(req, m)
		}
	}
	req.Version = partition.WireVersion
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, _ = g.send.Ask(ctx, req) // any response is allowed, and none
	if rule, ok := hostile.RuleOf(hostile.KindOf(req)); ok {
		return rule.May(who)
	}
	return hostile.Nothing
}

// bytes sends the fuzzer's bytes unchanged and as a frame.
func (g *stage) bytes(raw []byte) {
	for _, frame := range [][]byte{raw, hostile.FrameOf(raw)} {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_, _ = g.send.Send(ctx, frame)
		cancel()
	}
}

// FuzzMessages decodes any bytes as requests and responses. What it accepts must stay the same
// when it is written and read again.
func FuzzMessages(f *testing.F) {
	sc := &hostile.Scene{All: []partition.Slice{1, 2}, Me: "me", Target: "you", Peers: []string{"you", "him"}}
	r := rand.New(rand.NewPCG(1, 2))
	for _, kind := range hostile.Kinds() {
		f.Add(hostile.Frame(sc.RightMessage(kind)))
		f.Add(hostile.Frame(sc.Random(r, kind)))
	}
	for _, kind := range hostile.Answers() {
		f.Add(hostile.Frame(sc.RandomAnswer(r, kind, 1)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, hostile.FrameOf(b)} {
			if req, n, err := wire.ReadRequest(bytes.NewReader(b)); err == nil {
				var out bytes.Buffer
				if _, err := wire.WriteRequest(&out, req); err != nil {
					t.Fatalf("a request of %d bytes is taken and cannot be written: %v", n, err)
				}
				again, _, err := wire.ReadRequest(&out)
				if err != nil || !bytes.Equal(canonical(req), canonical(again)) {
					t.Fatalf("%v is read again as %v: %v", req, again, err)
				}
			}
			if resp, n, err := wire.ReadResponse(bytes.NewReader(b)); err == nil {
				if _, err := wire.WriteResponse(new(bytes.Buffer), resp); err != nil {
					t.Fatalf("an answer of %d bytes is taken and cannot be written: %v", n, err)
				}
			}
		}
	})
}

// canonical is equal for messages with the same content, including NaN.
func canonical(m proto.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(err)
	}
	return b
}
