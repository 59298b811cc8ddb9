package nodetest_test

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/nodetest"
	"github.com/echo-node/echo-node/node/search"
	"github.com/echo-node/echo-node/partition"
)

// keyIn returns a new identity that belongs to that zone.
func keyIn(t *testing.T, zone string) crypto.PrivKey {
	t.Helper()
	z, err := partition.ParseZone(zone)
	if err != nil {
		t.Fatal(err)
	}
	for {
		key, _, err := crypto.GenerateEd25519Key(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		id, err := peer.IDFromPrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		if z.HasPeer(id.String()) {
			return key
		}
	}
}

// Nine peers become three zones. They crawl the whole test web, with links from zone to zone
// and no page twice. Each peer answers a query for any word for all slices of all zones, with
// exactly the right pages.
func TestCrawlAndQueryAcrossZones(t *testing.T) {
	s := nodetest.New(t, nodetest.Options{World: crawltest.Options{Seed: 7, Sites: 24, Pages: 6, Words: 40},
		Node: node.Options{SliceBits: 6, Replicas: 1, ZoneMax: 4}})
	for range 3 {
		for _, z := range []string{"hash/00", "hash/1", "hash/01"} {
			s.AddKey(keyIn(t, z))
		}
	}
	s.Until("three zones of three, each slice in the hands of one", 10*time.Minute, func() (bool, string) {
		slices := 0
		for _, p := range s.Peers {
			st := p.Status()
			if slices += st.Slices; st.Peers != 3 {
				return false, fmt.Sprintf("%s sees %d peers, acts in %d slices", p.Name, st.Peers, st.Slices)
			}
		}
		return slices == 64, fmt.Sprintf("%d slices are acted in", slices)
	})
	s.Seed()
	expected := s.World.Expected(s.World.Seeds())
	s.Until("the world is crawled", 10*time.Minute, func() (bool, string) {
		d := s.World.Compare(expected)
		return len(d.Missing) == 0, fmt.Sprintf("%d pages are missing", len(d.Missing))
	})
	if d := s.World.Compare(expected); len(d.Extra)+len(d.Twice) > 0 {
		t.Errorf("%d pages too many, %d twice", len(d.Extra), len(d.Twice))
	}
	var out int64
	worked := 0
	for _, p := range s.Peers {
		if err := p.FlushIndex(t.Context()); err != nil {
			t.Fatal(err)
		}
		st := p.Status()
		out += st.LinksOut
		if st.Fetched > 0 {
			worked++
		}
	}
	if out == 0 || worked <= 3 { // a zone has three peers
		t.Errorf("%d links handed out, %d peers fetched pages", out, worked)
	}
	for _, p := range s.Peers[:3] { // one of each zone
		for _, w := range s.World.Words() {
			var a api.Answer
			// On a busy machine a member may seem lost for a moment; an answer says so.
			s.Until("an answer for all slices", 3*time.Minute, func() (bool, string) {
				var err error
				if a, err = p.Search().Query(t.Context(), api.Query{Q: w, Limit: search.MaxHits,
					Unfold: true}); err != nil {
					t.Fatal(err)
				}
				return len(a.Coverage.Missing) == 0, fmt.Sprintf("%+v", a.Coverage)
			})
			want := s.World.Matching(w, expected)
			if len(a.Hits) != len(want) || a.Coverage.SlicesAnswered != 64 || a.Coverage.SlicesTotal != 64 {
				t.Errorf("%s, query %q: %d hits, %d are true, %+v", p.Name, w, len(a.Hits), len(want), a.Coverage)
			}
		}
	}
	// A peer that has no time to respond is not reported as gone, in any zone.
	a, err := s.Peers[0].Search().Query(t.Context(), api.Query{Q: "x", Timeout: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range a.Coverage.Missing {
		if m.Reason != "did not answer in time" && m.Peer != "" {
			t.Errorf("%+v", m)
		}
	}
	if len(a.Coverage.Missing) == 0 {
		t.Errorf("%+v", a.Coverage)
	}
}
