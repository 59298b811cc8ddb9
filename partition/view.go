package partition

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Point is a place on the sphere in degrees, WGS 84.
type Point struct {
	Lat float64 `json:"lat"`
	Lon float64 `json:"lon"`
}

// Valid reports whether p is on the sphere: latitude -90 to 90, longitude -180 to 180, neither
// NaN.
func (p Point) Valid() bool {
	return p.Lat >= -90 && p.Lat <= 90 && p.Lon >= -180 && p.Lon <= 180
}

// The bounds of what a Member may claim. Values outside are clamped.
const (
	MaxCapacity = 16
	MaxLoadStep = 16
)

// Member is a live peer as the others see it.
type Member struct {
	ID       string   `json:"id"`                 // libp2p peer id, text
	Addrs    []string `json:"addrs"`              // multiaddrs, without /p2p/ID
	Location *Point   `json:"location,omitempty"` // an invalid Point counts as none
	Capacity int      `json:"capacity"`           // 1 to 16; anything else is clamped
	// 0 to 16: the weight is multiplied by 2^(-LoadStep/2)
	LoadStep int    `json:"loadstep"`
	Version  string `json:"version"` // of the program
	// ZoneDepth is how often the hash space was halved to get this peer's zone; 0 = the peer
	// knows only the whole zone.
	ZoneDepth int `json:"zonedepth,omitempty"`
	// ZoneFree: the peer holds nothing of the zone that was split. It is also true when no zone
	// was split.
	ZoneFree bool `json:"zonefree,omitempty"`
}

// View is this peer's own list of live members, sorted by ID, and its digest. It is local: two
// peers never share one true View. The zero View is empty. A View is immutable and safe for
// concurrent use.
type View struct {
	members []Member
	digest  uint64
}

// NewView sorts and copies ms. Of members with the same ID the last one wins.
func NewView(ms []Member) View {
	members := make([]Member, 0, len(ms))
	last := make(map[string]int, len(ms))
	for _, m := range ms {
		m.Addrs = slices.Clone(m.Addrs)
		if m.Location != nil {
			p := *m.Location
			m.Location = &p
		}
		if i, ok := last[m.ID]; ok {
			members[i] = m
			continue
		}
		last[m.ID] = len(members)
		members = append(members, m)
	}
	if len(members) == 0 {
		return View{}
	}
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	return View{members: members, digest: digestMembers(members)}
}

// digestMembers hashes the fields of every member, and each text with its length. ZoneFree counts
// only if ZoneDepth is not 0, so that the digest of a View without split zones does not depend on
// it.
func digestMembers(members []Member) uint64 {
	var b []byte
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	for _, m := range members {
		text(m.ID)
		b = binary.AppendUvarint(b, uint64(len(m.Addrs)))
		for _, a := range m.Addrs {
			text(a)
		}
		if m.Location == nil {
			b = append(b, 0)
		} else {
			b = append(b, 1)
			b = binary.BigEndian.AppendUint64(b, math.Float64bits(m.Location.Lat))
			b = binary.BigEndian.AppendUint64(b, math.Float64bits(m.Location.Lon))
		}
		b = binary.AppendVarint(b, int64(m.Capacity))
		b = binary.AppendVarint(b, int64(m.LoadStep))
		text(m.Version)
		if m.ZoneDepth != 0 {
			b = binary.AppendVarint(append(b, 'z'), int64(m.ZoneDepth))
			if m.ZoneFree {
				b = append(b, 'f')
			}
		}
	}
	return xxhash.Sum64(b)
}

// Members returns the members in order of ID. Do not modify.
func (v View) Members() []Member { return v.members }

// Len returns the number of members.
func (v View) Len() int { return len(v.members) }

// Find returns the member with that id.
func (v View) Find(id string) (Member, bool) {
	i, ok := slices.BinarySearchFunc(v.members, id, func(m Member, id string) int { return strings.Compare(m.ID, id) })
	if !ok {
		return Member{}, false
	}
	return v.members[i], true
}

// Digest is equal for equal views, and 0 for the empty one. It is a 64-bit hash: it detects
// differences between honest peers, and no more.
func (v View) Digest() uint64 { return v.digest }
