package replog

import (
	"github.com/echo-node/echo-node/store/format"
)

// staleTrial reports whether an attempt ended before the Key was last fetched. It is for rows that
// do not come through the log of the slice's owner: the owner sends the end of such an attempt only
// once.
func (m *merger) staleTrial(i incoming) (bool, error) {
	t, err := format.DecodeTrial(i.body)
	if err != nil || len(t.Deaths) > 0 {
		return false, err
	}
	st, err := m.stateOf(i.id, i.key)
	if err != nil || st == nil {
		return false, err
	}
	return !t.Open.At.After(st.Fetched), nil
}
