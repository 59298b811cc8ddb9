package crawler

import (
	"time"

	"github.com/echo-node/echo-node/crawler/schedule"
	"github.com/echo-node/echo-node/partition"
)

// sitePrices are the prices of sites whose politeness is scarcer than this peer's
// visits: plans that ask more of a site than its delay allows would all come late,
// those of busy pages behind those of still ones. Like the peer's Meter they are in
// memory and count plans made since the start. Not safe for concurrent use.
type sitePrices map[partition.Site]*sitePrice

type sitePrice struct {
	demand  float64 // visits a day that plans ask for, in the time of revisits
	items   int
	meter   *schedule.Meter // nil = the site is not short of visits
	brought float64         // visits that hints may bring forward by now
	filled  time.Time       // when that was counted; zero = never
}

const (
	maxPriced       = 1 << 18 // sites; later ones have no price of their own
	priceBegin      = 0.01    // of the peer's price, where a site's begins
	longestInterval = 10 * 365 * 24 * time.Hour
	priceEnd        = 0.001 // and below which it ends
)

// of is the state of s, nil when there is no room for it.
func (p sitePrices) of(s partition.Site) *sitePrice {
	sp := p[s]
	if sp == nil && len(p) < maxPriced {
		sp = new(sitePrice)
		p[s] = sp
	}
	return sp
}

// budget is b for an item of the site, gap being the site's delay in the time of
// revisits, peer the peer's own price. Where the site is the scarcer, to visit all
// alike means as often as it allows.
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

// interval is the mean time between two visits of an item that the site allows.
func (s *sitePrice) interval(gap time.Duration) time.Duration {
	return time.Duration(min(float64(max(gap, time.Millisecond))*float64(max(1, s.items)), float64(longestInterval)))
}

// sooner asks for a visit that a hint brings forward, at now in the time of
// revisits. There are as many in an interval as the site has items, which is what
// visiting all alike would be: hints alone never make it busier than that.
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

// planned is told of an item's plan, the one before (zero if there was none that
// counts), how late the visit was, and after
// which share of its plan it was due.
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
