package node

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"

	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/replica/message"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// rowsSaid returns the rows of another store in which c was committed for k.
func rowsSaid(t *testing.T, n *Node, k partition.Key, c store.Commit) (partition.Slice, []*wire.Row) {
	t.Helper()
	s := elsewhere(t, n)
	if _, err := s.Queue.Admit([]store.Admission{{Key: k}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	c.Key = k
	if err := s.Commit(c); err != nil {
		t.Fatal(err)
	}
	sl := s.SliceOf(k)
	rows, _, err := s.Log.SliceRows(sl, nil, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return sl, message.Rows(rows)
}

func pageBy(k partition.Key, peer, text string, at time.Time) *store.Record {
	return &store.Record{V: store.RecordVersion, Key: k, Kind: "page", URL: k.URL(), FetchedAt: at, Source: "web",
		Peer: peer, Status: 200, Text: text, Title: "Bank"}
}

// have stores an honest page in n.
func have(t *testing.T, n *Node, k partition.Key, r *store.Record) {
	t.Helper()
	if _, err := n.store.Queue.Admit([]store.Admission{{Key: k}}, r.FetchedAt); err != nil {
		t.Fatal(err)
	}
	next := store.Next{State: store.StateDone, At: r.FetchedAt.Add(1000 * time.Hour)}
	if err := n.store.Commit(store.Commit{Key: k, Now: r.FetchedAt, Record: r, Next: next}); err != nil {
		t.Fatal(err)
	}
}

// TestAttackReconcilePoison: with Unite, a peer cannot replace a page in another's name, replace it
// with a page from the future, or report it gone. What a member reports in its own name is soon
// fetched again.
func TestAttackReconcilePoison(t *testing.T) {
	n := openNode(t, Options{})
	enter(n, plainMember, fellow)
	now := time.Now()
	unite := func(from string, sl partition.Slice, rows []*wire.Row) *wire.Response {
		return n.serve(t.Context(), from,
			&wire.Request{Body: &wire.Request_Unite{Unite: &wire.Unite{Slice: uint64(sl), Rows: rows}}})
	}
	for i, tt := range []struct {
		name, from, peer string
		at               time.Time
		state            store.State
		replaced         bool
	}{
		{name: "a day ahead, in the victim's name", from: plainMember, peer: n.id, at: now.Add(24 * time.Hour)},
		{name: "in 9999, in the victim's name", from: plainMember, peer: n.id,
			at: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)},
		{name: "a minute ago, in the victim's name", from: plainMember, peer: n.id, at: now.Add(-time.Minute)},
		{name: "a minute ago, in a fellow's name", from: plainMember, peer: fellow, at: now.Add(-time.Minute)},
		{name: "an hour ahead, in its own name", from: plainMember, peer: plainMember, at: now.Add(time.Hour)},
		{name: "gone", from: plainMember, at: now.Add(-time.Minute), state: store.StateGone},
		{name: "by a stranger", from: stranger, peer: stranger, at: now.Add(-time.Minute)},
		{name: "in its own name", from: plainMember, peer: plainMember, at: now.Add(-time.Minute), replaced: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := mustKey(t, fmt.Sprintf("http://bank.example/%d", i))
			have(t, n, k, pageBy(k, n.id, "honest", now.Add(-time.Hour)))
			before, err := n.store.Queue.DueOf(k)
			if err != nil {
				t.Fatal(err)
			}
			c := store.Commit{Now: tt.at, Next: store.Next{State: tt.state, Reason: "status 410"}}
			if tt.state == 0 {
				c.Next.State, c.Record = store.StateDone, pageBy(k, tt.peer, "send your money to evil", tt.at)
			}
			sl, rows := rowsSaid(t, n, k, c)
			if r := unite(tt.from, sl, rows); (r.GetRefusal() == nil) != (tt.from != stranger) {
				t.Errorf("%v", r)
			}
			rec, _, err := n.store.Archive.Find(k)
			if err != nil || (rec.Text != "honest") != tt.replaced || rec.FetchedAt.After(now.Add(5*time.Minute)) {
				t.Errorf("the record: %q by %q of %s, %v", rec.Text, rec.Peer, rec.FetchedAt, err)
			}
			due, err := n.store.Queue.DueOf(k)
			if err != nil || due.State != store.StateDone || !tt.replaced && !due.At.Equal(before.At) ||
				tt.replaced && due.At.After(time.Now().Add(time.Hour)) {
				t.Errorf("due: %+v, was %+v, %v", due, before, err)
			}
		})
	}
	status, err := json.Marshal(n.Status())
	if err != nil {
		t.Fatal(err)
	}
	left, ahead := counted(n, "echo_rows_left_total"), counted(n, "echo_rows_ahead_total")
	if left == 0 || ahead == 0 || !bytes.Contains(status, []byte(`"clock":[{`)) {
		t.Errorf("%v rows left, %v of the future, %s", left, ahead, status)
	}
	private := mustKey(t, "http://10.0.0.1/")
	sl, rows := rowsSaid(t, n, private, store.Commit{Now: now, Next: store.Next{State: store.StateDone}})
	if r := unite(plainMember, sl, rows); r.GetUnite() == nil {
		t.Errorf("%v", r)
	}
	if _, err := n.store.Queue.DueOf(private); !isNotExist(err) {
		t.Errorf("a key that no link may bring came by rows: %v", err)
	}
}

// counted returns the sum of a metric's values that have all of the label values.
func counted(n *Node, name string, labels ...string) (sum float64) {
	for _, m := range n.board.Metrics() {
		if all := slices.Collect(maps.Values(m.Labels)); m.Name == name &&
			!slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(all, l) }) {
			sum += m.Value
		}
	}
	return sum
}

// peerIDs returns n ids of peers that do not exist.
func peerIDs(t *testing.T, n int) (out []string) {
	t.Helper()
	for range n {
		key, _, err := crypto.GenerateEd25519Key(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, dht.PeerID(key))
	}
	return out
}

func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// surplusAt gives n a copy of k's slice, which the replicas keep; the first one is the owner.
func surplusAt(t *testing.T, n *Node, k partition.Key, replicas ...string) (partition.Slice, quorum.ReplicaSet) {
	t.Helper()
	have(t, n, k, pageBy(k, n.id, "honest", time.Now().Add(-time.Hour)))
	s := n.store.SliceOf(k)
	c := n.quorum.ReplicaSet(s).Next(replicas[0], replicas, n.store.Log.LogHead(s))
	if err := n.agreement.Decide(func() { n.quorum.Learn(quorum.SliceReplicas{Slice: s, ReplicaSet: c}) }); err != nil {
		t.Fatal(err)
	}
	return s, c
}

func has(t *testing.T, n *Node, s partition.Slice) bool {
	t.Helper()
	rows, _, err := n.store.Log.SliceRows(s, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	return len(rows) > 0
}

// answering returns the responses of fake peers instead of using the network.
func answering(answer map[string]func(*wire.Request) *wire.Response) func(context.Context, string, *wire.Request,
	dht.Caller) (*wire.Response, error) {
	return func(_ context.Context, to string, req *wire.Request, _ dht.Caller) (*wire.Response, error) {
		if a := answer[to]; a != nil {
			if r := a(req); r != nil {
				return r, nil
			}
		}
		return nil, errors.New("nobody is there")
	}
}

func dropIt(yes bool) func(*wire.Request) *wire.Response {
	return func(req *wire.Request) *wire.Response {
		if req.GetCompare().GetDrop() == nil {
			return nil
		}
		return &wire.Response{Body: &wire.Response_Compare{Compare: &wire.CompareAnswer{Drop: yes}}}
	}
}

// TestAttackMemberDrops: a copy that other peers must keep as well is not dropped on the report of
// the owner alone. TestDroppedCopyComesBack tests that a dropped copy can come back.
func TestAttackMemberDrops(t *testing.T) {
	peers := peerIDs(t, 3)
	evil, second, third := peers[0], peers[1], peers[2]
	answers := map[string]func(*wire.Request) *wire.Response{evil: dropIt(true), second: dropIt(false)}
	n := openNode(t, Options{Around: answering(answers)})
	enter(n, evil, second)
	k, other := mustKey(t, "http://bank.example/"), partition.Key("")
	for i := 0; other == "" || n.store.SliceOf(other) == n.store.SliceOf(k); i++ {
		other = mustKey(t, fmt.Sprintf("http://shop%d.example/", i))
	}
	kept, _ := surplusAt(t, n, k, evil, second, third)
	lost, _ := surplusAt(t, n, other, evil)
	waitFor(t, "the copy that only the owner keeps is dropped", func() bool { return !has(t, n, lost) })
	for range 5 { // rounds that drop surplus copies
		if err := n.tidier.DropSurplus(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !has(t, n, kept) {
		t.Fatal("the owner's word alone had a copy dropped")
	}
}
