package replica

import (
	"errors"
	"testing"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/node/replica/message"
	"github.com/echo-node/echo-node/node/replica/quorum"
)

// TestAttackAnswerOfAnotherSlice: a peer is asked about one slice and answers with the ReplicaSet
// of another slice, which it does not keep. The response is ignored. It would count if it were
// about the requested slice.
func TestAttackAnswerOfAnotherSlice(t *testing.T) {
	evil := "evil"
	n := newRig(t, swarm())
	n.enter(evil)
	asked, other := n.o.Slices[0], n.o.Slices[1]
	p := quorum.Proposal{Slice: asked, Base: n.o.Quorum.ReplicaSet(asked), Ballot: quorum.Ballot{N: 2, By: n.o.Self}}
	for _, c := range []*wire.Config{nil, message.Set(asked, p.Base), message.Set(other, p.Base)} {
		want := c != nil && c.Slice == uint64(other)
		for name, a := range map[string]*wire.Promise{"newer": {Newer: c},
			"accepted": {Ok: true, Accepted: 1, AcceptedBy: evil, Proposal: c}} {
			n.answers[evil] = func(*wire.Request) *wire.Response {
				promises := &wire.BallotsAnswer{Promises: []*wire.Promise{a}}
				return &wire.Response{Body: &wire.Response_Ballots{Ballots: promises}}
			}
			if got, err := n.elections.askBallots(t.Context(), evil, []quorum.Proposal{p}, false); errors.Is(err,
				call.ErrForeign) != want {
				t.Errorf("%s, %v: %+v, %v", name, c, got, err)
			}
		}
	}
}
