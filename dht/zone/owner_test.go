package zone

import (
	"strings"
	"testing"

	"github.com/echo-node/echo-node/partition"
)

// The key of a walk to a slice has its place in that slice, up to walkBits bits.
func TestPlaceKey(t *testing.T) {
	for _, text := range []string{"h/0a3", "h/1:1", "h/fffff", "h/00"} {
		s, err := partition.ParseSlice(text)
		if err != nil {
			t.Fatal(err)
		}
		if key := placeKey(s); !strings.HasPrefix(key, "echo-node place ") {
			t.Errorf("%s: %q", s, key)
		}
		// PlaceOf hashes a text that is no peer id like Kademlia hashes a key.
		if z := partition.ZoneOfPeer(placeKey(s), min(s.Bits(), walkBits)); !z.Has(s) {
			t.Errorf("%s is not in %s", s, z)
		}
	}
}
