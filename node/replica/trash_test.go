package replica

import (
	"testing"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
)

// A copy that a person wants back is sent to the slice's owner, page by page. It stays in the trash
// until the owner has all of it.
func TestTrashIsGivenToTheOwner(t *testing.T) {
	owner := "owner"
	var got []*wire.Row
	busy := true
	n := newRig(t, swarm())
	n.answers[owner] = func(req *wire.Request) *wire.Response {
		if u := req.GetUnite(); u != nil && busy {
			return call.Refuse(wire.Refusal_CODE_BUSY, "busy", time.Millisecond)
		} else if u != nil {
			got = append(got, u.Rows...)
			return &wire.Response{Body: &wire.Response_Unite{Unite: &wire.UniteAnswer{Ok: true}}}
		}
		return nil
	}
	n.enter(owner)
	k := mustKey(t, "http://bank.example/")
	s := n.surplus(k, owner)
	want, _, err := n.o.Store.Log.SliceRows(s, nil, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if !n.tidier.keepTrash(s, "test") {
		t.Fatal("not kept")
	}
	x := n.o.Trash.List()[0]
	if given, err := n.tidier.giveBack(t.Context(), x); given || err != nil {
		t.Errorf("given to who is busy: %v", err)
	}
	busy = false
	if given, err := n.tidier.giveBack(t.Context(), x); !given || err != nil || len(got) != len(want) {
		t.Errorf("%v %v: %d rows of %d", given, err, len(got), len(want))
	}
}
