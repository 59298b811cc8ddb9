package node

import (
	"errors"
	"testing"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/node/replica/message"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
)

// TestAttackAnswerOfAnotherSlice: a peer is asked about a slice and answers with the ReplicaSet of another slice, which
// it does not keep. The answer is ignored. It would count if it were about the slice that was asked for.
func TestAttackAnswerOfAnotherSlice(t *testing.T) {
	evil := peerIDs(t, 1)[0]
	answers := map[string]func(*wire.Request) *wire.Response{}
	n := openNode(t, Options{Around: answering(answers)})
	enter(n, evil)
	asked, other := n.slices[0], n.slices[1]
	p := quorum.Proposal{Slice: asked, Base: n.quorum.ReplicaSet(asked), Ballot: quorum.Ballot{N: 2, By: n.id}}
	for _, c := range []*wire.Config{nil, message.Set(asked, p.Base), message.Set(other, p.Base)} {
		want := c != nil && c.Slice == uint64(other)
		for name, a := range map[string]*wire.Promise{"newer": {Newer: c},
			"accepted": {Ok: true, Accepted: 1, AcceptedBy: evil, Proposal: c}} {
			answers[evil] = func(*wire.Request) *wire.Response {
				promises := &wire.BallotsAnswer{Promises: []*wire.Promise{a}}
				return &wire.Response{Body: &wire.Response_Ballots{Ballots: promises}}
			}
			if got, err := n.askBallots(t.Context(), evil, []quorum.Proposal{p}, false); errors.Is(err,
				call.ErrForeign) != want {
				t.Errorf("%s, %v: %+v, %v", name, c, got, err)
			}
		}
		answers[evil] = func(*wire.Request) *wire.Response {
			a := &wire.ShipAnswer{Stances: []*wire.Stance{{Newer: c}}}
			return &wire.Response{Body: &wire.Response_Ship{Ship: a}}
		}
		l := &replicaLane{peer: evil, todo: map[partition.Slice]bool{}}
		if _, err := n.replicator.send(t.Context(), l, []sentChunk{{slice: asked, chunk: &wire.Piece{}}}); err != nil ||
			want != (l.failed > 0) {
			t.Errorf("ship, %v: %d failed, %v", c, l.failed, err)
		}
	}
}
