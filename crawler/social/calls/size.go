package calls

import (
	"maps"
)

// Size is what Budgets hold in memory.
type Size struct {
	Sites   int
	Intents int // of one site, at most
	Limits  int // of one site, at most
	Bytes   int // of the largest snapshot of a Book
}

// Size is how much is held.
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
