package store

// Sent reports whether r is a row of a log that says that a link was sent.
func (r Row) Sent() bool { return len(r.Key) > 0 && r.Key[0] == 'X' && len(r.Value) == 0 }
