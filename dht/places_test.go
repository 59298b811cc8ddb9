package dht

import "testing"

// One peer cannot take all places, and calls that are not urgent leave places for urgent ones.
func TestPlacesAreSharedOut(t *testing.T) {
	p := places{all: 8, peer: 3, bulk: 6}
	for i := range 5 {
		if got := p.take("flood"); got != (i < 3) {
			t.Errorf("place %d of one peer: %v", i, got)
		}
	}
	for i := range 3 {
		if !p.take("other") {
			t.Errorf("another peer gets no place %d", i)
		}
	}
	for range 6 {
		if !p.takeBulk() {
			t.Error("no place for bulk")
		}
	}
	if p.takeBulk() {
		t.Error("bulk takes the places of what is urgent")
	}
	p.leaveBulk()
	if !p.takeBulk() {
		t.Error("a place that was left is not free")
	}
	for range 3 {
		p.leave("flood")
	}
	if p.taken() != 3 || len(p.of) != 1 || !p.take("flood") {
		t.Errorf("%d taken, %v", p.taken(), p.of)
	}
}
