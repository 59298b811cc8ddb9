package node_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/nodetest"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
)

// fetched commits the result of an account's fetch at the owner of k.
func fetched(t *testing.T, s *nodetest.Swarm, k partition.Key) *nodetest.Peer {
	t.Helper()
	o, err := s.Peers[0].API().Owner(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.Peers {
		if p.Node == nil || p.Status().ID != o.Replicas[0] {
			continue
		}
		now := time.Now().UTC()
		if _, err := p.Store().Queue.Admit([]store.Admission{{Key: k, Seed: true}}, now); err != nil {
			t.Fatal(err)
		}
		c := store.Commit{Key: k, Now: now, Next: store.Next{State: store.StateDone}, Checkpoint: []byte("after 9"),
			Record: &store.Record{V: store.RecordVersion, Key: k, Kind: store.KindProfile, FetchedAt: now,
				Source: "test", Title: "pessoa", Text: "perfil de Lisboa"},
			Lists: []store.ListPage{{List: k + "/following", Walk: now,
				Accounts: []partition.Key{"mastodon:x@y.example"}, End: true, Complete: true, Claimed: 1}},
			Gaps: []store.Gap{{Source: "test", From: now.Add(-time.Hour), To: now, What: store.GapLimited,
				Reason: "429"}}}
		for i := range 10 {
			c.Posts = append(c.Posts, store.Record{V: store.RecordVersion, Key: k, Kind: store.KindPost,
				Post:      fmt.Sprintf("https://social.example/%s/%d", k, i),
				FetchedAt: now, Source: "test", Lang: "pt", Text: fmt.Sprint("autocarro número ", i)})
		}
		gone := c.Posts[9]
		gone.Text, gone.Deleted, gone.FetchedAt = "", true, now.Add(time.Second)
		c.Posts = append(c.Posts, gone)
		if err := p.Store().Commit(c); err != nil {
			t.Fatal(err)
		}
		return p
	}
	t.Fatalf("nobody owns %s", k)
	return nil
}

// TestPostsSurviveTheirOwner: the posts that one peer committed are found once each, exported and
// shown, before and after that peer's death.
func TestPostsSurviveTheirOwner(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	s := nodetest.New(t, nodetest.Options{World: smallWorld(), Node: node.Options{Delay: 50 * time.Millisecond}})
	for range 3 {
		s.Add()
	}
	s.Settle(3)
	var accounts []partition.Key
	for i := range 4 {
		accounts = append(accounts, partition.Key(fmt.Sprintf("mastodon:user%d@social.example", i)))
	}
	var owner *nodetest.Peer
	for _, k := range accounts {
		owner = fetched(t, s, k)
	}
	s.Until("all is at the other replicas", time.Minute, func() (bool, string) {
		n := 0
		for _, p := range s.Peers {
			n += p.Status().SlicesReplicating
		}
		return n == 0, fmt.Sprint(n)
	})
	check := func(when string) {
		t.Helper()
		var asked *nodetest.Peer
		for _, p := range s.Peers {
			if p.Node != nil {
				if asked = p; p.FlushIndex(t.Context()) != nil {
					t.Fatal("flush")
				}
			}
		}
		for q, want := range map[api.Query]int{
			{Q: "autocarro", Limit: 100}: 36, {Q: "autocarro", Kind: "post", Lang: "pt", Limit: 100}: 36,
			{Q: "autocarro", Kind: "page", Limit: 100}:                  0,
			{Q: "lisboa", Kind: "profile", Limit: 100}:                  4,
			{Kind: "post", Site: "mastodon:social.example", Limit: 100}: 36,
		} {
			q.Unfold = true // the posts have the same text
			a, err := asked.Search().Query(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for i, h := range a.Hits {
				if seen[string(h.Key)+h.Post] {
					t.Errorf("%s, %+v: %s twice", when, q, h.Post)
				}
				seen[string(h.Key)+h.Post] = true
				if i > 0 && h.Score == a.Hits[i-1].Score && (h.Key < a.Hits[i-1].Key || h.Key == a.Hits[i-1].Key &&
					h.Post < a.Hits[i-1].Post) {
					t.Errorf("%s: ties are not in order of Key and Post", when)
				}
			}
			if len(seen) != want || a.Total != uint64(want) || len(a.Coverage.Missing) != 0 {
				t.Errorf("%s, %+v: %d hits of %d, want %d; missing %v", when, q, len(seen), a.Total, want,
					a.Coverage.Missing)
			}
		}
		count := map[string]int{}
		if _, err := asked.Search().Export(t.Context(), api.Export{}, func(r store.Record, _ string) error {
			if r.Key.Service() == "mastodon" {
				count[r.Kind]++
			}
			if r.Deleted && r.Text != "" {
				t.Errorf("%s: a deleted post with its text", when)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(map[string]int{"profile": 4, "post": 40, "edges": 4, "gap": 4}, count); d != "" {
			t.Errorf("%s, exported:\n%s", when, d)
		}
		g, err := asked.API().Gaps(t.Context(), api.GapQuery{Limit: 3})
		if err != nil || len(g.Gaps) != 3 || g.Cursor == "" {
			t.Errorf("%s, gaps: %+v, %v", when, g, err)
		}
		if g, err = asked.API().Gaps(t.Context(), api.GapQuery{Limit: 3, Cursor: g.Cursor}); err != nil ||
			len(g.Gaps) != 1 || g.Cursor != "" {
			t.Errorf("%s, the last gaps: %+v, %v", when, g, err)
		}
		shown, err := asked.API().Show(t.Context(), accounts[3])
		if err != nil || shown.Held == nil || shown.Held.Posts != 10 || shown.Held.Deleted != 1 ||
			len(shown.Held.Latest) != 9 || len(shown.Held.Lists) != 1 || len(shown.Held.Gaps) != 1 ||
			shown.Record == nil {
			t.Errorf("%s, shown: %+v, %v", when, shown, err)
		}
	}
	check("before")
	if err := owner.Stop(); err != nil {
		t.Fatal(err)
	}
	s.Until("it is missed", 30*time.Second, func() (bool, string) {
		for _, p := range s.Peers {
			if p.Node != nil && p.Status().Peers != 2 {
				return false, ""
			}
		}
		return true, ""
	})
	s.Until("the others act in all slices", time.Minute, func() (bool, string) {
		n, all := 0, 0
		for _, p := range s.Peers {
			if p.Node != nil {
				n, all = n+p.Status().Slices, p.Status().SlicesTotal
			}
		}
		return n == all, fmt.Sprintf("%d of %d", n, all)
	})
	check("after")
}
