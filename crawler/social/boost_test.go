package social_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/social"
)

// A boost that is taken back is a tombstone within two days. This holds also if no post lies below
// it, and for servers whose times have whole seconds only.
func TestABoostTakenBack(t *testing.T) {
	for name, o := range map[string]mastodontest.Options{
		"Mastodon":      {},
		"whole seconds": {Lies: mastodontest.Lies{Seconds: true}},
		"snac": {IDs: mastodontest.Hashes, Lies: mastodontest.Lies{
			Seconds: true, NoBatch: 404, HTML404: true, NoPosts: true, IgnoresMin: true,
		}},
		"GoToSocial": {IDs: mastodontest.ULIDs, Lies: mastodontest.Lies{Seconds: true}},
	} {
		for _, before := range []int{0, 60} {
			for _, after := range []int{0, 10} {
				t.Run(fmt.Sprint(name, " ", before, " ", after), func(t *testing.T) {
					takenBack(t, o, before, after)
				})
			}
		}
	}
}

// takenBack lets an account write before posts, boost a post of another, write after posts, and
// take the boost back.
func takenBack(t *testing.T, o mastodontest.Options, before, after int) {
	synctest.Test(t, func(t *testing.T) {
		o.Seed, o.People, o.Remote, o.Quiet, o.Rate = 9, 12, -1, true, -1
		w := world(t, o)
		who := crowd(t, w)
		ana, bob := who[0], who[1]
		k := accountKey(t, ana)
		of, err := w.Post(bob, "de outro")
		if err != nil {
			t.Fatal(err)
		}
		writes(t, w, ana, before)
		boost, err := w.Boost(ana, of)
		if err != nil {
			t.Fatal(err)
		}
		writes(t, w, ana, after)
		p := newPeer(t, w, social.Options{Round: 1000 * day})
		p.start()
		p.seed(k)
		time.Sleep(day)
		if r, ok := p.posts(k)[boost]; !ok || r.Deleted || r.BoostOf == "" {
			t.Fatalf("the boost is not there: %+v", r)
		}
		if err := w.Delete(boost); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * day)
		if r := p.posts(k)[boost]; !r.Deleted {
			t.Errorf("the boost is still there, of %d posts; %+v", len(p.posts(k)), p.gaps(k))
		}
		p.end()
	})
}
