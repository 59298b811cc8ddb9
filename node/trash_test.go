package node

import (
	"slices"
	"testing"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/store/trash"
)

// What is dropped as its only replica says so stays in the trash, from where it comes back.
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
	// The lie is out, the slice is this peer's again, and a person wants the rows back.
	back := c.Next(n.id, []string{n.id}, n.store.Log.LogHead(lost))
	if err := n.decide(func() {
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

// What a person wants back goes to the slice's owner, page by page, and stays in the trash
// until that has all of it.
func TestTrashIsGivenToTheOwner(t *testing.T) {
	owner := peerIDs(t, 1)[0]
	var got []*wire.Row
	busy := true
	answers := map[string]func(*wire.Request) *wire.Response{}
	n := openNode(t, Options{Around: answering(answers)})
	answers[owner] = func(req *wire.Request) *wire.Response {
		if u := req.GetUnite(); u != nil && busy {
			return call.Refuse(wire.Refusal_CODE_BUSY, "busy", time.Millisecond)
		} else if u != nil {
			got = append(got, u.Rows...)
			return &wire.Response{Body: &wire.Response_Unite{Unite: &wire.UniteAnswer{Ok: true}}}
		}
		return nil
	}
	enter(n, owner)
	k := mustKey(t, "http://bank.example/")
	s, _ := surplusAt(t, n, k, owner)
	want, _, err := n.store.Log.SliceRows(s, nil, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if !n.keepTrash(s, "test") {
		t.Fatal("not kept")
	}
	x := n.trash.List()[0]
	if given, err := n.giveBack(t.Context(), x); given || err != nil {
		t.Errorf("given to who is busy: %v", err)
	}
	busy = false
	if given, err := n.giveBack(t.Context(), x); !given || err != nil || len(got) != len(want) {
		t.Errorf("%v %v: %d rows of %d", given, err, len(got), len(want))
	}
}
