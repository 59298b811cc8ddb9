package member

// Sealed is the descriptor of a live member as it sealed it; nil when id is no
// member. Do not modify.
func (l *List) Sealed(id string) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, known := l.checked[id]
	if _, live := l.members[id]; !live || !known {
		return nil
	}
	return c.raw
}
