package guard

import (
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"
)

// A wait for a peer leaves nothing behind, however it ends, and one that ends takes nothing from the
// others that wait for the same peer.
func TestWaitsForPeersLeaveNothing(t *testing.T) {
	g := &gater{awaited: map[peer.ID]*arrival{}}
	first, endFirst := g.await("p")
	second, endSecond := g.await("p")
	endFirst()
	if first != second || g.awaited["p"] == nil {
		t.Fatal("the second wait ended with the first")
	}
	endSecond()
	if len(g.awaited) != 0 {
		t.Errorf("%d peers are still awaited", len(g.awaited))
	}
	_, endOld := g.await("p")
	delete(g.awaited, "p") // the peer came
	_, endNew := g.await("p")
	endOld()
	if len(g.awaited) != 1 {
		t.Error("a wait that is over ended a newer one")
	}
	endNew()
}
