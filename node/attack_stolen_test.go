package node

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/replica"
	"github.com/echo-node/echo-node/node/replica/message"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// stolen returns ReplicaSets that give all slices to a liar, as a stranger sends them.
func stolen(n *Node, liar string, change func(*wire.Config)) (out []*wire.Config) {
	for _, s := range n.slices {
		c := &wire.Config{Slice: uint64(s), Gen: 1, Owner: liar, Keepers: []string{liar},
			Starts: []*wire.Start{{Gen: 1}}}
		change(c)
		out = append(out, c)
	}
	return out
}

// lies returns several forms of such ReplicaSets, by name.
func lies(n *Node, liar string) map[string][]*wire.Config {
	return map[string][]*wire.Config{
		"the next generation": stolen(n, liar, func(*wire.Config) {}),
		"the last generation": stolen(n, liar, func(c *wire.Config) { c.Gen, c.Starts = 1<<62, nil }),
		"a late generation": stolen(n, liar, func(c *wire.Config) {
			c.Gen, c.Starts = 1<<39, []*wire.Start{{Gen: 1 << 39}}
		}),
		"adopted": stolen(n, liar, func(c *wire.Config) {
			c.Epoch, c.Fork, c.Gen, c.Starts = 1, liar, 0, []*wire.Start{{}}
		}),
		"the last epoch":    stolen(n, liar, func(c *wire.Config) { c.Epoch, c.Fork = 1<<62, liar }),
		"a late epoch":      stolen(n, liar, func(c *wire.Config) { c.Epoch, c.Fork = 1<<31, liar }),
		"by a peer of ours": stolen(n, liar, func(c *wire.Config) { c.Keepers = append(c.Keepers, n.id) }),
	}
}

// tellLies sends ReplicaSets in every kind of request that contains some.
func tellLies(t *testing.T, n *Node, from string, all []*wire.Config) {
	t.Helper()
	var ballots []*wire.Proposal
	for _, c := range all {
		ballots = append(ballots, &wire.Proposal{Base: c, Ballot: 2, By: from, Next: c})
	}
	for _, body := range []*wire.Request{
		{Body: &wire.Request_Configs{Configs: &wire.Configs{Decided: all}}},
		{Body: &wire.Request_Configs{Configs: &wire.Configs{Decided: all, Want: true}}},
		{Body: &wire.Request_Lease{Lease: &wire.Lease{Count: uint64(len(all)), Configs: all}}},
		{Body: &wire.Request_Lease{Lease: &wire.Lease{Count: uint64(len(all)), List: true, Configs: all}}},
		{Body: &wire.Request_Ballots{Ballots: &wire.Ballots{Proposals: ballots}}},
		{Body: &wire.Request_Ballots{Ballots: &wire.Ballots{Proposals: ballots, Accept: true}}},
	} {
		n.serve(t.Context(), from, body)
	}
}

// agreedRows returns the stored rows of the agreement.
func agreedRows(t *testing.T, n *Node) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := n.store.Metas(replica.MetaSets, func(name string, v []byte) error { out[name] = string(v); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// attack sends lies to a running node. The test fails if the node loses a slice or its stored
// agreement changes.
func attack(t *testing.T, n *Node, from string) {
	t.Helper()
	before, acting := agreedRows(t, n), n.Status().Slices
	for name, all := range lies(n, from) {
		tellLies(t, n, from, all)
		for _, s := range n.slices {
			if c := n.quorum.ReplicaSet(s); c.Has(from) {
				t.Fatalf("%s: slice %s is %s's: %+v", name, s, from, c)
			}
		}
		if got := n.Status().Slices; got != acting {
			t.Errorf("%s: it acts in %d slices, of %d before", name, got, acting)
		}
	}
	after := agreedRows(t, n)
	for name, row := range after {
		if before[name] != row {
			t.Errorf("%s changed on disk: %s, was %s", name, row, before[name])
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d rows on disk, %d before", len(after), len(before))
	}
}

// restartable is a node that can be stopped and opened again with the same directory.
type restartable struct {
	*Node
	o    Options
	stop func()
}

func (r *restartable) start(t *testing.T) {
	t.Helper()
	n, err := Open(t.Context(), r.o)
	if err != nil {
		t.Fatal(err)
	}
	r.Node, r.stop = n, running(t, n)
}

func newRestartable(t *testing.T) *restartable {
	t.Helper()
	r := &restartable{o: Options{Dir: t.TempDir(), SliceBits: 4, Listen: []string{"/ip4/127.0.0.1/udp/0/quic-v1"}}}
	if err := Create(t.Context(), r.o); err != nil {
		t.Fatal(err)
	}
	r.start(t)
	return r
}

// TestAttackStolenSlices: a host that is no member claims all slices. None is lost, at once or
// after a restart.
func TestAttackStolenSlices(t *testing.T) {
	r := newRestartable(t)
	attack(t, r.Node, "stranger")
	if counted(r.Node, "echo_rule_refused_total", "configs", "stranger") == 0 {
		t.Error("no replica set of a stranger was counted as refused")
	}
	r.stop()
	r.start(t)
	defer func() { r.stop() }()
	if got := r.Status().Slices; got != len(r.slices) {
		t.Errorf("after a restart it acts in %d slices of %d", got, len(r.slices))
	}
}

// TestAttackStolenSlicesByMember: a member that keeps nothing makes the same claim, about slices of
// this peer and of others.
func TestAttackStolenSlicesByMember(t *testing.T) {
	r := newRestartable(t)
	enter(r.Node, "liar", "honest")
	for _, s := range r.slices[8:] {
		give(t, r.Node, s, "honest")
	}
	attack(t, r.Node, "liar")
	r.stop()
	r.start(t)
	defer func() { r.stop() }()
	for i, s := range r.slices {
		if c, ours := r.quorum.ReplicaSet(s), i < 8; (c.Owner == r.id) != ours || (c.Owner == "honest") == ours {
			t.Errorf("after a restart slice %s is %s's", s, c.Owner)
		}
	}
}

// TestAttackFormerReplica: a peer that gave its slice away is believed no more than any other peer.
// A present replica is believed.
func TestAttackFormerReplica(t *testing.T) {
	n := openNode(t, Options{})
	enter(n, "former", "owner")
	for _, s := range n.slices {
		give(t, n, s, "former")
		give(t, n, s, "owner")
	}
	before := n.quorum.Of(n.slices...)
	for name, all := range lies(n, "former") {
		for _, c := range all {
			c.Gen += 2
		}
		tellLies(t, n, "former", all)
		for i, c := range n.quorum.Of(n.slices...) {
			if c.Compare(before[i].ReplicaSet) != 0 {
				t.Fatalf("%s: slice %s is now %+v", name, c.Slice, c.ReplicaSet)
			}
		}
	}
	s := n.slices[0]
	next := n.quorum.ReplicaSet(s).Next("former", []string{"former", "owner"}, 7)
	req := &wire.Request{Body: &wire.Request_Configs{Configs: &wire.Configs{Decided: []*wire.Config{message.Set(s,
		next)}}}}
	n.serve(t.Context(), "owner", req)
	if c := n.quorum.ReplicaSet(s); c.Compare(next) != 0 {
		t.Errorf("its replica is not believed: %+v", c)
	}
}

// TestAttackEpoch: an epoch beyond the bounds is never learned, whichever peer reports it. An
// orphan with the last epoch is not adopted.
func TestAttackEpoch(t *testing.T) {
	const most, step = 1 << 32, 1 << 10 // the bounds of package quorum; once there were none
	n := openNode(t, Options{})
	enter(n, "owner")
	s := n.slices[0]
	c := give(t, n, s, "owner")
	for _, epoch := range []uint64{1 << 62, 1<<64 - 1, most, step + 1} {
		bad := &wire.Config{Slice: uint64(s), Epoch: epoch, Fork: "owner", Owner: "owner", Keepers: []string{"owner"},
			Starts: []*wire.Start{{}}}
		configs := &wire.Configs{Decided: []*wire.Config{bad}}
		n.serve(t.Context(), "owner", &wire.Request{Body: &wire.Request_Configs{Configs: configs}})
		if got := n.quorum.ReplicaSet(s); got.Compare(c) != 0 {
			t.Fatalf("epoch %d of its own replica is believed: %+v", epoch, got)
		}
	}
	for _, epoch := range []uint64{1, most - 1, most} {
		last := quorum.ReplicaSet{Epoch: epoch, Fork: "owner", Gen: 1, Owner: "owner", Replicas: []string{"owner"},
			Starts: []quorum.Start{{}, {Gen: 1}}}
		adopted := last.Adopted(n.id, 0)
		if (adopted.Validate() == nil) != (epoch < most) {
			t.Errorf("adopted from epoch %d: %v", epoch, adopted.Validate())
		}
	}
}

// poison writes the rows that an older program stored when a stranger claimed all slices. That
// program had no rules yet.
func poison(t *testing.T, st *db.Store, slices []partition.Slice, change func(*quorum.ReplicaSet)) {
	t.Helper()
	metas := map[string][]byte{}
	for _, s := range slices {
		c := quorum.ReplicaSet{Gen: 1 << 62, Owner: "stranger", Replicas: []string{"stranger"}}
		change(&c)
		b, err := json.Marshal(map[string]any{"v": 1, "c": c, "r": map[string]any{"h": true}})
		if err != nil {
			t.Fatal(err)
		}
		metas[replica.MetaSets+s.String()] = b
	}
	if err := st.SetMetas(metas); err != nil {
		t.Fatal(err)
	}
}

// TestAttackPoisonedDirectory: an older program stored an impossible ReplicaSet of every slice. The
// directory opens, the slices come back with their rows, and the stored sets are put aside.
func TestAttackPoisonedDirectory(t *testing.T) {
	for name, change := range map[string]func(*quorum.ReplicaSet){
		"generation":  func(*quorum.ReplicaSet) {},
		"epoch":       func(c *quorum.ReplicaSet) { c.Epoch, c.Fork = 1<<62, "stranger" },
		"no replicas": func(c *quorum.ReplicaSet) { c.Replicas, c.Gen = nil, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRestartable(t)
			k := mustKey(t, "http://example.org/")
			if _, err := r.store.Queue.Admit([]store.Admission{{Key: k}}, time.Now()); err != nil {
				t.Fatal(err)
			}
			poison(t, r.store, r.slices, change)
			r.stop()
			r.start(t)
			defer func() { r.stop() }()
			if got := r.Status().Slices; got != len(r.slices) {
				t.Errorf("it acts in %d slices of %d", got, len(r.slices))
			}
			if st := r.store.Stats(); st.Keys != 1 {
				t.Errorf("%d keys are left of 1", st.Keys)
			}
			if got := counted(r.Node, "echo_agreement_aside_total"); got != float64(len(r.slices)) {
				t.Errorf("%v replica sets were put aside of %d", got, len(r.slices))
			}
			asides := 0
			err := r.store.Metas("aside/", func(string, []byte) error { asides++; return nil })
			if err != nil || asides != len(r.slices) {
				t.Errorf("%d rows are kept aside, %v", asides, err)
			}
		})
	}
}
