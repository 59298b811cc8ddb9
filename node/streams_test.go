package node_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/blueskytest"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/nodetest"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
)

// Two peers follow the people of a network, and each listens for its own accounts. Both find a new
// post within seconds. A deleted post is a tombstone in an export and is in no answer. No account
// is polled.
func TestEachPeerListensForItsOwnAccounts(t *testing.T) {
	racetest.Skip(t)
	begun := time.Now()
	const inhabitants = 16 // with 8 accounts, one peer would own all in 1% of the runs
	sky, err := blueskytest.New(blueskytest.Options{Seed: 5, People: inhabitants, Rate: -1, Quiet: true,
		Start: begun.Add(-24 * time.Hour), Clock: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	jet := httptest.NewServer(sky.Handler())
	t.Cleanup(jet.Close)
	home := netip.MustParseAddr("127.0.0.1")
	hosts := map[string]netip.Addr{"view.test": home, "plc.test": home, "pds.b.test": home}
	for n := range inhabitants {
		hosts[fmt.Sprintf("web%d.test", n)] = home
	}
	s := nodetest.New(t, nodetest.Options{World: smallWorld(), Node: node.Options{SliceBits: 6},
		Each: func(n int, o *node.Options) {
			o.Transport,
				o.Hosts = simulated{bluesky: sky.RoundTripper(netip.AddrFrom4([4]byte{127, 0, 0, byte(11 + n)}))},
				hosts
			o.AllowNet = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
			o.Social = social.Options{View: "https://view.test", Directory: "https://plc.test",
				Jetstream: "ws" + strings.TrimPrefix(jet.URL, "http") + "/subscribe"}
		}})
	s.Add()
	s.Add()
	s.Settle(2)
	var people []partition.Key
	var names []string
	for did, a := range sky.Truth().Accounts {
		if !a.NoUnauthenticated && !strings.Contains(strings.ToLower(a.Bio), "#nobot") {
			user, _, _ := strings.Cut(a.Handle, ".")
			people, names = append(people, partition.Key("bluesky:"+did)), append(names, user)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := s.Peers[0].SeedUntilDone(ctx, people); err != nil {
		t.Fatal(err)
	}
	streams := func() (each []int, why string) {
		for _, p := range s.Peers {
			for _, st := range p.Status().Streams {
				if each, why = append(each, st.Accounts), fmt.Sprintf("%s%+v ", why, st); st.ConnectedSince == nil {
					each[len(each)-1] = 0
				}
			}
		}
		return each, why
	}
	s.Until("both listen, each account at one", 2*time.Minute, func() (bool, string) {
		each, why := streams()
		return len(each) == 2 && each[0] > 0 && each[1] > 0 && each[0]+each[1] == len(people), why
	})
	calls := sky.Report().Requests
	ids := map[string]partition.Key{}
	for i, name := range names {
		id, err := sky.Post(name, "amanhã há comboio para todos")
		if err != nil {
			t.Fatal(err)
		}
		ids[id] = people[i]
	}
	s.Until("all posts are had", 30*time.Second, func() (bool, string) {
		for id, k := range ids {
			shown, err := s.Peers[1].API().Show(ctx, k)
			if err != nil || shown.Held == nil || shown.Held.Posts != 1 {
				return false, fmt.Sprintf("%s: %+v %v", id, shown.Held, err)
			}
		}
		return true, ""
	})
	for id := range ids {
		if err := sky.Delete(id); err != nil {
			t.Fatal(err)
		}
	}
	s.Until("all are tombstones", 30*time.Second, func() (bool, string) {
		gone := 0
		for _, p := range s.Peers {
			if _, err := p.Search().Export(ctx, api.Export{Kind: store.KindPost, Local: true},
				func(r store.Record, _ string) error {
					if ids[r.Post] != "" && r.Deleted && r.Text == "" {
						gone++
					}
					return nil
				}); err != nil {
				return false, err.Error()
			}
		}
		return gone == len(ids), fmt.Sprintf("%d of %d", gone, len(ids))
	})
	for _, p := range s.Peers {
		if err := p.FlushIndex(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if a, err := s.Peers[0].Search().Query(ctx, api.Query{Q: "comboio amanhã", Kind: "post", Limit: 50}); err != nil ||
		len(a.Hits) != 0 {
		t.Errorf("%d hits that were deleted, %v", len(a.Hits), err)
	}
	if n := sky.Report().Requests - calls; n != 0 {
		t.Errorf("%d requests for what a stream had told", n)
	}
}
