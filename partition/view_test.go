package partition

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A View is sorted, copies its members, and keeps the last member of an ID.
func TestView(t *testing.T) {
	p := &Point{1, 2}
	in := []Member{{ID: "b", Capacity: 1}, {ID: "a", Addrs: []string{"x"}, Location: p}, {ID: "b", Capacity: 2}}
	v := NewView(in)
	in[1].Addrs[0], p.Lat = "changed", 9
	want := []Member{{ID: "a", Addrs: []string{"x"}, Location: &Point{1, 2}}, {ID: "b", Capacity: 2}}
	if !reflect.DeepEqual(v.Members(), want) || v.Len() != 2 {
		t.Errorf("members %+v", v.Members())
	}
	if m, ok := v.Find("b"); !ok || m.Capacity != 2 {
		t.Errorf("Find b: %+v, %v", m, ok)
	}
	if m, ok := v.Find("c"); ok || m.ID != "" {
		t.Errorf("Find c: %+v, %v", m, ok)
	}
	if (View{}).Digest() != 0 || NewView(nil).Digest() != 0 || NewView(nil).Len() != 0 {
		t.Error("the empty view has a digest")
	}
}

// The digest does not depend on the order, and changes with each field.
func TestViewDigest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := NewView(drawMembers(t))
		if v.Len() == 0 {
			return
		}
		if w := NewView(rapid.Permutation(v.Members()).Draw(t, "order")); w.Digest() != v.Digest() {
			t.Fatal("the digest depends on the order")
		}
		other := slices.Clone(v.Members())
		m := &other[rapid.IntRange(0, len(other)-1).Draw(t, "member")]
		switch rapid.IntRange(0, 5).Draw(t, "field") {
		case 0:
			m.ID += "x"
		case 1:
			m.Addrs = []string{"/ip4/192.0.2.1/udp/1/quic-v1"}
		case 2:
			m.Capacity++
		case 3:
			m.LoadStep++
		case 4:
			m.Version = "v"
		case 5:
			m.Location = &Point{math.Pi, 0}
		}
		if NewView(other).Digest() == v.Digest() {
			t.Fatalf("same digest for %+v and %+v", other, v.Members())
		}
	})
}
