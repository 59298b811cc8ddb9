package crawler

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// A farm of hosts under one domain gets the pace of 16 sites and no more. A good site keeps its own
// pace beside it. In the end all is crawled.
func TestDomainPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const farm = 400
		s, f := memStore(t), newFake()
		defer s.Close()
		var hosts []partition.Key
		for i := range farm {
			hosts = append(hosts, key(t, fmt.Sprintf("https://h%d.farm.example/", i)))
		}
		home := key(t, "https://good.example/")
		for i := range 20 {
			f.link(home, key(t, fmt.Sprintf("https://good.example/%d", i)))
		}
		admit(t, s, append(hosts, home)...)
		c := crawl(t, s, f, Options{Workers: 256}, 10*time.Second+time.Millisecond)
		farmed := 0
		for _, k := range hosts {
			farmed += len(f.askedAt(k.Site()))
		}
		if most := 17 + 9*16; farmed > most || farmed < most-16 { // the first second is a wait (I7), then comes a burst
			t.Errorf("%d requests to the farm in 10 s, want about %d", farmed, most)
		}
		if n := len(f.askedAt(home.Site())); n < 9 {
			t.Errorf("the good site was asked %d times in 10 s", n)
		}
		if domain, n := c.Domain(hosts[1]); domain != "farm.example" || n != 16 || c.Stats().Deferred < farm/2 {
			t.Errorf("%s has the pace of %d sites, %d deferred", domain, n, c.Stats().Deferred)
		}
		c = crawl(t, s, f, Options{Workers: 256}, time.Minute)
		if s.Stats().Pending > 0 || c.Stats().Refused > 0 {
			t.Errorf("%+v, %+v", s.Stats(), c.Stats())
		}
		for _, k := range hosts {
			if n := f.count(k); n != 1 {
				t.Errorf("%s fetched %d times", k, n)
			}
		}
		f.check(t, time.Second)
	})
}

// A domain to which others link has a faster pace. Turns are given once, in order, and can be
// returned.
func TestDomainTurns(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	d := newDomains(2, time.Second)
	for i := range 3 { // a burst of two sites, and the one that begins it
		if at := d.turn("a.example", partition.Site(fmt.Sprint(i)), now); !at.IsZero() {
			t.Errorf("turn %d at %v", i, at.Sub(now))
		}
	}
	first, second := d.turn("a.example", "x", now), d.turn("a.example", "y", now)
	if first.Sub(now) != 500*time.Millisecond || second.Sub(now) != time.Second {
		t.Errorf("turns after %v and %v", first.Sub(now), second.Sub(now))
	}
	if at := d.turn("a.example", "x", now.Add(time.Millisecond)); at != first {
		t.Errorf("asked again it is %v", at)
	}
	if at := d.turn("a.example", "x", first); !at.IsZero() {
		t.Errorf("in its turn: %v", at)
	}
	d.refund("a.example")
	if at := d.turn("a.example", "z", now); at.Sub(now) != time.Second {
		t.Errorf("after one was given back: %v", at.Sub(now))
	}
	for i := range 300 {
		d.vouched("b.example", fmt.Sprint("from", i, ".example"))
		d.vouched("c.example", "one.example")
		d.vouched("c.example", "c.example")
	}
	if n := d.pace("b.example"); n < 150 || n > 258 {
		t.Errorf("300 others: the pace of %d sites", n)
	}
	if n := d.pace("c.example"); n != 3 {
		t.Errorf("one other: the pace of %d sites", n)
	}
	for i := range 3 * maxReserved {
		d.turn(fmt.Sprint(i%100_000, ".example"), partition.Site(fmt.Sprint("s", i)), now)
		d.turn("a.example", partition.Site(fmt.Sprint("s", i)), now)
	}
	if len(d.byName) > maxDomains || len(d.reserved) > maxReserved {
		t.Errorf("%d domains, %d turns are kept", len(d.byName), len(d.reserved))
	}
	off := newDomains(-1, time.Second)
	for i := range 100 {
		if at := off.turn("a.example", partition.Site(fmt.Sprint(i)), now); !at.IsZero() {
			t.Fatal(at)
		}
	}
}
