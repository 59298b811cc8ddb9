package crawler

import (
	"math/bits"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/echo-node/echo-node/partition"
)

// domains keep the pace of registrable domains. A site's pace bounds what one
// host may take of the crawl, but whoever has a domain has as many hosts as he
// wants. So a domain has the pace of so many sites together, and of one more for
// each other domain that links to it: what others vouch for is crawled faster.
// That is the budget of IRLbot's BEAST (Lee, Leonard, Wang, Loguinov: "IRLbot:
// Scaling to 6 Billion Pages and Beyond", WWW 2008) put as a pace. It defers and
// never drops, so what is crawled in the end does not depend on when which link
// came. It is kept in memory: a restarted peer begins anew. All hosts of a domain
// are in one slice, or placed by their owners, so it has few judges.
// Safe for concurrent use.
type domains struct {
	sites int           // of a domain that no other links to; <=0 = no limit
	delay time.Duration // of a site

	mu       sync.Mutex
	byName   map[string]*domain
	reserved map[partition.Site]time.Time // turns handed out and not yet taken
	deferred int64
}

type domain struct {
	due    time.Time // when its next turn would be, were it asked at its full pace
	linked [4]uint64 // a bit for each hash of a domain that links to it
}

// Caps of what is kept. Above them, what matters least is forgotten.
const (
	maxDomains  = 1 << 15
	maxReserved = 1 << 17
)

func newDomains(sites int, delay time.Duration) *domains {
	return &domains{sites: sites, delay: delay, byName: map[string]*domain{}, reserved: map[partition.Site]time.Time{}}
}

// vouched notes that a page of the domain from links to one of to.
func (d *domains) vouched(to, from string) {
	if from == "" || from == to || d.sites <= 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	h := xxhash.Sum64String(from)
	d.get(to, time.Time{}).linked[h>>6&3] |= 1 << (h & 63)
}

// pace is of how many sites together the domain has the pace.
func (d *domains) pace(name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if dom := d.byName[name]; dom != nil {
		return d.sites + dom.others()
	}
	return d.sites
}

// others is about how many domains link to it, at most 256.
func (d *domain) others() (n int) {
	for _, w := range d.linked {
		n += bits.OnesCount64(w)
	}
	return n
}

// turn asks for a request to site, of that domain, at now. A zero time allows
// it; else the site has its turn then. Each domain may be asked in bursts of as
// many as its sites, so that a small one waits for nothing.
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

// refund gives back a turn for which no request was made.
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

func (d *domains) gap(dom *domain) time.Duration {
	return d.delay / time.Duration(d.sites+dom.others())
}

// get is the domain of that name; now, unless zero, is when room may be made.
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

// forget makes room: domains that owe no wait, and if these are too few, any.
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

// forgetTurns makes room: turns that were not taken when they came, and if these
// are too few, any; who comes without one gets another.
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

// Domain is the registrable domain of k and of how many sites together it has
// the pace; "" and 0 of what has none.
func (c *Crawler) Domain(k partition.Key) (name string, sites int) {
	if name = domainOf(k); name == "" || c.o.DomainSites < 0 {
		return name, 0
	}
	return name, c.domains.pace(name)
}

// domainOf is the registrable domain of a Key that is a URL, else "": the pace of
// an instance's accounts is its budget.
func domainOf(k partition.Key) string {
	if k.URL() == "" {
		return ""
	}
	return partition.Domain(k.Host())
}
