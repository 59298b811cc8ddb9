package crawler

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// If only this peer has the last page of a site, the site is not asked again until others have it
// too. Meanwhile the workers fetch from other sites, each asked once. So the loss of a peer costs
// at most one fetch per site.
func TestNoSecondPageBeforeTheFirstIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := memStore(t), newFake()
		defer s.Close()
		const sites, pages, workers = 40, 3, 2
		for i := range sites {
			for n := range pages {
				admit(t, s, key(t, fmt.Sprintf("https://s%d.example%d.org/%d", i, i, n)))
			}
		}
		var mu sync.Mutex
		committed := make(chan struct{})
		o := Options{Store: s, Sources: []Source{f}, Delay: time.Second, Workers: workers,
			Swarm: acknowledging{at: func() <-chan struct{} {
				mu.Lock()
				defer mu.Unlock()
				return committed
			}}}
		c, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		c.SetSlices(s.Charter().Slices())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		time.Sleep(time.Minute)
		// Each worker has passed on commitsEach sites, and waits with one more.
		if got, want := f.asks(), workers*(commitsEach+1); got != want {
			t.Errorf("%d requests before anything was settled, want %d", got, want)
		}
		for site, n := range f.most() {
			if n > 1 {
				t.Errorf("%s was asked %d times before its first page was settled", site, n)
			}
		}
		mu.Lock()
		close(committed)
		committed = nil
		mu.Unlock()
		time.Sleep(time.Minute)
		if got := f.asks(); got != sites*pages {
			t.Errorf("%d requests, want %d", got, sites*pages)
		}
		f.check(t, time.Second)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Run ends while sites wait for AtQuorum, and workers for the sites.
func TestRunEndsUnsettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := memStore(t), newFake()
		defer s.Close()
		for i := range 40 {
			admit(t, s, key(t, fmt.Sprintf("https://example%d.org/", i)))
		}
		never := make(chan struct{})
		crawl(t, s, f, Options{Workers: 1, Swarm: acknowledging{at: func() <-chan struct{} { return never }}},
			time.Minute)
	})
}

// asks returns the number of requests to all sites.
func (f *fakeSource) asks() (n int) {
	for _, times := range f.most() {
		n += times
	}
	return n
}

// most returns how often each site was asked.
func (f *fakeSource) most() map[partition.Site]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[partition.Site]int{}
	for s, at := range f.asked {
		out[s] = len(at)
	}
	return out
}

// acknowledging is a Swarm in which at says when commits have reached a quorum.
type acknowledging struct {
	Alone
	at func() <-chan struct{}
}

func (a acknowledging) AtQuorum(partition.Slice) <-chan struct{} { return a.at() }
