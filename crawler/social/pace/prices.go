package pace

import (
	"math"
	"sync"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Where the calls of a site do not do for all visits that are due, each would come late by the same time, whoever
// posts often and whoever seldom. With accounts that post r_i times a day and S visits a day for all, the mean time
// until a post is fetched, the sum of r_i p_i / 2 over the sum of r_i, is least at p_i = k / sqrt(r_i), with k such
// that the sum of 1/p_i is S (Lagrange). So a site has a price, the square of that k: nobody is looked at again before
// sqrt(gap x price), who posts each gap, and the price follows from how late visits come.
const (
	priceVisits = 64 // over which a price follows
	// the part of a wait that visits come late by where calls are scarce; were it 0, no price would ever fall
	priceSlack = 0.1
	priceLeast = time.Second
)

// Prices are those of all sites, in memory only: after a start the first visits come late until they are learned. Safe
// for concurrent use.
type Prices struct {
	began time.Time // what was due before was late for other reasons
	mu    sync.Mutex
	by    map[partition.Site]*price
}

type price struct {
	log     float64   // of hours
	trouble time.Time // when the site last failed to answer: the same
}

// NewPrices knows nothing yet.
func NewPrices(now time.Time) *Prices { return &Prices{began: now, by: map[partition.Site]*price{}} }

// of is the price of a site. With mu held.
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

// Wait is the least time between two visits of who posts each gap, at the price of the site.
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

// Visited takes in that somebody of a site who posts each gap, and whom nothing but the price lets wait longer than
// plan, is visited after waited, having been due then. What all visits would come to at the price as it is by now is
// held against what they came to, so that the price settles within priceVisits of them, however long a round of all
// accounts is. It is most hours at most.
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
