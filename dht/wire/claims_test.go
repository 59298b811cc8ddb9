package wire

import (
	"errors"
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/echo-node/echo-node/partition"
)

// Whatever a peer signs about itself, capacity and load step are clamped, and an invalid
// location is refused. NaN cannot even be encoded, because degrees are sent as whole numbers. A
// descriptor that another peer signed counts for nothing.
func TestClaimsOfAPeerAreClamped(t *testing.T) {
	key, id := newKey(t)
	other, _ := newKey(t)
	seal := func(pb *PeerDescriptor) []byte {
		t.Helper()
		body, err := proto.Marshal(pb)
		if err != nil {
			t.Fatal(err)
		}
		sig, err := key.Sign(signed(descriptorDomain, space, body))
		if err != nil {
			t.Fatal(err)
		}
		return append(sig, body...)
	}
	for _, claim := range []uint32{0, 17, 1e9, math.MaxUint32} {
		d, err := OpenDescriptor(id, space, seal(&PeerDescriptor{Sequence: 1, Capacity: claim, LoadStep: claim}),
			time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if c, l := d.Member.Capacity, d.Member.LoadStep; c < MinCapacity || c > MaxCapacity || l < 0 ||
			l > MaxLoadStep {
			t.Errorf("claimed %d: capacity %d, load step %d", claim, c, l)
		}
	}
	for name, p := range map[string]*GeoPoint{"north of the pole": {LatE7: 90*e7 + 1},
		"beyond the date line":    {LonE7: -180*e7 - 1},
		"the ends of the numbers": {LatE7: math.MinInt32, LonE7: math.MaxInt32}} {
		if _, err := OpenDescriptor(id, space, seal(&PeerDescriptor{Sequence: 1, Location: p}),
			time.Time{}); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, p := range []partition.Point{{Lat: math.NaN()}, {Lon: math.NaN()}, {Lat: math.Inf(1)}, {Lat: 91}} {
		if _, err := (Descriptor{Member: partition.Member{Location: &p}}).Seal(key, space, MaxDescriptor); err == nil {
			t.Errorf("%v was sealed", p)
		}
	}
	forged, err := (Descriptor{Member: partition.Member{Capacity: 16}, Sequence: 9}).Seal(other, space, MaxDescriptor)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDescriptor(id, space, forged, time.Time{}); !errors.Is(err, ErrSignature) {
		t.Errorf("capacity claimed by another: %v", err)
	}
}
