package node_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/blueskytest"
	"github.com/echo-node/echo-node/crawler/crawltest/twittertest"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/nodetest"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
)

// simulated answers for hosts of the simulated services and passes other requests to the network.
type simulated struct{ bluesky, x http.RoundTripper }

func (s simulated) RoundTrip(r *http.Request) (*http.Response, error) {
	switch host := r.URL.Hostname(); {
	case host == "api.x.test":
		return s.x.RoundTrip(r)
	case strings.HasSuffix(host, ".test"):
		return s.bluesky.RoundTrip(r)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// A person seeds an account of Bluesky by its handle and one of X by its name, at any peer. The
// owner of the name resolves it, the owner of the account stores its posts, and every peer finds
// them.
func TestSeedsByNameEndInPosts(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	sky, err := blueskytest.New(blueskytest.Options{Seed: 5, People: 20, Quiet: true, Limits: blueskytest.PDSLimits()})
	if err != nil {
		t.Fatal(err)
	}
	x, err := twittertest.New(twittertest.Options{Seed: 5, People: 20, Quiet: true, Limits: twittertest.XLimits(),
		Tokens: []string{"s3cret"}})
	if err != nil {
		t.Fatal(err)
	}
	token, err := service.NewCredential("app", "s3cret")
	if err != nil {
		t.Fatal(err)
	}
	home := netip.MustParseAddr("127.0.0.1")
	hosts := map[string]netip.Addr{"api.x.test": home, "view.test": home, "plc.test": home, "pds.b.test": home}
	for n := range 20 {
		hosts[fmt.Sprintf("web%d.test", n)] = home
	}
	s := nodetest.New(t, nodetest.Options{World: smallWorld(), Node: node.Options{SliceBits: 6},
		Each: func(n int, o *node.Options) {
			from := netip.AddrFrom4([4]byte{127, 0, 0, byte(11 + n)})
			o.Transport, o.Hosts = simulated{sky.RoundTripper(from), x.RoundTripper(from)}, hosts
			o.Social = social.Options{Lists: true, View: "https://view.test", Directory: "https://plc.test",
				X:      "https://api.x.test",
				Tokens: []social.Token{{Service: "twitter", Credential: token, Daily: 30_000_000}}}
		}})
	for range 3 {
		s.Add()
	}
	s.Settle(3)

	var seeds []partition.Key
	want := map[partition.Key]int{} // posts of each account
	add := func(name string, k partition.Key, posts int) {
		seed, err := partition.ParseKey(name)
		if err != nil {
			t.Fatal(err)
		}
		seeds, want[k] = append(seeds, seed), posts
	}
	for did, a := range sky.Truth().Accounts {
		if n := len(a.Records) + len(a.Reposts); !a.NoUnauthenticated &&
			!strings.Contains(strings.ToLower(a.Bio), "#nobot") && n > 0 {
			add("bluesky:@"+strings.ToUpper(a.Handle), partition.Key("bluesky:"+did), n)
		}
	}
	truth := x.Truth()
	nobot := func(id string) bool { return strings.Contains(strings.ToLower(truth.Accounts[id].Bio), "#nobot") }
	for id, a := range truth.Accounts {
		n := 0
		for _, p := range a.Posts {
			// a boost shows the boosted account
			if boosted := truth.Posts[p].Boost; boosted == "" || !nobot(truth.Posts[boosted].By) {
				n++
			}
		}
		if !a.Protected && !nobot(id) && n > 0 {
			add("twitter:"+a.User, partition.Key("twitter:"+id), n)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := s.Peers[0].SeedUntilDone(ctx, seeds); err != nil {
		t.Fatal(err)
	}
	asked := s.Peers[1]
	s.Until("all posts and lists are had", 2*time.Minute, func() (bool, string) {
		for k, n := range want {
			for _, k := range []partition.Key{k, k + "/followers", k + "/following"} {
				shown, err := asked.API().Show(ctx, k)
				if err != nil || shown.Record == nil || shown.Record.Key == k && k.Kind() == partition.KindAccount &&
					(shown.Held == nil || shown.Held.Posts < n) {
					had := 0
					if shown.Held != nil {
						had = shown.Held.Posts
					}
					return false, fmt.Sprintf("%s: %d of %d posts, a record: %t, %v", k, had, n, shown.Record != nil,
						err)
				}
			}
		}
		return true, ""
	})
	for _, p := range s.Peers {
		if err := p.FlushIndex(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for site, words := range map[string]string{"bluesky:": "comboio café", "twitter:": "comboio café"} {
		a, err := asked.Search().Query(ctx, api.Query{Q: words, Kind: "post", Site: site, Limit: 50, Unfold: true})
		if err != nil || len(a.Hits) == 0 || len(a.Coverage.Missing) != 0 {
			t.Errorf("%s: %d hits, %+v %v", site, len(a.Hits), a.Coverage, err)
		}
		for _, h := range a.Hits {
			if want[h.Key] == 0 {
				t.Errorf("%s: a post of %s", site, h.Key)
			}
		}
	}
	if a, b := sky.Report(), x.Report(); a.Refused != 0 || b.Refused != 0 || len(a.ByAddr) != 3 || len(b.ByAddr) != 3 {
		t.Errorf("refused %d and %d; by address %v, %v", a.Refused, b.Refused, a.ByAddr, b.ByAddr)
	}
	name, err := asked.API().Show(ctx, seeds[0])
	if err != nil || !strings.Contains(name.Why, "is "+seeds[0].Service()+":") {
		t.Errorf("%s: %q %v", seeds[0], name.Why, err)
	}
	t.Logf("%d accounts by name, requests by address %v, %v; bills %v", len(seeds), sky.Report().ByAddr,
		x.Report().ByAddr, x.Bill())
}
