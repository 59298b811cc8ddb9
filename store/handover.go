package store

// Sent says that r is of a log and tells that a link was sent.
func (r Row) Sent() bool { return len(r.Key) > 0 && r.Key[0] == 'X' && len(r.Value) == 0 }
