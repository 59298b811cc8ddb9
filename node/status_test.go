package node

import (
	"testing"

	"github.com/echo-node/echo-node/store"
)

func TestDeadShare(t *testing.T) {
	for _, c := range []struct {
		st   store.Stats
		want float64
	}{
		{store.Stats{}, 0},
		{store.Stats{Done: 10, Records: 10, Gone: 5}, 0}, // gone, and never had
		{store.Stats{Done: 7, Records: 10, Gone: 2, Refused: 1}, 0.3},
		{store.Stats{Done: 7, Records: 10, Placed: 9}, 0},
	} {
		if got := deadShare(c.st); got != c.want {
			t.Errorf("%+v: %g, want %g", c.st, got, c.want)
		}
	}
}
