package accounts

// TrialGone removes a row, for what this batch writes after that, too.
func (t *Batch) TrialGone(row []byte) error {
	if t.items == nil {
		t.items = map[string][]byte{}
	}
	t.items[string(row)] = nil
	return t.Rows.Delete(row, nil)
}
