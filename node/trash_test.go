package node

import (
	"slices"
	"testing"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/store/trash"
)

// A copy that is dropped on the report of its only replica stays in the trash, and comes back from
// there.
func TestDroppedCopyComesBack(t *testing.T) {
	evil := peerIDs(t, 1)[0]
	answers := map[string]func(*wire.Request) *wire.Response{evil: dropIt(true)}
	n := openNode(t, Options{Around: answering(answers)})
	enter(n, evil)
	k := mustKey(t, "http://bank.example/")
	lost, c := surplusAt(t, n, k, evil)
	waitFor(t, "the copy is dropped", func() bool { return !has(t, n, lost) })
	kept := n.trash.List()
	if !slices.ContainsFunc(kept, func(x trash.Trashed) bool { return x.Slice == lost }) ||
		n.Status().Trash.Slices != len(kept) || n.Status().Trash.Bytes == 0 {
		t.Fatalf("the trash: %+v, %+v", kept, n.Status().Trash)
	}
	// The lie is discovered, the slice is this peer's again, and a person wants the rows back.
	back := c.Next(n.id, []string{n.id}, n.store.Log.LogHead(lost))
	if err := n.agreement.Decide(func() {
		n.quorum.Learn(quorum.SliceReplicas{Slice: lost, ReplicaSet: back})
		n.quorum.Copied(lost)
	}); err != nil {
		t.Fatal(err)
	}
	if wanted, err := WantBack(n.o.Dir, lost); err != nil || len(wanted) != 1 {
		t.Fatal(wanted, err)
	}
	waitFor(t, "the page is back", func() bool {
		r, _, err := n.store.Archive.Find(k)
		return err == nil && r.Text == "honest"
	})
	waitFor(t, "and in the trash no more", func() bool {
		return !slices.ContainsFunc(n.trash.List(), func(x trash.Trashed) bool { return x.Slice == lost })
	})
}
