package crawler

import (
	"time"

	"github.com/echo-node/echo-node/crawler/schedule"
	"github.com/echo-node/echo-node/partition"
)

// sitePrices are the prices of sites whose politeness allows fewer visits than this peer could
// make. If plans ask more of a site than its delay allows, all would be late, and busy pages would
// wait behind quiet ones. Like the peer's Meter, the prices are in memory, and count plans made
// since the start. Not safe for concurrent use.
type sitePrices map[partition.Site]*sitePrice

// sitePrice is the demand for visits of one site. A nil sitePrice is valid: it has no price.
type sitePrice struct {
	demand  float64         // visits per day that the plans ask for, in the time of revisits
	items   int             // Keys of the site with a plan
	meter   *schedule.Meter // nil = the site allows enough visits
	brought float64         // visits that hints may make sooner now
	filled  time.Time       // when brought was updated; zero = never
}

const (
	maxPriced       = 1 << 18 // sites; later ones have no price of their own
	priceBegin      = 0.01    // a site's price starts at this share of the peer's price
	longestInterval = 10 * 365 * 24 * time.Hour
	priceEnd        = 0.001 // and ends below this share
)

// of returns the state of s; nil if there is no room for it.
func (p sitePrices) of(s partition.Site) *sitePrice {
	sp := p[s]
	if sp == nil && len(p) < maxPriced {
		sp = new(sitePrice)
		p[s] = sp
	}
	return sp
}

// budget returns the budget for an item of the site: b, or a copy with the site's own price and
// interval. gap is the site's delay in the time of revisits, and peer is the peer's own price. If
// the site allows fewer visits than b, its interval is the one that the site allows.
func (s *sitePrice) budget(b *schedule.Budget, gap time.Duration, peer float64) *schedule.Budget {
	if s == nil {
		return b
	}
	if s.meter == nil && gap > 0 && s.demand*gap.Hours()/24 > 1 {
		s.meter = schedule.NewMeter(priceBegin * peer)
		s.meter.Planned(schedule.Decision{}, schedule.Decision{Tau: 1 / s.demand})
	}
	if s.meter == nil {
		return b
	}
	own := *b
	own.SitePrice, own.Interval = s.meter.Price(), max(b.Interval, s.interval(gap))
	return &own
}

// interval returns the mean time between two visits of an item that the site allows.
func (s *sitePrice) interval(gap time.Duration) time.Duration {
	return time.Duration(min(float64(max(gap, time.Millisecond))*float64(max(1, s.items)), float64(longestInterval)))
}

// sooner reports whether a hint may make one visit sooner. now is in the time of revisits. One
// interval allows as many such visits as the site has items, as an equal share for all items would.
// So hints alone never make the site busier than that.
func (s *sitePrice) sooner(now time.Time, interval time.Duration) bool {
	if s == nil {
		return false
	}
	most := float64(max(1, s.items))
	if s.brought += most * max(0, now.Sub(s.filled).Hours()) / interval.Hours(); s.filled.IsZero() || s.brought > most {
		s.brought = most
	}
	s.filled = now
	if s.brought < 1 {
		return false
	}
	s.brought--
	return true
}

// planned updates the demand after a visit of an item. before is its plan before the visit, zero if
// none counts; after is its new plan. late is how late the visit was. waited is the share of the
// old plan after which the visit was due.
func (s *sitePrice) planned(before, after schedule.Decision, late, gap time.Duration, peer, waited float64) {
	if s == nil {
		return
	}
	if before.Tau > 0 {
		s.demand -= 1 / before.Tau
	} else {
		s.items++
	}
	if after.Tau > 0 {
		s.demand += 1 / after.Tau
	}
	if s.meter == nil {
		return
	}
	s.meter.Planned(before, after)
	if before.Tau > 0 {
		s.meter.Lived(waited, s.items)
	}
	s.meter.Visited(late, s.interval(gap), s.items)
	if s.meter.Price() < priceEnd*peer {
		s.meter = nil
	}
}
