package social

import "maps"

// Sizes are how many things a Source holds in memory, of each kind, and the bytes of its largest Book.
func (s *Source) Sizes() map[string]int {
	out := map[string]int{}
	s.ahead.mu.Lock()
	out["looked up"], out["sites that look up one"] = len(s.ahead.by), len(s.ahead.never)
	s.ahead.mu.Unlock()
	s.hours.mu.Lock()
	out["hours"] = len(s.hours.by)
	s.hours.mu.Unlock()
	s.mu.Lock()
	out["servers"] = len(s.servers)
	s.mu.Unlock()
	s.budgets.mu.Lock()
	all := maps.Clone(s.budgets.sites)
	s.budgets.mu.Unlock()
	out["purses"] = len(all)
	for _, p := range all {
		p.mu.Lock()
		out["intents"] = max(out["intents"], len(p.intents))
		out["limits"] = max(out["limits"], len(p.limits))
		for _, name := range p.ledgers() {
			if snap, err := p.book.Snapshot(name); err == nil {
				out["bytes of a book"] = max(out["bytes of a book"], len(snap))
			}
		}
		p.mu.Unlock()
	}
	return out
}
