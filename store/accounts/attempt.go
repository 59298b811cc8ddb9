package accounts

// TrialGone deletes a row. Later reads in this batch do not see the row either.
func (t *Batch) TrialGone(row []byte) error {
	if t.items == nil {
		t.items = map[string][]byte{}
	}
	t.items[string(row)] = nil
	return t.Rows.Delete(row, nil)
}
