package guard

import (
	"fmt"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

func parseAddr(t *testing.T, text string) ma.Multiaddr {
	t.Helper()
	a, err := ma.NewMultiaddr(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Outsiders fill their share: of one peer, one address, one network, and all. Members have places
// of their own, and each gets at least one place even if other members have taken all.
func TestPoolSharesOutPlaces(t *testing.T) {
	members := map[peer.ID]bool{}
	refused := &Tally{}
	p := &Pool{name: "x", limits: Limits{All: 8, Net: 6, Addr: 4, Peer: 2, Members: 3, Member: 2},
		member: func(p peer.ID) bool { return members[p] }, refused: refused, held: map[*Place]struct{}{},
		count: map[poolKey]int{}}
	at := func(ip string) func(id string) *Place {
		return func(id string) *Place { return p.Take(peer.ID(id), parseAddr(t, "/ip4/"+ip+"/tcp/1")) }
	}
	var held []*Place
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
		before := refused.All()[one.reason]
		pl := at(one.ip)(one.id)
		if (pl != nil) != one.want || !one.want && refused.All()[one.reason] != before+1 {
			t.Errorf("%d: place %v, counted %v", i, pl != nil, refused.All())
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
	members["g"], members["h"] = true, true // their streams now count as those of members
	if at("203.0.113.2")("i") == nil {
		t.Error("places of those who became members are not free")
	}
	for _, pl := range held {
		pl.Leave()
		pl.Leave()
	}
	if outsiders, _ := p.Taken(); outsiders != 1 {
		t.Errorf("%d outsiders", outsiders)
	}
}

// An outsider that is refused too often is shunned for a while.
func TestInsistingOutsidersAreShunned(t *testing.T) {
	var s shunned
	now := time.Unix(1_800_000_000, 0)
	cut := 0
	for range 3 * insistMost {
		if s.refused("loud", now) {
			cut++
		}
	}
	for i := range 20 * insistMost { // one refusal per second is not too often
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

// The host listens before New of package dht ends. A peer that connects by then is no member, and
// the guard reads nothing that is not made yet.
func TestConnectedBeforeThereIsAView(t *testing.T) {
	d, err := New(Options{Connections: true, LAN: true})
	if err != nil {
		t.Fatal(err)
	}
	if pl := d.gate.outsiders.Take("early", parseAddr(t, "/ip4/127.0.0.1/tcp/1")); pl == nil ||
		d.gate.outsiders.count[poolKey{kind: countOutsiders}] != 1 {
		t.Error("the first outsider has no place among them")
	}
}
