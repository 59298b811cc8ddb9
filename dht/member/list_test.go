package member

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	mocknet "github.com/libp2p/go-libp2p/p2p/net/mock"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
)

const testPrefix = "/echo/0123456789abcdef"

// nearby has some Lists over a mocknet, all linked, in a synctest bubble.
type nearby struct {
	net   mocknet.Mocknet
	lists []*List
	keys  []crypto.PrivKey
}

func newNearby(t *testing.T, n int) *nearby {
	t.Helper()
	nb := &nearby{net: mocknet.New()}
	for i := range n {
		key, _, err := crypto.GenerateEd25519Key(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		nb.keys = append(nb.keys, key)
		if _, err := nb.net.AddPeer(key, ma.StringCast(fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", 1000+i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := nb.net.LinkAll(); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		nb.lists = append(nb.lists, nb.open(t, i))
	}
	return nb
}

func (nb *nearby) open(t *testing.T, i int) *List {
	t.Helper()
	id, err := peer.IDFromPrivateKey(nb.keys[i])
	if err != nil {
		t.Fatal(err)
	}
	l, err := New(Options{Host: nb.net.Host(id), Key: nb.keys[i], Space: "space", Prefix: testPrefix,
		Self: partition.Member{Capacity: i + 1, Addrs: []string{fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", 1000+i)}}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (nb *nearby) join(t *testing.T) {
	t.Helper()
	for _, l := range nb.lists[1:] {
		if _, err := l.Join(context.Background(), nb.lists[0].self); err != nil {
			t.Fatal(err)
		}
	}
	nb.wait(t, time.Minute, nb.lists...)
}

// wait lets fake time pass until exactly these Lists see each other.
func (nb *nearby) wait(t *testing.T, within time.Duration, lists ...*List) time.Duration {
	t.Helper()
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		ok := true
		for _, l := range lists {
			ok = ok && len(l.View().Members()) == len(lists) && l.View().Digest() == lists[0].View().Digest()
		}
		if ok {
			return time.Since(start)
		}
		if time.Since(start) > within {
			for i, l := range lists {
				t.Logf("list %d, %s, sees %+v", i, l.self, l.View().Members())
			}
			t.Fatalf("no agreement after %s", within)
		}
	}
}

func (nb *nearby) close(t *testing.T) {
	t.Helper()
	for _, l := range nb.lists {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := nb.net.Close(); err != nil {
		t.Error(err)
	}
	time.Sleep(time.Minute) // memberlist's own timers
}

func TestViewsComeInOrder(t *testing.T) {
	racetest.InFakeTime(t, func(t *testing.T) {
		nb := newNearby(t, 4)
		watched := nb.lists[0]
		var steps []int
		done := make(chan struct{})
		go func() {
			defer close(done)
			for v := range watched.Views() {
				m, ok := v.Find(watched.self.String())
				if !ok {
					t.Error("a view without the peer itself")
				}
				steps = append(steps, m.LoadStep)
			}
		}()
		nb.join(t)
		for step := 1; step <= 5; step++ {
			if err := watched.Update(partition.Member{Capacity: 1, LoadStep: step}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
			for i, l := range nb.lists {
				if m, _ := l.View().Find(watched.self.String()); m.LoadStep != step {
					t.Errorf("list %d has step %d, not %d", i, m.LoadStep, step)
				}
			}
		}
		nb.close(t)
		<-done
		for i := 1; i < len(steps); i++ {
			if steps[i] < steps[i-1] {
				t.Fatalf("views out of order: %v", steps)
			}
		}
		if steps[len(steps)-1] != 5 {
			t.Fatalf("the newest view was not delivered: %v", steps)
		}
	})
}

// A slow reader misses Views, but not the newest one, and blocks no other code.
func TestSlowReaderGetsTheNewest(t *testing.T) {
	racetest.InFakeTime(t, func(t *testing.T) {
		nb := newNearby(t, 5)
		nb.join(t)
		synctest.Wait()
		if v := <-nb.lists[0].Views(); v.Digest() != nb.lists[0].View().Digest() {
			t.Errorf("got a view of %d members", len(v.Members()))
		}
		nb.close(t)
	})
}

func TestDeathLeaveAndReturn(t *testing.T) {
	racetest.InFakeTime(t, func(t *testing.T) {
		nb := newNearby(t, 6)
		nb.join(t)
		dead, leaver, rest := nb.lists[5], nb.lists[4], nb.lists[:4]
		if err := leaver.Leave(context.Background()); err != nil {
			t.Fatal(err)
		}
		t.Logf("leave known after %s", nb.wait(t, 3*time.Second, append(rest[:4:4], dead)...))
		if err := leaver.Close(); err != nil {
			t.Fatal(err)
		}
		if err := dead.Close(); err != nil {
			t.Fatal(err)
		}
		took := nb.wait(t, 8*time.Second, rest...)
		t.Logf("death known after %s", took)
		for _, l := range rest {
			g := l.Gone()
			if len(g) != 2 || !g[leaver.self.String()].Left || g[dead.self.String()].Left ||
				g[dead.self.String()].Member.Capacity != 6 {
				t.Errorf("remembers %+v", g)
			}
		}
		// Both come back, also the one that left.
		nb.lists[4], nb.lists[5] = nb.open(t, 4), nb.open(t, 5)
		for _, l := range nb.lists[4:] {
			if _, err := l.Join(context.Background(), rest[0].self); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("both back after %s", nb.wait(t, 10*time.Second, nb.lists...))
		for _, l := range nb.lists[:4] {
			if g := l.Gone(); len(g) != 0 {
				t.Errorf("still remembers %+v", g)
			}
		}
		nb.close(t)
	})
}

// A peer whose clock was set back an hour over a restart can join: it learns the sequence of
// its earlier run from the others.
func TestReturnWithAnOlderClock(t *testing.T) {
	racetest.InFakeTime(t, func(t *testing.T) {
		nb := newNearby(t, 3)
		late := nb.lists[2]
		late.mu.Lock()
		late.floor += uint64(time.Hour.Milliseconds()) // as if its clock were an hour ahead
		late.mu.Unlock()
		if err := late.Update(partition.Member{Capacity: 9}); err != nil {
			t.Fatal(err)
		}
		nb.join(t)
		if err := late.Close(); err != nil {
			t.Fatal(err)
		}
		nb.lists[2] = nb.open(t, 2) // with the right clock, so with lower sequences
		if _, err := nb.lists[2].Join(context.Background(), nb.lists[0].self); err != nil {
			t.Fatal(err)
		}
		t.Logf("back after %s", nb.wait(t, 30*time.Second, nb.lists...))
		if m, _ := nb.lists[0].View().Find(nb.lists[2].self.String()); m.Capacity != 3 {
			t.Errorf("still seen with capacity %d", m.Capacity)
		}
		nb.close(t)
	})
}

// No peer can introduce or describe another one.
func TestNotifyAliveRefuses(t *testing.T) {
	racetest.InFakeTime(t, func(t *testing.T) {
		nb := newNearby(t, 2)
		l := nb.lists[0]
		key, _, err := crypto.GenerateEd25519Key(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		id, err := peer.IDFromPrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		seal := func(sequence uint64, space string, by crypto.PrivKey) []byte {
			b, err := wire.Descriptor{Sequence: sequence, Member: partition.Member{Capacity: 2}}.Seal(by, space,
				memberlist.MetaMaxSize)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		node := func(change func(*memberlist.Node)) *memberlist.Node {
			n := &memberlist.Node{Name: id.String(), Addr: fakeIP(id), Port: fakePort, Meta: seal(10, "space", key),
				PMin: memberlist.ProtocolVersionMin, PMax: memberlist.ProtocolVersionMax,
				PCur: memberlist.ProtocolVersion2Compatible}
			change(n)
			return n
		}
		d := delegate{l}
		for name, change := range map[string]func(*memberlist.Node){
			"no peer id":      func(n *memberlist.Node) { n.Name = "somebody" },
			"another address": func(n *memberlist.Node) { n.Addr = net.IPv4(127, 0, 0, 1) },
			"another port":    func(n *memberlist.Node) { n.Port = 2 },
			"another version": func(n *memberlist.Node) { n.DMin, n.DMax, n.DCur = 1, 1, 1 },
			"no metadata":     func(n *memberlist.Node) { n.Meta = nil },
			"another's key":   func(n *memberlist.Node) { n.Meta = seal(10, "space", nb.keys[0]) },
			"another's swarm": func(n *memberlist.Node) { n.Meta = seal(10, "else", key) },
		} {
			if err := d.NotifyAlive(node(change)); err == nil {
				t.Errorf("%s passed", name)
			}
		}
		if got := l.Stats().BadDescriptors; got != 7 {
			t.Errorf("counted %d, not 7", got)
		}
		if err := d.NotifyAlive(node(func(*memberlist.Node) {})); err != nil {
			t.Fatal(err)
		}
		old := node(func(n *memberlist.Node) { n.Meta = seal(9, "space", key) })
		if err := d.NotifyAlive(old); err == nil || l.Stats().StaleDescriptors != 1 {
			t.Errorf("an older one: %v", err)
		}
		time.Sleep(2 * forgetSequence)
		if err := d.NotifyAlive(old); err != nil {
			t.Errorf("and when the newer is forgotten: %v", err)
		}
		nb.close(t)
	})
}

func TestMadeUpPeersDoNotFillTheMemory(t *testing.T) {
	racetest.InFakeTime(t, func(t *testing.T) {
		nb := newNearby(t, 1)
		l := nb.lists[0]
		l.opts.MaxMembers = 10
		introduce := func() error {
			key, _, err := crypto.GenerateEd25519Key(rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			id, err := peer.IDFromPrivateKey(key)
			if err != nil {
				t.Fatal(err)
			}
			meta, err := wire.Descriptor{Sequence: 1}.Seal(key, "space", memberlist.MetaMaxSize)
			if err != nil {
				t.Fatal(err)
			}
			return delegate{l}.NotifyAlive(&memberlist.Node{Name: id.String(), Addr: fakeIP(id), Port: fakePort,
				Meta: meta,
				PMin: memberlist.ProtocolVersionMin, PMax: memberlist.ProtocolVersionMax,
				PCur: memberlist.ProtocolVersion2Compatible})
		}
		refused := 0
		for range 50 {
			if introduce() != nil {
				refused++
			}
		}
		if len(l.checked) > 10 || refused < 40 {
			t.Errorf("holds %d, refused %d of 50", len(l.checked), refused)
		}
		time.Sleep(2 * forgetSequence)
		if err := introduce(); err != nil {
			t.Errorf("no room after the others were forgotten: %v", err)
		}
		nb.close(t)
	})
}

func TestOptionsReportAllFaults(t *testing.T) {
	_, err := New(Options{})
	if err == nil {
		t.Fatal("no options, no error")
	}
	for _, want := range []string{"host", "key", "prefix"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name the missing %s", err, want)
		}
	}
}
