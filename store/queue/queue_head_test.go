package queue

import (
	"testing"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/format"
)

// When there are more queues than are remembered, the others are read from their beginning.
func TestFrontsAreForgotten(t *testing.T) {
	var f fronts
	id := func(n int) format.SiteID { return format.SiteID{Slice: partition.Slice(n)} }
	_, change := f.get(id(0), []byte("a"))
	for n := range maxFronts {
		f.get(id(n+1), []byte("a"))
	}
	if len(f.by) > maxFronts {
		t.Errorf("%d fronts", len(f.by))
	}
	if f.set(id(0), []byte("m"), change); len(f.by) > maxFronts {
		t.Errorf("%d fronts", len(f.by))
	}
	if from, _ := f.get(id(0), []byte("a")); string(from) != "a" {
		t.Errorf("begins at %q, a reader of before said so", from)
	}
}
