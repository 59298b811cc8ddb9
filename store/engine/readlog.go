package engine

// Barrier returns when all that was visible before is durable: the write-ahead
// log is written in order. It takes no room, so a full disk does not refuse it.
func (s *Engine) Barrier() error {
	if f := s.failed.Load(); f != nil {
		return f.err
	}
	b := s.DB.NewBatch()
	_ = b.LogData([]byte{0}, nil)
	return s.Commit(b)
}
