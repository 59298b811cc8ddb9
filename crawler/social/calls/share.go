package calls

import (
	"slices"
	"time"

	"github.com/echo-node/echo-node/crawler/budget"
	"github.com/echo-node/echo-node/partition"
)

// Limits on calls for old posts.
const (
	// Share is the part of each limit that these calls may use.
	Share = 0.1
	// shareWindow is the shortest window assumed for a limit: some windows only the server knows.
	shareWindow = 5 * time.Minute
)

// Spare takes one call of that class for items things out of the share of rounds at a site. It
// reports whether there was room; the caller asks before it makes the call.
func (b *Budgets) Spare(site partition.Site, class string, items int64) bool {
	b.mu.Lock()
	p := b.sites[site]
	b.mu.Unlock()
	return p != nil && p.spare(class, items)
}

// spare takes a call out of the share of rounds. Each limit has its own share, which grows with
// time up to Share of one window. A call may take more than is there: then the share is negative
// and later calls wait.
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
		// the server's window may be longer than that of the table
		p.wide[name] = max(p.wide[name], b.Window, b.Full.Sub(now), shareWindow)
		had, known := p.share[name]
		if had += Share * min(float64(elapsed)/float64(p.wide[name]), 1); !known || had > Share {
			had = Share
		}
		p.share[name] = had
		// new posts go first
		room = room && had > 0 && b.Limit > 0 && (b.Kind == budget.Adaptive || b.Free > b.Limit/4)
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
