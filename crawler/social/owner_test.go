package social_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// A server returns the list of the token's owner for every account. No such list is taken for the
// list of another account, creates no edge, and is never complete. This holds wherever the visits
// begin and whatever the profiles count. The lists of an honest server are read whole, also if
// people follow much the same accounts.
func TestListsOfTheTokensOwner(t *testing.T) {
	both := mastodontest.Lies{OwnLists: true, OwnFollowers: true}
	counts := both
	counts.OwnCounts = true
	for _, tt := range []struct {
		name   string
		lies   mastodontest.Lies
		tokens []string // the owner of the first one is visited first
	}{
		{"honest", mastodontest.Lies{}, []string{"a"}},
		{"honest, two tokens", mastodontest.Lies{}, []string{"a", "b"}},
		{"following", mastodontest.Lies{OwnLists: true}, []string{"a"}},
		{"both", both, []string{"a"}},
		{"both and counts", counts, []string{"a"}},
		{"both and counts, two tokens", counts, []string{"a", "b"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := mastodontest.Options{Seed: 3, People: 24, Quiet: true, Remote: -1, Lies: tt.lies}
			first := world(t, o).Users()
			o.Tokens = map[string]string{}
			for i, token := range tt.tokens {
				o.Tokens[token], _, _ = strings.Cut(first[i], "@")
			}
			w := world(t, o)
			p := newPeer(t, w, social.Options{Lists: true})
			for _, token := range tt.tokens {
				c, err := service.NewCredential("of-"+token, token)
				if err != nil {
					t.Fatal(err)
				}
				p.o.Tokens = append(p.o.Tokens, social.Token{Server: "m.test", Credential: c})
			}
			p.start()
			owner := partition.Key("mastodon:" + first[0])
			p.seed(owner)
			time.Sleep(2 * time.Hour)
			for _, u := range first[1:] {
				p.seed(partition.Key("mastodon:" + u))
			}
			time.Sleep(3 * 24 * time.Hour)
			whole, doubted := 0, 0
			for acct, want := range w.Truth().Accounts {
				if wishes(want) {
					continue
				}
				for side, members := range map[partition.Key][]string{"/followers": want.Followers,
					"/following": want.Following} {
					list := partition.Key("mastodon:"+acct) + side
					lies := side == "/followers" && tt.lies.OwnFollowers || side == "/following" && tt.lies.OwnLists
					got := p.edges(list)
					for _, to := range got {
						if !slices.Contains(members, strings.TrimPrefix(to, "mastodon:")) {
							t.Errorf("%s: %s has %s", tt.name, list, to)
						}
					}
					var last store.Walk
					if err := p.store.Accounts.Walks(0, list, func(w store.Walk) (bool, error) {
						last = w
						return true,
							nil
					}); err != nil {
						t.Fatal(err)
					}
					switch is := partition.Key("mastodon:"+acct) == owner; {
					case !lies && (len(got) != len(members) || !last.Complete):
						t.Errorf("%s: %s has %d of %d, %+v; %+v", tt.name, list, len(got), len(members), last,
							p.gaps(list))
					case lies && !is && len(members) > 0 && last.Complete:
						t.Errorf("%s: %s is whole: %+v", tt.name, list, last)
					case lies && !is && (len(got) > 0 || last.Why != store.WhyNotTheirs &&
						last.Why != store.WhyDoubted || len(p.gaps(list)) == 0):
						t.Errorf("%s: %s has %d, %+v; %+v", tt.name, list, len(got), last, p.gaps(list))
					case last.Complete:
						whole++
					default:
						doubted++
					}
				}
			}
			if r := w.Report(); (tt.lies == mastodontest.Lies{}) != (doubted == 0) || r.Refused > 0 {
				t.Errorf("%s: %d whole, %d doubted, %d refused", tt.name, whole, doubted, r.Refused)
			}
			t.Logf("%s: %d whole, %d doubted, %d requests", tt.name, whole, doubted, w.Report().Requests)
			p.end()
		})
	}
	if string(service.NotTheirs) != store.WhyNotTheirs || string(service.Doubted) != store.WhyDoubted {
		t.Error("the store and the services have other words for it")
	}
}
