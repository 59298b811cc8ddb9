package calls

import (
	"slices"
	"time"

	"github.com/echo-node/echo-node/crawler/budget"
	"github.com/echo-node/echo-node/partition"
)

// What calls for old posts may use of a site's limits.
const (
	// Share is the part of each limit that they may use.
	Share = 0.1
	// shareWindow is the window of a limit, at least: of some only the server knows it.
	shareWindow = 5 * time.Minute
)

// Spare is of a site: it is asked before a call of that class for so many things.
func (b *Budgets) Spare(site partition.Site, class string, items int64) bool {
	b.mu.Lock()
	p := b.sites[site]
	b.mu.Unlock()
	return p != nil && p.spare(class, items)
}

// spare takes a call out of the share of the rounds: each limit has its own, which grows as time goes by, up to the
// share of one window, and a call that is larger than what is there is paid back by waiting.
func (p *Budget) spare(class string, items int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.b.now()
	of := p.classes[class]
	buckets := slices.DeleteFunc(p.book.Status(now).Buckets,
		func(b budget.BucketStatus) bool { return !slices.Contains(of.Buckets, b.Name) })
	if p.share == nil {
		p.share, p.wide = map[string]float64{}, map[string]time.Duration{}
	}
	elapsed := now.Sub(p.shared)
	p.shared = now
	room := len(buckets) > 0
	for _, b := range buckets {
		name := b.Credential + " " + b.Name
		// a server's may be longer than that of the table
		p.wide[name] = max(p.wide[name], b.Window, b.Full.Sub(now), shareWindow)
		had, known := p.share[name]
		if had += Share * min(float64(elapsed)/float64(p.wide[name]), 1); !known || had > Share {
			had = Share
		}
		p.share[name] = had
		room = room && had > 0 && b.Limit > 0 && (b.Kind == budget.Adaptive || b.Free > b.Limit/4) // new posts go first
	}
	if !room {
		return false
	}
	for _, b := range buckets {
		cost := 1.0
		switch b.Unit {
		case budget.Items:
			cost = float64(items)
		case budget.Micro:
			cost = float64(of.Price.Call + items*of.Price.Item)
		}
		p.share[b.Credential+" "+b.Name] -= cost / float64(b.Limit)
	}
	return true
}
