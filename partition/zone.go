package partition

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"github.com/mr-tron/base58"
)

// Zone is the scope of one membership list: a prefix of the 64-bit space. It is written like a
// Slice (the prefix's bits, a single 1 bit, then zeros), but the prefix may be empty. A zone
// has the members whose place begins with the prefix, and the slices that begin with it. Those
// members keep those slices.
//
// HashZone has all hash slices, EarthZone all geo slices. Repeated halving gives every other
// zone. Take a set of zones in which none is inside another and to which none can be added. It
// divides the slices of a kind: each slice is in exactly one of the zones.
//
// A peer's place among the hash zones is the SHA-256 of its peer id. This is also its place in
// Kademlia. So a Kademlia lookup of a slice's place ends at members of its zone, however deep
// that zone was split. And the peer id shows whether a peer belongs to a zone.
type Zone uint64

// The zones that are in no other zone.
const (
	HashZone  Zone = 7 << 61 // the prefix 11
	EarthZone Zone = 1 << 63 // the empty prefix; hash slices are not in it
)

// ErrZone is wrapped by every error of ParseZone.
var ErrZone = errors.New("not a zone")

// MaxZoneDepth is how often HashZone can be halved: the largest number of bits of a slice. The
// smallest zone of the earth is a cell of level 12, like the smallest slice.
const (
	MaxZoneDepth   = MaxSliceBits
	maxEarthLength = 3 + 2*12
)

// length returns the number of bits of the prefix.
func (z Zone) length() int { return 63 - bits.TrailingZeros64(uint64(z)) }

// IsHash reports whether z is HashZone or inside it.
func (z Zone) IsHash() bool { return z>>62 == 3 && z.length() >= 2 }

// Depth returns how many halvings z is away from HashZone or EarthZone.
func (z Zone) Depth() int {
	switch n := z.length(); {
	case z.IsHash():
		return n - 2
	case z>>63 == 1 && n > 0:
		return n - 1 // the second half of the earth is 10: 11 is not the earth
	default:
		return n
	}
}

// Valid reports whether z is a zone.
func (z Zone) Valid() bool {
	switch {
	case z == 0:
		return false
	case z.IsHash():
		return z.Depth() <= MaxZoneDepth
	}
	return z == EarthZone || z>>62 != 3 && z.length() <= maxEarthLength
}

// Halves returns the two zones into which z splits.
func (z Zone) Halves() (low, high Zone) {
	if z == EarthZone {
		return 1 << 62, 5 << 61 // faces 0 to 3, faces 4 and 5
	}
	half := z & -z >> 1
	return z&^(half<<1) | half, z | half
}

// Parent returns the zone of which z is a half. HashZone and EarthZone are their own parents.
func (z Zone) Parent() Zone {
	switch {
	case z == HashZone || z == EarthZone:
		return z
	case !z.IsHash() && z.Depth() == 1:
		return EarthZone
	}
	marker := z & -z
	return z&^(marker|marker<<1) | marker<<1
}

// Other returns the other half of z's parent.
func (z Zone) Other() Zone {
	low, high := z.Parent().Halves()
	if z == low {
		return high
	}
	return low
}

// within reports whether the prefix x, in the form of a Slice, begins with z's prefix.
func (z Zone) within(x uint64) bool {
	return x != 0 && bits.TrailingZeros64(x) <= bits.TrailingZeros64(uint64(z)) && (x^uint64(z))>>(64-z.length()) == 0
}

// Has reports whether s is in z.
func (z Zone) Has(s Slice) bool {
	return z.IsHash() == (s>>62 == 3) && z.within(uint64(s))
}

// Inside reports whether z is outer or a part of it.
func (z Zone) Inside(outer Zone) bool {
	return z.IsHash() == outer.IsHash() && outer.within(uint64(z))
}

// Overlaps reports whether some slices are in both.
func (z Zone) Overlaps(other Zone) bool { return z.Inside(other) || other.Inside(z) }

// Slices returns the slices of all that are in z. all must be in order.
func (z Zone) Slices(all []Slice) []Slice {
	var out []Slice
	for _, s := range all {
		if z.Has(s) {
			out = append(out, s)
		}
	}
	return out
}

// String returns "hash" or "earth", and for a part of it also a slash and the halvings.
// "hash/010" is the first half of the second half of the first half.
func (z Zone) String() string {
	if !z.Valid() {
		return fmt.Sprintf("no zone %016x", uint64(z))
	}
	root, path := "earth", fmt.Sprintf("%064b", uint64(z))[:z.length()]
	switch {
	case z.IsHash():
		root, path = "hash", path[2:]
	case z.Depth() < z.length():
		path = "1" + path[2:]
	}
	if path == "" {
		return root
	}
	return root + "/" + path
}

// ParseZone reads only what String writes.
func ParseZone(text string) (Zone, error) {
	root, path, _ := strings.Cut(text, "/")
	z := HashZone
	if root == "earth" {
		z = EarthZone
	}
	for _, c := range path[:min(len(path), 64)] {
		low, high := z.Halves()
		if z = low; c == '1' {
			z = high
		}
	}
	if !z.Valid() || z.String() != text {
		return 0, fmt.Errorf("parse zone: %w: %s", ErrZone, quote(text))
	}
	return z, nil
}

// PlaceOf returns the place of the peer id among the hash zones: the first 64 bits of the
// peer's Kademlia key. A text that is no peer id also has a place.
func PlaceOf(id string) uint64 {
	raw, err := base58.Decode(id)
	if err != nil || len(raw) == 0 {
		raw = []byte(id)
	}
	sum := sha256.Sum256(raw)
	return binary.BigEndian.Uint64(sum[:])
}

// HashZoneAt returns the zone of that depth that contains place.
func HashZoneAt(place uint64, depth int) Zone {
	return Zone(hashSlice(place, min(max(depth, 0), MaxZoneDepth)))
}

// ZoneOfPeer returns the hash zone of that depth to which the peer id belongs.
func ZoneOfPeer(id string, depth int) Zone { return HashZoneAt(PlaceOf(id), depth) }

// ZoneOfSlice returns the zone of that depth that contains s: a hash zone or a zone of the
// earth. A zone is never deeper than the slice's prefix is long.
func ZoneOfSlice(s Slice, depth int) Zone {
	z := EarthZone
	if s>>62 == 3 {
		z = HashZone
	}
	for range depth {
		low, high := z.Halves()
		switch {
		case low.Has(s):
			z = low
		case high.Has(s):
			z = high
		default:
			return z
		}
	}
	return z
}

// HasPeer reports whether the peer id belongs to z, a hash zone.
func (z Zone) HasPeer(id string) bool { return z.IsHash() && ZoneOfPeer(id, z.Depth()) == z }
