package queue

import (
	"fmt"
	"testing"

	"github.com/echo-node/echo-node/partition"
)

func TestAnsweredForgetsButNeverConfuses(t *testing.T) {
	f := newAnswered(100)
	h := func(n int) [16]byte { return partition.Key(fmt.Sprintf("web:https://a.example/%d", n)).Hash128() }
	for n := range 1000 {
		f.add(h(n))
		if len(f.now)+len(f.old) > 200 {
			t.Fatalf("%d remembered", len(f.now)+len(f.old))
		}
	}
	for n := range 2000 {
		if f.Has(h(n)) != (n < 1000) && n >= 900 {
			t.Errorf("%d: %v", n, f.Has(h(n)))
		}
		if n < 800 && f.Has(h(n)) {
			t.Errorf("%d is remembered", n)
		}
	}
}
