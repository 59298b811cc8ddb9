package member

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/memberlist"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/echo-node/echo-node/partition/racetest"
)

// say encodes one message as memberlist does.
func say(t testing.TB, kind byte, m any) []byte {
	t.Helper()
	b := bytes.NewBuffer([]byte{kind})
	if err := codec.NewEncoder(b, &codec.MsgpackHandle{}).Encode(m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// One hostile member claims again and again, to every member, that every member is dead or has
// left. It uses packets and exchanges of state. The accused members refute it. A refutation
// that misses a peer removes at most one member from its View for seconds; with accepted
// claims, all Views would be empty. The counters name the hostile member, no effect remains
// when it stops, and a real death is detected as before.
func TestFalseDeathOfEveryMember(t *testing.T) {
	racetest.InFakeTime(t, func(t *testing.T) {
		nb := newNearby(t, 6)
		nb.join(t)
		evil, honest := nb.lists[5], nb.lists[:5]
		hostile, lowest := evil.opts.Host, 6
		for round := range 40 {
			for _, to := range honest {
				s, err := hostile.NewStream(context.Background(), to.self, testPrefix+"/swim-packet/1")
				if err != nil {
					t.Fatal(err)
				}
				for _, victim := range honest {
					id := victim.self.String()
					for _, from := range []string{id, evil.self.String(), honest[round%5].self.String()} {
						m := say(t, kindDead, claim{Incarnation: uint32(round + 1), Node: id, From: from})
						if _, err := s.Write(append(binary.AppendUvarint(nil, uint64(len(m))), m...)); err != nil {
							t.Fatal(err)
						}
					}
				}
				_ = s.CloseWrite()
				pushLeft(t, evil, to, honest)
			}
			time.Sleep(100 * time.Millisecond)
			for _, l := range honest {
				lowest = min(lowest, l.View().Len())
			}
		}
		t.Logf("under attack the lowest View was of %d of 6; healed after %s", lowest,
			nb.wait(t, 10*time.Second, nb.lists...))
		if lowest < 5 {
			t.Errorf("a View of %d", lowest)
		}
		for _, l := range honest {
			claims := l.Stats().DeathClaims
			for p, n := range claims {
				if p != evil.self.String() && n*10 > claims[evil.self.String()] {
					t.Errorf("%s is held for the liar: %v", p, claims)
				}
			}
			if claims[evil.self.String()] < 100 {
				t.Errorf("the liar is not named: %v", claims)
			}
		}
		if err := evil.Close(); err != nil {
			t.Fatal(err)
		}
		t.Logf("a real death is found after %s", nb.wait(t, 15*time.Second, honest...))
		nb.lists = honest
		nb.close(t)
	})
}

// pushLeft sends to an exchange of state in which every member has left.
func pushLeft(t *testing.T, evil, to *List, victims []*List) {
	t.Helper()
	s, err := evil.opts.Host.NewStream(context.Background(), to.self, testPrefix+"/swim-stream/1")
	if err != nil {
		t.Fatal(err)
	}
	b := say(t, kindPushPull, pushHeader{Nodes: len(victims)})
	for _, v := range victims {
		state := pushState{Name: v.self.String(), Addr: fakeIP(v.self), Port: fakePort, Incarnation: 1000,
			State: memberlist.StateLeft,
			Vsn:   []uint8{1, 5, 2, 0, 0, 0}}
		b = append(b, say(t, 0, state)[1:]...)
	}
	if _, err := s.Write(b); err != nil {
		t.Fatal(err)
	}
	_ = s.CloseWrite()
	_, _ = io.Copy(io.Discard, bufio.NewReader(s))
	_ = s.Close()
}

// An incarnation that leaves the accused member no way to refute is refused.
func TestClaimsLeaveRoomToRefute(t *testing.T) {
	a, b := peer.ID("a"), peer.ID("b")
	tr := &transport{live: func(string) bool { return true }}
	for name, c := range map[string]struct {
		kind byte
		n    uint32
		node peer.ID
		ok   bool
	}{
		"a plain claim":           {kindDead, 5, b, true},
		"the highest claim":       {kindSuspect, maxClaim, b, true},
		"over the highest":        {kindDead, maxClaim + 1, b, false},
		"the end of the numbers":  {kindAlive, 1<<32 - 1, b, false},
		"its own, beyond a claim": {kindAlive, maxClaim + 1, a, true},
		"its own, out of measure": {kindAlive, maxOwn + 1, a, false},
	} {
		m := say(t, c.kind, claim{Incarnation: c.n, Node: c.node.String(), From: "x"})
		got, err := tr.softenPacket(a, bytes.Clone(m))
		if (err == nil) != c.ok || err != nil && !errors.Is(err, errRefused) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && got[0] == kindDead {
			t.Errorf("%s: still a death", name)
		}
		// The same in a packet with two messages and a checksum before them.
		both := []byte{kindCRC, 0, 0, 0, 0, kindCompound, 2}
		both = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(both, uint16(len(m))), uint16(len(m)))
		both = append(append(both, m...), m...)
		if err := vetPacket(both); err != nil {
			t.Fatal(err)
		}
		if _, err := tr.softenPacket(a, both); (err == nil) != c.ok {
			t.Errorf("%s, in a compound: %v", name, err)
		}
	}
	if tr.accusers.all()[a.String()] == 0 {
		t.Error("nobody is named")
	}
}

func FuzzSoften(f *testing.F) {
	f.Add(say(f, kindDead, claim{Incarnation: 1, Node: "a", From: "b"}))
	f.Add(say(f, 0, pushState{Name: "a", State: memberlist.StateLeft})[1:])
	f.Fuzz(func(t *testing.T, b []byte) {
		tr := &transport{live: func(string) bool { return true }}
		if vetPacket(b) == nil {
			if out, err := tr.softenPacket("p", bytes.Clone(b)); err == nil && out[0] == kindDead {
				t.Fatal("a death passed")
			}
		}
		_, _ = tr.softenPush("p", bytes.NewReader(b), 3)
	})
}
