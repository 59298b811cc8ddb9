package social_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/blueskytest"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// The small network that the real servers of the AT Protocol served once: the number of people, and
// of the posts and follows of each. All of them may be collected.
const (
	networkPeople  = 10
	networkPosts   = 70
	networkFollows = 54
)

// network returns such a network, with those limits of the PDS, and a peer.
func network(t *testing.T, limits []blueskytest.Limit) (*blueskytest.World, *peer) {
	t.Helper()
	for seed := uint64(1); seed < 500; seed++ {
		w, p := skies(t, blueskytest.Options{Seed: seed, People: networkPeople, Quiet: true, Rate: -1, Limits: limits},
			social.Options{Lists: true})
		follows, hidden := 0, false
		for _, a := range w.Truth().Accounts {
			follows, hidden = follows+len(a.Following), hidden || private(a)
		}
		if hidden || follows > networkFollows {
			continue
		}
		ids := w.IDs()
		slices.Sort(ids)
		user := func(did string) string { name, _, _ := strings.Cut(w.Handle(did), "."); return name }
		for _, a := range ids {
			for range networkPosts / networkPeople {
				if _, err := w.Post(user(a), "bom dia a todos"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
			}
			for _, b := range ids {
				if a != b && follows < networkFollows && !slices.Contains(w.Truth().Accounts[a].Following, b) {
					if err := w.Follow(user(a), user(b)); err != nil {
						t.Fatal(err)
					}
					follows++
				}
			}
		}
		return w, p
	}
	t.Fatal("no seed has ten people who may all be collected")
	return nil, nil
}

// A network that is small enough for a home server is fetched whole, to the last post and follow.
// While nothing is written, no record is read. For a new post, an edit or a deletion only that
// record is read and kept. The PDS refuses no call, neither with its real limit nor with one that
// is a hundred times smaller.
func TestASmallNetworkIsHadWhole(t *testing.T) {
	const list = "/xrpc/com.atproto.repo.listRecords"
	for name, limits := range map[string][]blueskytest.Limit{
		"3000 in 5 min": blueskytest.PDSLimits(),
		"30 in 5 min":   {{Name: "global", Max: 30, Window: 5 * time.Minute, All: true, Rolling: true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, p := network(t, limits)
				p.start()
				ids := w.IDs()
				for _, did := range ids {
					p.seed(blueskyKey(did))
				}
				time.Sleep(2 * time.Hour)
				truth := w.Truth()
				posts, tombstones := p.sameAsSkies(truth, time.Now())
				follows := 0
				for did, a := range truth.Accounts {
					for side, want := range map[string][]string{"/following": a.Following, "/followers": a.Followers} {
						var keys []string
						for _, m := range want {
							keys = append(keys, "bluesky:"+m)
						}
						slices.Sort(keys)
						list := blueskyKey(did) + partition.Key(side)
						if got := p.edges(list); !slices.Equal(got, keys) || len(p.gaps(list)) != 0 {
							t.Errorf("%s: %d, want %d; gaps %+v", list, len(got), len(keys), p.gaps(list))
						}
					}
					follows += len(p.edges(blueskyKey(did) + "/following"))
					if rec, err := p.store.Archive.Record(blueskyKey(did)); err != nil ||
						rec.Kind != store.KindProfile ||
						rec.Title != a.Name || rec.Author != a.Handle {
						t.Errorf("profile of %s: %+v %v", did, rec, err)
					}
				}
				if len(truth.Accounts) != networkPeople || posts != networkPosts || follows != networkFollows ||
					tombstones != 0 {
					t.Errorf("%d accounts, %d posts, %d follows, %d tombstones", len(truth.Accounts), posts, follows,
						tombstones)
				}

				before := w.Report()
				time.Sleep(26 * time.Hour)
				if after := w.Report(); after.ByPath[list] != before.ByPath[list] || after.Requests == before.Requests {
					t.Errorf("nothing was written, and of %d requests %d read records", after.Requests-before.Requests,
						after.ByPath[list]-before.ByPath[list])
				}

				who := blueskyKey(ids[0])
				old := p.written(who)
				records := truth.Accounts[ids[0]].Records
				edited, deleted := records[1], records[3]
				user, _, _ := strings.Cut(w.Handle(ids[0]), ".")
				added, err := w.Post(user, "boa noite")
				if err != nil {
					t.Fatal(err)
				}
				if err := w.Edit(edited, "boa tarde"); err != nil {
					t.Fatal(err)
				}
				if err := w.Delete(deleted); err != nil {
					t.Fatal(err)
				}
				before = w.Report()
				time.Sleep(26 * time.Hour)
				// its posts, the check that none is newer, and its reposts
				if n := w.Report().ByPath[list] - before.ByPath[list]; n != 3 {
					t.Errorf("%d pages of records were read for one account that wrote", n)
				}
				now := p.written(who)
				for uri, r := range now {
					switch had := old[uri]; {
					case uri == added:
						if r.Text != "boa noite" || had.Post != "" {
							t.Errorf("new: %+v", r)
						}
					case uri == edited:
						if r.Text != "boa tarde" || len(r.Edits) != 1 {
							t.Errorf("edited: %+v", r)
						}
					case uri == deleted:
						if !r.Deleted || r.Text != "" {
							t.Errorf("deleted: %+v", r)
						}
					case !r.FetchedAt.Equal(had.FetchedAt):
						t.Errorf("%s was kept anew", uri)
					}
				}
				if len(now) != len(old)+1 {
					t.Errorf("%d posts, %d before", len(now), len(old))
				}
				r := w.Report()
				if r.Refused != 0 {
					t.Errorf("%d refused of %d", r.Refused, r.Requests)
				}
				t.Logf("%d accounts, %d posts, %d follows; %d requests, %d refused: %v", len(truth.Accounts), posts,
					follows, r.Requests, r.Refused, r.ByPath)
				p.end()
			})
		})
	}
}
