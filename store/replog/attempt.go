package replog

import (
	"github.com/echo-node/echo-node/store/format"
)

// staleTrial says of attempts that do not come by the log of the slice's owner whether they were over before the
// Key was fetched last: nobody tells that again.
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
