package calls

import (
	"maps"
)

// Size is what Budgets hold in memory.
type Size struct {
	Sites   int
	Intents int // the most of any site
	Limits  int // the most of any site
	Bytes   int // size of the largest snapshot of a Book
}

// Size returns how much is in memory.
func (b *Budgets) Size() (out Size) {
	b.mu.Lock()
	all := maps.Clone(b.sites)
	b.mu.Unlock()
	out.Sites = len(all)
	for _, p := range all {
		p.mu.Lock()
		out.Intents, out.Limits = max(out.Intents, len(p.intents)), max(out.Limits, len(p.limits))
		for _, name := range p.ledgers() {
			if snap, err := p.book.Snapshot(name); err == nil {
				out.Bytes = max(out.Bytes, len(snap))
			}
		}
		p.mu.Unlock()
	}
	return out
}
