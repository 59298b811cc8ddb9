package crawler

import (
	"math/bits"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/echo-node/echo-node/partition"
)

// domains keeps the pace of registrable domains. A site's pace limits what one host may take of the
// crawl. But the owner of a domain can have any number of hosts. So a domain has the pace of a
// fixed number of sites together, plus one for each other domain that links to it. A domain to
// which others link is crawled faster.
//
// This is the budget of IRLbot's BEAST, expressed as a pace (Lee, Leonard, Wang, Loguinov: "IRLbot:
// Scaling to 6 Billion Pages and Beyond", WWW 2008). It delays and never drops. So the order in
// which links arrive does not change what is crawled in the end.
//
// The state is in memory: a restarted peer begins anew. All hosts of a domain are in one slice, or
// where their owners placed them, so few peers keep its pace. Safe for concurrent use.
type domains struct {
	sites int           // sites' paces of a domain to which no other domain links; <=0 = no limit
	delay time.Duration // least gap between two requests to a site

	mu       sync.Mutex
	byName   map[string]*domain
	reserved map[partition.Site]time.Time // promised times of sites that have not come yet
	deferred int64
}

// domain is the pace of one registrable domain.
type domain struct {
	due    time.Time // the time of its next turn, if it is asked at its full pace
	linked [4]uint64 // one bit for each hash of a domain that links to it
}

// Limits on what is kept. Above them, what matters least is forgotten.
const (
	maxDomains  = 1 << 15
	maxReserved = 1 << 17
)

// newDomains returns domains without state; sites and delay are as in the fields.
func newDomains(sites int, delay time.Duration) *domains {
	return &domains{sites: sites, delay: delay, byName: map[string]*domain{}, reserved: map[partition.Site]time.Time{}}
}

// vouched notes that a page of the domain from links to a page of the domain to.
func (d *domains) vouched(to, from string) {
	if from == "" || from == to || d.sites <= 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	h := xxhash.Sum64String(from)
	d.get(to, time.Time{}).linked[h>>6&3] |= 1 << (h & 63)
}

// pace returns how many sites' paces together are the pace of the domain.
func (d *domains) pace(name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if dom := d.byName[name]; dom != nil {
		return d.sites + dom.others()
	}
	return d.sites
}

// others returns about how many domains link to it, at most 256.
func (d *domain) others() (n int) {
	for _, w := range d.linked {
		n += bits.OnesCount64(w)
	}
	return n
}

// turn asks for a request at now to site, which is in the domain name. A zero time allows the
// request. Otherwise the site is promised the returned time. A domain may be asked in a burst of as
// many requests as it has sites, so that a small domain never waits.
func (d *domains) turn(name string, site partition.Site, now time.Time) time.Time {
	if d.sites <= 0 || d.delay <= 0 {
		return time.Time{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if at, ok := d.reserved[site]; ok {
		if at.After(now) {
			return at
		}
		delete(d.reserved, site)
		return time.Time{}
	}
	dom := d.get(name, now)
	at := dom.due
	if begin := now.Add(-d.delay); at.Before(begin) {
		at = begin
	}
	dom.due = at.Add(d.gap(dom))
	if !at.After(now) {
		return time.Time{}
	}
	d.deferred++
	if len(d.reserved) >= maxReserved {
		d.forgetTurns(now)
	}
	d.reserved[site] = at
	return at
}

// refund returns a turn for which no request was made.
func (d *domains) refund(name string) {
	if d.sites <= 0 || d.delay <= 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if dom := d.byName[name]; dom != nil {
		dom.due = dom.due.Add(-d.gap(dom))
	}
}

// gap returns the time between two turns of a domain.
func (d *domains) gap(dom *domain) time.Duration {
	return d.delay / time.Duration(d.sites+dom.others())
}

// get returns the domain of that name, and makes it if there is none. If there are too many, it
// first forgets others. A zero now is before every due time, so any domains are forgotten. The
// caller holds d.mu.
func (d *domains) get(name string, now time.Time) *domain {
	dom := d.byName[name]
	if dom == nil {
		if len(d.byName) >= maxDomains {
			d.forget(now)
		}
		dom = &domain{}
		d.byName[name] = dom
	}
	return dom
}

// forget makes room: it forgets domains that need not wait, and if these are too few, any domains.
func (d *domains) forget(now time.Time) {
	for name, dom := range d.byName {
		if dom.due.Before(now.Add(-d.delay)) {
			delete(d.byName, name)
		}
		if len(d.byName) <= maxDomains/2 {
			return
		}
	}
	for name := range d.byName {
		if len(d.byName) <= maxDomains/2 {
			return
		}
		delete(d.byName, name)
	}
}

// forgetTurns makes room: it forgets promised times that passed a minute ago or more. If these are
// too few, it forgets any. A site without a promised time gets another.
func (d *domains) forgetTurns(now time.Time) {
	for site, at := range d.reserved {
		if now.Sub(at) > time.Minute {
			delete(d.reserved, site)
		}
	}
	for site := range d.reserved {
		if len(d.reserved) < maxReserved/2 {
			return
		}
		delete(d.reserved, site)
	}
}

// Domain returns the registrable domain of k, and how many sites' paces together are its pace. For
// a Key that is not a URL, it returns "" and 0. sites is 0 if there is no limit.
func (c *Crawler) Domain(k partition.Key) (name string, sites int) {
	if name = domainOf(k); name == "" || c.o.DomainSites < 0 {
		return name, 0
	}
	return name, c.domains.pace(name)
}

// domainOf returns the registrable domain of a Key that is a URL, else "". An account's instance
// has its rate budget as its pace.
func domainOf(k partition.Key) string {
	if k.URL() == "" {
		return ""
	}
	return partition.Domain(k.Host())
}
