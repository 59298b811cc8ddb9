package engine

// Barrier returns when everything that was visible before the call is durable. This holds because
// the write-ahead log is written in order. Barrier needs no space, so a full disk does not refuse
// it.
func (s *Engine) Barrier() error {
	if f := s.failed.Load(); f != nil {
		return f.err
	}
	b := s.DB.NewBatch()
	_ = b.LogData([]byte{0}, nil)
	return s.Commit(b)
}
