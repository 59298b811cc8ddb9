package member

// Sealed returns the descriptor of a live member as the member sealed it. It returns nil when
// id is no member. Do not modify.
func (l *List) Sealed(id string) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, known := l.checked[id]
	if _, live := l.members[id]; !live || !known {
		return nil
	}
	return c.raw
}
