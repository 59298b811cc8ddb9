package node_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/nodetest"
)

// threeCrawl returns three peers that have started to crawl a small world. An orphan among them
// soon adopts all slices.
func threeCrawl(t *testing.T) *nodetest.Swarm {
	t.Helper()
	s := nodetest.New(t, nodetest.Options{World: smallWorld(), Node: node.Options{OrphanAfter: 2 * time.Second}})
	for range 3 {
		s.Add()
	}
	s.Settle(3)
	s.Seed()
	return s
}

// After a swarm is gone, a backup of one peer is enough for the slices of that peer. Restored
// alone, with a new identity, it takes all slices, answers as the swarm did, and fetches no page
// again.
func TestRestoreAlone(t *testing.T) {
	s := threeCrawl(t)
	s.WaitIdle()
	want := ranked(t, s, s.Peers[0])
	old := s.Peers[1].ID()
	dir := filepath.Join(t.TempDir(), "backup")
	if err := s.Peers[1].Backup(dir); err != nil {
		t.Fatal(err)
	}
	for _, p := range s.Peers {
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	p := s.Restore(dir, true)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if p.ID() == old {
		t.Error("it has the identity of the old one")
	}
	saysWhoIsWaitedFor(t, p)
	total := len(p.Charter().Slices())
	s.Until("the restored peer takes all slices", 60*time.Second, func() (bool, string) {
		st := p.Status()
		return st.Slices == total, fmt.Sprintf("%d of %d", st.Slices, total)
	})
	s.Seed()
	s.WaitIdle()
	checkWorld(t, s, 0)
	if got := ranked(t, s, p); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("it answers %v, the swarm did %v", got, want)
	}
	if err := p.Stop(); err != nil { // it opens again, as what it is by now
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	s.Until("it has its slices again", 60*time.Second, func() (bool, string) {
		st := p.Status()
		return st.Slices == total && st.Records > 0, fmt.Sprintf("%d of %d, %d records", st.Slices, total, st.Records)
	})
}

// saysWhoIsWaitedFor checks that, while a restored peer acts in no slice, a query reports that it
// waits for the former replicas.
func saysWhoIsWaitedFor(t *testing.T, p *nodetest.Peer) {
	t.Helper()
	a, err := p.Search().Query(t.Context(), api.Query{Q: "porto"})
	if err != nil {
		t.Fatal(err)
	}
	if st := p.Status(); st.Slices > 0 {
		t.Fatalf("it acts in %d slices already: nothing is shown", st.Slices)
	}
	if len(a.Coverage.Missing) == 0 {
		t.Error("nothing is missing, and the peer acts in no slice")
	}
	for _, m := range a.Coverage.Missing {
		if !strings.Contains(m.Reason, "--orphan-after") {
			t.Errorf("%d slices are missing because %q", m.Slices, m.Reason)
		}
	}
}

// An old backup is restored into a living swarm. The peer does not run without an address to join.
// With one it gives its rows to the owners, and no row is lost or reset. Then it becomes a replica.
func TestRestoreIntoLivingSwarm(t *testing.T) {
	s := threeCrawl(t)
	lost := s.Peers[2]
	s.Until("some of it is crawled", 60*time.Second, func() (bool, string) {
		n := lost.Status().Records
		return n >= 20, fmt.Sprint(n)
	})
	dir := filepath.Join(t.TempDir(), "backup")
	if err := lost.Backup(dir); err != nil {
		t.Fatal(err)
	}
	s.WaitIdle()
	want := ranked(t, s, s.Peers[0])
	if err := lost.Stop(); err != nil {
		t.Fatal(err)
	}
	p := s.Restore(dir, false)
	if err := p.Start(); err == nil || !strings.Contains(err.Error(), "--join") ||
		!strings.Contains(err.Error(), "--alone") {
		t.Fatalf("it runs by itself: %v", err)
	}
	p.Joins(s.Peers[0].Addrs())
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	s.Settle(3)
	s.WaitIdle() // no copy is left to reconcile
	checkWorld(t, s, 0)
	if got := ranked(t, s, p); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the swarm answers %v, and did %v", got, want)
	}
	if st := p.Status(); st.Slices == 0 || st.Records == 0 {
		t.Errorf("the restored peer: %+v", st)
	}
	p.Joins(nil) // it keeps slices now, like any other peer
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
}
