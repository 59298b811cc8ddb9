package zonesim

import (
	"math"
	"reflect"
	"testing"
)

// The number of hops to another zone grows with the logarithm of the swarm. The membership does
// not grow with it. Owners are found even if a tenth of the table entries is dead.
func TestCostsGrowAsTheLogarithm(t *testing.T) {
	var before Report
	for _, peers := range []int{1000, 4000, 16000} {
		r, err := Run(Options{Peers: peers, ZoneMax: 100, Seed: 5, Lookups: 300, Senders: 2, Links: 4000})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d peers: %d zones of %.0f, hops %.1f at most %d, messages %.1f, a link %.3f + %.3f + %.3f", peers,
			r.Zones, r.ZoneSize.Mean,
			r.Hops.Mean, r.Hops.Max, r.Queries.Mean, r.QueriesPerLink, r.WhoOwnsPerLink, r.ForwardsPerLink)
		if r.Found != r.Lookups || float64(r.Hops.Max) > math.Log2(float64(peers)) || r.ZoneSize.Max > 100 {
			t.Errorf("%d peers: %+v", peers, r)
		}
		if before.Peers > 0 && (r.Hops.Mean > before.Hops.Mean+2 || r.MembershipBytes > 2*before.MembershipBytes) {
			t.Errorf("%d peers: hops %.1f after %.1f, membership %.0f after %.0f", peers, r.Hops.Mean, before.Hops.Mean,
				r.MembershipBytes, before.MembershipBytes)
		}
		before = r
	}
	r, err := Run(Options{Peers: 4000, ZoneMax: 100, Seed: 5, Dead: 0.1, Lookups: 300, Senders: 1, Links: 100})
	if err != nil || r.Found < r.Lookups*99/100 {
		t.Errorf("with dead peers %d of %d owners are found: %v", r.Found, r.Lookups, err)
	}
}

func TestSameSeedSameReport(t *testing.T) {
	o := Options{Peers: 500, ZoneMax: 50, Seed: 9, Lookups: 50, Senders: 1, Links: 500}
	a, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := Run(o); err != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("%+v\n%+v %v", a, b, err)
	}
	for _, bad := range []Options{{Peers: 1}, {Dead: math.NaN()}, {Dead: 0.9}, {Replicas: 9}, {Window: -1}} {
		if _, err := Run(bad); err == nil {
			t.Errorf("%+v runs", bad)
		}
	}
}
