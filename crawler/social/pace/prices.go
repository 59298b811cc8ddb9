package pace

import (
	"math"
	"sync"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// If a site allows fewer calls than the due visits need, all visits would be late by the same time.
// This would hold for frequent and rare posters alike. Let account i post r_i times a day and be
// visited every p_i days, with S visits a day for all. The mean time until a post is fetched is the
// sum of r_i p_i / 2 over the sum of r_i. It is least at p_i = k / sqrt(r_i), with k such that the
// sum of 1/p_i is S (Lagrange). So a site has a price, the square of k. An account that posts every
// gap is not visited again before sqrt(gap x price). The price follows from how late the visits
// are.
const (
	priceVisits = 64 // number of visits over which a price adapts
	// part of the wait by which visits are late when calls are scarce; with 0 no price would ever
	// fall
	priceSlack = 0.1
	priceLeast = time.Second
)

// Prices are the prices of all sites, in memory only. After a start the first visits are late until
// the prices are learned. Safe for concurrent use.
type Prices struct {
	began time.Time // visits that were due before it were late for other reasons
	mu    sync.Mutex
	by    map[partition.Site]*price
}

// price is the price of one site.
type price struct {
	log     float64   // natural logarithm of the price in hours
	trouble time.Time // when the site last failed to answer; visits due before it are not evidence
}

// NewPrices returns Prices that have learned nothing yet.
func NewPrices(now time.Time) *Prices { return &Prices{began: now, by: map[partition.Site]*price{}} }

// of returns the price of a site. The caller holds mu.
func (p *Prices) of(s partition.Site) *price {
	got := p.by[s]
	if got == nil {
		if len(p.by) >= maxSites {
			clear(p.by) // learned again
		}
		got = &price{log: math.Log(priceLeast.Hours()), trouble: p.began}
		p.by[s] = got
	}
	return got
}

// Wait returns the least time between two visits of an account that posts every gap, at the price
// of the site.
func (p *Prices) Wait(s partition.Site, gap time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of(s).wait(gap)
}

func (p *price) wait(gap time.Duration) time.Duration {
	return time.Duration(math.Sqrt(gap.Hours()*math.Exp(p.log)) * float64(time.Hour))
}

// Failed notes that a site did not answer.
func (p *Prices) Failed(s partition.Site, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of(s).trouble = now
}

// Visited adapts the price of a site to one visit. The account posts every gap; without the price
// it would wait for plan. It was visited after waited, and the visit was due at due. The real wait
// is compared with the wait at the present price. So the price adapts within priceVisits visits,
// however long it takes to visit all accounts. The price is at most most.
func (p *Prices) Visited(s partition.Site, gap, plan, waited, most time.Duration, due time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.of(s)
	if plan = max(plan, of.wait(gap)); due.Before(of.trouble) || plan <= 0 || waited <= 0 {
		return
	}
	late := min(max(math.Log(waited.Hours()/plan.Hours()), -1), 1)
	of.log = min(max(of.log+2*(late-priceSlack)/priceVisits, math.Log(priceLeast.Hours())), math.Log(most.Hours()))
}
