package dht

import (
	"context"
	"fmt"
	"testing"
	"time"

	ds "github.com/ipfs/go-datastore"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
)

// Outsiders fill their share, by identity, address, network and in all; members
// have theirs whatever happens, and one place each although other members have all.
func TestPoolSharesOutPlaces(t *testing.T) {
	members := map[peer.ID]bool{}
	refused := &tally{}
	p := &pool{name: "x", limits: poolLimits{all: 8, net: 6, addr: 4, peer: 2, members: 3, member: 2},
		member: func(p peer.ID) bool { return members[p] }, refused: refused, held: map[*place]struct{}{},
		count: map[poolKey]int{}}
	at := func(ip string) func(id string) *place {
		return func(id string) *place { return p.take(peer.ID(id), parseAddr(t, "/ip4/"+ip+"/tcp/1")) }
	}
	var held []*place
	for i, one := range []struct {
		ip, id string
		want   bool
		reason string
	}{
		{"192.0.2.1", "a", true, ""}, {"192.0.2.1", "a", true, ""}, {"192.0.2.1", "a", false, "x-peer"},
		{"192.0.2.1", "b", true, ""}, {"192.0.2.1", "c", true, ""}, {"192.0.2.1", "d", false, "x-addr"},
		{"192.0.2.2", "d", true, ""}, {"192.0.2.3", "e", true, ""}, {"192.0.2.4", "f", false, "x-net"},
		{"198.51.100.1", "g", true, ""}, {"203.0.113.1", "h", true, ""}, {"203.0.113.2", "i", false, "x-all"},
	} {
		before := refused.all()[one.reason]
		pl := at(one.ip)(one.id)
		if (pl != nil) != one.want || !one.want && refused.all()[one.reason] != before+1 {
			t.Errorf("%d: place %v, counted %v", i, pl != nil, refused.all())
		}
		if pl != nil {
			held = append(held, pl)
		}
	}
	for _, id := range []string{"A", "B", "C", "D"} {
		members[peer.ID(id)] = true
	}
	for i, one := range []struct {
		id   string
		want bool
	}{{"A", true}, {"A", true}, {"A", false}, {"B", true}, {"B", false}, {"C", true}, {"D", true}, {"D", false}} {
		if got := at("192.0.2.1")(one.id) != nil; got != one.want {
			t.Errorf("member %d: %v", i, got)
		}
	}
	members["g"], members["h"] = true, true // their streams are no outsiders' any more
	if at("203.0.113.2")("i") == nil {
		t.Error("places of those who became members are not free")
	}
	for _, pl := range held {
		pl.leave()
		pl.leave()
	}
	if outsiders, _ := p.taken(); outsiders != 1 {
		t.Errorf("%d outsiders", outsiders)
	}
}

func TestRecordsOfKademliaAreBounded(t *testing.T) {
	refused := &tally{}
	r := newRecords(100, refused)
	for i := range 250 {
		if err := r.Put(t.Context(), ds.NewKey(fmt.Sprint(i)), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.keys) != 100 || refused.all()["record-displaced"] != 150 {
		t.Errorf("%d records, %v", len(r.keys), refused.all())
	}
	if _, err := r.Get(t.Context(), ds.NewKey("249")); err != nil {
		t.Error(err)
	}
}

// A request that is not urgent gets nowhere by the protocol of those that are,
// and who is no member is told nothing of where members are.
func TestPriorityAndVouchAreForMembers(t *testing.T) {
	t.Parallel()
	urgent := func(r *wire.Request) bool { return r.GetConfigs() != nil }
	ds := swarmOf(t, 2, func(o *Options) { o.Priority = urgent })
	s, err := ds[1].host.NewStream(t.Context(), ds[0].self, ds[0].prefix+prioritySuffix)
	if err != nil {
		t.Fatal(err)
	}
	req := whoOwns("web:https://example.org/")
	req.Version = partition.WireVersion
	if _, err := wire.WriteRequest(s, req); err != nil {
		t.Fatal(err)
	}
	res, _, err := wire.ReadResponse(s)
	if err != nil || res.GetRefusal().GetCode() != wire.Refusal_CODE_MALFORMED {
		t.Errorf("%v, %v", res, err)
	}
	addrs, err := ds[1].askWitness(t.Context(), ds[0].self, ds[1].self)
	if err != nil || len(addrs) == 0 {
		t.Errorf("a member is told %v, %v", addrs, err)
	}
	h := stranger(t, ds[0])
	v, err := h.NewStream(context.Background(), ds[0].self, ds[0].prefix+vouchSuffix)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = v.Reset() }()
	_, _ = v.Write(appendText(nil, []byte(ds[1].self))) // it may be reset already
	if n, err := v.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Error("a stranger is told where a member is")
	}
	eventually(t, 5*time.Second, "it is counted", func() bool { return ds[0].Stats().NoPlace["vouch-outsider"] == 1 })
}

// Who insists is cut off for a while.
func TestInsistingOutsidersAreShunned(t *testing.T) {
	var s shunned
	now := time.Unix(1_800_000_000, 0)
	cut := 0
	for range 3 * insistMost {
		if s.refused("loud", now) {
			cut++
		}
	}
	for i := range 20 * insistMost { // one a second is no insisting
		if s.refused("calm", now.Add(time.Duration(i)*time.Second)) {
			t.Fatal("a calm one is cut off")
		}
	}
	if cut != 1 || !s.is("loud", now.Add(time.Second)) || s.is("loud", now.Add(2*shunFor)) || s.is("calm", now) {
		t.Errorf("cut off %d times", cut)
	}
	for i := range 2 * MaxInsisting {
		s.refused(peer.ID(fmt.Sprint(i)), now)
	}
	if len(s.of) > MaxInsisting {
		t.Errorf("%d are remembered", len(s.of))
	}
}

// The host listens before New ends: who connects by then is no member, and nothing that is still being made is read.
func TestConnectedBeforeThereIsAView(t *testing.T) {
	d := &DHT{}
	d.gate = newGater(true, false, d)
	if pl := d.gate.outsiders.take("early", parseAddr(t, "/ip4/127.0.0.1/tcp/1")); pl == nil ||
		d.gate.outsiders.count[poolKey{kind: countOutsiders}] != 1 {
		t.Error("the first outsider has no place among them")
	}
}
