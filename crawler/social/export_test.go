package social

// Sizes returns how many things of each kind a Source holds in memory, and the bytes of its largest
// Book.
func (s *Source) Sizes() map[string]int {
	out := map[string]int{"hours": s.pace.Curves.Len(), "servers": s.servers.Len()}
	s.ahead.mu.Lock()
	out["looked up"], out["sites that look up one"] = len(s.ahead.by), len(s.ahead.never)
	s.ahead.mu.Unlock()
	of := s.calls.Budgets.Size()
	out["rate budgets"], out["intents"], out["limits"] = of.Sites, of.Intents, of.Limits
	out["bytes of a book"] = of.Bytes
	return out
}
